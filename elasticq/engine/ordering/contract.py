"""What a kind of queue must do: an order keeps the index of a queue's messages and says which of them go next; rules
judge what is sent to it.

Every message of the queue is in one of these states, which follow from its row, the time and the queue's settings:

    untouched   it was never delayed and never received; it has no row, a range of sequences stands for it
    delayed     it was never received, and is hidden until its deadline; it has no row, ``Delays`` stands for it
    in flight   it was received, and is hidden until its deadline
    returned    its deadline has passed

Nothing is written down when a deadline passes: an order finds out at its next looks (``advance``). Of many deadlines
that pass together each look moves the next ADVANCED_MAX messages, and the sweeper goes on with the rest. A deadline of
a message in flight may be later than its row says, see ``Grace``. Contents of messages may be on disk only; where
delivery of a message stands, and its group, is always known.

``apply`` is the only caller of the methods that write, in this order: the content stands in ``contents`` already, and
the row in ``rows`` where the queue ``keeps`` it, then ``join`` (unless the kind ``needs_group``, see kinds.py), then
``insert``. The methods that read may move messages whose deadline has passed, and change nothing that anybody could
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

SKIPPED_MAX: Final = 1_000  # expired messages passed over in one choice; the sweeper takes them away
AHEAD_MAX: Final = 512  # contents asked for at once: those of some pages
ADVANCED_MAX: Final = 2_048  # messages that one look moves; more than a choice may take and pass over
TAKEN_BETWEEN_LOOKS: Final = 64  # messages handed out before contents are looked for in advance again


class ContentsMissing(Exception):
    """The contents of these messages are on disk only; once they are here, the command can be executed."""

    def __init__(self, sequences: list[int]) -> None:
        super().__init__(sequences)
        self.sequences = sequences

    def with_ahead(self, ahead: Iterable[int]) -> "ContentsMissing":
        """The same with others that will be asked for next."""
        return ContentsMissing([*self.sequences, *(each for each in ahead if each not in self.sequences)])


class Rules(ABC):
    """What the attributes of one queue say of the messages sent to it.

    idempotency_ms: for so long a MessageDeduplicationId is taken where messages need none; 0: they may not have one.
    has_ids_by_group: the same deduplication id in another group is another one.
    ahead_ms_max: how far ahead a message's own time of delivery may be; 0: messages have none.
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
        """Check the entry's delay, group and deduplication id and write them into ``stored``, whose contents are right.

        delay_s: the queue's. Raises InvalidParameterValue.
        """

    @abstractmethod
    def check_batch(self, entries: list[SendMessageBatchEntry]) -> None:
        """Raises the InvalidParameterValue with which one of the entries fails the whole SendMessageBatch."""


