"""The texts that subscriptions get: notifications with a message, and requests for a confirmation.

They are identical to AWS's texts byte for byte: the order of the keys, and two spaces of indent. Colons have a space on
both sides outside of the attributes, and none inside. Non-ASCII characters are not escaped. Source: recordings of AWS.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import msgspec

from elasticq.engine.stored.topic_index import Topic
from elasticq.model.commands import MessageAttributes
from elasticq.model.times import extended

SENDER: Final = "AIDAELASTICQTOPICS000"
"""The SenderId of messages that a topic delivers to a queue. On AWS it is an id of the service."""
NOTIFICATION: Final = "Notification"
CONFIRMATION: Final = "SubscriptionConfirmation"
FAREWELL: Final = "UnsubscribeConfirmation"
WRITTEN: Final = frozenset((NOTIFICATION, CONFIRMATION, FAREWELL))
"""The Types of envelopes. In an inner queue, they are the groups of messages whose bodies this module wrote.

All other messages in an inner queue are texts of clients. They are posted unchanged and never signed.
"""
UNSIGNED: Final = "VW5zaWduZWQ="
"""The placeholder for a signature: "Unsigned" as base64."""
CERTIFICATE: Final = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"

_text = msgspec.json.Encoder().encode
_members: Callable[[str], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


def _quoted(text: str) -> str:
    return _text(text).decode()


def signature_version(topic: Topic) -> str:
    row = topic.row
    return row.attributes.get("SignatureVersion", "1") if row is not None else "1"


class Notification:
    """The notification of a publish for all subscriptions of one protocol without raw delivery. Only the last link
    differs.

    - sequence_number: Only messages of a FIFO topic have one. All others have a signature.
    - version: The version of the signature.
    - sign: Returns the signature of members, and the name of its certificate. None: the sender of the post signs, if
      any.
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
        """Return the notification for the subscription whose ARN ends with ``key``."""
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
    """Return the text for the endpoint of a new subscription. Its link confirms the subscription."""
    message = (
        f"You have chosen to subscribe to the topic {topic_arn}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message."
    )
    return _asking(CONFIRMATION, message, message_id, token, topic_arn, base_url, now_ms, version)


def farewell(*, message_id: str, token: str, topic_arn: str, key: str, base_url: str, now_ms: int, version: str) -> str:
    """Return the text for the endpoint of a deleted subscription. Its link restores the subscription."""
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
    """Return an envelope of this module with its signature and the name of its certificate.

    ``sign`` is that of ``Notification``. An envelope without Signature, or with a real one, is returned unchanged.
    """
    members = _members(envelope)
    if members.get("Signature") != UNSIGNED:
        return envelope
    members["Signature"], certificate = sign(members)
    members["SigningCertURL"] = members["SigningCertURL"].removesuffix(CERTIFICATE) + certificate
    return _written(members)


def _written(members: dict[str, Any]) -> str:
    """Return the text of an envelope. All values are strings, except MessageAttributes."""
    lines = []
    for name, value in members.items():
        text = _quoted(value) if isinstance(value, str) else _written_attributes(value)
        lines.append(f"  {_quoted(name)} : {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _written_attributes(attributes: dict[str, dict[str, str]]) -> str:
    """Return the text of the MessageAttributes: Type and Value by name."""
    lines = [f"    {_quoted(name)} : {_text(pair).decode()}" for name, pair in attributes.items()]
    return "{\n" + ",\n".join(lines) + "\n  }"
