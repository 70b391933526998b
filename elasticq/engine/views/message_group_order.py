"""How the messages of groups stand behind each other, and what keeps a group back. For people; it changes nothing."""

from itertools import islice
from typing import TypeVar

from msgspec import Struct

from elasticq.engine.ordering import looks
from elasticq.engine.ordering.fair import FairOrder
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.ordering.groups import Group, Groups, Tenant
from elasticq.engine.state import Queue

GROUPS_LOOKED_AT_MAX = 10_000
BLOCKER_LOOKED_AT_MAX = 100
WAITS = "waits"  # behind a message of its group that is in flight or delayed
NOISY, FULL = "noisy", "full"
Kind = TypeVar("Kind", Group, Tenant)


class GroupMessage(Struct, gc=False):
    """A message at its place in its group.

    state: visible, inflight, delayed, or waits: behind one of its group that is in flight or delayed; until_ms: when
    it is visible again or its delay is over, None for others.
    """

    sequence: int
    state: str
    until_ms: int | None
    receive_count: int


class GroupPlace(Struct, gc=False):
    """A group with the first of its messages, in the order in which they are handed out.

    count: all its messages; blocked_by: of a FIFO queue, the message behind which all others wait until
    blocked_until_ms, looked for among its first BLOCKER_LOOKED_AT_MAX; None where nothing blocks. held: of a standard
    queue, why others go before it: noisy (it has much in flight) or full (it has in flight what the queue allows, and
    gets nothing); empty where nothing holds it. in_flight: of a standard queue alone, as the messages that are in
    flight stand in no order there.
    """

    group: str
    count: int
    in_flight: int | None
    blocked_by: int | None
    blocked_until_ms: int | None
    held: str
    messages: list[GroupMessage]


class GroupOrder(Struct, gc=False):
    """The groups of a queue: how many there are, how many of them were looked at, and some of those that were wanted.

    is_strict: messages of a group wait for those before them, as in a FIFO queue.
    """

    is_strict: bool
    count: int
    looked_at: int
    groups: list[GroupPlace]


def group_order(queue: Queue, now_ms: int, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
    """Tell of groups whose ids contain ``wanted``, the one of just this id first; None where a queue has no groups.

    It looks at GROUPS_LOOKED_AT_MAX of them at most, those that have had messages for longest, and at the one that
    is named.
    """
    queue.order.advance(now_ms)
    fifo, fair = looks.as_a(FifoOrder, queue.order), looks.as_a(FairOrder, queue.order)
    if fifo is not None:
        groups = looks.groups(fifo)
        found, looked_at = _chosen(groups, wanted, groups_max)
        places = [_strict_place(queue, fifo, group, now_ms, messages_max) for group in found]
        return GroupOrder(True, len(groups), looked_at, places)
    if fair is not None:
        tenants = looks.tenants(fair)
        some, looked_at = _chosen(tenants, wanted, groups_max)
        return GroupOrder(False, len(tenants), looked_at, [_place(queue, fair, each, messages_max) for each in some])
    return None


def _chosen(groups: Groups[Kind], wanted: str, groups_max: int) -> tuple[list[Kind], int]:
    """Return groups whose ids contain ``wanted``, and how many were looked at."""
    exact = groups.named(wanted)
    found = [] if exact is None else [exact]
    looked_at = 0
    for group in islice(groups, GROUPS_LOOKED_AT_MAX):
        if len(found) == groups_max:
            break
        looked_at += 1
        if wanted in group.name and group is not exact:
            found.append(group)
    return found, looked_at


def _place(queue: Queue, order: FairOrder, tenant: Tenant, messages_max: int) -> GroupPlace:
    held = FULL if looks.is_full(order, tenant) else NOISY if looks.is_noisy(order, tenant) else ""
    told = [_message(queue, each, "visible", None) for each in islice(looks.deliverable(order, tenant), messages_max)]
    return GroupPlace(tenant.name, tenant.count, tenant.in_flight, None, None, held, told)


def _strict_place(queue: Queue, order: FifoOrder, group: Group, now_ms: int, messages_max: int) -> GroupPlace:
    place = GroupPlace(group.name, looks.length(group), None, None, None, "", [])
    for sequence in islice(group, max(messages_max, BLOCKER_LOOKED_AT_MAX)):
        state, until_ms = "visible", None
        row = queue.row(sequence)
        if row is not None and order.is_in_flight(sequence, now_ms):
            state, until_ms = "inflight", looks.visible_at_ms(order, row)
        elif order.is_delayed(sequence, now_ms):
            state, until_ms = "delayed", looks.delayed_until_ms(order, sequence)
        elif place.blocked_by is not None:
            state = WAITS
        if until_ms is not None and place.blocked_by is None:
            place.blocked_by, place.blocked_until_ms = sequence, until_ms
        if len(place.messages) < messages_max:
            place.messages.append(_message(queue, sequence, state, until_ms))
        elif place.blocked_by is not None:
            break
    return place


def _message(queue: Queue, sequence: int, state: str, until_ms: int | None) -> GroupMessage:
    row = queue.row(sequence)
    return GroupMessage(sequence, state, until_ms, 0 if row is None else row.receive_count)
