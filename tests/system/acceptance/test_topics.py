"""boto3's sns and the AWS command line, unmodified, against a real process."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.system.acceptance.raw import Endpoint
from tests.system.aws import run_aws


def topics_client(server: str, region: str = "us-east-1") -> Any:
    """A boto3 client that makes one attempt a call."""
    return boto3.client(
        "sns",
        endpoint_url=server,
        region_name=region,
        aws_access_key_id="000000000000",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def sns(server: str) -> Any:
    return topics_client(server)


@pytest.fixture
def make_queue(sqs: Any) -> Callable[[], str]:
    """Creates a queue of a new name; returns its URL."""
    return lambda: str(sqs.create_queue(QueueName=f"queue-{uuid4().hex}")["QueueUrl"])


@pytest.fixture
def topic(sns: Any) -> str:
    arn: str = sns.create_topic(Name=f"topic-{uuid4().hex}")["TopicArn"]
    return arn


def arn_of(sqs: Any, url: str) -> str:
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return str(attributes["QueueArn"])


def received(sqs: Any, url: str) -> list[dict[str, Any]]:
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    )
    return list(answer.get("Messages", []))


def test_published_message_reaches_a_queue_in_an_envelope_and_raw(
    sns: Any, sqs: Any, topic: str, make_queue: Callable[[], str]
) -> None:
    plain, raw = make_queue(), make_queue()
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn_of(sqs, plain))
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn_of(sqs, raw), Attributes={"RawMessageDelivery": "true"})
    attributes = {
        "s": {"DataType": "String", "StringValue": "grün"},
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    published = sns.publish(TopicArn=topic, Message="hello ü", Subject="s", MessageAttributes=attributes)
    (enveloped,), (bare,) = received(sqs, plain), received(sqs, raw)
    told = json.loads(enveloped["Body"])
    assert (told["Message"], told["Subject"], told["MessageId"]) == ("hello ü", "s", published["MessageId"])
    assert told["MessageAttributes"]["b"] == {"Type": "Binary", "Value": "AP8="}
    assert "MessageAttributes" not in enveloped
    assert (bare["Body"], bare["MessageAttributes"]) == ("hello ü", attributes)


def test_filters_and_batches_and_fifo(sns: Any, sqs: Any, topic: str, make_queue: Callable[[], str]) -> None:
    red = make_queue()
    attributes = {"RawMessageDelivery": "true", "FilterPolicy": '{"color": ["red"]}'}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn_of(sqs, red), Attributes=attributes)
    entries = [
        {
            "Id": color,
            "Message": color,
            "MessageAttributes": {"color": {"DataType": "String", "StringValue": color}},
        }
        for color in ("red", "blue")
    ]
    answer = sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)
    assert ([each["Id"] for each in answer["Successful"]], answer["Failed"]) == (["red", "blue"], [])
    assert [message["Body"] for message in received(sqs, red)] == ["red"]


def test_order_and_duplicates_of_a_fifo_topic(sns: Any, sqs: Any) -> None:
    name = f"fifo-{uuid4().hex}.fifo"
    attributes = {"FifoTopic": "true", "ContentBasedDeduplication": "true"}
    topic = sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn_of(sqs, url), Attributes={"RawMessageDelivery": "true"})
    numbers = [
        sns.publish(TopicArn=topic, Message=body, MessageGroupId="g")["SequenceNumber"] for body in ("a", "b", "a", "c")
    ]
    assert numbers[2] == numbers[0] < numbers[1] < numbers[3]
    messages = received(sqs, url)
    assert [message["Body"] for message in messages] == ["a", "b", "c"]
    assert {message["Attributes"]["MessageGroupId"] for message in messages} == {"g"}


def test_lists_tags_attributes_and_permissions(sns: Any, topic: str) -> None:
    pages = sns.get_paginator("list_topics").paginate()
    assert topic in [each["TopicArn"] for page in pages for each in page["Topics"]]
    sns.tag_resource(ResourceArn=topic, Tags=[{"Key": "team", "Value": ""}])
    assert sns.list_tags_for_resource(ResourceArn=topic)["Tags"] == [{"Key": "team", "Value": ""}]
    sns.untag_resource(ResourceArn=topic, TagKeys=["team"])
    sns.set_topic_attributes(TopicArn=topic, AttributeName="DisplayName", AttributeValue="d")
    sns.add_permission(TopicArn=topic, Label="l", AWSAccountId=["111122223333"], ActionName=["Publish"])
    shown = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert (shown["DisplayName"], len(json.loads(shown["Policy"])["Statement"])) == ("d", 2)
    sns.remove_permission(TopicArn=topic, Label="l")
    sns.put_data_protection_policy(ResourceArn=topic, DataProtectionPolicy="{}")
    assert sns.get_data_protection_policy(ResourceArn=topic)["DataProtectionPolicy"] == "{}"
    made = sns.subscribe(TopicArn=topic, Protocol="sms", Endpoint="+15550100")["SubscriptionArn"]
    listed = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert [each["SubscriptionArn"] for each in listed] == [made]
    assert sns.list_subscriptions_by_topic(TopicArn=topic).get("NextToken") is None
    sns.set_subscription_attributes(SubscriptionArn=made, AttributeName="FilterPolicy", AttributeValue='{"a": ["b"]}')
    assert sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]["FilterPolicy"] == '{"a": ["b"]}'
    sns.unsubscribe(SubscriptionArn=made)
    sns.delete_topic(TopicArn=topic)
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_topic_attributes(TopicArn=topic)


def test_phones_and_mobile_push_answer_empty_or_that_they_are_not_there(sns: Any) -> None:
    assert sns.list_platform_applications()["PlatformApplications"] == []
    assert sns.get_sms_attributes()["attributes"] == {}
    assert sns.check_if_phone_number_is_opted_out(phoneNumber="+15550100")["isOptedOut"] is False
    with pytest.raises(ClientError) as caught:
        sns.create_platform_application(Name="a", Platform="GCM", Attributes={})
    assert caught.value.response["Error"]["Code"] == "InvalidAction"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda sns, topic: sns.publish(TopicArn=f"{topic}x", Message="m"), "NotFoundException"),
        (lambda sns, topic: sns.publish(TopicArn=topic, Message=""), "InvalidParameterException"),
        (
            lambda sns, topic: sns.publish(
                TopicArn=topic, Message="m", MessageAttributes={"a": {"DataType": "X", "StringValue": "y"}}
            ),
            "InvalidParameterValueException",
        ),
        (
            lambda sns, topic: sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[]),
            "EmptyBatchRequestException",
        ),
        (lambda sns, topic: sns.tag_resource(ResourceArn=f"{topic}x", Tags=[]), "ResourceNotFoundException"),
    ],
)
def test_error_is_the_class_that_programs_catch(sns: Any, topic: str, call: Callable[..., Any], name: str) -> None:
    with pytest.raises(getattr(sns.exceptions, name)):
        call(sns, topic)


def test_each_region_has_topics_of_its_own(server: str, sns: Any, topic: str) -> None:
    far = topics_client(server, "eu-west-1")
    name = topic.rpartition(":")[2]
    assert far.create_topic(Name=name)["TopicArn"] == topic.replace("us-east-1", "eu-west-1")
    with pytest.raises(far.exceptions.InvalidParameterException):
        far.publish(TopicArn=topic, Message="m")


def test_links_confirm_and_unsubscribe_without_a_signature(
    server: str, sns: Any, sqs: Any, topic: str, make_queue: Callable[[], str]
) -> None:
    url = make_queue()
    made = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn_of(sqs, url))["SubscriptionArn"]
    sns.publish(TopicArn=topic, Message="m")
    (message,) = received(sqs, url)
    link = json.loads(message["Body"])["UnsubscribeURL"]
    assert link == f"{server}/?Action=Unsubscribe&SubscriptionArn={made}"
    with urllib.request.urlopen(link, timeout=30) as answer:
        assert b"<UnsubscribeResponse" in answer.read()
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{server}/?Action=ConfirmSubscription&TopicArn={topic}&Token={'0' * 288}", timeout=30)
    assert b"<Message>Invalid parameter: Token</Message>" in caught.value.read()


@pytest.mark.parametrize(
    "body",
    [
        b"Action=Publish&Version=2010-03-31",
        b"Action=Publish&Version=2010-03-31&TopicArn=" + b"%00" * 200,
        b"Action=CreateTopic&Version=2010-03-31&Name=%FF",
        b"Action=CreateTopic&Version=2010-03-31&Name=n&Attributes.entry.1.key=Policy&Attributes.entry.1.value="
        + b"[" * 9_000,
        b"Action=Subscribe&Version=2010-03-31&Attributes.entry.99999999999.key=a",
        b"Action=Subscribe&Version=2010-03-31&" + b"&".join(b"Attributes.entry.%d.key=a" % at for at in range(1_500)),
        b"Action=PublishBatch&Version=2010-03-31&"
        + b"&".join(b"PublishBatchRequestEntries.member.%d.Id=a" % at for at in range(1_500)),
        b"Action=PublishBatch&Version=2010-03-31&PublishBatchRequestEntries.member.1.MessageAttributes.entry.1.Value.x=y",
        b"Action=ListTopics&Version=2010-03-31&NextToken=%F0%9F%8E%89",
        b"Action=ConfirmSubscription&Version=2010-03-31&TopicArn=a:b:sns:::x&Token=" + b"%C3%A9" * 200,
        b"Action=&Version=2010-03-31",
    ],
)
def test_hostile_form_is_an_error_of_the_caller(endpoint: Endpoint, body: bytes) -> None:
    answer = endpoint.request("POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded"})
    assert 400 <= answer.status < 500, answer.body
    assert answer.body.startswith(b"<ErrorResponse")


@pytest.mark.parametrize(
    "policy",
    [
        "[" * 100_000,
        json.dumps({"$or": [{"a": [str(at)]} for at in range(2_000)]}),
        json.dumps({"a": [{"wildcard": "*a" * 50}]}),
        json.dumps({f"k{at}": ["v"] for at in range(6)}),
        '{"a": [{"numeric": [">", 1e400]}]}',
    ],
)
def test_hostile_filter_is_refused(sns: Any, topic: str, policy: str) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterException, match="FilterPolicy"):
        sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint="arn:aws:sqs:us-east-1:000000000000:q",
            Attributes={"FilterPolicy": policy},
        )


def test_aws_command_line_creates_subscribes_and_publishes(
    server: str, sqs: Any, tmp_path: Path, make_queue: Callable[[], str]
) -> None:
    aws = partial(run_aws, tmp_path, server, "sns")
    topic = aws("create-topic", "--name", f"cli-{uuid4().hex}", "--tags", "Key=a,Value=b")["TopicArn"]
    url = make_queue()
    arguments = ("--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", arn_of(sqs, url))
    aws("subscribe", *arguments, "--attributes", "RawMessageDelivery=true")
    aws("publish", "--topic-arn", topic, "--message", "from the command line")
    assert [message["Body"] for message in received(sqs, url)] == ["from the command line"]
