"""The order of FIFO queues: within a group strictly in order, from the oldest message up to the first one in flight.

A group is free while its oldest message could be handed out: it is not in flight, and the queue's delay is over for it.
Free groups wait in line, ordered by the latest of these times:

    oldest message never received    when it was sent
    oldest message returned          when its visibility timeout ended
    any message of the group         when one was last received

So a group that was received from goes behind those that wait, and the line is derived from the rows. AWS documents that
a group goes to the end when it is free again. In one recording it did not, and no client may rely on it.

The line is a heap of (since, first message); ``_free`` has the valid entries. Messages are untouched, in flight or
returned. Unlike a standard queue, a FIFO queue has no list of returned messages, because the groups hold all messages
in order. The delay is always the queue's current one, whatever it was at the send. Delays end in the order of sent
times: ``_ripe`` is the newest untouched message whose delay is over. No time in the line contains the delay, so a
change of it moves no group. Advances move ``_ripe``, a bounded number of messages each:

    a shorter delay   ``_ripe`` moves on as always, and groups enter the line. Without a delay it moves up to ``_late``.
    a longer delay    ``_ripe`` goes back at once. Groups up to ``_early`` leave the line later; receives skip them.
"""

from collections.abc import Iterable
from hashlib import sha256
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from elasticq.engine.ordering.contract import (
    ADVANCED_MAX,
    AHEAD_MAX,
    SKIPPED_MAX,
    TAKEN_BETWEEN_LOOKS,
    ContentsMissing,
    Order,
    Rules,
    has_returned,
    passed,
)
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.groups import Group, Groups
from elasticq.engine.ordering.lease_groups import GroupProgress, LeaseGroups
from elasticq.engine.ordering.schedule import DELIVER_AT, is_scheduled
from elasticq.engine.ordering.shares import Stored
from elasticq.engine.stored import contents
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import SendMessage, SendMessageBatchEntry
from elasticq.model.errors import InvalidParameterValue

GROUPS_AHEAD_MAX: Final = 128  # groups in line whose next contents are prefetched
GROUP_AHEAD_MAX: Final = 10  # messages of each of them: one receive


SCOPE_AT_CREATION: Final = "elasticq.DeduplicationScope"
"""An internal attribute: DeduplicationScope at the creation. Later changes of it do not change what a duplicate is."""


class FifoRules(Rules):
    """The rules of a FIFO queue: a message needs a group and a deduplication id, and has no delay of its own.

    The deduplication id may be a hash of the body.
    """

    __slots__ = ("_is_by_content",)

    def __init__(self, attributes: dict[str, str]) -> None:
        super().__init__(has_ids_by_group=attributes.get(SCOPE_AT_CREATION) == "messageGroup")
        self._is_by_content = attributes.get("ContentBasedDeduplication") == "true"

    def complete(
        self, stored: MessageStored, entry: SendMessage | SendMessageBatchEntry, delay_s: int, now_ms: int
    ) -> None:
        if entry.delay_seconds:
            raise contents.no_delay(entry.delay_seconds)
        if is_scheduled(stored):
            raise InvalidParameterValue(
                f"The message attribute '{DELIVER_AT}' is invalid. "
                "Reason: The request includes a parameter that is not valid for this queue type."
            )
        stored.group_id = contents.check_token(entry.message_group_id or "", "MessageGroupId")
        if entry.message_deduplication_id is not None:
            stored.deduplication_id = contents.check_token(entry.message_deduplication_id, "MessageDeduplicationId")
        elif self._is_by_content:
            stored.deduplication_id = sha256(stored.body.encode()).hexdigest()
        else:
            raise contents.deduplication_missing()

    def check_batch(self, entries: list[SendMessageBatchEntry]) -> None:
        """Raise InvalidParameterValue if an entry has no group or cannot be deduplicated. As on AWS, the whole call
        fails.
        """
        if any(entry.message_group_id is None for entry in entries):
            raise InvalidParameterValue(contents.NO_GROUP)
        if not self._is_by_content and any(entry.message_deduplication_id is None for entry in entries):
            raise contents.deduplication_missing()


