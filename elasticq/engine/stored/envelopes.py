"""The texts that subscriptions get: a notification around each message, and what asks for a confirmation.

Byte for byte as AWS writes them: the order of the keys, two spaces of indent, a space on both sides of the colons
outside of the attributes and none inside, characters beyond ASCII as they are. Source: recordings of AWS.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import msgspec

from elasticq.engine.stored.topic_index import Topic
from elasticq.model.commands import MessageAttributes
from elasticq.model.times import extended

SENDER: Final = "AIDAELASTICQTOPICS000"
"""The SenderId of what a topic delivers to a queue; on AWS it is one of the service's own."""
NOTIFICATION: Final = "Notification"
CONFIRMATION: Final = "SubscriptionConfirmation"
FAREWELL: Final = "UnsubscribeConfirmation"
WRITTEN: Final = frozenset((NOTIFICATION, CONFIRMATION, FAREWELL))
"""The Types of envelopes. In an inner queue they are the groups of the messages whose bodies this module wrote.

Whatever else is in an inner queue is a client's text. It is posted as it is, and never signed.
"""
UNSIGNED: Final = "VW5zaWduZWQ="
"""In the place of a signature where nobody signs: "Unsigned" as base64."""
CERTIFICATE: Final = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"

_text = msgspec.json.Encoder().encode
_members: Callable[[str], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


def _quoted(text: str) -> str:
    return _text(text).decode()


def signature_version(topic: Topic) -> str:
    row = topic.row
    return row.attributes.get("SignatureVersion", "1") if row is not None else "1"


class Notification:
    """What a publish gives to the subscriptions of one protocol that are not raw; only the last link is each one's own.

    sequence_number, version: a message of a FIFO topic has the one, any other a signature of the other.
    sign: gives the signature of members, and the name of its certificate; None: whoever delivers signs, or nobody.
    """

    __slots__ = ("_begin", "_end")

    def __init__(
        self,
        *,
        message_id: str,
        topic_arn: str,
        message: str,
        published_ms: int,
        base_url: str,
        subject: str | None = None,
        sequence_number: str | None = None,
        version: str = "1",
        attributes: MessageAttributes | None = None,
        sign: Callable[[dict[str, str]], tuple[str, str]] | None = None,
    ) -> None:
        timestamp = extended(published_ms)
        parts = [f'{{\n  "Type" : "{NOTIFICATION}",\n  "MessageId" : "', message_id, '",\n']
        if sequence_number is not None:
            parts += ['  "SequenceNumber" : "', sequence_number, '",\n']
        parts += ['  "TopicArn" : "', topic_arn, '",\n']
        if subject is not None:
            parts += ['  "Subject" : ', _quoted(subject), ",\n"]
        parts += ['  "Message" : ', _quoted(message), ',\n  "Timestamp" : "', timestamp, '",\n']
        if sequence_number is None:
            signature, certificate = UNSIGNED, CERTIFICATE
            if sign is not None:
                signed = {"Type": NOTIFICATION, "MessageId": message_id, "TopicArn": topic_arn, "Message": message}
                signed |= {"Timestamp": timestamp, "SignatureVersion": version}
                signature, certificate = sign(signed if subject is None else signed | {"Subject": subject})
            parts += ['  "SignatureVersion" : "', version, f'",\n  "Signature" : "{signature}",\n']
            parts += ['  "SigningCertURL" : ', _quoted(f"{base_url}/{certificate}"), ",\n"]
        link = _quoted(f"{base_url}/?Action=Unsubscribe&SubscriptionArn={topic_arn}:")
        parts += ['  "UnsubscribeURL" : ', link[:-1]]
        self._begin = "".join(parts)
        self._end = f'",\n  "MessageAttributes" : {_attributes(attributes)}\n}}' if attributes else '"\n}'

    def of(self, key: str) -> str:
        """The notification for the subscription whose ARN ends so."""
        return f"{self._begin}{key}{self._end}"


def _attributes(attributes: MessageAttributes) -> str:
    pairs = {}
    for name, attribute in attributes.items():
        value = attribute.string_value or ""
        if attribute.binary_value is not None:
            value = b64encode(attribute.binary_value).decode("ascii")
        pairs[name] = {"Type": attribute.data_type, "Value": value}
    return _written_attributes(pairs)


def confirmation(*, message_id: str, token: str, topic_arn: str, base_url: str, now_ms: int, version: str) -> str:
    """What the endpoint of a new subscription gets, which confirms it by the link."""
    message = (
        f"You have chosen to subscribe to the topic {topic_arn}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message."
    )
    return _asking(CONFIRMATION, message, message_id, token, topic_arn, base_url, now_ms, version)


def farewell(*, message_id: str, token: str, topic_arn: str, key: str, base_url: str, now_ms: int, version: str) -> str:
    """What the endpoint of a subscription gets that was unsubscribed, which restores it by the link."""
    message = (
        f"You have chosen to deactivate subscription {topic_arn}:{key}.\n"
        "To cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
    )
    return _asking(FAREWELL, message, message_id, token, topic_arn, base_url, now_ms, version)


def _asking(
    kind: str, message: str, message_id: str, token: str, topic_arn: str, base_url: str, now_ms: int, version: str
) -> str:
    link = f"{base_url}/?Action=ConfirmSubscription&TopicArn={topic_arn}&Token={token}"
    members = {
        "Type": kind,
        "MessageId": message_id,
        "Token": token,
        "TopicArn": topic_arn,
        "Message": message,
        "SubscribeURL": link,
        "Timestamp": extended(now_ms),
        "SignatureVersion": version,
        "Signature": UNSIGNED,
        "SigningCertURL": f"{base_url}/{CERTIFICATE}",
    }
    return _written(members)


def with_signature(envelope: str, sign: Callable[[dict[str, Any]], tuple[str, str]]) -> str:
    """Return an envelope that this module wrote, with its signature and the name of its certificate.

    sign: as ``Notification`` takes it. An envelope that has no Signature, or has one already, stays as it is.
    """
    members = _members(envelope)
    if members.get("Signature") != UNSIGNED:
        return envelope
    members["Signature"], certificate = sign(members)
    members["SigningCertURL"] = members["SigningCertURL"].removesuffix(CERTIFICATE) + certificate
    return _written(members)


def _written(members: dict[str, Any]) -> str:
    """Return the text of an envelope. The values are texts, but for the MessageAttributes."""
    lines = []
    for name, value in members.items():
        text = _quoted(value) if isinstance(value, str) else _written_attributes(value)
        lines.append(f"  {_quoted(name)} : {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _written_attributes(attributes: dict[str, dict[str, str]]) -> str:
    """Return the text of the MessageAttributes: the Type and Value of each, by name."""
    lines = [f"    {_quoted(name)} : {_text(pair).decode()}" for name, pair in attributes.items()]
    return "{\n" + ",\n".join(lines) + "\n  }"
