"""What people are shown of an order: the parts of it that no command asks for. It changes nothing.

Modules that are not compiled ask here of what kind an order is, and not by ``isinstance``: compiled subclasses of
``Order`` share one cache of ABCMeta, so that the answer for one of them is given for another, too.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

from elasticq.engine.ordering.contract import Order
from elasticq.engine.ordering.fair import FairOrder
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.ordering.groups import Group, Groups, Tenant
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.engine.stored.delivery_rows import Row

Kind = TypeVar("Kind", bound=Order)


def as_a(kind: type[Kind], order: Order) -> Kind | None:
    """Return the order where it is of this kind, else None."""
    return cast(Kind, order) if kind in type(order).__mro__ else None


def hidden(order: Order, now_ms: int) -> Iterator[int]:
    """Yield the messages in flight, those first that were received, or hidden anew, longest ago.

    They must not be changed meanwhile. After a start they come in the order of their sequences.
    """
    order.advance(now_ms)
    return iter(order._deadlines)


def groups(order: FifoOrder) -> Groups[Group]:
    return order._groups


def tenants(order: FairOrder) -> Groups[Tenant]:
    return order._tenants


def length(group: Group) -> int:
    """Return how many messages a group of a FIFO queue has, wherever their delivery stands."""
    return len(group._sequences) - group._begin


def hidden_until_ms(order: Order, row: Row) -> int:
    """Return when a message in flight, whose row this is, is visible again."""
    return order._grace.deadline(row)


def delayed_until_ms(order: FifoOrder, sequence: int) -> int:
    """Return when the delay of a FIFO queue is over for a message: maybe too late if its content is on disk only."""
    return order._sent_ms(sequence) + order._delay_ms


def deliverable(order: FairOrder, tenant: Tenant) -> Iterable[int]:
    """Yield the messages of a group that can be delivered, in their order; nothing may change meanwhile."""
    return (sequence for _, sequence in order._waiting(tenant))


def is_noisy(order: FairOrder, tenant: Tenant) -> bool:
    """Whether other groups go first, as this one has so much in flight."""
    return as_a(SharedOrder, order) is None and order._is_noisy(tenant)


def is_full(order: FairOrder, tenant: Tenant) -> bool:
    """Whether the group gets nothing as it has as many messages in flight as the queue allows."""
    shared = as_a(SharedOrder, order)
    return shared is not None and 0 < shared._in_flight_max <= tenant.in_flight
