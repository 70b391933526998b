"""A view of a queue's messages in flight, for operators. It changes nothing."""

from heapq import nsmallest
from itertools import islice

from msgspec import Struct

from elasticq.engine.ordering.looks import messages_in_flight
from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import Grace

LOOKED_AT_MAX = 10_000


class InFlightMessage(Struct, gc=False):
    """A message in flight.

    group: its MessageGroupId, or None.
    received_ms: time of the last receive.
    until_ms: when it becomes visible again, unless it is deleted or its visibility is changed before.
    receive_count: how often it was received.
    """

    sequence: int
    group: str | None
    received_ms: int
    until_ms: int
    receive_count: int


class InFlight(Struct, gc=False):
    """The messages in flight of one queue.

    in_flight: how many there are.
    looked_at: how many of them the other fields cover, at most LOOKED_AT_MAX.
    oldest_ms: receive time of the message that is in flight for longest, or None.
    next_ms: when the first of them becomes visible again, or None.
    messages: some of them, the one that is in flight for longest first.
    """

    in_flight: int
    looked_at: int
    oldest_ms: int | None
    next_ms: int | None
    messages: list[InFlightMessage]


def in_flight(queue: Queue, grace: Grace, now_ms: int, limit: int) -> InFlight:
    """Return the messages in flight, at most ``limit`` of them.

    If there are more than LOOKED_AT_MAX, it looks at those whose last receive or visibility change is oldest.
    """
    rows = queue.rows
    first = islice(messages_in_flight(queue.order, now_ms), LOOKED_AT_MAX)
    looked_at = [(rows[sequence].received_ms, sequence) for sequence in first]
    next_ms = min((grace.deadline(rows[sequence]) for _, sequence in looked_at), default=None)
    oldest = nsmallest(limit, looked_at)
    return InFlight(
        queue.order.in_flight(now_ms),
        len(looked_at),
        min(looked_at)[0] if looked_at else None,
        next_ms,
        [_message(queue, grace, sequence) for _, sequence in oldest],
    )


def _message(queue: Queue, grace: Grace, sequence: int) -> InFlightMessage:
    row = queue.rows[sequence]
    group = queue.order.group_name(sequence)
    return InFlightMessage(sequence, group, row.received_ms, grace.deadline(row), row.receive_count)
