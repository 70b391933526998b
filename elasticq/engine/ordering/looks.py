"""Read-only views of an order for pages and listings: the parts of it that no SQS command reads.

Modules that are not compiled must use ``as_a`` to check the class of an order, never ``isinstance``. Compiled
subclasses of ``Order`` share one cache of ABCMeta, so ``isinstance`` may return the answer for another subclass.
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
    """Return the order if it is of this class, else None."""
    return cast(Kind, order) if kind in type(order).__mro__ else None


def messages_in_flight(order: Order, now_ms: int) -> Iterator[int]:
    """Return an iterator over the messages in flight, longest unchanged first.

    A receive and a change of visibility both move a message to the end. After a start, the order is that of sequences.
    Nothing may change during the iteration.
    """
    order.advance(now_ms)
    return iter(order._deadlines)


def groups(order: FifoOrder) -> Groups[Group]:
    return order._groups


def tenants(order: FairOrder) -> Groups[Tenant]:
    return order._tenants


def length(group: Group) -> int:
    """Return the number of all messages of a group of a FIFO queue, in any delivery state."""
    return len(group._sequences) - group._begin


def visible_at_ms(order: Order, row: Row) -> int:
    """Return when a message in flight with this row becomes visible."""
    return order._grace.deadline(row)


def delayed_until_ms(order: FifoOrder, sequence: int) -> int:
    """Return when the delay of a message of a FIFO queue ends. If its content is on disk only, it may be too late."""
    return order._sent_ms(sequence) + order._delay_ms


def deliverable(order: FairOrder, tenant: Tenant) -> Iterable[int]:
    """Return the messages of a tenant that can be delivered, in order. Nothing may change during the iteration."""
    return (sequence for _, sequence in order._waiting(tenant))


def is_noisy(order: FairOrder, tenant: Tenant) -> bool:
    """Return whether other tenants go first because this one has many messages in flight."""
    return as_a(SharedOrder, order) is None and order._is_noisy(tenant)


def is_full(order: FairOrder, tenant: Tenant) -> bool:
    """Return whether the tenant gets no messages because it has as many in flight as the queue allows."""
    shared = as_a(SharedOrder, order)
    return shared is not None and 0 < shared._in_flight_max <= tenant.in_flight
