"""The HTTP headers and the body that deliver one message of a subscription's inner queue.

The message's group records whether this server or a client wrote the body. This server signs only bodies that it
wrote. If the raw-delivery attribute of the subscription changes later, stored messages are still posted as stored.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.envelopes import CONFIRMATION, NOTIFICATION, WRITTEN, with_signature
from elasticq.model.results import ReceivedMessage
from elasticq.push.signer import Signer
from elasticq.wire.headers import NOTIFICATION_TYPE

GROUP: Final = "MessageGroupId"
"""The system attribute with the message's group. Receives must ask for it."""
DEFAULT_CONTENT_TYPE: Final = "text/plain; charset=UTF-8"


class Posted(Struct, frozen=True):
    """The headers and the body of the HTTP request that delivers one message.

    If its delivery fails for good, the dead letter has the same body.
    """

    headers: dict[str, str]
    text: str


def kind_of(message: ReceivedMessage) -> str:
    """Return the SNS Type of a message. Raw text is a Notification."""
    group = (message.attributes or {}).get(GROUP, "")
    return group if group in WRITTEN else NOTIFICATION


def is_raw(message: ReceivedMessage) -> bool:
    """Return whether the body is a client's text and not an envelope that this server wrote."""
    return (message.attributes or {}).get(GROUP) not in WRITTEN


def posted(
    message: ReceivedMessage, *, topic_arn: str, subscription_arn: str, content_type: str, signer: Signer
) -> Posted:
    """Return the HTTP request that delivers a message.

    content_type: the Content-Type of notifications, from the DeliveryPolicy. Other types get DEFAULT_CONTENT_TYPE.
    """
    kind = kind_of(message)
    headers = {
        "Content-Type": content_type if kind == NOTIFICATION else DEFAULT_CONTENT_TYPE,
        NOTIFICATION_TYPE: kind,
        "x-amz-sns-message-id": message.message_id,
        "x-amz-sns-topic-arn": topic_arn,
    }
    if kind != CONFIRMATION:
        headers["x-amz-sns-subscription-arn"] = subscription_arn
    if is_raw(message):
        headers["x-amz-sns-rawdelivery"] = "true"
        return Posted(headers, message.body)
    return Posted(headers, with_signature(message.body, signer.seal))
