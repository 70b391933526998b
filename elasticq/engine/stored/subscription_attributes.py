"""The attributes of subscriptions: their names, their valid values, and how clients read them.

Sources: the SetSubscriptionAttributes API page, and recordings of AWS for the error texts. Answers put "Invalid
parameter: " before the texts in this module, or "Invalid parameter: Attributes Reason: " in Subscribe.
"""

import re
from typing import Final

from msgspec import Struct

from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES, MESSAGE_BODY, InvalidFilterPolicy, compile_policy
from elasticq.engine.stored.delivery_policies import InvalidDeliveryPolicy, of_subscription
from elasticq.engine.stored.topic_index import FILTER, FILTER_SCOPE, QUEUE_PROTOCOL, RAW, REDRIVE, WEB_PROTOCOLS
from elasticq.model import documents
from elasticq.model.errors import invalid_parameter, quoted
from elasticq.model.names import has_fifo_suffix, parse_queue_arn

DELIVERY_POLICY: Final = "DeliveryPolicy"
ROLE: Final = "SubscriptionRoleArn"
_RAW_PROTOCOLS: Final = frozenset((QUEUE_PROTOCOL, *WEB_PROTOCOLS, "firehose"))
_QUEUE_ARN_PARTS: Final = 6

CONFIRMED_PROTOCOLS: Final = frozenset((*WEB_PROTOCOLS, "email", "email-json"))
"""The protocols whose endpoint must confirm a subscription before it gets messages."""
PROTOCOLS: Final = CONFIRMED_PROTOCOLS | {"sms", QUEUE_PROTOCOL, "application", "lambda", "firehose"}
_PHONE: Final = re.compile(r"\+?[0-9](?:[-/. ]?[0-9])*\Z")


class Endpoint(Struct, frozen=True):
    """The destination of a subscription. ``is_fifo`` is that of the topic."""

    protocol: str
    account: str
    is_fifo: bool
    endpoint: str


def check_endpoint(to: Endpoint) -> None:
    """Raise InvalidParameter if the protocol is unknown or the endpoint does not fit it."""
    protocol, endpoint = to.protocol, to.endpoint
    if protocol not in PROTOCOLS:
        raise invalid_parameter(f"Amazon SNS does not support this protocol string: {quoted(protocol)}")
    if to.is_fifo and protocol != QUEUE_PROTOCOL:
        raise invalid_parameter(f"Invalid protocol type: {protocol}")
    if protocol == QUEUE_PROTOCOL:
        if parse_queue_arn(endpoint, to.account) is None:
            raise invalid_parameter("SQS endpoint ARN")
        if has_fifo_suffix(endpoint) and not to.is_fifo:
            raise invalid_parameter(
                "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics"
            )
    elif protocol in WEB_PROTOCOLS:
        if not endpoint.startswith(f"{protocol}://") or len(endpoint) <= len(f"{protocol}://"):
            raise invalid_parameter("Endpoint must match the specified protocol")
    elif protocol == "sms":
        if not _PHONE.match(endpoint):
            raise invalid_parameter(f"Invalid SMS endpoint: {quoted(endpoint)}")
    elif protocol in ("email", "email-json"):
        if "@" not in endpoint:
            raise invalid_parameter("Email address")
    elif endpoint.count(":") < _QUEUE_ARN_PARTS - 1 or not endpoint.startswith("arn:"):
        raise invalid_parameter(f"{protocol.capitalize()} endpoint ARN")
    elif protocol == "application":  # no action here creates such an endpoint
        raise invalid_parameter(f"Endpoint Reason: Endpoint does not exist for endpoint {quoted(endpoint)}")


def checked(given: dict[str, str], present: dict[str, str], to: Endpoint) -> dict[str, str]:
    """Return ``present`` merged with ``given`` and normalised. An empty value deletes the attribute.

    Raise InvalidParameter if a name or a value is invalid.
    """
    attributes = dict(present)
    for name, value in given.items():
        attributes[name] = _checked(name, value, to)
    if attributes.get(FILTER) and (FILTER in given or FILTER_SCOPE in given):
        _check_filter(attributes[FILTER], attributes.get(FILTER_SCOPE, MESSAGE_ATTRIBUTES))
    return {name: value for name, value in attributes.items() if value and (name, value) not in _DEFAULTS}


_DEFAULTS: Final = frozenset(((FILTER_SCOPE, MESSAGE_ATTRIBUTES),))
"""Default values. They are not stored, and count as absent when subscriptions are compared."""


def _checked(name: str, value: str, to: Endpoint) -> str:
    if name == RAW:
        return _raw(value, to)
    if name == FILTER_SCOPE:
        if value not in (MESSAGE_ATTRIBUTES, MESSAGE_BODY):
            raise invalid_parameter(
                f"FilterPolicyScope: Invalid value [{quoted(value)}]."
                " Please use either MessageBody or MessageAttributes"
            )
        return value
    if name == FILTER:
        return value  # checked with the scope, which may come later
    if name == REDRIVE:
        return _redrive(value, to)
    if name == DELIVERY_POLICY:
        return _delivery_policy(value)
    if name == ROLE:
        return value
    raise invalid_parameter("AttributeName")


def _check_filter(text: str, scope: str) -> None:
    try:
        compile_policy(text, scope)
    except InvalidFilterPolicy as error:
        raise invalid_parameter(str(error)) from None


def _raw(value: str, to: Endpoint) -> str:
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise invalid_parameter(f"RawMessageDelivery: Invalid value [{quoted(value)}]. Must be true or false.")
    if to.protocol not in _RAW_PROTOCOLS:
        raise invalid_parameter(f"Delivery protocol [{to.protocol}] does not support raw message delivery.")
    return "true" if lowered == "true" else ""


def _delivery_policy(value: str) -> str:
    try:
        of_subscription(value)
    except InvalidDeliveryPolicy as error:
        raise invalid_parameter(f"{DELIVERY_POLICY}: {error}") from None
    return value


def _redrive(value: str, to: Endpoint) -> str:
    if not value:
        return ""
    try:
        members = documents.read(value)
    except documents.Unreadable as error:
        raise invalid_parameter(f"RedrivePolicy: failed to parse JSON. {error}") from None
    if not isinstance(members, dict):
        raise invalid_parameter("RedrivePolicy: failed to parse JSON. It is not an object.")
    target = parse_queue_arn(members.get("deadLetterTargetArn"), to.account)
    if target is None or target[0] != to.account:
        raise invalid_parameter("RedrivePolicy: deadLetterTargetArn is an invalid arn")
    if to.is_fifo and has_fifo_suffix(to.endpoint) and not has_fifo_suffix(target[1]):
        raise invalid_parameter("RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic.")
    return value
