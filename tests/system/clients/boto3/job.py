"""Plain boto3 at its defaults: typed errors, attributes, batches, a dead-letter queue, FIFO."""

import json
import os
import uuid
from typing import Any

import boto3

ENDPOINTS = os.environ["ENDPOINTS"].split(",")
clients: list[Any] = [boto3.client("sqs", endpoint_url=endpoint) for endpoint in ENDPOINTS]
one, other = clients[0], clients[-1]
name = f"boto3-{uuid.uuid4().hex}"

try:
    other.get_queue_url(QueueName=name)
except other.exceptions.QueueDoesNotExist:
    pass
else:
    raise AssertionError("a missing queue is QueueDoesNotExist")

dead = one.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
arn = other.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
url = one.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive, "VisibilityTimeout": "0"})["QueueUrl"]

blob = {"blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
entries = [{"Id": str(at), "MessageBody": f"body {at}", "MessageAttributes": blob} for at in range(10)]
assert len(one.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 10
found: list[Any] = []
while len(found) < 10:
    found += other.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5, MessageAttributeNames=["All"], VisibilityTimeout=60
    ).get("Messages", [])
assert {each["Body"] for each in found} == {f"body {at}" for at in range(10)}
assert all(each["MessageAttributes"]["blob"]["BinaryValue"] == b"\x00\xff" for each in found)
poison = found.pop()
gone = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(found)]
assert len(one.delete_message_batch(QueueUrl=url, Entries=gone)["Successful"]) == 9
one.change_message_visibility(QueueUrl=url, ReceiptHandle=poison["ReceiptHandle"], VisibilityTimeout=0)
assert "Messages" not in other.receive_message(QueueUrl=url)
[letter] = one.receive_message(QueueUrl=dead, WaitTimeSeconds=5)["Messages"]
assert letter["MessageId"] == poison["MessageId"]

fifo = one.create_queue(
    QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
)["QueueUrl"]
sent = [other.send_message(QueueUrl=fifo, MessageBody=body, MessageGroupId="g") for body in ("a", "a", "b")]
assert sent[0]["SequenceNumber"] == sent[1]["SequenceNumber"] < sent[2]["SequenceNumber"]
assert [each["Body"] for each in one.receive_message(QueueUrl=fifo, MaxNumberOfMessages=10)["Messages"]] == ["a", "b"]

for each in (url, dead, fifo):
    one.delete_queue(QueueUrl=each)
print("boto3: typed error, batch of 10, dead letter, FIFO deduplication")
