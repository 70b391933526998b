"""The settings of queues as fields of forms: each attribute that clients can set, with its label and its kinds."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from elasticq.engine.actions.queue_attributes import DEFAULTS
from elasticq.engine.ordering import kinds, sharing
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY
from elasticq.engine.ordering.schedule import SCHEDULE
from elasticq.engine.ordering.standard import IDEMPOTENCY_WINDOW
from elasticq.engine.policies.queue_policies import ATTRIBUTE as POLICY
from elasticq.engine.stored.redrive_policies import ALLOW_POLICY
from elasticq.engine.stored.redrive_policies import POLICY as REDRIVE_POLICY
from elasticq.model.names import QUEUE_ARN

STANDARD, FIFO, PRIORITY = kinds.STANDARD.name, kinds.FIFO.name, kinds.PRIORITY.name
KIND_NAMES: Final = tuple(kind.name for kind in kinds.KINDS)
_ALL: Final = KIND_NAMES
_YES_OR_NO: Final = (("false", "no"), ("true", "yes"))


class Field(NamedTuple):
    """A setting.

    options: the valid values, each with its words; empty for a number or text; normal: the value of a new queue;
    kinds: the kinds of queue that have it; is_fixed: it can be set only when the queue is created; is_number: it is a
    number; lines: its number of lines, if it is a text of lines; is_deleted_empty: an empty value deletes it.
    """

    name: str
    label: str
    hint: str = ""
    normal: str = ""
    kinds: tuple[str, ...] = _ALL
    options: tuple[tuple[str, str], ...] = ()
    is_fixed: bool = False
    is_number: bool = False
    lines: int = 0
    is_deleted_empty: bool = False

    @property
    def field(self) -> str:
        """Return the name of the input."""
        return f"Attributes.{self.name}{'+' if self.is_deleted_empty else ''}"


def _number(name: str, label: str, hint: str = "", kinds: tuple[str, ...] = _ALL, **more: Any) -> Field:
    return Field(name, label, hint, more.pop("normal", DEFAULTS.get(name, "")), kinds, is_number=True, **more)


FIELDS: Final = (
    _number("VisibilityTimeout", "Visibility timeout, s", "How long a received message stays invisible."),
    _number("DelaySeconds", "Delay, s", "How long new messages wait."),
    _number("MessageRetentionPeriod", "Retention, s", "Older messages are deleted."),
    _number("ReceiveMessageWaitTimeSeconds", "Receive wait, s", "Of receives that name no time."),
    _number("MaximumMessageSize", "Largest message, bytes"),
    Field("ContentBasedDeduplication", "Deduplicate by content", kinds=(FIFO,), options=_YES_OR_NO, normal="false"),
    Field(
        "DeduplicationScope",
        "Deduplicate within",
        kinds=(FIFO,),
        options=(("queue", "the queue"), ("messageGroup", "each message group")),
        normal="queue",
    ),
    Field(
        "FifoThroughputLimit",
        "Throughput limit",
        kinds=(FIFO,),
        options=(("perQueue", "per queue"), ("perMessageGroupId", "per message group")),
        normal="perQueue",
    ),
    _number(PARTITIONS, "Partitions", "Cannot be changed later.", (FIFO,), is_fixed=True),
    _number(DEFAULT_PRIORITY, "Default priority", "The lowest number goes first.", (PRIORITY,), normal="0"),
    Field(
        sharing.FAIRNESS,
        "Fair share",
        "How message groups take turns.",
        kinds=(STANDARD,),
        options=tuple(
            (each, "as on SQS" if each == sharing.SQS else each.replace("_", " ")) for each in sharing.STRATEGIES
        ),
        normal=sharing.SQS,
    ),
    _number(sharing.IN_FLIGHT_MAX, "In flight per group, at most", "Needs a fair share. 0: no limit.", (STANDARD,)),
    Field(
        sharing.SEPARATOR,
        "Group separator",
        "Ends the part of a group's name that counts.",
        kinds=(STANDARD,),
        is_deleted_empty=True,
    ),
    Field(sharing.WEIGHTS, "Weights", "A line each: GROUP=WEIGHT", kinds=(STANDARD,), lines=2, is_deleted_empty=True),
    _number(IDEMPOTENCY_WINDOW, "Idempotency window, s", "Repeated sends store one message.", (STANDARD, PRIORITY)),
    Field(
        SCHEDULE,
        "Messages may be scheduled",
        kinds=(STANDARD, PRIORITY),
        options=(("false", "within the retention"), ("true", "up to ten years ahead")),
        normal="false",
    ),
    Field("SqsManagedSseEnabled", "Managed encryption", options=_YES_OR_NO, normal=DEFAULTS["SqsManagedSseEnabled"]),
    Field("KmsMasterKeyId", "KMS key", is_deleted_empty=True),
    _number("KmsDataKeyReusePeriodSeconds", "KMS key reuse, s"),
    Field(POLICY, "Policy, JSON", lines=3, is_deleted_empty=True),
)
"""All settings but those of the kind and of dead letters (Redrive, Allowed), which have fields of their own."""
OF_DEAD_LETTERS: Final = (REDRIVE_POLICY, ALLOW_POLICY)
PERMISSIONS: Final = (("", "all queues"), ("denyAll", "no queue"), ("byQueue", "these queues"))


class Shown(NamedTuple):
    """A field with the value that the queue has."""

    field: Field
    value: str


def of_kind(kind: str, attributes: dict[str, str], *, is_new: bool = False) -> Iterator[Shown]:
    """Yield the settings of a queue of this kind. ``is_new``: those with which it can be created, without values."""
    for each in FIELDS:
        if kind in each.kinds and (is_new or not each.is_fixed):
            value = "" if is_new else attributes.get(each.name, each.normal)
            yield Shown(each, weights_in_lines(value) if each.name == sharing.WEIGHTS else value)


def weights_in_lines(value: str) -> str:
    """Return the weights with a line for each group. A value that is no map of weights stays as it is."""
    try:
        return "\n".join(f"{name}={weight}" for name, weight in sharing.read_weights(value).items())
    except ValueError:
        return value


class Redrive(NamedTuple):
    """The fields of the two policies of dead letters. ``sources``: names of queues, as they are typed."""

    target: str = ""
    receives: str = ""
    permission: str = ""
    sources: str = ""


def redrive_of(attributes: dict[str, str]) -> Redrive:
    """Return the fields for the policies of a queue. What cannot be read counts as empty."""
    redrive, allowed = _map(attributes.get(REDRIVE_POLICY, "")), _map(attributes.get(ALLOW_POLICY, ""))
    permission = str(allowed.get("redrivePermission", ""))
    return Redrive(
        _name(redrive.get("deadLetterTargetArn")),
        str(redrive.get("maxReceiveCount", "")),
        permission if permission in dict(PERMISSIONS) else "",
        ", ".join(_name(each) for each in allowed.get("sourceQueueArns", ())),
    )


def _map(value: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _name(arn: object) -> str:
    """Return the name in a queue's ARN."""
    return str(arn).rpartition(":")[2] if isinstance(arn, str) and QUEUE_ARN.match(arn) else ""
