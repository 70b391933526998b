"""The order of fair queues: standard queues whose messages have groups. A busy tenant does not delay the others.

A tenant is a MessageGroupId. A message without one is a tenant of its own. A tenant is noisy if it has at least
NOISY_MIN messages in flight, and these are more than one NOISY_SHARE-th of those of the queue. A receive first takes
the longest available messages of all quiet tenants. Then it takes those of noisy tenants, fewest in flight first.
Nothing is held back. Each receive determines once which tenants are noisy. AWS also counts processing time, and calls
its figures approximate.

Tenants with something to deliver wait in line, ordered by their next message. Within a tenant, returned and
never-received messages take turns, as in standard.py. A retry gets its tenant's next place in the line, and the time of
that place.

    a tenant's  members (untouched) ──┐
                due (delay is over) ──┤
                returned             ─┴──> next message, ``listed`` in the line

Fewer than NOISY_SHARE tenants are noisy at a time, so a receive skips only a few. The group of a message is known even
if its content is on disk only.

An order that replaces another one takes over its tenants at once, and enters them into its line later: each advance
enters some. A tenant that has no place in the line yet gets one as soon as one of its messages changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import Final

from elasticq.engine.ordering.contract import (
    ADVANCED_MAX,
    AHEAD_MAX,
    SKIPPED_MAX,
    TAKEN_BETWEEN_LOOKS,
    ContentsMissing,
    Order,
    has_returned,
)
from elasticq.engine.ordering.groups import Groups, Tenant
from elasticq.engine.ordering.ranges import Ranges
from elasticq.engine.ordering.standard import StandardOrder, turns_after
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored

NOISY_MIN: Final = 30
NOISY_SHARE: Final = 10
COUNTED_FROM: Final = 1 << 63  # above every sequence: before the queue had tenants, progress was a sequence

Next = tuple[int, int]
"""A message that can be delivered: (time since which it is available, sequence)."""


class FairOrder(StandardOrder):
    """The index of one standard queue with tenants.

    ``_returned``, ``_due`` and ``_turns`` cover the messages without a group. ``_alone`` holds the untouched ones of
    these, and ``_alone_in_flight`` counts those in flight.

    - line_number: Counts the orders of the queue so far. Of a tenant with another ``line``, nothing is in ``_line``.
    - entered: Tenants with numbers up to this have been entered after the last replacement of the order.
    - to_enter: The largest number of a tenant to enter; 0 if all have been entered.
    """

    __slots__ = (
        "_alone",
        "_alone_in_flight",
        "_entered",
        "_line",
        "_line_number",
        "_progress",
        "_tenants",
        "_to_enter",
    )

    has_groups = True

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        super().__init__(rows, contents, grace, ages)
        self._alone = Ranges()
        self._tenants: Groups[Tenant] = Groups(Tenant)
        self._line: list[Next] = []
        self._progress = self._alone_in_flight = self._line_number = self._entered = self._to_enter = 0

    def _take_over(self, before: StandardOrder) -> None:
        super()._take_over(before)
        if isinstance(before, FairOrder):
            self._alone, self._tenants, self._progress = before._alone, before._tenants, before._progress
            self._alone_in_flight = before._alone_in_flight
            self._line_number = before._line_number + 1
            self._to_enter = self._tenants.last_number
        else:
            self._alone = self._untouched.copy()
            self._alone_in_flight = len(self._deadlines)

    # --- written by apply ---------------------------------------------------

    def join(self, sequence: int, name: str) -> None:
        """Add the message to this tenant. Either ``insert`` follows, or the message is in the order and untouched."""
        tenant = self._tenants.join(sequence, name)
        content = self._contents.get(sequence)
        if content is not None:
            content.group_id = tenant.name  # one string object for all messages of a tenant
        if self._alone.discard(sequence):
            tenant.add(sequence)
            if tenant.first == sequence:
                self._line_up(tenant)

    def group_name(self, sequence: int) -> str | None:
        tenant = self._tenants.of(sequence)
        return tenant.name if tenant is not None else None

    def insert(self, sequence: int, row: Row) -> None:
        super().insert(sequence, row)
        tenant = self._tenants.of(sequence)
        if not row.visible_at_ms:
            if tenant is None:
                self._alone.add(sequence)
                return
            tenant.add(sequence)
            if tenant.first == sequence:
                self._line_up(tenant)
        elif row.delivery_number:
            if tenant is not None:
                tenant.in_flight += 1
            else:
                self._alone_in_flight += 1

    def insert_untouched(self, first: int, last: int) -> None:
        super().insert_untouched(first, last)
        self._alone.add_range(first, last)

    def replace(self, sequence: int, old: Row, row: Row) -> None:
        tenant = self._tenants.of(sequence)
        self._progress += 1
        if tenant is None:
            self._turns = turns_after(self._turns, old, row)
        else:
            tenant.last_turns = turns_after(tenant.last_turns, old, row)
        self._withdraw(sequence, old, tenant)
        self.insert(sequence, row)
        if tenant is not None and tenant.returned is not None:
            self._line_up(tenant)  # the turn may have passed to the other sort of messages

    def remove(self, sequence: int, row: Row) -> None:
        tenant = self._tenants.of(sequence)
        self._withdraw(sequence, row, tenant)
        if tenant is not None:
            self._tenants.leave(sequence)

    def _withdraw(self, sequence: int, row: Row, tenant: Tenant | None) -> None:
        """Remove the message from the structures of its delivery state: available, delayed or in flight.

        It still belongs to ``tenant``.
        """
        if tenant is None:
            if row.delivery_number and sequence in self._deadlines:
                self._alone_in_flight -= 1
            super().remove(sequence, row)
            if not row.visible_at_ms:
                self._alone.discard(sequence)
            return
        if not row.visible_at_ms:
            self._untouched.discard(sequence)
            tenant.remove(sequence)
        elif not row.delivery_number:
            if not self._delays.remove(sequence):
                tenant.take_back(sequence, was_received=False)
        elif self._deadlines.pop(sequence, None) is None:
            tenant.take_back(sequence, was_received=True)
        else:
            tenant.in_flight -= 1
        if tenant.listed is not None and tenant.listed[1] == sequence:
            self._line_up(tenant)

    def _put_back(self, sequence: int, due_ms: int, was_received: bool) -> bool:
        tenant = self._tenants.of(sequence)
        if tenant is None:
            if was_received:
                self._alone_in_flight -= 1
            return super()._put_back(sequence, due_ms, was_received)
        if was_received:
            tenant.in_flight -= 1
        tenant.put_back(sequence, due_ms, was_received, self._rows)
        self._line_up(tenant)
        return True

    def _line_up(self, tenant: Tenant) -> None:
        """Enter the tenant into the line with its next message, if that has changed."""
        entry = self._next_of(tenant)
        if tenant.line != self._line_number:
            tenant.line, tenant.listed = self._line_number, None
        if entry == tenant.listed:
            return
        tenant.listed = entry
        if entry is None:
            return
        line = self._line
        heappush(line, entry)
        if len(line) > 64 and len(line) > 2 * len(self._tenants):
            number = self._line_number
            self._line = [each.listed for each in self._tenants if each.listed is not None and each.line == number]
            heapify(self._line)

    def _enter_some(self) -> None:
        """Enter the next tenants, ADVANCED_MAX at most, after this order replaced another one."""
        until = min(self._entered + ADVANCED_MAX, self._to_enter)
        for tenant in self._tenants.numbered(self._entered + 1, until):
            self._line_up(tenant)
        self._entered = until
        if until == self._to_enter:
            self._to_enter = 0

    def _next_of(self, tenant: Tenant) -> Next | None:
        """Return the first message that ``_waiting`` yields for the tenant; None if it has none to deliver."""
        first = tenant.first
        if tenant.returned is None and tenant.due is None:
            return (self._sent_ms(first), first) if first else None
        return next(self._waiting(tenant), None)

    def note_served(self, name: str, number: int) -> None:
        if not name:
            self._turns = number
        elif (tenant := self._tenants.named(name)) is not None:
            tenant.last_turns = number
            self._line_up(tenant)

    def served(self) -> list[tuple[str, int]]:
        touched = [each for each in self._tenants if each.last_turns or each.in_flight or each.returned is not None]
        return super().served() + [(tenant.name, tenant.last_turns) for tenant in touched]

    def recheck_returned(self, from_ms: int) -> None:
        super().recheck_returned(from_ms)
        for tenant in self._tenants if has_returned(self) else ():
            for sequence, due_ms in list((tenant.returned or {}).items()):
                row = self._rows[sequence]
                if due_ms >= from_ms and row.delivery_number:
                    self._withdraw(sequence, row, tenant)
                    self.insert(sequence, row)

    # --- read by handlers -----------------------------------------------------

    def advance(self, now_ms: int) -> None:
        super().advance(now_ms)
        if self._to_enter:
            self._enter_some()

    def next_due_ms(self) -> int | None:
        return 0 if self._to_enter else super().next_due_ms()

    def _waiting(self, tenant: Tenant) -> Iterator[Next]:
        """Return an iterator over the messages of a tenant that can be delivered, in their order."""
        tenant.sort(self._rows)
        return self._in_turn(self._since(tenant, tenant.due or {}), tenant.returned or {}, tenant.last_turns)

    def _in_turn(self, fresh: Iterator[Next], returned: Mapping[int, int], turns: int) -> Iterator[Next]:
        """Yield returned and never-received messages by turns. Nothing may change during the iteration.

        A returned message gets the time of the never-received message that it precedes, if that is earlier than its
        own.
        """
        ahead = next(fresh, None)
        is_turn_of_fresh = turns & 1 == 1
        for sequence, due_ms in returned.items():
            if is_turn_of_fresh and ahead is not None:
                yield ahead
                ahead = next(fresh, None)
            is_turn_of_fresh = True
            yield due_ms if ahead is None else min(due_ms, ahead[0]), sequence
        while ahead is not None:
            yield ahead
            ahead = next(fresh, None)

    def _since(self, untouched: Iterable[int], due: Mapping[int, int]) -> Iterator[Next]:
        """Yield never-received messages and the times since which they are available, earliest first."""
        delayed = iter(due.items())
        other = next(delayed, None)
        for sequence in untouched:
            since_ms = self._sent_ms(sequence)
            while other is not None and other[1] < since_ms:
                yield other[1], other[0]
                other = next(delayed, None)
            yield since_ms, sequence
        while other is not None:
            yield other[1], other[0]
            other = next(delayed, None)

    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Choose as ``Order.choose`` does, with the messages of quiet tenants first."""
        if self._to_enter or self._is_due(now_ms):
            self.advance(now_ms)
        contents = self._contents
        has_alone = self._alone.count or self._returned or self._due
        if limit == 1 and not has_alone:  # shortcut: take the first message in line if its tenant is quiet
            first = self._first_in_line()
            content = contents.get(first)
            if content is not None and content.sent_ms > sent_after_ms:
                return [first]
        chosen: list[int] = []
        skipped = 0
        with self._look() as look:
            while len(chosen) < limit and skipped < SKIPPED_MAX and (sequence := look.next()) is not None:
                content = contents.get(sequence)
                if content is None:
                    break
                if content.sent_ms > sent_after_ms:
                    chosen.append(sequence)
                else:
                    skipped += 1
            else:
                return chosen
        if not chosen:
            raise ContentsMissing([sequence, *(other for other in self.missing_ahead() if other != sequence)])
        return chosen

    def _first_in_line(self) -> int:
        """Return the next message of the first tenant in line if that tenant is quiet, else 0."""
        line = self._line
        while line:
            entry = line[0]
            tenant = self._tenants.of(entry[1])
            if tenant is not None and tenant.listed == entry:
                return 0 if self._is_noisy(tenant) else entry[1]
            heappop(line)
        return 0

    def _is_noisy(self, tenant: Tenant) -> bool:
        count = tenant.in_flight
        return count >= NOISY_MIN and count * NOISY_SHARE > len(self._deadlines)

    def _look(self) -> "_View":
        return _View(self, self._in_turn(self._since(self._alone, self._due), self._returned, self._turns))

    def missing_ahead(self) -> list[int]:
        with self._look() as look:
            ahead = list(islice(iter(look.next, None), AHEAD_MAX))
        return [sequence for sequence in ahead if sequence not in self._contents]

    def progress(self, sequence: int) -> int:
        """Return the number of messages handed out, because sequences of tenants are not delivered in order."""
        return COUNTED_FROM + self._progress

    def next_prefetch_at(self, ahead: list[int], sequence: int) -> int:
        return COUNTED_FROM + self._progress + max(len(ahead) // 2, TAKEN_BETWEEN_LOOKS)


def with_groups(before: Order) -> FairOrder:
    """Return the order that replaces a standard order when the first message with a group arrives."""
    assert isinstance(before, StandardOrder), "only a standard order can become a fair one"
    return before.converted_to(FairOrder)


class _View:
    """One pass over the messages that can be delivered, in the order of delivery. Nothing may change during the pass.

    - heads: The next message and an iterator over the following ones, for each quiet tenant met and for the messages
      without a group.
    - noisy: The noisy tenants met.
    - met: The entries of all tenants met, which return to the line at the end.
    """

    __slots__ = ("_heads", "_line", "_met", "_noisy", "_order", "_ranks")

    def __init__(self, order: FairOrder, alone: Iterator[Next]) -> None:
        self._order = order
        self._line = order._line
        self._met: list[Next] = []
        self._noisy: list[Tenant] = []
        self._heads: list[tuple[int, int, Iterator[Next]]] = []
        self._ranks: list[tuple[int, int, int, Iterator[Next]]] | None = None
        self._push(alone)

    def __enter__(self) -> "_View":
        return self

    def __exit__(self, *_: object) -> None:
        for entry in self._met:
            heappush(self._line, entry)

    def _push(self, waiting: Iterator[Next]) -> None:
        head = next(waiting, None)
        if head is not None:
            heappush(self._heads, (*head, waiting))

    def next(self) -> int | None:
        """Return the sequence of the next message; None if there is none."""
        self._meet()
        if not self._heads:
            return self._next_of_noisy()
        _, sequence, rest = self._heads[0]
        following = next(rest, None)
        if following is None:
            heappop(self._heads)
        else:
            heapreplace(self._heads, (*following, rest))
        return sequence

    def _meet(self) -> None:
        """Pop the tenants ahead of the next message from the line. Keep popping while all of them are noisy."""
        line, heads, order = self._line, self._heads, self._order
        while line and (not heads or line[0] < heads[0]):
            entry = heappop(line)
            tenant = order._tenants.of(entry[1])
            if tenant is None or tenant.listed != entry or (self._met and self._met[-1] == entry):
                continue  # the entry is stale: the tenant has another place in the line, or none
            self._met.append(entry)
            if order._is_noisy(tenant):
                self._noisy.append(tenant)
            else:
                self._push(order._waiting(tenant))

    def _next_of_noisy(self) -> int | None:
        """Return the next message of the noisy tenant with the fewest in flight, including those taken in this pass."""
        if self._ranks is None:
            self._ranks = []
            for tenant in self._noisy:
                self._rank(tenant.in_flight, self._order._waiting(tenant))
        if not self._ranks:
            return None
        in_flight, _, sequence, rest = heappop(self._ranks)
        self._rank(in_flight + 1, rest)
        return sequence

    def _rank(self, in_flight: int, waiting: Iterator[Next]) -> None:
        head = next(waiting, None)
        if head is not None:
            assert self._ranks is not None
            heappush(self._ranks, (in_flight, *head, waiting))
