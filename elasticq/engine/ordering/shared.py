"""The order of fair-share queues: standard queues whose groups take turns, by round robin, by weights or adaptively.

Each MessageGroupId is a group. The messages without one form a group together. shares.py decides whose turn it is.
Within a group, the order is that of standard queues. A group with as many messages in flight as the queue allows gets
no turn. It gets turns again when one of these messages is deleted, returns, becomes a dead letter or is purged. The
number of messages in flight is derived from the rows, so it is always exact.
"""

from collections.abc import Iterator

from elasticq.engine.ordering.contract import ADVANCED_MAX, AHEAD_MAX, SKIPPED_MAX, ContentsMissing, Order
from elasticq.engine.ordering.fair import FairOrder, Next
from elasticq.engine.ordering.groups import Tenant
from elasticq.engine.ordering.shares import Share, Shares, Stored
from elasticq.engine.ordering.sharing import Sharing
from elasticq.engine.ordering.standard import StandardOrder
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored

NO_GROUP = ""


class SharedOrder(FairOrder):
    """The index of one fair-share queue."""

    __slots__ = ("_in_flight_max", "_shares")

    def __init__(self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages) -> None:
        super().__init__(rows, contents, grace, ages)
        self._in_flight_max = 0
        self._shares = Shares(Sharing({}), {})

    def share_by(self, sharing: Sharing, stored: dict[str, Stored]) -> None:
        """Configure how the groups share. Their stored turns are in ``stored``, which ``apply`` keeps up to date.

        Advances enter the groups and the turns, a bounded number each.
        """
        self._in_flight_max = sharing.in_flight_max
        self._shares = Shares(sharing, stored)
        self._entered, self._to_enter = 0, max(self._tenants.last_number, 1 if stored else 0)
        self._note(None)

    def shares_by(self, sharing: Sharing) -> bool:
        """Return whether the groups share by these attributes."""
        return self._shares.sharing.is_same(sharing)

    @property
    def limits_groups(self) -> bool:
        return self._in_flight_max > 0

    # --- written by apply ---------------------------------------------------

    def set_turn(self, path: str, stored: Stored | None) -> None:
        self._shares.set_stored(path, stored)

    def join(self, sequence: int, name: str) -> None:
        alone = self._alone.count
        super().join(sequence, name)
        if self._alone.count != alone:  # else ``insert`` follows, which calls ``_note``
            self._note(self._tenants.of(sequence))
            self._note(None)

    def insert(self, sequence: int, row: Row) -> None:
        super().insert(sequence, row)
        self._note(self._tenants.of(sequence))

    def insert_untouched(self, first: int, last: int) -> None:
        super().insert_untouched(first, last)
        self._note(None)

    def _withdraw(self, sequence: int, row: Row, tenant: Tenant | None) -> None:
        super()._withdraw(sequence, row, tenant)
        self._note(tenant)

    def _put_back(self, sequence: int, due_ms: int, was_received: bool) -> bool:
        is_in_order = super()._put_back(sequence, due_ms, was_received)
        self._note(self._tenants.of(sequence))
        return is_in_order

    def _line_up(self, tenant: Tenant) -> None:
        """Do nothing: groups take turns, so their next messages do not wait in a line."""

    def _enter_some(self) -> None:
        """Enter the next groups, and the next stored turns of groups without messages, ADVANCED_MAX each at most."""
        until = min(self._entered + ADVANCED_MAX, self._to_enter)
        for tenant in self._tenants.numbered(self._entered + 1, until):
            self._note(tenant)
        self._entered = until
        if not self._shares.load(ADVANCED_MAX) and until == self._to_enter:
            self._to_enter = 0

    def _note(self, tenant: Tenant | None) -> None:
        """Update the state of a group in ``_shares``. None: the messages without a group."""
        if tenant is None:
            name, in_flight = NO_GROUP, self._alone_in_flight
            has_messages = bool(self._alone.count or self._returned or self._due)
        else:
            name, in_flight = tenant.name, tenant.in_flight
            has_messages = bool(tenant.first or tenant.returned or tenant.due)
        is_full = self._in_flight_max > 0 and in_flight >= self._in_flight_max
        self._shares.note(name, has_messages and not is_full, in_flight)

    # --- read by handlers -----------------------------------------------------

    def advance(self, now_ms: int) -> None:
        super().advance(now_ms)
        self._shares.settle()

    def next_due_ms(self) -> int | None:
        return 0 if self._shares.has_new_work else super().next_due_ms()

    def turns(self, sequences: list[int]) -> dict[str, Stored]:
        names = [self.group_name(sequence) or NO_GROUP for sequence in sequences]
        return self._shares.turns(names)

    def _messages_of(self, share: Share) -> Iterator[Next]:
        tenant = self._tenants.named(share.path) if share.path else None
        if tenant is not None:
            return self._waiting(tenant)
        return self._in_turn(self._since(self._alone, self._due), self._returned, self._turns)

    def choose(self, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        """Choose as ``Order.choose`` does, with groups taking turns."""
        if self._to_enter or self._is_due(now_ms):
            self.advance(now_ms)
        contents, shares = self._contents, self._shares
        shares.settle()
        if limit == 1:  # shortcut: no trial turns are needed
            share = shares.first()
            if share is None:
                return []
            first = next(self._messages_of(share))[1]
            content = contents.get(first)
            if content is not None and content.sent_ms > sent_after_ms:
                return [first]
        chosen: list[int] = []
        skipped = 0
        with _Turns(self) as turns:
            while len(chosen) < limit and skipped < SKIPPED_MAX and (sequence := turns.next()) is not None:
                content = contents.get(sequence)
                if content is None:
                    break
                is_living = content.sent_ms > sent_after_ms
                turns.take(is_handed_out=is_living)
                if is_living:
                    chosen.append(sequence)
                else:
                    skipped += 1
            else:
                return chosen
        if not chosen:
            raise ContentsMissing([sequence, *(other for other in self.missing_ahead() if other != sequence)])
        return chosen

    def missing_ahead(self) -> list[int]:
        return [sequence for sequence in self.ahead(AHEAD_MAX) if sequence not in self._contents]

    def ahead(self, limit: int) -> list[int]:
        """Return up to ``limit`` of the next messages, including expired ones and those with contents on disk only."""
        self._shares.settle()
        ahead: list[int] = []
        with _Turns(self) as turns:
            while len(ahead) < limit and (sequence := turns.next()) is not None:
                turns.take(is_handed_out=True)
                ahead.append(sequence)
        return ahead


def shared(before: Order, sharing: Sharing | None, stored: dict[str, Stored]) -> Order:
    """Return the order of a queue whose attributes changed to ``sharing``.

    It is ``before``, or a new order that takes over its state; then ``before`` must not be used again.
    """
    assert isinstance(before, StandardOrder), "only groups of standard queues share"
    if sharing is not None:
        if isinstance(before, SharedOrder) and before.shares_by(sharing):
            return before
        after = before.converted_to(SharedOrder)
        after.share_by(sharing, stored)
        return after
    return before.converted_to(FairOrder) if isinstance(before, SharedOrder) else before


class _Turns:
    """One trial pass over the messages that can be handed out. Nothing may change during the pass.

    - heads: For each group met, the next message, the following ones, and how many more may be in flight.
    """

    __slots__ = ("_heads", "_order", "_share", "_shares")

    def __init__(self, order: SharedOrder) -> None:
        self._order = order
        self._shares = order._shares
        self._heads: dict[str, tuple[int, Iterator[Next], int]] = {}
        self._share: Share | None = None

    def __enter__(self) -> "_Turns":
        self._shares.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._shares.end()

    def next(self) -> int | None:
        """Return the sequence of the next message, which ``take`` then takes; None if there is none."""
        share = self._share = self._shares.first()
        if share is None:
            return None
        head = self._heads.get(share.path)
        if head is None:
            messages = self._order._messages_of(share)
            most = self._order._in_flight_max
            head = self._heads[share.path] = (next(messages)[1], messages, most - share.in_flight if most else 1 << 62)
        return head[0]

    def take(self, *, is_handed_out: bool) -> None:
        """Move past the message that ``next`` returned. If it is handed out, its group loses a turn and a slot."""
        share = self._share
        assert share is not None
        _, messages, room = self._heads[share.path]
        if is_handed_out:
            self._shares.charge(share)
            room -= 1
        following = next(messages, None)
        if following is None or not room:
            self._shares.rest(share)
        else:
            self._heads[share.path] = (following[1], messages, room)
