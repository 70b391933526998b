"""What is posted for one message of a subscription's inner queue: headers and body."""

import json
from typing import Any, Final

from msgspec import Struct

from elasticq.engine.envelopes import CERTIFICATE, CONFIRMATION, NOTIFICATION, UNSIGNED
from elasticq.push.signer import Signer

_SIGNATURE: Final = f'\n  "Signature" : "{UNSIGNED}",\n'
DEFAULT_CONTENT_TYPE: Final = "text/plain; charset=UTF-8"


class Posted(Struct, frozen=True):
    """One request, and the text of its body, which a dead letter has, too."""

    headers: dict[str, str]
    text: str


def signed(body: str, signer: Signer) -> str:
    """An envelope with its signature, and with the name of the certificate that it is verified with.

    Line breaks in values are escaped, so that the line with the signature is the envelope's own.
    """
    if _SIGNATURE not in body:
        return body
    envelope: dict[str, Any] = json.loads(body)
    before, after = body.split(_SIGNATURE, 1)
    after = after.replace(f"/{CERTIFICATE}", f"/{signer.certificate_name}", 1)
    return f'{before}\n  "Signature" : "{signer.sign(envelope)}",\n{after}'


def posted(
    body: str,
    *,
    message_id: str,
    topic_arn: str,
    subscription_arn: str,
    is_raw: bool,
    kind: str,
    content_type: str,
    signer: Signer,
) -> Posted:
    """The request for a message.

    kind: the Type of its envelope; content_type: of notifications, as the DeliveryPolicy has it.
    """
    is_notification = kind == NOTIFICATION
    headers = {
        "Content-Type": content_type if is_notification else DEFAULT_CONTENT_TYPE,
        "x-amz-sns-message-type": kind,
        "x-amz-sns-message-id": message_id,
        "x-amz-sns-topic-arn": topic_arn,
    }
    if kind != CONFIRMATION:
        headers["x-amz-sns-subscription-arn"] = subscription_arn
    if is_raw and is_notification:
        headers["x-amz-sns-rawdelivery"] = "true"
    return Posted(headers, body if is_raw and is_notification else signed(body, signer))
