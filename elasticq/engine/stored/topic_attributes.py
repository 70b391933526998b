"""The attributes of topics: their names, their valid values, and how clients read them.

Sources: the SetTopicAttributes and CreateTopic API pages, and recordings of AWS for texts and for what it returns.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn

from elasticq.engine.policies import language as policy_language
from elasticq.engine.stored.delivery_policies import DEFAULT, InvalidDeliveryPolicy, of_topic, without_nulls
from elasticq.engine.stored.topic_index import Topic
from elasticq.model import documents, limits
from elasticq.model.errors import invalid_parameter
from elasticq.model.names import account_of

FIFO: Final = "FifoTopic"
CONTENT_BASED: Final = "ContentBasedDeduplication"
THROUGHPUT_SCOPE: Final = "FifoThroughputScope"
POLICY: Final = "Policy"
DELIVERY_POLICY: Final = "DeliveryPolicy"
MESSAGE_BYTES: Final = "MaximumMessageSize"
DISPLAY_NAME: Final = "DisplayName"

OWNERS_ACTIONS: Final = (
    "SNS:GetTopicAttributes",
    "SNS:SetTopicAttributes",
    "SNS:AddPermission",
    "SNS:RemovePermission",
    "SNS:DeleteTopic",
    "SNS:Subscribe",
    "SNS:ListSubscriptionsByTopic",
    "SNS:Publish",
)
"""The actions that the policy of a new topic allows to its owner, in AWS's order."""
RETRY_DEFAULTS: Final = {
    "minDelayTarget": DEFAULT.min_delay_s,
    "maxDelayTarget": DEFAULT.max_delay_s,
    "numRetries": DEFAULT.retries,
    "numMaxDelayRetries": DEFAULT.at_max,
    "numNoDelayRetries": DEFAULT.at_once,
    "numMinDelayRetries": DEFAULT.at_min,
    "backoffFunction": DEFAULT.function,
}
"""The retry policy without a DeliveryPolicy, as clients read it, in AWS's order."""


def _refused(name: str) -> NoReturn:
    raise invalid_parameter(name)


def _text(name: str, value: str) -> str:
    return value


def _display_name(name: str, value: str) -> str:
    if len(value) > limits.TOPIC_DISPLAY_NAME_CHARS_MAX:
        _refused(name)
    return value


def _boolean(name: str, value: str) -> str:
    lowered = value.lower()
    if lowered not in ("true", "false"):
        _refused(name)
    return lowered


