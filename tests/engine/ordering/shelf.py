"""A queue whose order is written as apply writes it, for tests that every kind of order must pass."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any
from zlib import crc32

from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.kinds import Kind
from elasticq.engine.ordering.priority import PRIORITY
from elasticq.engine.ordering.shares import GONE
from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributeValue

QUEUE_ID = 7
PRIORITIES = 4


def lines_run(work: Callable[..., Any], *given: Any) -> int:
    """Call ``work`` and return how many lines of Python it ran: the same number on every machine, if not compiled."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, found: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work(*given)
    finally:
        sys.settrace(before)
    return count


class Shelf:
    """One queue of a kind. groups: how many groups its messages have; 0: none, or one each where a kind needs groups.

    Where a kind needs no groups every message whose sequence ``groups`` divides is in none.
    attributes: of the queue besides those that say its kind.
    """

    def __init__(
        self, kind: Kind, groups: int = 0, grace: Grace | None = None, attributes: dict[str, str] | None = None
    ) -> None:
        self.kind, self.groups, self.attributes = kind, groups, attributes or {}
        self.grace = grace or Grace()
        marked = {kind.marker: kind.marker_value} if kind.marker else {}
        self.queue = Queue(QUEUE_ID, "0" * 12, "jobs", 0, self.grace, {**marked, **self.attributes})
        self.sent_ms: dict[int, int] = {}  # of every message that is here
        self.delay_ms = 0  # the queue's
        self.cold: dict[int, MessageStored] = {}  # contents that are not in memory

    # --- as apply writes ------------------------------------------------------------

    def group_of(self, sequence: int) -> str | None:
        if self.kind.needs_group:
            return f"g{sequence % self.groups if self.groups else sequence}"
        return f"g{sequence % self.groups}" if self.groups and sequence % self.groups else None

    def partition_of(self, sequence: int) -> int:
        """The partition by the rule alone, where the queue has some."""
        return crc32((self.group_of(sequence) or "").encode()) % self.queue.partitions

    def put(self, sequence: int, sent_ms: int, delay_ms: int = 0) -> None:
        queue, group = self.queue, self.group_of(sequence)
        attributes = None
        if self.kind.has_priorities and sequence % PRIORITIES:  # the others have the queue's default
            attributes = {PRIORITY: MessageAttributeValue("Number", str(sequence % PRIORITIES - 1))}
        queue.contents[sequence] = MessageStored(
            QUEUE_ID, sequence, "x", sent_ms, "me", attributes=attributes, group_id=group
        )
        queue.issued.add(sequence)
        queue.ages.note(sequence, sent_ms)
        self.sent_ms[sequence] = sent_ms
        row = UNTOUCHED
        if delay_ms and self.kind.delays_messages:
            row = Row(sent_ms + delay_ms)
        if group is not None and not self.kind.needs_group:
            queue.join(sequence, group)
        queue.order.insert(sequence, row)

    def take(self, sequence: int, now_ms: int, until_ms: int) -> None:
        """A receive hands the message out."""
        order = self.queue.order
        for path, stored in order.turns([sequence]).items():
            self.queue.turns[path] = stored
            order.set_turn(path, stored if stored[1] != GONE else None)
            if stored[1] == GONE:
                del self.queue.turns[path]
        old = self.row(sequence)
        self._replace(sequence, Row(until_ms, old.delivery_number + 1, old.receive_count + 1, 1, now_ms))

    def hide(self, sequence: int, until_ms: int) -> None:
        """Its visibility is changed."""
        old = self.row(sequence)
        self._replace(sequence, Row(until_ms, old.delivery_number, old.receive_count, 1, old.received_ms))

    def _replace(self, sequence: int, row: Row) -> None:
        old = self.row(sequence)
        self.queue.rows[sequence] = row
        self.queue.order.replace(sequence, old, row)

    def drop(self, sequence: int) -> None:
        old = self.row(sequence)
        self.queue.rows.pop(sequence, None)
        self.queue.order.remove(sequence, old)
        self.queue.contents.pop(sequence, None)
        self.cold.pop(sequence, None)
        del self.sent_ms[sequence]

    def drop_and_roll_back(self, sequence: int) -> None:
        order, row, content = self.queue.order, self.row(sequence), self.queue.contents.get(sequence)
        priority = order.priority(sequence) if self.kind.has_priorities else None
        name, cold, sent_ms = order.group_name(sequence), self.cold.get(sequence), self.sent_ms[sequence]
        self.drop(sequence)
        self.sent_ms[sequence] = sent_ms
        if content is not None:
            self.queue.contents[sequence] = content
        if cold is not None:
            self.cold[sequence] = cold
        if self.queue.keeps(row):
            self.queue.rows[sequence] = row
        if priority is not None:
            order.prioritise(sequence, priority)
        if name is not None:
            self.queue.join(sequence, name)
        order.insert(sequence, row)

    def delay(self, delay_ms: int) -> None:
        """The queue's DelaySeconds changes."""
        self.delay_ms = delay_ms
        self.queue.order.set_delay(delay_ms)

    def evict(self, sequence: int) -> None:
        self.cold[sequence] = self.queue.contents.pop(sequence)

    def fetch(self, sequence: int) -> None:
        self.queue.contents[sequence] = self.cold.pop(sequence)

    def restored(self) -> "Shelf":
        """Another one with the same messages, made as a start makes it whose contents are in memory."""
        other, order = Shelf(self.kind, self.groups, self.grace, self.attributes), self.queue.order
        for path, stored in self.queue.turns.items():
            other.queue.order.set_turn(path, stored)
        other.sent_ms.update(self.sent_ms)
        other.queue.contents.update({**self.queue.contents, **self.cold})
        for sequence in sorted(self.sent_ms):
            other.queue.issued.add(sequence)
            other.queue.ages.note(sequence, self.sent_ms[sequence])
        for first, last in order.untouched_pairs():
            other.queue.order.insert_untouched(first, last)
        for sequence in sorted(self.sent_ms):
            if (name := order.group_name(sequence)) is not None:
                other.queue.join(sequence, name)
            if self.kind.has_priorities:
                other.queue.order.prioritise(sequence, order.priority(sequence))
        for sequence in sorted(self.queue.rows):
            row = other.queue.rows[sequence] = self.queue.rows[sequence]
            other.queue.order.insert(sequence, row)
        delayed = list(order.delayed())
        other.queue.order.insert_delayed([sequence for sequence, _ in delayed], [due_ms for _, due_ms in delayed])
        for name, number in order.served():
            other.queue.order.note_served(name, number)
        other.delay(self.delay_ms)
        return other

    # --- what anybody can read from the rows --------------------------------------------

    def row(self, sequence: int) -> Row:
        return self.queue.row(sequence) or UNTOUCHED

    def state(self, sequence: int, now_ms: int) -> str:
        row = self.row(sequence)
        if row.delivery_number:
            return "in flight" if self.grace.deadline(row) > now_ms else "visible"
        if self.kind.delays_messages:
            return "delayed" if row.visible_at_ms > now_ms else "visible"
        return "delayed" if self.sent_ms[sequence] + self.delay_ms > now_ms else "visible"

    def counts(self, now_ms: int) -> Counts:
        states = [self.state(sequence, now_ms) for sequence in self.sent_ms]
        return Counts(states.count("visible"), states.count("in flight"), states.count("delayed"))

    def available(self, now_ms: int) -> set[int]:
        """What may be handed out: what is visible, where groups wait up to the first of its group that is not."""
        found, closed = set(), set()
        for sequence in sorted(self.sent_ms):
            if self.state(sequence, now_ms) != "visible":
                closed.add(self.group_of(sequence))
            elif not self.kind.blocks_groups or self.group_of(sequence) not in closed:
                found.add(sequence)
        return found

    # --- what the order says ------------------------------------------------------------

    def choose(self, now_ms: int, limit: int = 1_000, sent_after_ms: int = -1) -> list[int]:
        return self.queue.order.choose(now_ms, limit, sent_after_ms)

    def choose_or_miss(self, now_ms: int, partition: int | None = None) -> tuple[list[int], list[int]]:
        """What is chosen, from the whole queue or one partition, or whose contents must be fetched first."""
        try:
            if partition is not None:
                return self.queue.order.choose_in(partition, now_ms, 1_000, -1), []
            return self.choose(now_ms), []
        except ContentsMissing as missing:
            return [], missing.sequences
