"""A view of the order of messages in message groups, and of what blocks a group, for operators. It changes nothing."""

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
WAITS = "waits"  # an earlier message of its group is in flight or delayed
NOISY, FULL = "noisy", "full"
Kind = TypeVar("Kind", Group, Tenant)


class GroupMessage(Struct, gc=False):
    """A message of a group.

    state: visible, inflight, delayed, or waits (an earlier message of its group is in flight or delayed).
    until_ms: when it becomes visible again or its delay ends; None in the other states.
    """

    sequence: int
    state: str
    until_ms: int | None
    receive_count: int


class GroupPlace(Struct, gc=False):
    """A group and its first messages, in the order of their delivery.

    count: the number of all its messages.
    in_flight: in a standard queue, the number of its messages in flight; None in a FIFO queue.
    blocked_by: in a FIFO queue, the sequence of the message for which the others wait, until blocked_until_ms. It is
    searched among the first BLOCKER_LOOKED_AT_MAX messages; None if nothing blocks.
    held: in a standard queue, why other groups go first. noisy: it has many messages in flight. full: it has as many
    in flight as the queue allows, so it gets nothing. Empty: nothing holds it.
    """

    group: str
    count: int
    in_flight: int | None
    blocked_by: int | None
    blocked_until_ms: int | None
    held: str
    messages: list[GroupMessage]


class GroupOrder(Struct, gc=False):
    """The groups of a queue: their number, how many of them were looked at, and some that match.

    is_strict: messages of a group wait for those before them, as in a FIFO queue.
    """

    is_strict: bool
    count: int
    looked_at: int
    groups: list[GroupPlace]


def group_order(queue: Queue, now_ms: int, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
    """Return groups whose ids contain ``wanted``, an exact match first; None if the queue has no groups.

    It looks at the exact match, and at no more than GROUPS_LOOKED_AT_MAX groups: those that have had messages longest.
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
    """Return up to ``groups_max`` groups whose ids contain ``wanted``, and how many were looked at."""
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
    shown_messages = [
        _message(queue, each, "visible", None) for each in islice(looks.deliverable(order, tenant), messages_max)
    ]
    return GroupPlace(tenant.name, tenant.count, tenant.in_flight, None, None, held, shown_messages)


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