def _one_of(*choices: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value and value not in choices:
            _refused(name)
        return value

    return check


def _policy(name: str, value: str) -> str:
    if value:
        if len(value.encode("utf-8", "replace")) > limits.TOPIC_POLICY_BYTES_MAX:
            raise invalid_parameter(f"Policy Error: Must be at most {limits.TOPIC_POLICY_BYTES_MAX} bytes long")
        try:
            policy_language.statements(policy_language.document(value))
        except policy_language.Unreadable as error:
            why = "PrincipalNotFound" if str(error) == "Principal" else "null"
            raise invalid_parameter(f"Policy Error: {why}") from None
    return value


def _delivery_policy(name: str, value: str) -> str:
    """Return the policy as AWS returns it: without members that are null, and with one default added."""
    if not value:
        return value
    try:
        members = documents.read(value)
        http = members["http"]
        kept = {key: each for key, each in http.items() if each is not None}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise invalid_parameter(f"{name}: Unexpected JSON member") from None
    try:
        of_topic(value)
    except InvalidDeliveryPolicy as error:
        raise invalid_parameter(f"{name}: {error}") from None
    kept.setdefault("disableSubscriptionOverrides", False)
    return json.dumps({"http": kept}, separators=(",", ":"))


def _sample_rate(name: str, value: str) -> str:
    if not _is_number(value, 0, 100):
        _refused(name)
    return value


def _message_bytes(name: str, value: str) -> str:
    if value and not _is_number(value, limits.TOPIC_MESSAGE_BYTES_MIN_SETTING, limits.TOPIC_MESSAGE_BYTES_MAX):
        _refused(name)
    return value


def _is_number(value: str, low: int, high: int) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 10 and low <= int(value) <= high


_FEEDBACK: Final[dict[str, Callable[[str, str], str]]] = {
    f"{protocol}{name}": check
    for protocol in ("HTTP", "Firehose", "Lambda", "Application", "SQS")
    for name, check in (
        ("SuccessFeedbackRoleArn", _text),
        ("SuccessFeedbackSampleRate", _sample_rate),
        ("FailureFeedbackRoleArn", _text),
    )
}
_CHECKS: Final[dict[str, Callable[[str, str], str]]] = {
    **_FEEDBACK,
    DISPLAY_NAME: _display_name,
    POLICY: _policy,
    DELIVERY_POLICY: _delivery_policy,
    "SignatureVersion": _one_of("1", "2"),
    "TracingConfig": _one_of("PassThrough", "Active"),
    "KmsMasterKeyId": _text,
    MESSAGE_BYTES: _message_bytes,
}
_OF_FIFO: Final[dict[str, Callable[[str, str], str]]] = {
    CONTENT_BASED: _boolean,
    THROUGHPUT_SCOPE: _one_of("Topic", "MessageGroup"),
}


def names(*, is_fifo: bool) -> list[str]:
    """Return the names of the attributes of a topic that can be set, those of feedback last."""
    return [*(name for name in _CHECKS if name not in _FEEDBACK), *(_OF_FIFO if is_fifo else ()), *_FEEDBACK]


def checked(name: str, value: str, *, is_fifo: bool) -> str:
    """Return the normalised value; empty deletes it. Raise InvalidParameter if the name or the value is invalid."""
    check = _CHECKS.get(name) or (_OF_FIFO.get(name) if is_fifo else None)
    if check is None:
        raise invalid_parameter("AttributeName")
    return check(name, value)


def at_creation(given: dict[str, str], *, is_fifo: bool) -> dict[str, str]:
    """Return the attributes of a new topic for those given. Raise InvalidParameter if one is invalid."""
    attributes = {}
    for name, value in given.items():
        if name == FIFO:
            continue
        if name not in _CHECKS and name not in _OF_FIFO:
            raise invalid_parameter("Attributes Reason: Unknown attribute")
        attributes[name] = checked(name, value, is_fifo=is_fifo)
    if is_fifo:
        attributes = {FIFO: "true", CONTENT_BASED: "false", **attributes}
    return {name: value for name, value in attributes.items() if value or name == DISPLAY_NAME}


def message_bytes_max(attributes: dict[str, str]) -> int:
    return int(attributes.get(MESSAGE_BYTES) or limits.TOPIC_MESSAGE_BYTES_DEFAULT)


def shown(topic: Topic, arn: str) -> dict[str, str]:
    """Return all attributes that GetTopicAttributes returns."""
    row = topic.row
    assert row is not None, "a deleted topic is not shown"
    owner = account_of(row.account)
    own = dict(row.attributes)
    return {
        POLICY: own.pop(POLICY, "") or default_policy(arn, owner),
        "Owner": owner,
        "SubscriptionsPending": str(len(topic.subscriptions) - topic.confirmed),
        "TopicArn": arn,
        "EffectiveDeliveryPolicy": effective_delivery_policy(own.get(DELIVERY_POLICY, "")),
        "SubscriptionsConfirmed": str(topic.confirmed),
        DISPLAY_NAME: own.pop(DISPLAY_NAME, ""),
        "SubscriptionsDeleted": str(row.deleted),
        **own,
    }


def default_policy(arn: str, account: str) -> str:
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": list(OWNERS_ACTIONS),
        "Resource": arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
    }
    document = {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}
    return json.dumps(document, separators=(",", ":"))


def effective_delivery_policy(policy: str) -> str:
    """Return the topic's policy for retries of HTTP deliveries, with defaults for missing members."""
    given: dict[str, Any] = documents.read(policy)["http"] if policy else {}
    http = {
        **given,
        "defaultHealthyRetryPolicy": RETRY_DEFAULTS | without_nulls(given.get("defaultHealthyRetryPolicy")),
        "disableSubscriptionOverrides": given.get("disableSubscriptionOverrides", False),
        "defaultRequestPolicy": given.get("defaultRequestPolicy") or {"headerContentType": DEFAULT.content_type},
    }
    first = ("defaultHealthyRetryPolicy", "disableSubscriptionOverrides", "defaultRequestPolicy")
    ordered = {name: http.pop(name) for name in first} | http
    return json.dumps({"http": ordered}, separators=(",", ":"))
