"""The contract of a kind of queue: an order is the index of a queue's messages, and rules check what is sent to it.

The order decides which messages are delivered next. Every message is in one of these states, which follow from its row,
the time and the queue's settings:

    untouched   It was never delayed and never received. It has no row: a range of sequences represents it.
    delayed     It was never received, and is invisible until its deadline. It has no row: ``Delays`` represents it.
    in flight   It was received, and is invisible until its deadline.
    returned    It was received, and its deadline has passed.

Nothing is logged when a deadline passes. An order notices it the next time it advances (``advance``). If many deadlines
pass together, each advance moves at most ADVANCED_MAX messages, and the sweeper moves the rest. A message in flight may
have a later deadline than its row states, see ``Grace``. The content of a message may be on disk only. Its delivery
state and its group are always in memory.

``apply`` is the only caller of the methods that write. It first stores the content in ``contents``, and the row in
``rows`` if the message needs one. Then it calls ``join`` (unless the kind ``needs_group``, see kinds.py), and then
``insert``. The methods that read may move messages whose deadline has passed, but they change nothing that a client can
see. Every order passes the tests of tests/engine/ordering/test_contract.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Set
from heapq import heappush
from typing import ClassVar, Final

from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.delays import Delays
from elasticq.engine.ordering.lease_groups import LeaseGroups
from elasticq.engine.ordering.ranges import Ranges
from elasticq.engine.ordering.shares import Stored
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import SendMessage, SendMessageBatchEntry

SKIPPED_MAX: Final = 1_000  # expired messages passed over in one choice; the sweeper deletes them
AHEAD_MAX: Final = 512  # contents requested at once: those of a few pages
ADVANCED_MAX: Final = 2_048  # messages that one advance moves; more than a choice may return and pass over
GRACE_CHECKED_MAX: Final = 20_000  # of the due messages that ``passed`` counts; for the others it assumes no grace
TAKEN_BETWEEN_LOOKS: Final = 64  # messages handed out before contents are prefetched again


class ContentsMissing(Exception):
    """The error for a command that needs contents which are on disk only. The command can run once they are loaded."""

    def __init__(self, sequences: list[int]) -> None:
        super().__init__(sequences)
        self.sequences = sequences

    def with_ahead(self, ahead: Iterable[int]) -> "ContentsMissing":
        """Return this error with more sequences, which will be needed next."""
        return ContentsMissing([*self.sequences, *(each for each in ahead if each not in self.sequences)])


class Rules(ABC):
    """The rules for messages sent to one queue, made from the queue's attributes.

    - idempotency_ms: How long a MessageDeduplicationId is remembered if the kind does not require one. 0: messages may
      not have one.
    - has_ids_by_group: Whether equal deduplication ids in different groups are different ids.
    - ahead_ms_max: How far in the future a message may schedule its own delivery. 0: messages cannot be scheduled.
    """

    __slots__ = ("ahead_ms_max", "has_ids_by_group", "idempotency_ms")

    def __init__(self, *, idempotency_ms: int = 0, has_ids_by_group: bool = False, ahead_ms_max: int = 0) -> None:
        self.ahead_ms_max = ahead_ms_max
        self.idempotency_ms = idempotency_ms
        self.has_ids_by_group = has_ids_by_group

    @abstractmethod
    def complete(
        self, stored: MessageStored, entry: SendMessage | SendMessageBatchEntry, delay_s: int, now_ms: int
    ) -> None:
        """Check the entry's delay, group and deduplication id, and write them into ``stored``.

        The contents of ``stored`` are already valid. ``delay_s`` is the delay of the queue. Raise InvalidParameterValue
        if one of the entry's values is invalid.
        """

    @abstractmethod
    def check_batch(self, entries: list[SendMessageBatchEntry]) -> None:
        """Raise InvalidParameterValue if one of the entries makes the whole SendMessageBatch fail."""


class Order(ABC):
    """The index of one queue over its ``rows``.

    - has_groups: Whether ``join`` may be called. If it is False, the kind's ``grouped`` order must replace this one
      first.
    """

    __slots__ = ("_ages", "_contents", "_deadlines", "_delays", "_grace", "_heap", "_rows", "_untouched")

    has_groups: ClassVar[bool] = True

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        self._rows = rows
        self._contents = contents
        self._grace = grace
        self._ages = ages
        self._untouched = Ranges()
        self._delays = Delays()  # of the never-received messages
        self._deadlines: dict[int, int] = {}  # sequence -> deadline of the messages in flight
        self._heap: list[tuple[int, int]] = []  # (deadline, sequence); stale if ``_deadlines`` has another deadline

    # --- written by apply ---------------------------------------------------

    @abstractmethod
    def insert(self, sequence: int, row: Row) -> None:
        """Add a message that is not in the order: a new one, a row from disk, or one that a roll-back restores."""

    @abstractmethod
    def remove(self, sequence: int, row: Row) -> None:
        """Remove the message. ``row`` is its last row, which is already deleted from ``rows``."""

    @abstractmethod
    def replace(self, sequence: int, old: Row, row: Row) -> None:
        """Update the order after a message's row changed from ``old`` to ``row``. ``rows`` already has the new row."""

    @abstractmethod
    def join(self, sequence: int, name: str) -> None:
        """Put the message into this group.

        The caller calls ``insert`` next, unless ``insert_untouched`` or ``insert_delayed`` has added the message.
        """

    def insert_untouched(self, first: int, last: int) -> None:
        """Add untouched messages, whose sequences are above all others in the order. ``join`` follows for those in
        groups.
        """
        self._untouched.add_range(first, last)

    def insert_delayed(self, sequences: list[int], due_ms: list[int]) -> None:
        """Add delayed messages, whose sequences are above all other delayed ones. ``join`` follows for
        those in groups.
        """
        self._delays.add_all(sequences, due_ms)

    def prioritise(self, sequence: int, priority: int) -> None:
        """Set the priority of the message. ``insert`` may follow. Only for kinds that have ``has_priorities`` set."""
        raise AssertionError("the messages of this queue have no priorities")

    def set_default_priority(self, priority: int) -> None:
        """Set the priority of future messages that name none. Only for kinds that have ``has_priorities`` set."""
        raise AssertionError("the messages of this queue have no priorities")

    @abstractmethod
    def set_turn(self, path: str, stored: Stored | None) -> None:
        """Set the stored turn of a group, or of a node above groups. None: nothing is stored."""

    @abstractmethod
    def set_delay(self, delay_ms: int) -> None:
        """Set the delay of the queue, which is its DelaySeconds in milliseconds."""

    @abstractmethod
    def note_served(self, name: str, number: int) -> None:
        """Store a pair that ``served`` returned on another member."""

    @abstractmethod
    def recheck_returned(self, from_ms: int) -> None:
        """Treat messages that returned at ``from_ms`` or later as in flight again, because the grace changed.

        The next advance checks their deadlines with the new grace. A member that was no master has usually moved no
        message out of flight since its start, and then this visits none (``has_returned``).
        """

    def forget_grace(self) -> None:
        """Set deadlines that a grace span prolonged back to those of the rows, because a roll-back removed the span.

        The next advance checks these deadlines again, and may prolong them for other grace spans.
        """
        for sequence, deadline_ms in self._deadlines.items():
            if deadline_ms != (own_ms := self._rows[sequence].visible_at_ms):
                self._deadlines[sequence] = own_ms
                heappush(self._heap, (own_ms, sequence))

    # --- read by handlers -----------------------------------------------------

    @abstractmethod
    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Return up to ``limit`` messages that may be handed out at ``now_ms``, next one first, without expired ones.

        A message sent at ``sent_after_ms`` or before has expired. The result for a smaller limit is a prefix of that
        for a larger one. The result ends before the first message whose content is not in memory. If that would leave
        it empty, raise ContentsMissing with this message and those needed next.
        """

    def choose_in(self, partition: int, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Return the messages that ``choose`` would return if the queue had only the messages of this partition.

        Only for queues with partitions, as all methods that name partitions.
        """
        raise AssertionError("this queue has no partitions")

    def open_partitions(self, now_ms: int) -> Set[int]:
        """Return the partitions that have messages to hand out at ``now_ms``, including expired ones."""
        raise AssertionError("this queue has no partitions")

    def partition_of(self, name: str) -> int:
        """Return the partition of the group ``name``, which need not have messages."""
        raise AssertionError("this queue has no partitions")

    def choose_behind(
        self,
        taken: LeaseGroups,
        now_ms: int,
        limit: int,
        sent_after_ms: int,
        *,
        may_miss: bool,
        partition: int | None = None,
    ) -> list[int]:
        """Return up to ``limit`` messages that are blocked only by messages in flight of the same lease
        (``blocks_groups``).

        ``partition`` limits the result to one partition; None means any. If the content of the first message is not in
        memory, raise ContentsMissing, unless ``may_miss`` is set.
        """
        return []

    def turns(self, sequences: list[int]) -> dict[str, Stored]:
        """Return the turns to store when these messages are handed out, so that all members have the same turns."""
        return {}

    @property
    def limits_groups(self) -> bool:
        """Return whether messages in flight may block others of their group, so that a removal may make others
        available.
        """
        return False

    @abstractmethod
    def advance(self, now_ms: int) -> None:
        """Move messages whose deadline has passed, earliest deadline first. It is O(1) if there are none.

        One call moves about ADVANCED_MAX messages at most, each in O(log n).
        """

    @abstractmethod
    def missing_ahead(self) -> list[int]:
        """Return those of about the next AHEAD_MAX messages whose contents are not in memory."""

    @abstractmethod
    def progress(self, sequence: int) -> int:
        """Return how far delivery has come once ``sequence`` is handed out, to compare with ``next_prefetch_at``."""

    @abstractmethod
    def next_prefetch_at(self, ahead: list[int], sequence: int) -> int:
        """Return the progress at which to call ``missing_ahead`` again, after it returned ``ahead``."""

    @abstractmethod
    def is_in_flight(self, sequence: int, now_ms: int) -> bool:
        """Return whether the message was received and its deadline has not passed."""

    @abstractmethod
    def is_delayed(self, sequence: int, now_ms: int) -> bool:
        """Return whether the message was never received and its delay has not passed."""

    @abstractmethod
    def in_flight(self, now_ms: int) -> int:
        """Return the number of messages in flight. Messages that only wait behind them in their groups do not count.

        It includes messages whose deadline has passed but that no advance has moved yet.
        """

    @abstractmethod
    def counts(self, now_ms: int) -> Counts:
        """Return how many messages are visible, in flight and delayed, including expired ones."""

    @abstractmethod
    def next_due_ms(self) -> int | None:
        """Return a time at or before which the next deadline passes; None if no message waits for one.

        The time may be too early, but is never too late.
        """

    @abstractmethod
    def group_name(self, sequence: int) -> str | None:
        """Return the name of the group of a message in the order; None if it has no group."""

    def priority(self, sequence: int) -> int:
        """Return the priority of a message in the order. Only for kinds that have ``has_priorities`` set."""
        raise AssertionError("the messages of this queue have no priorities")

    @abstractmethod
    def served(self) -> list[tuple[str, int]]:
        """Return (group, number) pairs: the ordering state that cannot be derived from the rows.

        In a FIFO queue, the number is the time of the group's newest receive in milliseconds. In a standard queue, it
        is a bit mask: the kinds of the group's last deliveries (``turns_after`` in standard.py). An empty group name
        means the messages without a group.
        """

    def is_untouched(self, sequence: int) -> bool:
        """Return whether the message is in the order and was never delayed and never received."""
        return sequence in self._untouched

    @property
    def untouched_count(self) -> int:
        return self._untouched.count

    @property
    def rowless_count(self) -> int:
        """Return how many messages have no row in ``rows``, because they were never received."""
        return self._untouched.count + self._delays.count

    def rowless(self, sequence: int) -> Row | None:
        """Return the delivery state of a message that has no row in ``rows``; None if the order does not have it."""
        if sequence in self._untouched:
            return UNTOUCHED
        due_ms = self._delays.due_ms(sequence) if self._delays.count else 0
        return Row(due_ms) if due_ms else None

    def delayed(self, above: int = -1) -> Iterator[tuple[int, int]]:
        """Yield (sequence, deadline) of the never-received messages that have or had a delay, by sequence.

        above: only those with larger sequences.
        """
        return self._delays.items(above)

    def untouched_pairs(self, above: int = -1) -> Iterator[tuple[int, int]]:
        """Yield the ranges (first, last) of the untouched messages above ``above``."""
        return self._untouched.pairs_above(above)

    def _sent_ms(self, sequence: int) -> int:
        """Return when the message was sent. If its content is on disk only, the time may be too late, but not too
        early.

        It comes from ``Ages`` then.
        """
        content = self._contents.get(sequence)
        return content.sent_ms if content is not None else self._ages.sent_by_ms(sequence)


def has_due_messages(order: Order, now_ms: int) -> bool:
    """Return whether ``advance`` would move a message."""
    due_ms = order.next_due_ms()
    return due_ms is not None and due_ms <= now_ms


def has_returned(order: Order) -> bool:
    """Return whether an advance has moved messages out of flight that still exist."""
    return len(order._rows) > len(order._deadlines)


def passed(order: Order, now_ms: int) -> int:
    """Return the number of messages whose deadline has passed, but that no advance has moved out of flight yet.

    It is exact for up to GRACE_CHECKED_MAX of them.
    """
    if not has_due_messages(order, now_ms):
        return 0
    grace, rows = order._grace, order._rows
    due = [sequence for sequence, deadline_ms in order._deadlines.items() if deadline_ms <= now_ms]
    surplus = max(len(due) - GRACE_CHECKED_MAX, 0)
    return surplus + sum([grace.deadline(rows[sequence]) <= now_ms for sequence in due[surplus:]])
