"""Headers and body of the post for one message of a subscription's inner queue.

The message's group says who wrote its body, as it was when the message was stored. Only what this server wrote is
signed. The subscription may have become raw since then, or not raw any more: neither changes what is posted.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.stored.envelopes import CONFIRMATION, NOTIFICATION, WRITTEN, with_signature
from elasticq.model.results import ReceivedMessage
from elasticq.push.signer import Signer
from elasticq.wire.headers import NOTIFICATION_TYPE

GROUP: Final = "MessageGroupId"
"""The system attribute with the group. The messages must be received with it."""
DEFAULT_CONTENT_TYPE: Final = "text/plain; charset=UTF-8"


class Posted(Struct, frozen=True):
    """One request, and the text of its body, which a dead letter has, too."""

    headers: dict[str, str]
    text: str


def kind_of(message: ReceivedMessage) -> str:
    """Return the Type of a message; that of raw text is Notification."""
    group = (message.attributes or {}).get(GROUP, "")
    return group if group in WRITTEN else NOTIFICATION


def is_raw(message: ReceivedMessage) -> bool:
    """Return whether the body is a client's text, not an envelope that this server wrote.

    An older version marked no envelopes: those that it left behind are posted as they are, without a signature.
    """
    return (message.attributes or {}).get(GROUP) not in WRITTEN


def posted(
    message: ReceivedMessage, *, topic_arn: str, subscription_arn: str, content_type: str, signer: Signer
) -> Posted:
    """Return the request for a message. content_type: of notifications, as the DeliveryPolicy has it."""
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
