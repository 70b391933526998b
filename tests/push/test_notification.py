"""Headers and bodies of what web servers get."""

import json

from elasticq.engine.envelopes import CONFIRMATION, FAREWELL, NOTIFICATION, Notification, confirmation, farewell
from elasticq.push.notification import Posted, posted, signed
from elasticq.push.signer import Signer, text_to_sign

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


def request_for(body: str, signer: Signer, *, is_raw: bool = False, kind: str = NOTIFICATION) -> Posted:
    """What is posted to a subscription whose DeliveryPolicy wants JSON."""
    return posted(
        body,
        message_id="m",
        topic_arn=ARN,
        subscription_arn=f"{ARN}:key",
        is_raw=is_raw,
        kind=kind,
        content_type="application/json",
        signer=signer,
    )


def test_a_signature_takes_its_place_and_nothing_else_changes(signer: Signer) -> None:
    hostile = '"\n  "Signature" : "VW5zaWduZWQ=",\n  "SigningCertURL" : "http://evil/SimpleNotificationService-0.pem"'
    before, after = json.loads(envelope(hostile)), json.loads(signed(envelope(hostile), signer))
    assert list(before) == list(after)
    assert after["Message"] == hostile
    assert after["Signature"] == signer.sign(before)
    assert after["SigningCertURL"] == f"http://here:1/{signer.certificate_name}"
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"Signature", "SigningCertURL"}


def test_what_has_no_place_for_a_signature_stays_as_it_is(signer: Signer) -> None:
    fifo = envelope("x", sequence_number="1" * 20)
    assert signed(fifo, signer) == fifo
    assert signed("raw", signer) == "raw"


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
    request = request_for("x", signer, is_raw=True)
    assert request.text == "x"
    assert request.headers["x-amz-sns-rawdelivery"] == "true"


def test_a_confirmation_is_signed_for_raw_subscriptions_too(signer: Signer) -> None:
    asking = confirmation(message_id="m", token="t", topic_arn=ARN, base_url="http://here:1", now_ms=0, version="2")
    request = request_for(asking, signer, is_raw=True, kind=CONFIRMATION)
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
    request = request_for(text, signer, is_raw=True, kind=FAREWELL)
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
