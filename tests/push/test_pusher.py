"""Subscriptions that are web servers, from the confirmation to the dead letter, against a real server."""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from elasticq.engine.stored.envelopes import CERTIFICATE, NOTIFICATION, UNSIGNED
from elasticq.model.commands import Call, SendMessage
from elasticq.model.names import DEFAULT_ACCOUNT, inner_owner
from elasticq.runtime.ticket import Awaited
from elasticq.testing import ElasticQ
from tests.push.receiver import Receiver, receiving

SENT_HEADERS = {
    "host", "content-type", "content-length", "user-agent", "accept-encoding", "connection", "x-amz-sns-message-type",
    "x-amz-sns-message-id", "x-amz-sns-topic-arn", "x-amz-sns-subscription-arn",
}  # fmt: skip
"""The headers of a notification. Recorded on AWS: it sends Connection, and no Accept."""


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
    assert set(request.headers) == SENT_HEADERS
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


FORGED = (
    '{\n  "Type" : "Notification",\n  "MessageId" : "m",\n  "TopicArn" : "arn:aws:sns:us-east-1:111111111111:payments",'
    f'\n  "Message" : "pay",\n  "SignatureVersion" : "1",\n  "Signature" : "{UNSIGNED}",'
    f'\n  "SigningCertURL" : "http://here:1/{CERTIFICATE}"\n}}'
)
PATIENT = {"healthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 100}}


def set_raw(sns: Any, subscription: str, *, is_raw: bool) -> None:
    value = str(is_raw).lower()
    sns.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName="RawMessageDelivery", AttributeValue=value
    )


@pytest.mark.parametrize("text", [FORGED, f'no JSON\n  "Signature" : "{UNSIGNED}",\n'], ids=["envelope", "no JSON"])
def test_what_was_published_raw_is_posted_unsigned_though_the_subscription_is_not_raw_any_more(
    tmp_path: Path, receiver: Receiver, text: str
) -> None:
    with ElasticQ(data_dir=tmp_path) as server:
        sns = client(server)
        topic, subscription = subscribed(sns, receiver, "raw", RawMessageDelivery="true", DeliveryPolicy=PATIENT)
        receiver.status = 500
        sns.publish(TopicArn=topic, Message=text)
        receiver.wait_for(1)
        set_raw(sns, subscription, is_raw=False)
        server.clock.advance(60)
        receiver.wait_for(2)
    receiver.status, before = 200, len(receiver.requests)
    with ElasticQ(data_dir=tmp_path) as server:
        server.clock.advance(60)
        client(server).publish(TopicArn=topic, Message="after")
        receiver.wait_for(before + 2)
    of_raw = [request for request in receiver.requests if request.headers.get("x-amz-sns-rawdelivery") == "true"]
    assert {request.body for request in of_raw} == {text}
    assert len(of_raw) >= 3
    (after,) = [request for request in receiver.requests if request not in of_raw]
    assert after.envelope["Message"] == "after"


def test_an_envelope_is_posted_signed_though_the_subscription_became_raw(server: ElasticQ, receiver: Receiver) -> None:
    sns = client(server)
    topic, subscription = subscribed(sns, receiver, "enveloped", DeliveryPolicy=PATIENT)
    receiver.status = 500
    sns.publish(TopicArn=topic, Message="x")
    first = receiver.wait_for(1)[0]
    set_raw(sns, subscription, is_raw=True)
    receiver.status = 200
    server.clock.advance(60)
    second = receiver.wait_for(2)[1]
    assert first.body == second.body
    assert second.envelope["Signature"] != UNSIGNED
    assert "x-amz-sns-rawdelivery" not in second.headers


def test_a_message_that_cannot_be_posted_is_given_up_and_the_others_go_on(
    server: ElasticQ, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of this server, here an envelope that is damaged, costs one message alone."""
    sns = client(server)
    dead = server.queue("damaged").create()
    topic, subscription = subscribed(sns, receiver, "hurt", RedrivePolicy={"deadLetterTargetArn": dead.arn})
    member, thread = server._member, server._thread
    assert member is not None
    assert thread is not None
    key = subscription.rpartition(":")[2]
    damaged = SendMessage(key, "no envelope", message_group_id=NOTIFICATION)
    call = Call(damaged, "test", inner_owner(DEFAULT_ACCOUNT), "")
    thread.ask(lambda: member.runtime.submit(call, Awaited()))
    assert received(server, dead.url)["Body"] == "no envelope"
    sns.publish(TopicArn=topic, Message="good")
    assert receiver.wait_for(1)[0].envelope["Message"] == "good"
    lines = [record for record in caplog.records if record.name == "elasticq.push.pusher"]
    assert [line.getMessage() for line in lines] == ["notification_dead_letter"]
    assert "DecodeError in with_signature, envelopes.py" in lines[0].fields["reason"]  # type: ignore[attr-defined]
    assert member._pushes is not None
    counts = member._pushes.counts[DEFAULT_ACCOUNT, "hurt"]
    assert (counts.failed, counts.retried) == (1, 0)
