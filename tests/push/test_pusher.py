"""Subscriptions that are web servers, from the confirmation to the dead letter, against a real server."""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from elasticq.testing import ElasticQ
from tests.push.receiver import Receiver, receiving


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def client(server: ElasticQ) -> Any:
    return boto3.client("sns", endpoint_url=server.endpoint_url, region_name=server.region, **server.credentials)


def received(server: ElasticQ, url: str) -> dict[str, Any]:
    """The message of a queue, once it has one."""
    sqs = server.client()
    found: list[dict[str, Any]] = []
    while not found:
        answer = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"], WaitTimeSeconds=20)
        found = answer.get("Messages", [])
    return found[0]


def subscribed(sns: Any, receiver: Receiver, name: str, **attributes: Any) -> tuple[str, str]:
    """ARNs of a topic and of its subscription, which the receiver has confirmed."""
    topic = sns.create_topic(Name=name)["TopicArn"]
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=receiver.url, Attributes=texts)
    asked = receiver.wait_for(1)[0]
    assert asked.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
    with urllib.request.urlopen(asked.envelope["SubscribeURL"]) as answer:
        assert answer.status == 200
    receiver.requests.clear()
    return topic, sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"][0]["SubscriptionArn"]


def test_a_published_message_reaches_a_web_server_that_confirmed(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    topic, subscription = subscribed(sns, receiver, "plain", FilterPolicy={"kind": ["a"]})
    kind = {"kind": {"DataType": "String", "StringValue": "b"}}
    sns.publish(TopicArn=topic, Message="filtered", MessageAttributes=kind)
    kind["kind"]["StringValue"] = "a"
    sent = sns.publish(TopicArn=topic, Message="x", Subject="s", MessageAttributes=kind)
    (request,) = receiver.wait_for(1)
    assert request.headers["x-amz-sns-message-id"] == sent["MessageId"] == request.envelope["MessageId"]
    assert request.headers["x-amz-sns-subscription-arn"] == subscription
    assert (request.envelope["Message"], request.envelope["Subject"]) == ("x", "s")
    with urllib.request.urlopen(request.envelope["SigningCertURL"]) as answer:
        assert answer.read().startswith(b"-----BEGIN CERTIFICATE-----")
    with urllib.request.urlopen(request.envelope["UnsubscribeURL"]) as answer:
        assert answer.status == 200
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []


def test_a_web_server_that_is_unsubscribed_is_told_so_and_may_come_back(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    topic, subscription = subscribed(sns, receiver, "left")
    sns.unsubscribe(SubscriptionArn=subscription)
    sns.publish(TopicArn=topic, Message="too late")
    (told,) = receiver.wait_for(1)
    assert told.headers["x-amz-sns-message-type"] == told.envelope["Type"] == "UnsubscribeConfirmation"
    assert told.headers["x-amz-sns-subscription-arn"] == subscription
    with urllib.request.urlopen(told.envelope["SubscribeURL"]) as answer:
        assert answer.status == 200
    sns.publish(TopicArn=topic, Message="back")
    _, request = receiver.wait_for(2)
    assert (request.envelope["Type"], request.envelope["Message"]) == ("Notification", "back")


def test_a_web_server_gets_no_more_a_second_than_it_wants(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    topic, _ = subscribed(sns, receiver, "slow", DeliveryPolicy={"throttlePolicy": {"maxReceivesPerSecond": 2}})
    began_s = time.monotonic()
    entries = [{"Id": str(number), "Message": str(number)} for number in range(4)]
    sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)
    receiver.wait_for(4)
    assert time.monotonic() - began_s >= 1.5


def test_a_raw_message_is_posted_as_it_is(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    topic, _ = subscribed(sns, receiver, "raw", RawMessageDelivery="true")
    sns.publish(TopicArn=topic, Message="räw")
    (request,) = receiver.wait_for(1)
    assert (request.body, request.headers["x-amz-sns-rawdelivery"]) == ("räw", "true")


def test_a_failing_web_server_is_tried_again_and_then_the_message_is_a_dead_letter(
    server: ElasticQ, receiver: Receiver
) -> None:
    sns = client(server)
    dead = server.queue("dead").create()
    policy = {"healthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 1}}
    topic, _ = subscribed(
        sns, receiver, "failing", DeliveryPolicy=policy, RedrivePolicy={"deadLetterTargetArn": dead.arn}
    )
    receiver.status = 503
    sns.publish(TopicArn=topic, Message="x")
    letter = received(server, dead.url)
    first, second = receiver.requests
    assert first.body == second.body == letter["Body"]


def test_a_refusal_is_a_dead_letter_at_once(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    dead = server.queue("refused").create()
    topic, _ = subscribed(
        sns, receiver, "refusing", RedrivePolicy={"deadLetterTargetArn": dead.arn}, RawMessageDelivery="true"
    )
    receiver.status = 403
    attributes = {"a": {"DataType": "Binary", "BinaryValue": b"\x00"}}
    sns.publish(TopicArn=topic, Message="x", MessageAttributes=attributes)
    letter = received(server, dead.url)
    assert letter["Body"] == "x"
    assert letter["MessageAttributes"]["a"]["BinaryValue"] == b"\x00"
    assert len(receiver.requests) == 1


def test_what_was_not_delivered_is_delivered_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    receiver_url = receiver.url
    with ElasticQ(data_dir=tmp_path) as server:
        sns = client(server)
        policy = {"healthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 100}}
        topic, _ = subscribed(sns, receiver, "kept", DeliveryPolicy=policy)
        receiver.status = 500
        sns.publish(TopicArn=topic, Message="kept")
        receiver.wait_for(1)
    receiver.requests.clear()
    receiver.status = 200
    assert receiver.url == receiver_url
    with ElasticQ(data_dir=tmp_path) as server:
        server.clock.advance(3_600)
        (request,) = receiver.wait_for(1)
        assert request.envelope["Message"] == "kept"
