"""Which attributes a queue may have, what they may be, and how they read back.

Values are strings on the wire and are kept as AWS shows them. Source:
SetQueueAttributes API page; texts and the list shown by ``All`` from
recordings of AWS (sqs-behaviour.md §5, §6).
"""

import json
from collections.abc import Callable
from typing import Final

from elasticq.model import limits
from elasticq.model.errors import InvalidAttributeName, InvalidAttributeValue, OverLimit, UnsupportedOperation

COUNTERS: Final = {
    "ApproximateNumberOfMessages": "visible",
    "ApproximateNumberOfMessagesNotVisible": "in_flight",
    "ApproximateNumberOfMessagesDelayed": "delayed",
}
READ_ONLY: Final = frozenset({*COUNTERS, "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp"})
DEFAULTS: Final = {
    "DelaySeconds": str(limits.DELAY_S_DEFAULT),
    "MaximumMessageSize": str(limits.BODY_BYTES_MAX),
    "MessageRetentionPeriod": str(limits.RETENTION_S_DEFAULT),
    "ReceiveMessageWaitTimeSeconds": str(limits.WAIT_S_DEFAULT),
    "VisibilityTimeout": str(limits.VISIBILITY_S_DEFAULT),
    "SqsManagedSseEnabled": "true",
}
_RANGES: Final = {
    "DelaySeconds": (0, limits.DELAY_S_MAX),
    "MaximumMessageSize": (limits.BODY_BYTES_MIN_SETTING, limits.BODY_BYTES_MAX),
    "MessageRetentionPeriod": (limits.RETENTION_S_MIN, limits.RETENTION_S_MAX),
    "ReceiveMessageWaitTimeSeconds": (0, limits.WAIT_S_MAX),
    "VisibilityTimeout": (0, limits.VISIBILITY_S_MAX),
    "KmsDataKeyReusePeriodSeconds": (limits.KMS_REUSE_S_MIN, limits.KMS_REUSE_S_MAX),
}
_FIFO_ONLY: Final = frozenset({"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"})
_NOT_YET: Final = frozenset({"RedrivePolicy", "RedriveAllowPolicy"})


def _invalid(name: str) -> InvalidAttributeValue:
    return InvalidAttributeValue(f"Invalid value for the parameter {name}.")


def _number(name: str, value: str) -> str:
    low, high = _RANGES[name]
    if not (value.isascii() and value.isdigit() and len(value) <= 10) or not low <= int(value) <= high:
        raise _invalid(name)
    return str(int(value))


def _boolean(name: str, value: str) -> str:
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise _invalid(name)
    return lowered


def _policy(name: str, value: str) -> str:
    if len(value.encode()) > limits.POLICY_BYTES_MAX:
        raise OverLimit("Submitted policy is over max allowed size.")
    try:
        if value and not isinstance(json.loads(value), dict):
            raise _invalid(name)
    except (ValueError, RecursionError):
        raise _invalid(name) from None
    return value


def _text(name: str, value: str) -> str:
    if len(value) > 2_048:
        raise _invalid(name)
    return value


_CHECKS: Final[dict[str, Callable[[str, str], str]]] = {
    **dict.fromkeys(_RANGES, _number),
    "SqsManagedSseEnabled": _boolean,
    "KmsMasterKeyId": _text,
    "Policy": _policy,
}
NAMES: Final = frozenset({*_CHECKS, *READ_ONLY, *_FIFO_ONLY, *_NOT_YET, "FifoQueue"})


def checked(given: dict[str, str]) -> dict[str, str]:
    """``given`` as it will read back; an empty value means "remove".

    Raises InvalidAttributeName, InvalidAttributeValue, OverLimit, UnsupportedOperation.
    """
    result = {}
    for name, value in given.items():
        if name in _FIFO_ONLY and name != "ContentBasedDeduplication":
            raise InvalidAttributeName(f"You can specify the {name} only when FifoQueue is set to true.")
        if name in _NOT_YET:
            raise UnsupportedOperation(f"The attribute {name} is not supported by this version of elasticq.")
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidAttributeName(f"Unknown Attribute {name}.")
        result[name] = check(name, value)
    if result.get("KmsMasterKeyId") and result.get("SqsManagedSseEnabled") == "true":
        raise InvalidAttributeName(
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE."
        )
    return result


def merged(current: dict[str, str], change: dict[str, str]) -> dict[str, str]:
    """The attributes after a checked change; one kind of SSE displaces the other."""
    result = {**current, **change}
    if change.get("KmsMasterKeyId"):
        result["SqsManagedSseEnabled"] = "false"
    elif change.get("SqsManagedSseEnabled") == "true":
        result.pop("KmsMasterKeyId", None)
        result.pop("KmsDataKeyReusePeriodSeconds", None)
    return {name: value for name, value in result.items() if value != ""}


def shown(attributes: dict[str, str]) -> dict[str, str]:
    """What reads back of the settable ones: defaults filled in."""
    result = {**DEFAULTS, **attributes}
    if "KmsMasterKeyId" in result:
        result.setdefault("KmsDataKeyReusePeriodSeconds", str(limits.KMS_REUSE_S_DEFAULT))
    else:
        result.pop("KmsDataKeyReusePeriodSeconds", None)
    return result
