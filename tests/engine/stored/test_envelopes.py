"""What subscriptions get, byte for byte."""

import json
from base64 import b64decode, b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.stored.envelopes import CERTIFICATE, UNSIGNED, Notification, confirmation, with_signature
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


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [f'"\n  "Signature" : "{UNSIGNED}",\n', f"{BASE}/{CERTIFICATE}", "\\", "}\n}"]
)
_VALUES = _TEXTS.map(attribute) | st.binary(max_size=4).map(attribute)


SIGNED = ("Message", "MessageId", "Subject", "SignatureVersion", "Timestamp", "TopicArn", "Type")


def seal(members: dict[str, Any]) -> tuple[str, str]:
    """A signature that shows what was signed."""
    return b64encode(json.dumps([members.get(name) for name in SIGNED]).encode()).decode(), "Mine.pem"


@given(
    message=_TEXTS,
    subject=st.none() | _TEXTS,
    attributes=st.dictionaries(_TEXTS, _VALUES, max_size=3),
    version=st.sampled_from(["1", "2"]),
)
def test_an_envelope_is_the_same_whether_it_is_signed_when_it_is_made_or_when_it_is_posted(
    message: str, subject: str | None, attributes: dict[str, Any], version: str
) -> None:
    def made(sign: Any) -> str:
        return Notification(
            message_id="m",
            topic_arn=arn(),
            message=message,
            published_ms=0,
            base_url=BASE,
            subject=subject,
            version=version,
            attributes=attributes,
            sign=sign,
        ).of("k")

    text = with_signature(made(None), seal)
    assert text == made(seal)
    assert json.loads(b64decode(json.loads(text)["Signature"]))[:3] == [message, "m", subject]
    assert with_signature(text, seal) == text, "it is signed once"


def test_a_confirmation_changes_by_its_signature_alone() -> None:
    asking = confirmation(message_id="m", token="t", topic_arn=arn(), base_url=BASE, now_ms=0, version="1")
    text = with_signature(asking, lambda members: ("abc=", "Mine.pem"))
    assert text == asking.replace(UNSIGNED, "abc=").replace(CERTIFICATE, "Mine.pem")


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "1", '{"a": '])
def test_what_is_no_envelope_raises(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        with_signature(text, seal)
