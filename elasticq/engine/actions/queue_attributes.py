"""The attributes of queues: their names, allowed values and defaults.

Values are strings on the wire and are stored in the form that AWS shows. Source: SetQueueAttributes API page; error
texts and the list for ``All`` are from recordings of AWS (docs/aws.md).
"""

from collections.abc import Callable
from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.ordering import sharing
from elasticq.engine.ordering.fifo import SCOPE_AT_CREATION
from elasticq.engine.ordering.kinds import BOOLEAN, KINDS, Kind, kind_of
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.engine.ordering.schedule import SCHEDULE
from elasticq.engine.ordering.standard import IDEMPOTENCY_WINDOW
from elasticq.engine.policies import queue_policies as policies
from elasticq.engine.state import HIDDEN
from elasticq.engine.stored import redrive_policies
from elasticq.model import documents, limits
from elasticq.model.errors import InvalidAttributeName, InvalidAttributeValue, quoted

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
_DOCUMENTS: Final = frozenset(
    {policies.ATTRIBUTE, redrive_policies.POLICY, redrive_policies.ALLOW_POLICY, sharing.WEIGHTS}
)


def _invalid(name: str) -> InvalidAttributeValue:
    return InvalidAttributeValue(f"Invalid value for the parameter {name}.")


def _number(name: str, value: str) -> str:
    return _ranged(name, value, _RANGES[name])


def _ranged(name: str, value: str, bounds: tuple[int, int]) -> str:
    low, high = bounds
    digits = value.removeprefix("-") if low < 0 else value
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= max(10, len(str(high)))
    if not is_number or not low <= int(value) <= high:
        raise _invalid(name)
    return str(int(value))


def _boolean(name: str, value: str) -> str:
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise _invalid(name)
    return lowered


def _chosen(name: str, value: str, kind: Kind) -> str:
    """Return a value that is one of the choices of ``kind``. The attribute that sets the kind cannot be changed."""
    choices = kind.choices[name]
    if choices == BOOLEAN:
        value = value.lower()
    if value not in choices:
        raise _invalid(name)
    if name == kind.marker and value != kind.marker_value:
        raise InvalidAttributeValue(
            f"Invalid value for the parameter {name}. Reason: Modifying queue type is not supported."
        )
    return value


def _text(name: str, value: str) -> str:
    if len(value) > 2_048:
        raise _invalid(name)
    return value


_CHECKS: Final[dict[str, Callable[[str, str], str]]] = {
    **dict.fromkeys(_RANGES, _number),
    "SqsManagedSseEnabled": _boolean,
    "KmsMasterKeyId": _text,
    policies.ATTRIBUTE: policies.check,
    redrive_policies.POLICY: redrive_policies.check_policy,
    redrive_policies.ALLOW_POLICY: redrive_policies.check_allow_policy,
}
_OF_KINDS: Final = frozenset(name for kind in KINDS for name in (*kind.ranges, *kind.choices, *kind.checks))
NAMES: Final = frozenset({*_CHECKS, *_OF_KINDS, *READ_ONLY})


def checked(given: dict[str, str], kind: Kind, context: ExecutionContext | None = None) -> dict[str, str]:
    """Return the given attributes of a queue of ``kind``, normalised. An empty value deletes the attribute.

    If the ``context`` has relaxed limits, unknown attributes are ignored, as in ElasticMQ: programs written for it send
    some. Without a context (configuration) they are an error.
    Raise InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue or OverLimit.
    """
    result = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is not None:
            result[name] = check(name, value)
        elif name in kind.ranges:
            result[name] = _ranged(name, value, kind.ranges[name])
        elif name in kind.choices:
            result[name] = _chosen(name, value, kind)
        elif name in kind.checks:
            result[name] = kind.checks[name](name, value)
        elif context is not None and context.limits.is_relaxed and name not in NAMES:
            context.ignore(name)
        else:
            raise InvalidAttributeName(kind.refused.get(name) or f"Unknown Attribute {quoted(name)}.")
    if result.get("KmsMasterKeyId") and result.get("SqsManagedSseEnabled") == "true":
        raise InvalidAttributeName(
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE."
        )
    return result