class Order(ABC):
    """The index of one queue over its ``rows``.

    has_groups: ``join`` may be called; where it is False, the kind's ``grouped`` order takes its place before.
    """

    __slots__ = ("_ages", "_contents", "_deadlines", "_delays", "_grace", "_heap", "_rows", "_untouched")

    has_groups: ClassVar[bool] = True

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        self._rows = rows
        self._contents = contents
        self._grace = grace
        self._ages = ages
        self._untouched = Ranges()
        self._delays = Delays()  # of the messages that were never received
        self._deadlines: dict[int, int] = {}  # of the messages that are in flight
        self._heap: list[tuple[int, int]] = []  # (deadline, sequence); an entry that ``_deadlines`` denies is stale

    # --- written by apply ---------------------------------------------------

    @abstractmethod
    def insert(self, sequence: int, row: Row) -> None:
        """Adds a message that is not here: a new one, one of the rows on disk, or one that a roll-back brings back."""

    @abstractmethod
    def remove(self, sequence: int, row: Row) -> None:
        """Removes the message; ``row`` is its last row, which ``rows`` does not hold any more."""

    @abstractmethod
    def replace(self, sequence: int, old: Row, row: Row) -> None:
        """Notes that a message's delivery state changed from ``old`` to ``row``; ``rows`` has the new row already."""

    @abstractmethod
    def join(self, sequence: int, name: str) -> None:
        """Puts the message into this group; ``insert`` follows, unless ``insert_untouched`` came before."""

    def insert_untouched(self, first: int, last: int) -> None:
        """Adds never-touched messages, all behind those that are here; ``join`` follows for those in groups."""
        self._untouched.add_range(first, last)

    def insert_delayed(self, sequences: list[int], due_ms: list[int]) -> None:
        """Adds never-received messages that wait, all behind those that wait; ``join`` follows for those in groups."""
        self._delays.add_all(sequences, due_ms)

    def prioritise(self, sequence: int, priority: int) -> None:
        """Gives the message this priority; ``insert`` may follow. Only where the kind ``has_priorities``."""
        raise AssertionError("the messages of this queue have no priorities")

    def set_default_priority(self, priority: int) -> None:
        """Sets the priority of the messages that will come and name none; only where the kind ``has_priorities``."""
        raise AssertionError("the messages of this queue have no priorities")

    @abstractmethod
    def set_turn(self, path: str, stored: Stored | None) -> None:
        """Notes what is stored of the turns of a group, or of a node above groups, from now on."""

    @abstractmethod
    def set_delay(self, delay_ms: int) -> None:
        """Sets the delay of the queue (its DelaySeconds) from now on."""

    @abstractmethod
    def note_served(self, name: str, number: int) -> None:
        """Notes what ``served`` of another member said of the group."""

    @abstractmethod
    def hide_again(self, from_ms: int) -> None:
        """Lets the next look judge anew what returned from flight at ``from_ms`` or later: the grace changed."""

    def forget_grace(self) -> None:
        """Lets the next look judge anew the deadlines that a grace span prolonged: the span was taken back."""
        for sequence, deadline_ms in self._deadlines.items():
            if deadline_ms != (own_ms := self._rows[sequence].visible_at_ms):
                self._deadlines[sequence] = own_ms
                heappush(self._heap, (own_ms, sequence))

    # --- read by handlers -----------------------------------------------------

    @abstractmethod
    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Returns up to ``limit`` messages that may be handed out now, the next one first, without the expired ones.

        sent_after_ms: a message that was sent then or before has expired. The choice of a smaller limit is the
        beginning of that of a larger one. It ends before a message whose content is not in memory; where that is
        the first one, ContentsMissing is raised, with it and what will be asked for next.
        """

    def choose_in(self, partition: int, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Returns the messages of this partition that ``choose`` would return were there no others.

        Only where the queue has partitions, as all that names them.
        """
        raise AssertionError("this queue has no partitions")

    def open_partitions(self, now_ms: int) -> Set[int]:
        """Returns the partitions of which messages may be handed out now, the expired ones among them."""
        raise AssertionError("this queue has no partitions")

    def partition_of(self, name: str) -> int:
        """Returns the partition of the group ``name``, which need not be here."""
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
        """Returns up to ``limit`` messages that only the lease's own messages in flight keep back (``blocks_groups``).

        partition: the one that they are of; None: any. Raises ContentsMissing where the first one's content is not in
        memory, unless ``may_miss``.
        """
        return []

    def turns(self, sequences: list[int]) -> dict[str, Stored]:
        """Returns what is to be stored, so that every member knows it, once these chosen messages are handed out."""
        return {}

    @property
    def limits_groups(self) -> bool:
        """Whether messages in flight may keep others of their group back, so that their removal lets these go."""
        return False

    @abstractmethod
    def advance(self, now_ms: int) -> None:
        """Moves messages whose deadline has passed, those first that came due first. O(1) if there is none.

        It moves about ADVANCED_MAX at most, in O(log n) for each of them.
        """

    @abstractmethod
    def cold_ahead(self) -> list[int]:
        """Returns those of about the next AHEAD_MAX messages to be delivered whose contents are not in memory."""

    @abstractmethod
    def progress(self, sequence: int) -> int:
        """Returns how far delivery has come once ``sequence`` was handed out, for ``look_again_at``."""

    @abstractmethod
    def look_again_at(self, ahead: list[int], sequence: int) -> int:
        """Returns the progress at which ``cold_ahead`` is to be asked next, after it answered ``ahead``."""

    @abstractmethod
    def is_in_flight(self, sequence: int, now_ms: int) -> bool:
        """True if the message was received and its deadline has not passed."""

    @abstractmethod
    def is_delayed(self, sequence: int, now_ms: int) -> bool:
        """True if the message was never received and its delay has not passed."""

    @abstractmethod
    def in_flight(self, now_ms: int) -> int:
        """Counts the messages that are received and hidden, without those of a group that wait behind them.

        Messages that no look has moved yet are among them.
        """

    @abstractmethod
    def counts(self, now_ms: int) -> Counts:
        """Counts the messages that are visible, in flight and delayed, the expired ones among them."""

    @abstractmethod
    def next_due_ms(self) -> int | None:
        """Returns when the next message may become available by itself, or earlier, never later; None if none will."""

    @abstractmethod
    def group_name(self, sequence: int) -> str | None:
        """Returns the name of the group of a message that is here; None if it has none."""

    def priority(self, sequence: int) -> int:
        """Returns the priority of a message that is here; only where the kind ``has_priorities``."""
        raise AssertionError("the messages of this queue have no priorities")

    @abstractmethod
    def served(self) -> list[tuple[str, int]]:
        """Returns (group, number) of groups: what the order rests on besides the rows.

        Of a FIFO queue's groups when they were last received from, of a standard queue's, and of its messages without
        a group (an empty name), how many deliveries they had.
        """

    def is_untouched(self, sequence: int) -> bool:
        """Whether the message is here and was never delayed nor received."""
        return sequence in self._untouched

    @property
    def untouched_count(self) -> int:
        return self._untouched.count

    @property
    def rowless_count(self) -> int:
        """How many messages have no row in ``rows``: they were never received."""
        return self._untouched.count + self._delays.count

    def rowless(self, sequence: int) -> Row | None:
        """Returns where delivery of a message stands that has no row in ``rows``; None if it is not here."""
        if sequence in self._untouched:
            return UNTOUCHED
        due_ms = self._delays.due_ms(sequence) if self._delays.count else 0
        return Row(due_ms) if due_ms else None

    def delayed(self, above: int = -1) -> Iterator[tuple[int, int]]:
        """Yields (sequence, deadline) of the messages that were never received and have or had one, by sequence.

        above: only those with larger sequences.
        """
        return self._delays.items(above)

    def untouched_pairs(self, above: int = -1) -> Iterator[tuple[int, int]]:
        """Yields the ranges (first, last) of the messages above ``above`` that were never touched."""
        return self._untouched.pairs_above(above)

    def _sent_ms(self, sequence: int) -> int:
        """Returns when the message was sent: maybe too late, never too early, if its content is on disk only."""
        content = self._contents.get(sequence)
        return content.sent_ms if content is not None else self._ages.sent_by_ms(sequence)


def is_behind(order: Order, now_ms: int) -> bool:
    """Return whether there are messages that ``advance`` would move."""
    due_ms = order.next_due_ms()
    return due_ms is not None and due_ms <= now_ms


def passed(order: Order, now_ms: int) -> int:
    """Count the messages in flight whose deadline has passed, and which no look has moved yet."""
    if not order._heap or order._heap[0][0] > now_ms:
        return 0
    grace, rows = order._grace, order._rows
    due = [sequence for sequence, deadline_ms in order._deadlines.items() if deadline_ms <= now_ms]
    return sum([grace.deadline(rows[sequence]) <= now_ms for sequence in due])
