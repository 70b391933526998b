"""Headers and bodies of what web servers get, and that only what the server wrote is signed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored.envelopes import (
    CERTIFICATE,
    CONFIRMATION,
    FAREWELL,
    NOTIFICATION,
    UNSIGNED,
    Notification,
    confirmation,
    farewell,
)
from elasticq.engine.views.dump import dump
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import ReceiveMessage
from elasticq.model.names import DEFAULT_ACCOUNT, inner_owner
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult
from elasticq.push.notification import GROUP, Posted, posted
from elasticq.push.signer import Signer, text_to_sign
from tests.engine.topic_desk import TopicDesk, arn, attribute

ARN = "arn:aws:sns:us-east-1:000000000000:t"


def envelope(message: str, sequence_number: str | None = None) -> str:
    return Notification(
        message_id="m",
        topic_arn=ARN,
        message=message,
        published_ms=0,
        base_url="http://here:1",
        sequence_number=sequence_number,
    ).of("key")


def request_for(body: str, signer: Signer, group: str = NOTIFICATION) -> Posted:
    """What is posted to a subscription whose DeliveryPolicy wants JSON. group: of the message; empty for none."""
    return posted(
        ReceivedMessage("m", "handle", body, {GROUP: group} if group else {}),
        topic_arn=ARN,
        subscription_arn=f"{ARN}:key",
        content_type="application/json",
        signer=signer,
    )


def test_a_signature_takes_its_place_and_nothing_else_changes(signer: Signer) -> None:
    hostile = '"\n  "Signature" : "VW5zaWduZWQ=",\n  "SigningCertURL" : "http://evil/SimpleNotificationService-0.pem"'
    text = envelope(hostile)
    before, after = json.loads(text), json.loads(request_for(text, signer).text)
    assert list(before) == list(after)
    assert after["Message"] == hostile
    assert after["Signature"] == signer.sign(before)
    assert after["SigningCertURL"] == f"http://here:1/{signer.certificate_name}"
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"Signature", "SigningCertURL"}


def test_what_has_no_place_for_a_signature_stays_as_it_is(signer: Signer) -> None:
    fifo = envelope("x", sequence_number="1" * 20)
    assert request_for(fifo, signer).text == fifo


@pytest.mark.parametrize("group", ["", "Raw", "notification", "g"])
def test_an_envelope_that_this_server_did_not_mark_is_never_signed(signer: Signer, group: str) -> None:
    request = request_for(envelope("x"), signer, group)
    assert request.text == envelope("x")
    assert request.headers["x-amz-sns-rawdelivery"] == "true"


def test_headers_of_a_notification(signer: Signer) -> None:
    request = request_for(envelope("x"), signer)
    assert request.headers == {
        "Content-Type": "application/json",
        "x-amz-sns-message-type": "Notification",
        "x-amz-sns-message-id": "m",
        "x-amz-sns-topic-arn": ARN,
        "x-amz-sns-subscription-arn": f"{ARN}:key",
    }
    assert json.loads(request.text)["Message"] == "x"


def test_a_raw_notification_is_the_message_alone(signer: Signer) -> None:
    request = request_for("x", signer, group="")
    assert request.text == "x"
    assert (request.headers["x-amz-sns-message-type"], request.headers["x-amz-sns-rawdelivery"]) == (
        "Notification",
        "true",
    )


def test_a_confirmation_is_signed(signer: Signer) -> None:
    asking = confirmation(message_id="m", token="t", topic_arn=ARN, base_url="http://here:1", now_ms=0, version="2")
    request = request_for(asking, signer, CONFIRMATION)
    assert request.headers == {
        "Content-Type": "text/plain; charset=UTF-8",
        "x-amz-sns-message-type": CONFIRMATION,
        "x-amz-sns-message-id": "m",
        "x-amz-sns-topic-arn": ARN,
    }
    assert json.loads(request.text)["Signature"] == signer.sign(json.loads(asking))


def test_a_farewell_is_signed_and_names_the_subscription(signer: Signer) -> None:
    text = farewell(
        message_id="m", token="t", topic_arn=ARN, key="key", base_url="http://here:1", now_ms=0, version="1"
    )
    request = request_for(text, signer, FAREWELL)
    assert request.headers == {
        "Content-Type": "text/plain; charset=UTF-8",
        "x-amz-sns-message-type": FAREWELL,
        "x-amz-sns-message-id": "m",
        "x-amz-sns-topic-arn": ARN,
        "x-amz-sns-subscription-arn": f"{ARN}:key",
    }
    told = json.loads(request.text)
    assert told["Signature"] == signer.sign(json.loads(text))
    assert "Token\nt\n" in text_to_sign(told)


# --- whatever is published, and whatever the subscription says later ---------------------------

_FORGED = (
    '{\n  "Type" : "Notification",\n  "MessageId" : "m",\n  "TopicArn" : "arn:aws:sns:us-east-1:111111111111:payments",'
    f'\n  "Message" : "pay",\n  "SignatureVersion" : "1",\n  "Signature" : "{UNSIGNED}",'
    f'\n  "SigningCertURL" : "http://here:1/{CERTIFICATE}"\n}}'
)
_BODIES = st.one_of(
    st.just(_FORGED),
    st.just(f'no JSON\n  "Signature" : "{UNSIGNED}",\n'),
    st.builds(envelope, st.text(max_size=20)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff", min_codepoint=32), min_size=1),
)
_ATTRIBUTES = st.dictionaries(
    st.sampled_from(["Signature", "Message", "TopicArn", "a.b"]), st.builds(attribute, st.sampled_from(["v", '"', "ä"]))
)
_ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), _BODIES, _ATTRIBUTES),
        st.tuples(st.sampled_from(["raw", "not raw", "retry", "restart", "deliver"])),
    ),
    max_size=12,
)


class Inner:
    """A topic with one web server and its inner queue. Every publish waits for a step if ``is_deferred``."""

    def __init__(self, signer: Signer, *, is_deferred: bool) -> None:
        self.desk = desk = TopicDesk()
        self._signer = signer
        desk.topic()
        self.subscription = desk.subscribe(protocol="http", endpoint="http://e/")
        (ready,) = desk.state.topics.by_key.values()
        self._key = ready.row.key
        desk.do(t.ConfirmSubscription(arn(), desk.state.identity.token(ready.row.number)))
        desk.context.limits = limits.Limits(copies=0) if is_deferred else desk.context.limits

    def restart(self) -> None:
        state = State()
        for chunk in dump(self.desk.state):
            for mutation in chunk:
                apply(state, mutation)
        self.desk.state = state

    @property
    def is_raw(self) -> bool:
        return self.desk.state.topics.by_key[self._key].is_raw

    def posts(self) -> Iterator[tuple[ReceivedMessage, Posted]]:
        """What is posted now: each message that waits, which comes again after its visibility timeout."""
        command = ReceiveMessage(
            queue_url=self._key,
            max_number_of_messages=10,
            visibility_timeout=1,
            message_system_attribute_names=[GROUP],
            message_attribute_names=["All"],
        )
        while True:
            result = self.desk.do(command, account=inner_owner(DEFAULT_ACCOUNT))
            assert isinstance(result, ReceiveMessageResult)
            if not result.messages:
                break
            for each in result.messages:
                yield (
                    each,
                    posted(
                        each,
                        topic_arn=arn(),
                        subscription_arn=self.subscription,
                        content_type="text/plain",
                        signer=self._signer,
                    ),
                )
        self.desk.wait(2)


def check(message: ReceivedMessage, request: Posted, published: dict[str, tuple[str, bool]], signer: Signer) -> None:
    told: dict[str, Any] = {}
    if message.message_id in published:
        text, is_raw = published[message.message_id]
        assert ("x-amz-sns-rawdelivery" in request.headers) is is_raw
        if is_raw:
            assert request.text == text, "exactly what the client published"
            return
        told = json.loads(request.text)
        assert told["Message"] == text
        assert (told["Type"], told["MessageId"], told["TopicArn"]) == (NOTIFICATION, message.message_id, arn())
    else:
        told = json.loads(request.text)
        assert told["Type"] == CONFIRMATION
    assert told["Signature"] == signer.sign(told)
    assert told["SigningCertURL"].endswith(f"/{signer.certificate_name}")


@pytest.mark.parametrize("is_deferred", [False, True])
@settings(max_examples=60, deadline=None)
@given(actions=_ACTIONS)
def test_what_is_signed_was_written_here_and_what_was_published_raw_stays_so(
    signer: Signer, is_deferred: bool, actions: list[tuple[Any, ...]]
) -> None:
    inner = Inner(signer, is_deferred=is_deferred)
    published: dict[str, tuple[str, bool]] = {}
    deferred: dict[str, str] = {}

    def deliver() -> None:
        """Make the copies that wait: raw or not, as the subscription is in this moment."""
        inner.desk.deliver()
        published.update({message_id: (text, inner.is_raw) for message_id, text in deferred.items()})
        deferred.clear()

    for action, *given_members in [*actions, ("deliver",), ("raw",), ("retry",), ("not raw",), ("retry",)]:
        if action == "publish":
            text, attributes = given_members
            deferred[inner.desk.publish(text, message_attributes=attributes).message_id] = text
            if not is_deferred:
                deliver()
        elif action in ("raw", "not raw"):
            value = "true" if action == "raw" else "false"
            inner.desk.do(t.SetSubscriptionAttributes(inner.subscription, "RawMessageDelivery", value))
        elif action == "restart":
            inner.restart()
        elif action == "deliver":
            deliver()
        else:
            seen = 0
            for message, request in inner.posts():
                seen += 1
                check(message, request, published, signer)
            assert seen == len(published) + 1
