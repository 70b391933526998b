"""What subscriptions get, byte for byte."""

import json

from elasticq.engine.envelopes import CERTIFICATE, UNSIGNED, Notification, confirmation
from tests.engine.topic_desk import arn, attribute

BASE = "http://localhost:9324"


def test_notification_is_written_as_aws_writes_it() -> None:
    envelope = Notification(
        message_id="m-1",
        topic_arn=arn(),
        message='ä "quoted" \\ \n/&<',
        published_ms=1_769_903_999_007,
        base_url=BASE,
        subject="s",
        version="2",
        attributes={"a": attribute("v"), "b": attribute("1", "Number"), "c": attribute(b"\x00\x01")},
    )
    assert envelope.of("k-1") == (
        '{\n  "Type" : "Notification",\n  "MessageId" : "m-1",\n'
        f'  "TopicArn" : "{arn()}",\n  "Subject" : "s",\n'
        '  "Message" : "ä \\"quoted\\" \\\\ \\n/&<",\n  "Timestamp" : "2026-01-31T23:59:59.007Z",\n'
        f'  "SignatureVersion" : "2",\n  "Signature" : "{UNSIGNED}",\n'
        f'  "SigningCertURL" : "{BASE}/{CERTIFICATE}",\n'
        f'  "UnsubscribeURL" : "{BASE}/?Action=Unsubscribe&SubscriptionArn={arn()}:k-1",\n'
        '  "MessageAttributes" : {\n    "a" : {"Type":"String","Value":"v"},\n'
        '    "b" : {"Type":"Number","Value":"1"},\n    "c" : {"Type":"Binary","Value":"AAE="}\n  }\n}'
    )


def test_notification_of_a_fifo_topic_has_a_number_and_no_signature() -> None:
    envelope = Notification(
        message_id="m", topic_arn=arn(), message="x", published_ms=0, base_url=BASE, sequence_number="1" * 20
    )
    assert list(json.loads(envelope.of("k"))) == [
        "Type", "MessageId", "SequenceNumber", "TopicArn", "Message", "Timestamp", "UnsubscribeURL",
    ]  # fmt: skip


def test_confirmation_says_how_to_confirm() -> None:
    text = confirmation(message_id="m", token="t", topic_arn=arn(), base_url=BASE, now_ms=0, version="1")
    told = json.loads(text)
    assert text.startswith('{\n  "Type" : "SubscriptionConfirmation",\n  "MessageId" : "m",\n')
    assert told["Message"] == (
        f"You have chosen to subscribe to the topic {arn()}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message."
    )
    assert told["SubscribeURL"] == f"{BASE}/?Action=ConfirmSubscription&TopicArn={arn()}&Token=t"
