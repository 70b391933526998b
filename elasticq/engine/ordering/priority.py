"""The order of priority queues: the lowest number first, and among equal priorities the oldest message first.

A new message has the priority in its attribute ElasticqPriority, or else the queue's current default. From then on the
order knows its priority, in any delivery state and even if its content is on disk only. Only ``PrioritiesSet`` changes
it. A message that returns from a consumer gets its old place again.

    line    the levels with messages to hand out, the most urgent one last
    level   all messages of a priority; its members, by sequence, are those that can be handed out

A message always costs four bytes in the table of levels, and eight in its level while it can be handed out. A level
costs about 350 bytes and is deleted with its last message. The next message is found in O(1). Adding a level to the
line moves the pointers of more urgent levels. Message groups can be listed and searched, but do not change the order.
"""

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappush
from itertools import islice
from typing import Final

from elasticq.engine.ordering.contract import AHEAD_MAX, TAKEN_BETWEEN_LOOKS, has_returned
from elasticq.engine.ordering.groups import Counted, Groups, Level
from elasticq.engine.ordering.standard import StandardOrder, StandardRules, deliveries
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.contents import whole_number
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributes, SendMessage, SendMessageBatchEntry
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.limits import LONG_RANGE

ORDER: Final = "ElasticqOrder"
DEFAULT_PRIORITY: Final = "ElasticqDefaultPriority"
"""Attributes of a queue."""
PRIORITY: Final = "ElasticqPriority"
"""An attribute of a message."""


def given_priority(attributes: MessageAttributes | None) -> int | None:
    """Return the priority in a message's attributes; None if there is none or it is invalid."""
    value = attributes.get(PRIORITY) if attributes else None
    priority = whole_number(value) if value is not None else None
    return priority if priority is not None and LONG_RANGE[0] <= priority <= LONG_RANGE[1] else None


def arrival_priority(content: MessageStored, default: int) -> int:
    """Return the priority of a message that arrives in a queue: its own, or ``default`` if it names none."""
    given = given_priority(content.attributes)
    return default if given is None else given


class PriorityRules(StandardRules):
    """The rules of a priority queue: those of standard queues, and a priority must be an integer of 64 bits."""

    __slots__ = ()

    def complete(
        self, stored: MessageStored, entry: SendMessage | SendMessageBatchEntry, delay_s: int, now_ms: int
    ) -> None:
        super().complete(stored, entry, delay_s, now_ms)
        attributes = stored.attributes
        if attributes and PRIORITY in attributes and given_priority(attributes) is None:
            raise InvalidParameterValue(
                f"The message attribute '{PRIORITY}' is invalid. "
                f"Reason: Must be of type Number and an integer between {LONG_RANGE[0]} and {LONG_RANGE[1]}."
            )


