"""The kinds of queue: one row for each kind lists everything in which it differs from the others.

Other modules do not check the kind of a queue. They read the difference from ``queue.kind``. To add a kind, write a
module in this folder with its order (see contract.py) and its rules. Then add a row here, and the order to those of the
shared tests.
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
    """One kind of queue. A queue keeps its kind for ever. Fields with a default have the value of standard queues.

    Identity:

        name: The name of the kind in texts for people.
        aws_type: The type that AWS would name. Dead letters, moved and copied messages stay in queues of one type.
        marker, marker_value: The attribute and value that make a new queue one of this kind. Empty: no attribute does.
        name_pattern, name_words: The pattern of valid queue names, and the error text for other names.

    Order and rules (contract.py):

        order: Makes the order of a queue without messages.
        grouped: Returns the order that replaces one without groups when a message with a group arrives.
        partitioned: Makes the order of an empty queue with this number of partitions. None: no partitions.
        shared: Returns the order for changed attributes of sharing. None: the kind has no such attributes.
        rules: Makes the rules from a queue's attributes.

    Attributes of this kind only, as queue_attributes.py reads them:

        ranges: The lowest and the highest number.
        choices: The valid texts.
        checks: The functions that check other texts.
        defaults: The values that are shown if nothing was set.
        refused: Attributes of other kinds, with the error text for each.

    Sends:

        needs_group: Every message has a MessageGroupId. The order reads it from a new message's content itself.
        deduplicates_all: Every message has a deduplication id, which is remembered for five minutes.
        delays_messages: The delay is fixed at the send and stored with the message. Otherwise the queue's current
            delay applies to all messages.
        has_sequence_numbers: Results and received messages carry a SequenceNumber.

    Receives:

        blocks_groups: A message in flight blocks those behind it in its group, and its removal releases the next one.
        has_priorities: Each message has a priority, which the order knows and which can be changed.
        remembers_attempts: A repeated ReceiveRequestAttemptId returns the same messages. Otherwise it is ignored.
        refuses_when_full: A receive without waiting raises OverLimit if too many messages are in flight. Otherwise its
            result is empty.
        has_strict_handles: A receipt handle can delete its message, or change its visibility, only while the message is
            in flight under this handle.
        renews_dead_letters: The age of a dead letter counts from its arrival. Otherwise it counts from its first send.
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
        """Return whether messages may move from a queue of this kind to one of the other, and back."""
        return self.aws_type == other.aws_type


_ONLY_FIFO: Final = "You can specify the {} only when FifoQueue is set to true."
_AT_CREATION: Final = f"{ORDER} can only be priority, and only be set when a queue is created that is not a FIFO queue."
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
            f"You can specify the {IDEMPOTENCY_WINDOW} only for standard queues: FIFO queues have a fixed window."
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
    """Return the kind of a queue that has these attributes or will be created with them."""
    for kind in _MARKED:
        if attributes.get(kind.marker, "").lower() == kind.marker_value:
            return kind
    return STANDARD


def kind_named(name: str) -> Kind:
    """Return the kind that AWS's naming rules imply. It is for queues that do not exist or were deleted."""
    return FIFO if has_fifo_suffix(name) else STANDARD