class FifoOrder(Order):
    """The index of one FIFO queue. Its ``_deadlines`` are those of the messages in flight.

    A group is in line if its first message may be handed out. An untouched first message above ``_ripe`` may not, with
    two exceptions:

    - _late: Without a delay only those up to here wait until ``_ripe`` has passed them. 0: none.
    - _early: Groups up to here may be in line although their delay is not over, except those up to ``_early_above``.
    """

    __slots__ = (
        "_delay_ms",
        "_early",
        "_early_above",
        "_free",
        "_groups",
        "_is_delay_longer",
        "_late",
        "_line",
        "_ripe",
        "_taken",
    )

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        super().__init__(rows, contents, grace, ages)
        self._groups = Groups(Group)
        self._line: list[tuple[int, int]] = []
        self._free: dict[int, int] = {}  # first message of a free group -> time since which it is free
        self._delay_ms = 0
        self._is_delay_longer = False
        self._ripe = self._late = self._early = self._early_above = 0
        self._taken = 0

    # --- written by apply ---------------------------------------------------

    def insert(self, sequence: int, row: Row) -> None:
        """Add a new message, or one whose group ``join`` already set."""
        groups = self._groups
        group = groups.of(sequence) if sequence <= groups.newest else None
        if group is None:
            content = self._contents[sequence]
            group = groups.join(sequence, content.group_id or "")
            if content.group_id:
                content.group_id = group.name  # one string object for all messages of a group
            if not row.visible_at_ms and not self._delay_ms and group.first == sequence and sequence > self._ripe:
                self._untouched.add(sequence)  # the common case, made fast
                self._enter_line(group, sequence, content.sent_ms)
                return
        self._place(sequence, row)
        if row.received_ms > group.received_ms:
            group.received_ms = row.received_ms
        if group.first == sequence:
            self._line_up(group)

    def replace(self, sequence: int, old: Row, row: Row) -> None:
        group = self._groups.of(sequence)
        assert group is not None
        if old.visible_at_ms:
            self._deadlines.pop(sequence, None)
        else:
            self._untouched.discard(sequence)
            self._taken += 1
        group.changes += 1
        self._place(sequence, row)
        if row.received_ms > group.received_ms:
            group.received_ms = row.received_ms
        if group.first != sequence:
            return
        if not row.visible_at_ms:
            self._line_up(group)
        elif group.listed:  # in flight, or treated as such until the next advance
            self._leave_line(group)

    def remove(self, sequence: int, row: Row) -> None:
        """Remove the message. The next message of its group may become available."""
        if row.visible_at_ms:
            self._deadlines.pop(sequence, None)
        else:
            self._untouched.discard(sequence)
        group = self._groups.leave(sequence)
        group.changes += 1
        if not group.first:
            if group.listed:
                self._leave_line(group)
        elif group.first > sequence:
            self._line_up(group)

    def _place(self, sequence: int, row: Row) -> None:
        if row.visible_at_ms:
            self._deadlines[sequence] = row.visible_at_ms
            heappush(self._heap, (row.visible_at_ms, sequence))
            if len(self._heap) > 64 + 2 * len(self._deadlines):
                self._heap = [(deadline, known) for known, deadline in self._deadlines.items()]
                heapify(self._heap)
        else:
            self._untouched.add(sequence)
            if self._delay_ms and sequence <= self._ripe:  # a roll-back restored it, or its sequence is used again
                self._ripe_until(sequence - 1)

    def _line_up(self, group: Group) -> None:
        """Enter the group into the line or remove it, after its first message or the delivery state of that one
        changed.
        """
        first = group.first
        if group.listed != first and group.listed:
            self._leave_line(group)
        row = self._rows.get(first)
        if first in self._deadlines or (row is None and self._delay_ms and first > self._ripe):
            if group.listed:
                self._leave_line(group)
            return
        since_ms = self._sent_ms(first) if row is None else self._grace.deadline(row)
        if group.received_ms > since_ms:
            since_ms = group.received_ms
        if self._free.get(first) != since_ms:
            self._enter_line(group, first, since_ms)

    def _enter_line(self, group: Group, first: int, since_ms: int) -> None:
        if group.listed and group.listed != first:
            self._leave_line(group)
        group.listed = first
        self._line = lined_up(self._line, self._free, first, since_ms)

    def _leave_line(self, group: Group) -> None:
        """Remove the group, which is in the line, from it."""
        del self._free[group.listed]
        group.listed = 0

    def join(self, sequence: int, name: str) -> None:
        group = self._groups.join(sequence, name)
        if group.first == sequence and self.is_untouched(sequence):
            self._line_up(group)

    def group_name(self, sequence: int) -> str:
        group = self._groups.of(sequence)
        assert group is not None
        return group.name

    def served(self) -> list[tuple[str, int]]:
        return [(group.name, group.received_ms) for group in self._groups if group.received_ms]

    def note_served(self, name: str, number: int) -> None:
        group = self._groups.named(name)
        if group is not None and number > group.received_ms:
            group.received_ms = number
            self._line_up(group)

    def set_turn(self, path: str, stored: Stored | None) -> None:
        """Do nothing: groups are ordered by the time of their last receive."""

    def set_delay(self, delay_ms: int) -> None:
        """Set the queue's delay, which also applies to messages already in the queue."""
        newest = self._groups.newest
        if not delay_ms and self._delay_ms:
            self._late, self._early = newest, 0
        elif delay_ms and not self._delay_ms:
            if self._ripe < self._late:  # advances have not undone the last delay yet
                self._early_above, self._early = self._late, newest
            else:
                self._ripe = max(self._ripe, newest)
            self._late = 0
        self._is_delay_longer = bool(delay_ms) and (self._is_delay_longer or delay_ms > self._delay_ms)
        self._delay_ms = delay_ms

    def recheck_returned(self, from_ms: int) -> None:
        for sequence, row in self._rows.items() if has_returned(self) else ():
            if row.visible_at_ms and sequence not in self._deadlines and self._grace.deadline(row) >= from_ms:
                self._place(sequence, row)
                group = self._groups.of(sequence)
                assert group is not None
                if group.first == sequence:
                    self._line_up(group)

    # --- read by handlers -----------------------------------------------------

    def advance(self, now_ms: int) -> None:
        heap, deadlines = self._heap, self._deadlines
        left = ADVANCED_MAX
        while left and heap and heap[0][0] <= now_ms:
            left -= 1
            deadline_ms, sequence = heappop(heap)
            if deadlines.get(sequence) != deadline_ms:
                continue
            due_ms = self._grace.deadline(self._rows[sequence])
            if due_ms > now_ms:
                deadlines[sequence] = due_ms
                heappush(heap, (due_ms, sequence))
                continue
            del deadlines[sequence]
            self._line_up_if_first(sequence).changes += 1
        if not deadlines:
            self._deadlines, self._heap = {}, []  # all stale; an emptied dict keeps its largest capacity
        if self._delay_ms or self._late:
            self._ripen(now_ms)

    def _line_up_if_first(self, sequence: int) -> Group:
        group = self._groups.of(sequence)
        assert group is not None
        if group.first == sequence:
            self._line_up(group)
        return group

    def _ripen(self, now_ms: int) -> None:
        """Move ``_ripe`` past the messages whose delay is over.

        Remove groups from the line that entered it before the delay became longer, and must wait again (``_early``).

        Delays end in the order of sequences, because that is the order of sent times.
        """
        if self._is_delay_longer:
            self._is_delay_longer = False
            ripe = self._ages.newest_sent_by(now_ms - self._delay_ms)
            if ripe < self._ripe:
                self._ripe_until(ripe)
        for _ in range(ADVANCED_MAX):
            sequence = self._untouched.first_above(self._ripe)
            if sequence is None or (self._late and sequence > self._late):
                self._late = 0
                break
            if self._sent_ms(sequence) + self._delay_ms > now_ms:
                break
            self._ripe = sequence
            self._line_up_if_first(sequence)
        if self._early:
            self._remove_early()

    def _ripe_until(self, ripe: int) -> None:
        """Move ``_ripe`` back to ``ripe``. Groups above it are in line until advances remove them."""
        self._early = max(self._early, self._ripe)
        self._early_above = self._ripe = ripe

    def _remove_early(self) -> None:
        above = max(self._early_above, self._ripe)
        for _ in range(ADVANCED_MAX):
            sequence = self._untouched.first_above(above)
            if sequence is None or sequence > self._early:
                self._early = 0
                return
            above = sequence
            self._line_up_if_first(sequence)
        self._early_above = above

    def _is_early(self, first: int) -> bool:
        """Return whether the first message of a group in line may not be handed out, because the delay got longer."""
        return bool(self._early) and first > self._ripe and first not in self._rows

    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Choose as ``Order.choose`` does: all available messages of one group, then those of the next."""
        if self._delay_ms or self._late or (self._heap and self._heap[0][0] <= now_ms):
            self.advance(now_ms)
        try:
            return self._choose_from(self._line, self._free, limit, sent_after_ms)
        except ContentsMissing as missing:
            raise missing.with_ahead(self.missing_ahead()) from None

    def _choose_from(
        self, line: list[tuple[int, int]], free: dict[int, int], limit: int, sent_after_ms: int
    ) -> list[int]:
        """Choose among the groups of one line, as ``choose`` does.

        Raise ContentsMissing with the first missing message only. The caller adds those needed next.
        """
        chosen: list[int] = []
        looked_at: list[tuple[int, int]] = []
        skipped_max = SKIPPED_MAX
        while line and len(chosen) < limit and skipped_max > 0:
            entry = line[0]
            if free.get(entry[1]) != entry[0] or (looked_at and looked_at[-1] == entry):
                heappop(line)
                continue
            if self._is_early(entry[1]):
                heappop(line)
                self._line_up_if_first(entry[1])  # it leaves the line
                skipped_max -= 1
                continue
            if limit == 1:  # the first message of a free group is visible: only its age must be checked
                content = self._contents.get(entry[1])
                if content is not None and content.sent_ms > sent_after_ms:
                    chosen.append(entry[1])
                    break
            try:
                group = self._groups.of(entry[1])
                assert group is not None
                skipped = self._choose_of_group(group, limit, sent_after_ms, chosen)
            except ContentsMissing:
                if not chosen:
                    _put_back(line, looked_at)
                    raise
                break
            skipped_max -= skipped
            if len(chosen) < limit:
                heappop(line)
                looked_at.append(entry)
        _put_back(line, looked_at)
        return chosen

    def _choose_of_group(self, group: Iterable[int], limit: int, sent_after_ms: int, chosen: list[int]) -> int:
        """Add messages to ``chosen`` and return how many expired ones were skipped. Raise ContentsMissing if a content
        is missing.
        """
        contents, deadlines = self._contents, self._deadlines
        skipped = 0
        for sequence in group:
            if sequence in deadlines or (self._delay_ms and sequence > self._ripe and sequence not in self._rows):
                break
            content = contents.get(sequence)
            if content is None:
                raise ContentsMissing([sequence])
            if content.sent_ms > sent_after_ms:
                chosen.append(sequence)
                if len(chosen) == limit:
                    break
            elif (skipped := skipped + 1) >= SKIPPED_MAX:
                break
        return skipped

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
        """Choose as ``Order.choose_behind`` does: the messages behind those of the lease at the start of a group."""
        self.advance(now_ms)
        self._find_groups(taken)
        chosen: list[int] = []
        for group, progress in taken.groups.items():
            if len(chosen) == limit:
                break
            if partition is not None and self.partition_of(group.name) != partition:
                continue
            if group.changes != progress.changes:
                progress.last, progress.changes = self._last_of(taken, group), group.changes
            if progress.last:
                before = len(chosen)
                try:
                    self._choose_of_group(group.after(progress.last), limit, sent_after_ms, chosen)
                except ContentsMissing:
                    if not chosen and not may_miss:
                        raise
                    break
                if len(chosen) > before:  # treat them as taken: taking each of them changes the group once
                    progress.last, progress.changes = chosen[-1], group.changes + len(chosen) - before
        return chosen

    def _find_groups(self, taken: LeaseGroups) -> None:
        for sequence in taken.new:
            group = self._groups.of(sequence)
            if group is not None and group not in taken.groups:
                taken.groups[group] = GroupProgress()
        taken.new.clear()

    def _last_of(self, taken: LeaseGroups, group: Group) -> int:
        """Return the last of the group's oldest messages that are in flight in this lease; 0 if the oldest is not."""
        last = 0
        for sequence in group:
            row = self._rows.get(sequence)
            if (
                sequence not in self._deadlines
                or row is None
                or taken.delivery_numbers.get(sequence) != row.delivery_number
            ):
                break
            last = sequence
        return last

    def missing_ahead(self) -> list[int]:
        """Return messages whose contents are not in memory: those of groups in line, then the oldest of all."""
        ahead = self._missing_of(self._line, self._free)
        if len(ahead) < AHEAD_MAX:
            oldest = islice(self._untouched, AHEAD_MAX - len(ahead))
            ahead.update(dict.fromkeys(x for x in oldest if x not in self._contents))
        return list(ahead)

    def _missing_of(self, line: list[tuple[int, int]], free: dict[int, int]) -> dict[int, None]:
        """Return messages of the next groups in this line whose contents are not in memory.

        They are about AHEAD_MAX, fewer if the line is short.
        """
        contents = self._contents
        ahead: dict[int, None] = {}
        # The front of a heap is nearly in order, and it does no harm to load a later group's contents early.
        for since_ms, first in islice(line, 2 * GROUPS_AHEAD_MAX):
            group = self._groups.of(first) if free.get(first) == since_ms else None
            if group is not None:
                ahead.update(dict.fromkeys(x for x in islice(group, GROUP_AHEAD_MAX) if x not in contents))
                if len(ahead) >= AHEAD_MAX:
                    break
        return ahead

    def progress(self, sequence: int) -> int:
        """Return the number of messages handed out, because sequences of groups are not delivered in order."""
        return self._taken

    def next_prefetch_at(self, ahead: list[int], sequence: int) -> int:
        return self._taken + max(len(ahead) // 2, TAKEN_BETWEEN_LOOKS)

    def is_in_flight(self, sequence: int, now_ms: int) -> bool:
        return sequence in self._deadlines and self._grace.deadline(self._rows[sequence]) > now_ms

    def is_delayed(self, sequence: int, now_ms: int) -> bool:
        if not self._delay_ms or not self.is_untouched(sequence):
            return False
        return self._sent_ms(sequence) + self._delay_ms > now_ms

    def in_flight(self, now_ms: int) -> int:
        self.advance(now_ms)
        return len(self._deadlines)

    def counts(self, now_ms: int) -> Counts:
        self.advance(now_ms)
        in_flight = len(self._deadlines) - passed(self, now_ms)
        delayed = self._untouched.count_above(self._ripest(now_ms)) if self._delay_ms else 0
        visible = self._untouched.count - delayed + len(self._rows) - in_flight
        return Counts(visible=visible, in_flight=in_flight, delayed=delayed)

    def _ripest(self, now_ms: int) -> int:
        """Return the newest untouched message whose delay is over at ``now_ms``, even if ``_ripe`` is older."""
        first = self._untouched.first_above(self._ripe)
        if first is None or self._sent_ms(first) + self._delay_ms > now_ms:
            return self._ripe
        return max(first, self._ages.newest_sent_by(now_ms - self._delay_ms))

    def next_due_ms(self) -> int | None:
        due_ms = self._heap[0][0] if self._heap else None
        if self._early or self._is_delay_longer:
            return 0  # an advance removes groups from the line
        if self._delay_ms or self._late:
            sequence = self._untouched.first_above(self._ripe)
            if sequence is not None and not (self._late and sequence > self._late):
                ripe_ms = self._sent_ms(sequence) + self._delay_ms
                due_ms = ripe_ms if due_ms is None else min(due_ms, ripe_ms)
        return due_ms


def lined_up(line: list[tuple[int, int]], free: dict[int, int], first: int, since_ms: int) -> list[tuple[int, int]]:
    """Enter the group whose first message is ``first`` into ``line`` and ``free``, and return the line.

    If most entries of the line are stale, return a new line made from ``free``.
    """
    free[first] = since_ms
    heappush(line, (since_ms, first))
    if len(line) > 64 + 2 * len(free):
        line = [(since, known) for known, since in free.items()]
        heapify(line)
    return line


def _put_back(line: list[tuple[int, int]], looked_at: list[tuple[int, int]]) -> None:
    for entry in looked_at:
        heappush(line, entry)
