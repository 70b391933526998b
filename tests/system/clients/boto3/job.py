"""Plain boto3 at its defaults: typed errors, attributes, batches, a dead-letter queue, FIFO, topics."""

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

topics: list[Any] = [boto3.client("sns", endpoint_url=endpoint) for endpoint in ENDPOINTS]
sns, other_sns = topics[0], topics[-1]
try:
    other_sns.publish(TopicArn=f"arn:aws:sns:us-east-1:000000000000:{name}", Message="x")
except other_sns.exceptions.NotFoundException:
    pass
else:
    raise AssertionError("a missing topic is NotFoundException")
topic = sns.create_topic(Name=name, Tags=[{"Key": "team", "Value": "clients"}])["TopicArn"]
filtered = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"kind": ["new", {"prefix": "re"}]})}
raw = other_sns.subscribe(
    TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=filtered, ReturnSubscriptionArn=True
)["SubscriptionArn"]
assert (
    json.loads(sns.get_subscription_attributes(SubscriptionArn=raw)["Attributes"]["FilterPolicy"])["kind"][0] == "new"
)
for kind in ("new", "old"):
    kinds = {"kind": {"DataType": "String", "StringValue": kind}, **blob}
    other_sns.publish(TopicArn=topic, Message=f"of kind {kind}", MessageAttributes=kinds)
[copy] = one.receive_message(QueueUrl=dead, MessageAttributeNames=["All"], WaitTimeSeconds=5, MaxNumberOfMessages=10)[
    "Messages"
]
assert (copy["Body"], copy["MessageAttributes"]["blob"]["BinaryValue"]) == ("of kind new", b"\x00\xff")

ordered = other_sns.create_topic(Name=f"{name}.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
fifo_arn = one.get_queue_attributes(QueueUrl=fifo, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
sns.subscribe(TopicArn=ordered, Protocol="sqs", Endpoint=fifo_arn)
published = other_sns.publish_batch(
    TopicArn=ordered,
    PublishBatchRequestEntries=[
        {"Id": str(at), "Message": text, "MessageGroupId": "topics", "MessageDeduplicationId": text}
        for at, text in enumerate(("c", "c", "d"))
    ],
)
ids = [each["MessageId"] for each in published["Successful"]]
assert (ids[0], published["Failed"]) == (ids[1], [])
envelopes = [
    json.loads(each["Body"]) for each in one.receive_message(QueueUrl=fifo, MaxNumberOfMessages=10)["Messages"]
]
assert [(each["Message"], each["MessageId"]) for each in envelopes] == [("c", ids[0]), ("d", ids[2])]
assert topic in [each["TopicArn"] for page in sns.get_paginator("list_topics").paginate() for each in page["Topics"]]

for each in (topic, ordered):
    sns.delete_topic(TopicArn=each)
for each in (url, dead, fifo):
    one.delete_queue(QueueUrl=each)
print("boto3: typed errors, batch of 10, dead letter, FIFO deduplication; topic with a filter, FIFO topic")
