"""The light client and boto3 against one real process: the same answers, and what only the light one can ask for."""

import re
from typing import Any
from zlib import crc32

import pytest
from botocore.exceptions import ClientError

from elasticq.client import Sqs, SqsError
from tests.system.acceptance.raw import Endpoint


@pytest.fixture
def light(server: str) -> Any:
    with Sqs(server, "us-east-1", ("000000000000", "secret")) as client:
        yield client


def without_metadata(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def test_both_clients_see_the_same(sqs: Any, light: Sqs, queue_url: str, queue_name: str) -> None:
    attributes = {"raw": {"DataType": "Binary", "BinaryValue": b"\0\xff"}}
    sent = light.send_message(QueueUrl=queue_url, MessageBody="h\u00e9", MessageAttributes=attributes)
    asked = {"QueueUrl": queue_url, "AttributeNames": ["SentTimestamp"], "MessageAttributeNames": ["All"]}
    (by_boto3,) = sqs.receive_message(**asked, VisibilityTimeout=0)["Messages"]
    (by_light,) = light.receive_message(**asked)["Messages"]
    assert by_boto3["MessageId"] == by_light["MessageId"] == sent["MessageId"]
    assert by_boto3 | {"ReceiptHandle": ""} == by_light | {"ReceiptHandle": ""}
    light.delete_message(QueueUrl=queue_url, ReceiptHandle=by_light["ReceiptHandle"])
    named = {"QueueUrl": queue_url, "AttributeNames": ["All"]}
    assert without_metadata(sqs.get_queue_attributes(**named)) == without_metadata(light.get_queue_attributes(**named))
    assert light.get_queue_url(QueueName=queue_name)["QueueUrl"] == queue_url


def test_both_clients_get_the_same_error(sqs: Any, light: Sqs, queue_url: str) -> None:
    for wrong in ({"QueueUrl": queue_url, "MaxNumberOfMessages": 11}, {"QueueUrl": queue_url + "-gone"}):
        with pytest.raises(ClientError) as by_boto3:
            sqs.receive_message(**wrong)
        with pytest.raises(SqsError) as by_light:
            light.receive_message(**wrong)
        error = by_light.value.response["Error"]
        assert {name: by_boto3.value.response["Error"][name] for name in error} == error


def test_pages_of_a_thousand_are_sent_received_and_deleted(light: Sqs, queue_url: str) -> None:
    entries = [{"Id": str(at), "MessageBody": f"message {at}"} for at in range(1_000)]
    page = {"QueueUrl": queue_url, "ElasticqPageSize": 1_000}
    assert len(light.send_message_batch(**page, Entries=entries)["Successful"]) == 1_000
    messages = light.receive_message(**page)["Messages"]
    assert [message["Body"] for message in messages] == [entry["MessageBody"] for entry in entries]
    handles = [{"Id": str(at), "ReceiptHandle": x["ReceiptHandle"]} for at, x in enumerate(messages)]
    assert "Failed" not in light.delete_message_batch(**page, Entries=handles)
    assert "Messages" not in light.receive_message(**page)


def test_without_a_page_size_ten_is_the_most(light: Sqs, queue_url: str) -> None:
    entries = [{"Id": str(at), "MessageBody": "x"} for at in range(11)]
    with pytest.raises(SqsError, match=r"Maximum number of entries per request are 10\. You have sent 11\."):
        light.send_message_batch(QueueUrl=queue_url, Entries=entries)
    with pytest.raises(SqsError, match="Must be between 1 and 10, if provided"):
        light.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=11)
    with pytest.raises(SqsError, match="ElasticqPageSize"):
        light.receive_message(QueueUrl=queue_url, ElasticqPageSize=1_001)


def test_partition_is_known_to_both_protocols(light: Sqs, endpoint: Endpoint) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": "3"}
    url = light.create_queue(QueueName="lanes.fifo", Attributes=attributes)["QueueUrl"]
    for number in range(6):
        light.send_message(QueueUrl=url, MessageBody=f"m{number}", MessageGroupId=f"g{number}")
    shown = {message["Body"]: message["Partition"] for message in light.peek(QueueUrl=url)["Messages"]}
    assert shown == {f"m{number}": crc32(f"g{number}".encode()) % 3 for number in range(6)}
    for partition in range(3):
        own = {body for body, other in shown.items() if other == partition}
        page = {"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0, "ElasticqPartition": partition}
        assert {message["Body"] for message in light.receive_message(**page)["Messages"]} == own
        form = {"QueueUrl": url, "MaxNumberOfMessages": "10", "ElasticqPartition": str(partition)}
        answer = endpoint.query("ReceiveMessage", form)
        assert {text.decode() for text in re.findall(rb"<Body>(.*?)</Body>", answer.body)} == own
    with pytest.raises(SqsError, match="Must be between 0 and 2"):
        light.receive_message(QueueUrl=url, ElasticqPartition=3)
    answer = endpoint.query("ReceiveMessage", {"QueueUrl": url, "ElasticqPartition": "one"})
    assert (answer.status, b"InvalidParameterValue" in answer.body) == (400, True)


def test_query_protocol_knows_no_page_size(sqs: Any, endpoint: Endpoint, queue_url: str) -> None:
    for at in range(3):
        sqs.send_message(QueueUrl=queue_url, MessageBody=str(at))
    answer = endpoint.query("ReceiveMessage", {"QueueUrl": queue_url, "ElasticqPageSize": "3"})
    assert answer.body.count(b"<Message>") == 1
