"""The order of standard queues: returned messages and never-received ones take turns.

    stored ──> untouched (ranges, by sequence) ─┬─> fresh ─┐
        └delay─> delayed (delays.py) ──due──────┘          ├──> chosen
                 in flight (by deadline) ──due──> returned ┘       │
                    ^──────────────────────────────────────────────┘

Each message is in exactly one of these sets:

- ``untouched``: never received, without a delay.
- ``due``: never received, with a delay that is over, by the end of the delay.
- ``returned``: visible again after a receive, by the time when it became visible.
- delayed or in flight: waiting for a deadline.

All sets are derived from the rows and the time; nothing is logged when a deadline passes. Heap entries can be stale:
``_deadlines`` and ``_delays`` have the valid deadlines. A message whose content is not in memory cannot be chosen:
``ContentsMissing`` names the contents to load. fair.py describes what differs if messages have groups.

A returned message goes ahead of the backlog, so a retry does not wait for millions of messages. But while
never-received messages wait, returned ones get only every second place. So messages that always fail do not block the
queue (docs/adr/0026). After a returned message it is the turn of a never-received one, after any other delivery that
of a returned one. Each member keeps the kinds of the last deliveries (``_turns``) on its own, from its start.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, TypeVar

from elasticq.engine.ordering.contract import (
    ADVANCED_MAX,
    AHEAD_MAX,
    SKIPPED_MAX,
    ContentsMissing,
    Order,
    Rules,
    passed,
)
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.delays import NEVER, enter, sorted_again
from elasticq.engine.ordering.schedule import DELIVER_AT, ahead_ms_max, deliver_at_ms
from elasticq.engine.ordering.shares import Stored
from elasticq.engine.stored import contents
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import SendMessage, SendMessageBatchEntry

RETURNED_AHEAD_MAX = 64
_TURNS: Final = (1 << 62) - 1  # the deliveries that ``turns_after`` remembers, so a roll-back can forget the newest
_push: Final = heappush  # compiled code reads a name of this module without a dict lookup
IDEMPOTENCY_WINDOW = "ElasticqIdempotencyWindow"
"""An attribute of ElasticQ for standard queues: for how many seconds a MessageDeduplicationId is remembered."""


class StandardRules(Rules):
    """The rules of a standard queue: a message may have a delay, a group, and, with an idempotency window, an id."""

    __slots__ = ()

    def __init__(self, attributes: dict[str, str]) -> None:
        super().__init__(
            idempotency_ms=int(attributes.get(IDEMPOTENCY_WINDOW, 0)) * 1_000,
            ahead_ms_max=ahead_ms_max(attributes),
        )

    def complete(
        self, stored: MessageStored, entry: SendMessage | SendMessageBatchEntry, delay_s: int, now_ms: int
    ) -> None:
        if entry.delay_seconds is not None:
            delay_s = contents.check_delay(entry.delay_seconds)
        if entry.message_deduplication_id is not None:
            if not self.idempotency_ms:
                raise contents.no_deduplication(entry.message_deduplication_id)
            stored.deduplication_id = contents.check_token(entry.message_deduplication_id, "MessageDeduplicationId")
        if delay_s:
            stored.visible_at_ms = now_ms + delay_s * 1_000
        if stored.attributes and DELIVER_AT in stored.attributes:
            stored.visible_at_ms = deliver_at_ms(stored, now_ms, self.ahead_ms_max)
        if entry.message_group_id is not None:
            stored.group_id = contents.check_token(entry.message_group_id, "MessageGroupId")

    def check_batch(self, entries: list[SendMessageBatchEntry]) -> None:
        """Do nothing: ``complete`` checks each entry by itself."""


class StandardOrder(Order):
    """The index of one standard queue whose messages have no groups."""

    __slots__ = ("_due", "_graced", "_is_sorted", "_returned", "_turns")

    has_groups = False

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        super().__init__(rows, contents, grace, ages)
        self._returned: OrderedDict[int, int] = OrderedDict()  # sequence -> time since which it is available
        self._due: OrderedDict[int, int] = OrderedDict()  # the same for never-received messages
        self._turns = 0
        self._is_sorted = True  # False while a part of many messages that return together was moved
        # (end of the grace, sequence) of messages whose deadlines have passed, by deadline; stale like ``_heap``
        self._graced: deque[tuple[int, int]] = deque()

    def converted_to(self, successor: "type[Successor]") -> "Successor":
        """Return an order of class ``successor`` with the state of this one, which must not be used again."""
        after = successor(self._rows, self._contents, self._grace, self._ages)
        after._take_over(self)
        return after

    def _take_over(self, before: "StandardOrder") -> None:
        self._untouched = before._untouched
        self._returned, self._due = before._returned, before._due
        self._turns, self._is_sorted = before._turns, before._is_sorted
        self._deadlines, self._heap, self._delays = before._deadlines, before._heap, before._delays
        self._graced = before._graced

    # --- written by apply ---------------------------------------------------

    def insert(self, sequence: int, row: Row) -> None:
        deadline_ms = row.visible_at_ms
        if not deadline_ms:
            self._untouched.add(sequence)
            return
        if not row.delivery_number:
            self._delays.add(sequence, deadline_ms)
            return
        self._deadlines[sequence] = deadline_ms
        _push(self._heap, (deadline_ms, sequence))
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._deadlines):
            self._heap = [(deadline, known) for known, deadline in self._deadlines.items()]
            heapify(self._heap)

    def remove(self, sequence: int, row: Row) -> None:
        if not row.visible_at_ms:
            self._untouched.discard(sequence)
        elif not row.delivery_number:
            if not self._delays.remove(sequence):
                del self._due[sequence]
        elif self._deadlines.pop(sequence, None) is None:
            del self._returned[sequence]

    def replace(self, sequence: int, old: Row, row: Row) -> None:
        self._turns = turns_after(self._turns, old, row)
        self.remove(sequence, old)
        self.insert(sequence, row)

    def join(self, sequence: int, name: str) -> None:
        raise AssertionError("a queue whose messages have groups has a fair order")

    def group_name(self, sequence: int) -> str | None:
        return None

    def set_turn(self, path: str, stored: Stored | None) -> None:
        """Do nothing: groups do not take turns here."""

    def set_delay(self, delay_ms: int) -> None:
        """Do nothing: each message has its own delay."""

    def note_served(self, name: str, number: int) -> None:
        self._turns = number

    def served(self) -> list[tuple[str, int]]:
        return [("", self._turns)] if self._turns or self._rows or self._delays.count else []

    def recheck_returned(self, from_ms: int) -> None:
        found = []
        for sequence in reversed(self._returned):
            if self._returned[sequence] < from_ms:
                break
            found.append(sequence)
        for sequence in found:
            del self._returned[sequence]
            self.insert(sequence, self._rows[sequence])

    # --- read by handlers -----------------------------------------------------

    def advance(self, now_ms: int) -> None:
        heap = self._heap
        due: list[tuple[int, int, int, int, bool]] = []  # by deadline without the grace, receive count and sequence
        if self._delays.next_ms <= now_ms:
            due += [
                (due_ms, 0, sequence, due_ms, False) for due_ms, sequence in self._delays.take_due(now_ms, ADVANCED_MAX)
            ]
        left, graced = ADVANCED_MAX, self._graced
        while left and graced and graced[0][0] <= now_ms:
            left -= 1
            due_ms, sequence = graced.popleft()
            self._end_flight(sequence, due_ms, now_ms, due)
        while left and heap and heap[0][0] <= now_ms:
            left -= 1
            deadline_ms, sequence = heappop(heap)
            self._end_flight(sequence, deadline_ms, now_ms, due)
        if not self._deadlines:
            self._deadlines, self._heap = {}, []  # all stale; an emptied dict keeps its largest capacity
        due.sort()
        for _, _, sequence, due_ms, was_received in due:
            self._is_sorted &= self._put_back(sequence, due_ms, was_received)
        # A roll-back restored old deadlines, or a grace ends for many. Sort once, when all of them are there.
        if not self._is_sorted and left and self._delays.next_ms > now_ms:
            self._is_sorted = True
            self._returned = sorted_again(self._returned, self._rows)
            self._due = sorted_again(self._due, self._rows)

    def _end_flight(
        self, sequence: int, deadline_ms: int, now_ms: int, due: list[tuple[int, int, int, int, bool]]
    ) -> None:
        """Move a message whose deadline has passed to ``due``, or prolong it. Ignore a deadline that is not valid."""
        if self._deadlines.get(sequence) != deadline_ms:
            return
        row = self._rows[sequence]
        due_ms = self._grace.deadline(row)
        if due_ms > now_ms:
            self._prolong(sequence, due_ms)
            return
        del self._deadlines[sequence]
        due.append((row.visible_at_ms, row.receive_count, sequence, due_ms, True))

    def _prolong(self, sequence: int, due_ms: int) -> None:
        """Let a message whose deadline has passed wait for the end of the grace, behind those with earlier deadlines.

        The messages of ``_graced`` are then already in order, so the end of a grace need not sort them.
        """
        self._deadlines[sequence] = due_ms
        if self._graced and self._graced[-1][0] > due_ms:
            heappush(self._heap, (due_ms, sequence))
        else:
            self._graced.append((due_ms, sequence))

    def _put_back(self, sequence: int, due_ms: int, was_received: bool) -> bool:
        """Store that the message is available since ``due_ms``. Return False if its set must be sorted again."""
        return enter(self._returned if was_received else self._due, sequence, due_ms, self._rows)

    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Choose as ``Order.choose`` does: alternate between returned and never-received messages."""
        if self._is_due(now_ms):
            self.advance(now_ms)
        contents = self._contents
        if not self._returned and not self._due:
            first = self._untouched.first()
            if first is None:
                return []
            if limit == 1 and first in contents and contents[first].sent_ms > sent_after_ms:
                return [first]
        fresh = self._fresh() if self._due else iter(self._untouched)
        return self._first_of(iter(self._returned), fresh, limit, sent_after_ms)

    def _first_of(self, returned: Iterator[int], fresh: Iterator[int], limit: int, sent_after_ms: int) -> list[int]:
        """Return the result of ``choose`` from these returned and never-received messages."""
        contents = self._contents
        chosen: list[int] = []
        skipped = 0
        is_turn_of_fresh = self._turns & 1 == 1
        back = next(returned, None)
        ahead = next(fresh, None)
        while len(chosen) < limit and skipped < SKIPPED_MAX:
            if ahead is not None and (back is None or is_turn_of_fresh):
                sequence, ahead, was_received = ahead, next(fresh, None), False
            elif back is not None:
                sequence, back, was_received = back, next(returned, None), True
            else:
                break
            content = contents.get(sequence)
            if content is None:
                if chosen:
                    break
                raise ContentsMissing([sequence, *(other for other in self.missing_ahead() if other != sequence)])
            if content.sent_ms > sent_after_ms:
                chosen.append(sequence)
                is_turn_of_fresh = was_received
            else:
                skipped += 1
        return chosen

    def _fresh(self) -> Iterator[int]:
        """Yield the never-received messages that can be handed out, longest available first."""
        contents = self._contents
        delayed = iter(self._due.items())
        due = next(delayed, None)
        for sequence in self._untouched:
            content = contents.get(sequence)
            while due is not None and content is not None and due[1] < content.sent_ms:
                yield due[0]
                due = next(delayed, None)
            yield sequence
        while due is not None:
            yield due[0]
            due = next(delayed, None)

    def missing_ahead(self) -> list[int]:
        contents = self._contents
        ahead = [sequence for sequence in islice(self._untouched, AHEAD_MAX) if sequence not in contents]
        for known in (self._due, self._returned):
            ahead += [sequence for sequence in islice(known, RETURNED_AHEAD_MAX) if sequence not in contents]
        return ahead

    def progress(self, sequence: int) -> int:
        return sequence

    def next_prefetch_at(self, ahead: list[int], sequence: int) -> int:
        return ahead[len(ahead) // 2] if ahead else sequence + AHEAD_MAX // 2

    def is_in_flight(self, sequence: int, now_ms: int) -> bool:
        return sequence in self._deadlines and self._grace.deadline(self._rows[sequence]) > now_ms

    def is_delayed(self, sequence: int, now_ms: int) -> bool:
        return self._delays.waits(sequence) and self._delays.due_ms(sequence) > now_ms

    def in_flight(self, now_ms: int) -> int:
        self.advance(now_ms)
        return len(self._deadlines)

    def counts(self, now_ms: int) -> Counts:
        self.advance(now_ms)
        in_flight = len(self._deadlines) - passed(self, now_ms)
        delayed = self._delays.waiting - self._delays.passed(now_ms)
        return Counts(self.rowless_count - delayed + len(self._rows) - in_flight, in_flight, delayed)

    def next_due_ms(self) -> int | None:
        due_ms = min(self._delays.next_ms, self._heap[0][0] if self._heap else NEVER)
        if self._graced:
            due_ms = min(due_ms, self._graced[0][0])
        return due_ms if due_ms != NEVER else None

    def _is_due(self, now_ms: int) -> bool:
        """Return whether ``advance`` would move a message."""
        if self._delays.next_ms <= now_ms or (self._heap and self._heap[0][0] <= now_ms):
            return True
        return bool(self._graced) and self._graced[0][0] <= now_ms


def turns_after(turns: int, old: Row, row: Row) -> int:
    """Return the kinds of the last deliveries after a message's row has changed. A roll-back removes the newest.

    They are the bits of a number, the newest is the lowest: 1 if the message was a returned one.
    """
    number, old_number = row.delivery_number, old.delivery_number
    if number == old_number:
        return turns
    return (turns << 1 | (old_number > 0)) & _TURNS if number > old_number else turns >> 1


def deliveries(old: Row, row: Row) -> int:
    """Return by how many deliveries the new row is ahead: 1, 0, or -1 if a delivery was rolled back."""
    number, old_number = row.delivery_number, old.delivery_number
    return (number > old_number) - (number < old_number)


Successor = TypeVar("Successor", bound=StandardOrder)