def merged(current: dict[str, str], change: dict[str, str]) -> dict[str, str]:
    """Return the attributes after a checked change. Setting one kind of encryption (SSE) removes the other.

    Raise InvalidAttributeValue if the attributes contradict each other.
    """
    result = {**current, **change}
    if result.get("FifoThroughputLimit") == "perMessageGroupId" and result.get("DeduplicationScope") != "messageGroup":
        raise InvalidAttributeValue(
            "Invalid value for the parameter FifoThroughputLimit. "
            "Reason: perMessageGroupId is allowed only when the value for DeduplicationScope is messageGroup."
        )
    sharing.check_together(result)
    if change.get("KmsMasterKeyId"):
        result["SqsManagedSseEnabled"] = "false"
    elif change.get("SqsManagedSseEnabled") == "true":
        result.pop("KmsMasterKeyId", None)
        result.pop("KmsDataKeyReusePeriodSeconds", None)
    return {name: value for name, value in result.items() if value != ""}


def check_fixed(current: dict[str, str], change: dict[str, str]) -> None:
    """Raise InvalidAttributeValue if the change contains another value for an attribute that is fixed at creation."""
    if PARTITIONS in change and change[PARTITIONS] != current.get(PARTITIONS):
        raise InvalidAttributeValue(
            f"Invalid value for the parameter {PARTITIONS}. "
            "Reason: Modifying the number of partitions is not supported."
        )


def at_creation(given: dict[str, str]) -> dict[str, str]:
    """Return the attributes of a new queue: the checked ones of the call, and a record of its DeduplicationScope."""
    attributes = merged({}, given)
    if attributes.get("DeduplicationScope") == "messageGroup":
        attributes[SCOPE_AT_CREATION] = "messageGroup"
    return attributes


def shown(attributes: dict[str, str]) -> dict[str, str]:
    """Return the settable attributes as GetQueueAttributes returns them, with defaults."""
    result = {**DEFAULTS, **kind_of(attributes).defaults, **attributes}
    for name in HIDDEN:
        result.pop(name, None)
    if "KmsMasterKeyId" in result:
        result.setdefault("KmsDataKeyReusePeriodSeconds", str(limits.KMS_REUSE_S_DEFAULT))
    else:
        result.pop("KmsDataKeyReusePeriodSeconds", None)
    return result


def differing(attributes: dict[str, str], given: dict[str, str]) -> list[str]:
    """Return the names of the given, checked attributes whose values differ from those of a queue with ``attributes``.

    An attribute that is not set equals its default, also if clients do not see it. JSON documents are compared by
    value.
    """
    present = {**_UNSEEN_DEFAULTS, **shown(attributes), **attributes}
    return [
        name
        for name, value in given.items()
        if not _is_same(name, value or _UNSEEN_DEFAULTS.get(name, ""), present.get(name, ""))
    ]


_UNSEEN_DEFAULTS: Final = {
    "KmsDataKeyReusePeriodSeconds": str(limits.KMS_REUSE_S_DEFAULT),
    redrive_policies.ALLOW_POLICY: '{"redrivePermission":"allowAll"}',
    sharing.FAIRNESS: sharing.SQS,
    sharing.IN_FLIGHT_MAX: "0",
    sharing.WEIGHTS: "{}",
    IDEMPOTENCY_WINDOW: "0",
    SCHEDULE: "false",
}
"""The values in effect for attributes that are not set and that GetQueueAttributes then does not return."""


def _is_same(name: str, given: str, present: str) -> bool:
    if given == present or name not in _DOCUMENTS or not given or not present:
        return given == present
    return bool(documents.read(given) == documents.read(present))
