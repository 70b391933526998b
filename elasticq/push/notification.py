"""What is posted for one message of a subscription's inner queue: headers and body."""

import json
from typing import Any, Final

from msgspec import Struct

from elasticq.engine.envelopes import CERTIFICATE, CONFIRMATION, UNSIGNED
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
    asks: bool,
    content_type: str,
    signer: Signer,
) -> Posted:
    """The request for a message.

    asks: it asks the endpoint to confirm; content_type: of all others, as the DeliveryPolicy has it.
    """
    headers = {
        "Content-Type": DEFAULT_CONTENT_TYPE if asks else content_type,
        "x-amz-sns-message-type": CONFIRMATION if asks else "Notification",
        "x-amz-sns-message-id": message_id,
        "x-amz-sns-topic-arn": topic_arn,
    }
    if not asks:
        headers["x-amz-sns-subscription-arn"] = subscription_arn
        if is_raw:
            headers["x-amz-sns-rawdelivery"] = "true"
    return Posted(headers, body if is_raw and not asks else signed(body, signer))
