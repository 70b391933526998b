"""Looking into queues of a real process: the light client's peek, and LocalStack's page of messages."""

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
import xmltodict
from botocore.config import Config
from botocore.exceptions import ClientError

from elasticq.client import Sqs, SqsError


@pytest.fixture
def light(server: str) -> Any:
    with Sqs(server, "us-east-1", ("000000000000", "secret")) as client:
        yield client


def fetch(server: str, path: str, accept: str = "application/json", **query: str) -> tuple[int, bytes]:
    url = f"{server}{path}?{urlencode(query)}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def listed(server: str, queue_url: str, **query: str) -> Any:
    status, body = fetch(server, "/_aws/sqs/messages", QueueUrl=queue_url, **query)
    assert status == 200
    result = json.loads(body)["ReceiveMessageResponse"]["ReceiveMessageResult"]
    return result and result["Message"]


def test_peek_pages_through_a_queue(light: Sqs, queue_url: str) -> None:
    entries = [
        {"Id": str(at), "MessageBody": f"m{at}", "MessageAttributes": {"n": {"DataType": "Number", "StringValue": "1"}}}
        for at in range(25)
    ]
    light.send_message_batch(QueueUrl=queue_url, Entries=entries, ElasticqPageSize=25)
    light.receive_message(QueueUrl=queue_url)
    first = light.peek(QueueUrl=queue_url, Limit=20)
    assert len(first["Messages"]) == 20
    second = light.peek(QueueUrl=queue_url, FromSequence=first["NextSequence"])
    messages = first["Messages"] + second["Messages"]
    assert second["NextSequence"] is None
    assert [message["Body"] for message in messages] == [f"m{at}" for at in range(25)]
    head = messages[0]
    assert (head["State"], head["ReceiveCount"], head["SenderId"]) == ("inflight", 1, "000000000000")
    assert head["FirstReceiveTimestamp"] >= head["SentTimestamp"] > 0
    assert head["MessageAttributes"] == {"n": {"DataType": "Number", "StringValue": "1"}}
    assert len(light.peek(QueueUrl=queue_url, States=["inflight"])["Messages"]) == 1
    assert light.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"][
        "ApproximateNumberOfMessages"
    ] == str(24)


def test_peek_tells_what_is_wrong(light: Sqs, queue_url: str) -> None:
    with pytest.raises(SqsError) as caught:
        light.peek(QueueUrl=queue_url + "-gone")
    assert caught.value.type == "QueueDoesNotExist"
    with pytest.raises(SqsError, match="parameter Limit"):
        light.peek(QueueUrl=queue_url, Limit=1_001)
    with pytest.raises(SqsError, match="can not be converted"):
        light.peek(QueueUrl=queue_url, Limit="many")


def test_localstack_page_has_no_side_effects(server: str, sqs: Any, queue_url: str) -> None:
    for body in ("message-1", "message-2"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body)
    status, xml = fetch(server, "/_aws/sqs/messages", "*/*", QueueUrl=queue_url)
    assert status == 200
    messages = xmltodict.parse(xml)["ReceiveMessageResponse"]["ReceiveMessageResult"]["Message"]
    counts = [{x["Name"]: x["Value"] for x in each["Attribute"]}["ApproximateReceiveCount"] for each in messages]
    assert counts == ["0", "0"]
    assert {each["ReceiptHandle"] for each in messages} == {"SQS/BACKDOOR/ACCESS"}
    (received,) = sqs.receive_message(QueueUrl=queue_url, AttributeNames=["All"])["Messages"]
    assert received["Attributes"]["ApproximateReceiveCount"] == "1"


def test_localstack_json_shows_invisible_and_delayed_messages_when_asked(server: str, sqs: Any, queue_url: str) -> None:
    assert listed(server, queue_url) is None
    for body in ("message-1", "message-2"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body)
    sqs.send_message(QueueUrl=queue_url, MessageBody="message-3", DelaySeconds=900)
    sqs.receive_message(QueueUrl=queue_url)
    assert listed(server, queue_url)["Body"] == "message-2"  # one message is no list there
    shown = listed(server, queue_url, ShowInvisible="True", ShowDelayed="true")
    attributes = [{x["Name"]: x["Value"] for x in each["Attribute"]} for each in shown]
    assert [(each["IsVisible"], each["IsDelayed"]) for each in attributes] == [
        ("false", "false"),
        ("true", "false"),
        ("true", "true"),
    ]


def test_localstack_page_hides_a_fifo_group_with_a_message_in_flight(server: str, sqs: Any, queue_name: str) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName=f"{queue_name}.fifo", Attributes=attributes)["QueueUrl"]
    for body, group in (("1", "a"), ("2", "a"), ("3", "b")):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group)
    sqs.receive_message(QueueUrl=url)
    assert listed(server, url)["Body"] == "3"
    assert len(listed(server, url, ShowInvisible="true")) == 3


def test_localstack_path_names_a_queue_too(server: str, sqs: Any, queue_url: str, queue_name: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="hello")
    status, body = fetch(server, f"/_aws/sqs/messages/us-east-1/000000000000/{queue_name}")
    assert status == 200
    assert json.loads(body)["ReceiveMessageResponse"]["ReceiveMessageResult"]["Message"]["Body"] == "hello"


def test_localstack_page_tells_a_missing_queue(server: str) -> None:
    for query in ({}, {"QueueUrl": "nowhere"}):
        status, body = fetch(server, "/_aws/sqs/messages", **query)
        assert status == 400
        assert json.loads(body)["ErrorResponse"]["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


def test_boto3_may_have_the_page_as_its_endpoint(server: str, sqs: Any, queue_url: str) -> None:
    for body in ("message-1", "message-2"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body)
    peeking = boto3.client(
        "sqs",
        endpoint_url=f"{server}/_aws/sqs/messages",
        region_name="us-east-1",
        aws_access_key_id="000000000000",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    got = peeking.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=1)["Messages"]
    assert [(message["Body"], message["Attributes"]["ApproximateReceiveCount"]) for message in got] == [
        ("message-1", "0"),
        ("message-2", "0"),
    ]
    with pytest.raises(ClientError, match="This endpoint only accepts ReceiveMessage calls"):
        peeking.send_message(QueueUrl=queue_url, MessageBody="x")
