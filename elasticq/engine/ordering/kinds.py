"""The kinds of queue: a row for each says everything in which it differs from the others.

Nobody else asks which kind a queue is of; whoever must know a difference asks ``queue.kind`` for it. A new kind is a
file beside this one with its order (contract.py says what that must do) and its rules of sends, a row here, and its
line among the orders of the shared tests.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from elasticq.engine.ordering.contract import Order, Rules
from elasticq.engine.ordering.fair import with_groups
from elasticq.engine.ordering.fifo import FifoOrder, FifoRules
from elasticq.engine.ordering.partitions import PARTITIONS, RANGE, PartitionedOrder
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY, ORDER, PriorityOrder, PriorityRules
from elasticq.engine.ordering.schedule import SCHEDULE
from elasticq.engine.ordering.shared import shared
from elasticq.engine.ordering.shares import Stored
from elasticq.engine.ordering.sharing import (
    FAIRNESS,
    IN_FLIGHT_MAX,
    SEPARATOR,
    STRATEGIES,
    WEIGHTS,
    Sharing,
    check_separator,
    check_weights,
)
from elasticq.engine.ordering.standard import IDEMPOTENCY_WINDOW, StandardOrder, StandardRules
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model import limits
from elasticq.model.names import FIFO_QUEUE_NAME, QUEUE_NAME, has_fifo_suffix

BOOLEAN: Final = ("true", "false")


class Kind(Struct, frozen=True, kw_only=True):
    """One kind of queue, which a queue has from its creation on. What is not said is as in standard queues.

    How it is told apart:
        name: as people call it.
        aws_type: the type that AWS would name. Dead letters, moved and copied messages stay in queues of one type.
        marker, marker_value: the attribute that makes a queue of this kind at its creation; empty: no attribute does.
        name_pattern, name_words: which names its queues may have, and what is answered to another one.
    What orders its messages and judges its sends (contract.py):
        order: makes the order of a queue without messages.
        grouped: gives what takes the place of an order that knows no groups once a message with a group comes.
        partitioned: makes the order of a queue without messages that has so many partitions; None: it cannot have any.
        shared: gives what takes the place of an order once the queue's attributes say otherwise how groups share; None:
        that cannot be said.
        rules: made of a queue's attributes.
    Attributes that only this kind has, as queue_attributes.py reads them:
        ranges: the lowest and the highest number; choices: the texts that are taken; checks: what looks at other
        texts; defaults: what is shown where nothing was set;
        refused: attributes of other kinds that are refused in words of their own.
    What a send must hold and what is remembered of it:
        needs_group: every message has a MessageGroupId; the order takes it from a new message's content by itself.
        deduplicates_all: every message has a deduplication id, which is taken for five minutes.
        delays_messages: a delay begins at the send and stands in the message; else all messages have the queue's
        delay of the moment.
        has_sequence_numbers: results and received messages carry a SequenceNumber.
    What a receive gives:
        blocks_groups: a message in flight keeps back those behind it in its group, so that its removal lets the
        next one go.
        has_priorities: each message has a priority, which the order knows of every message and which may be changed.
        remembers_attempts: a ReceiveRequestAttemptId answers the same messages again; else it is ignored.
        refuses_when_full: a receive that does not wait is answered OverLimit where too many messages are in flight;
        else it is empty.
        has_strict_handles: a receipt handle can delete and hide its message only while the message is in flight
        under it.
        renews_dead_letters: the age of a dead letter counts from its arrival; else from its first send.
    """

    name: str
    aws_type: str
    marker: str = ""
    marker_value: str = ""
    name_pattern: re.Pattern[str]
    name_words: str
    order: Callable[[dict[int, Row], dict[int, MessageStored], Grace, Ages], Order]
    grouped: Callable[[Order], Order]
    partitioned: Callable[[dict[int, Row], dict[int, MessageStored], Grace, Ages, int], Order] | None = None
    shared: Callable[[Order, Sharing | None, dict[str, Stored]], Order] | None = None
    rules: Callable[[dict[str, str]], Rules]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    checks: dict[str, Callable[[str, str], str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    needs_group: bool = False
    deduplicates_all: bool = False
    delays_messages: bool = True
    has_sequence_numbers: bool = False
    blocks_groups: bool = False
    has_priorities: bool = False
    remembers_attempts: bool = False
    refuses_when_full: bool = True
    has_strict_handles: bool = False
    renews_dead_letters: bool = False

    def exchanges_with(self, other: "Kind") -> bool:
        """True if messages may go from a queue of this kind to one of the other, and back."""
        return self.aws_type == other.aws_type


_ONLY_FIFO: Final = "You can specify the {} only when FifoQueue is set to true."
_AT_CREATION: Final = f"{ORDER} can only be priority, is said at the creation of a queue, and not of a FIFO queue."
_ONLY_PRIORITY: Final = f"You can specify the {DEFAULT_PRIORITY} only when {ORDER} is set to priority."
_PRIORITY_REFUSED: Final = {ORDER: _AT_CREATION, DEFAULT_PRIORITY: _ONLY_PRIORITY}
_SHARING_REFUSED: Final = {
    name: f"You can specify the {name} only for standard queues whose {ORDER} is not priority."
    for name in (FAIRNESS, SEPARATOR, WEIGHTS, IN_FLIGHT_MAX)
}

STANDARD: Final = Kind(
    name="standard",
    aws_type="standard",
    name_pattern=QUEUE_NAME,
    name_words="Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
    order=StandardOrder,
    grouped=with_groups,
    shared=shared,
    rules=StandardRules,
    ranges={
        IDEMPOTENCY_WINDOW: (0, limits.IDEMPOTENCY_WINDOW_S_MAX),
        IN_FLIGHT_MAX: (0, limits.IN_FLIGHT_MAX),
    },
    choices={FAIRNESS: STRATEGIES, SCHEDULE: BOOLEAN},
    checks={SEPARATOR: check_separator, WEIGHTS: check_weights},
    refused={
        **{name: _ONLY_FIFO.format(name) for name in ("DeduplicationScope", "FifoThroughputLimit", PARTITIONS)},
        **_PRIORITY_REFUSED,
    },
)

FIFO: Final = replace(
    STANDARD,
    name="FIFO",
    aws_type="FIFO",
    marker="FifoQueue",
    marker_value="true",
    name_pattern=FIFO_QUEUE_NAME,
    name_words=(
        "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
        "must end with .fifo suffix and be 1 to 80 in length."
    ),
    order=FifoOrder,
    partitioned=PartitionedOrder,
    shared=None,
    rules=FifoRules,
    ranges={PARTITIONS: RANGE},
    checks={},
    choices={
        "FifoQueue": BOOLEAN,
        "ContentBasedDeduplication": BOOLEAN,
        "DeduplicationScope": ("queue", "messageGroup"),
        "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    },
    defaults={
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    },
    refused={
        IDEMPOTENCY_WINDOW: (
            f"You can specify the {IDEMPOTENCY_WINDOW} only for standard queues: FIFO queues have theirs."
        ),
        **_PRIORITY_REFUSED,
        **_SHARING_REFUSED,
        SCHEDULE: f"You can specify the {SCHEDULE} only for queues that are not FIFO queues.",
    },
    needs_group=True,
    deduplicates_all=True,
    delays_messages=False,
    has_sequence_numbers=True,
    blocks_groups=True,
    remembers_attempts=True,
    refuses_when_full=False,
    has_strict_handles=True,
    renews_dead_letters=True,
)

PRIORITY: Final = replace(
    STANDARD,
    name="priority",
    marker=ORDER,
    marker_value="priority",
    order=PriorityOrder,
    shared=None,
    rules=PriorityRules,
    ranges={IDEMPOTENCY_WINDOW: STANDARD.ranges[IDEMPOTENCY_WINDOW], DEFAULT_PRIORITY: limits.LONG_RANGE},
    checks={},
    choices={ORDER: ("priority", "standard"), SCHEDULE: BOOLEAN},
    defaults={DEFAULT_PRIORITY: "0"},
    refused={
        **{name: words for name, words in STANDARD.refused.items() if name not in _PRIORITY_REFUSED},
        **_SHARING_REFUSED,
    },
    has_priorities=True,
)

KINDS: Final = (STANDARD, FIFO, PRIORITY)
_MARKED: Final = tuple(kind for kind in KINDS if kind.marker)
MARKERS: Final = frozenset(kind.marker for kind in _MARKED)


def kind_of(attributes: dict[str, str]) -> Kind:
    """Returns the kind of a queue that has these attributes, or is to be made with them."""
    for kind in _MARKED:
        if attributes.get(kind.marker, "").lower() == kind.marker_value:
            return kind
    return STANDARD


def kind_named(name: str) -> Kind:
    """Returns the kind that AWS's rules give a queue of this name; for queues that do not exist, or not any more."""
    return FIFO if has_fifo_suffix(name) else STANDARD