class PriorityOrder(StandardOrder):
    """The index of one priority queue.

    ``_line`` holds the levels with messages to hand out. ``_numbers`` holds their negated priorities in ascending
    order, so the most urgent level is the last one.
    """

    __slots__ = ("_default", "_groups", "_levels", "_line", "_numbers", "_taken")

    has_groups = True

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        super().__init__(rows, contents, grace, ages)
        self._levels: Groups[Level] = Groups(Level)
        self._groups: Groups[Counted] = Groups(Counted)
        self._line: list[Level] = []
        self._numbers: list[int] = []
        self._default = 0
        self._taken = 0  # deliveries, for ``progress``

    # --- written by apply ---------------------------------------------------

    def set_default_priority(self, priority: int) -> None:
        self._default = priority

    def join(self, sequence: int, name: str) -> None:
        group = self._groups.join(sequence, name)
        content = self._contents.get(sequence)
        if content is not None:
            content.group_id = group.name  # one string object for all messages of a group

    def group_name(self, sequence: int) -> str | None:
        group = self._groups.of(sequence)
        return group.name if group is not None else None

    def prioritise(self, sequence: int, priority: int) -> None:
        level = self._levels.of(sequence)
        if level is None:  # a roll-back restores the message, or it is one of the rows on disk
            is_available = sequence in self._untouched
        elif level.priority == priority:
            return
        else:
            is_available = self._is_available(sequence)
            if is_available:
                self._take_out(level, sequence)
            self._levels.leave(sequence)
        level = self._levels.join(sequence, str(priority))
        if is_available:
            self._offer(level, sequence)

    def priority(self, sequence: int) -> int:
        return self._level(sequence).priority

    def insert(self, sequence: int, row: Row) -> None:
        """Add a new message, or one whose priority ``prioritise`` already set."""
        level = self._levels.of(sequence)
        if level is None:
            level = self._levels.join(sequence, str(arrival_priority(self._contents[sequence], self._default)))
        super().insert(sequence, row)
        if not row.visible_at_ms:
            self._offer(level, sequence)

    def replace(self, sequence: int, old: Row, row: Row) -> None:
        self._taken += deliveries(old, row)
        level = self._level(sequence)
        self._withdraw(sequence, old, level)
        super().insert(sequence, row)
        if not row.visible_at_ms:
            self._offer(level, sequence)

    def remove(self, sequence: int, row: Row) -> None:
        self._withdraw(sequence, row, self._level(sequence))
        self._levels.leave(sequence)
        if self._groups.of(sequence) is not None:
            self._groups.leave(sequence)

    def _withdraw(self, sequence: int, row: Row, level: Level) -> None:
        """Remove the message from the structures of its delivery state: available, delayed or in flight.

        It still belongs to ``level``, the level of its priority.
        """
        if not row.visible_at_ms:
            self._untouched.discard(sequence)
            self._take_out(level, sequence)
        elif not row.delivery_number:
            if not self._delays.remove(sequence):
                self._take_out(level, sequence)
        elif self._deadlines.pop(sequence, None) is None:
            self._take_out(level, sequence)

    def _put_back(self, sequence: int, due_ms: int, was_received: bool) -> bool:
        self._offer(self._level(sequence), sequence)
        return True

    def recheck_returned(self, from_ms: int) -> None:
        for sequence, row in self._rows.items() if has_returned(self) else ():
            if row.delivery_number and sequence not in self._deadlines and self._grace.deadline(row) >= from_ms:
                self._take_out(self._level(sequence), sequence)
                self._deadlines[sequence] = row.visible_at_ms
                heappush(self._heap, (row.visible_at_ms, sequence))

    # --- levels and the line ------------------------------------------------

    def _level(self, sequence: int) -> Level:
        level = self._levels.of(sequence)
        assert level is not None, "every message has a priority"
        return level

    def _is_available(self, sequence: int) -> bool:
        if sequence in self._rows:
            return sequence not in self._deadlines
        return sequence in self._untouched or self._delays.is_over(sequence)

    def _offer(self, level: Level, sequence: int) -> None:
        """Add the message to those that can be handed out."""
        if not level.first:
            at = bisect_left(self._numbers, -level.priority)
            self._numbers.insert(at, -level.priority)
            self._line.insert(at, level)
        level.add(sequence)

    def _take_out(self, level: Level, sequence: int) -> None:
        """Remove the message from those that can be handed out."""
        if level.remove(sequence):
            at = bisect_left(self._numbers, -level.priority)
            del self._numbers[at], self._line[at]

    def _in_order(self) -> Iterator[int]:
        """Yield the messages that can be handed out, in order. Nothing may change during the iteration."""
        for level in reversed(self._line):
            yield from level

    # --- read by handlers -----------------------------------------------------

    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Choose as ``Order.choose`` does, the lowest priority number first."""
        if self._is_due(now_ms):
            self.advance(now_ms)
        if not self._line:
            return []
        if limit == 1:
            first = self._line[-1].first
            content = self._contents.get(first)
            if content is not None and content.sent_ms > sent_after_ms:
                return [first]
        return self._first_of(iter(()), self._in_order(), limit, sent_after_ms)

    def missing_ahead(self) -> list[int]:
        return [sequence for sequence in islice(self._in_order(), AHEAD_MAX) if sequence not in self._contents]

    def progress(self, sequence: int) -> int:
        """Return the number of messages handed out, because sequences are not delivered in ascending order."""
        return self._taken

    def next_prefetch_at(self, ahead: list[int], sequence: int) -> int:
        return self._taken + max(len(ahead) // 2, TAKEN_BETWEEN_LOOKS)
