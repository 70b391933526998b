"""What is in flight in a queue: for how long, and until when. For people; it changes nothing."""

from heapq import nsmallest
from itertools import islice

from msgspec import Struct

from elasticq.engine.ordering.looks import messages_in_flight
from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import Grace

LOOKED_AT_MAX = 10_000


class InFlightMessage(Struct, gc=False):
    """A message in flight.

    group: its MessageGroupId, None where it has none; received_ms: when it was received last; until_ms: when it is
    visible again, unless it is deleted or its visibility is changed before; receive_count: how often it was received.
    """

    sequence: int
    group: str | None
    received_ms: int
    until_ms: int
    receive_count: int


class InFlight(Struct, gc=False):
    """The messages of a queue that are in flight.

    looked_at: how many of ``in_flight`` the rest is about, LOOKED_AT_MAX at most; oldest_ms: when the one was received
    that is in flight for longest; next_ms: when the first of them is visible again; both None where there are none.
    messages: some of them, the one that is in flight for longest first.
    """

    in_flight: int
    looked_at: int
    oldest_ms: int | None
    next_ms: int | None
    messages: list[InFlightMessage]


def in_flight(queue: Queue, grace: Grace, now_ms: int, limit: int) -> InFlight:
    """Tell what is in flight, with ``limit`` messages at most.

    Where there are more than LOOKED_AT_MAX, it looks at those that were received, or hidden anew, longest ago.
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
        [_told(queue, grace, sequence) for _, sequence in oldest],
    )


def _told(queue: Queue, grace: Grace, sequence: int) -> InFlightMessage:
    row = queue.rows[sequence]
    group = queue.order.group_name(sequence)
    return InFlightMessage(sequence, group, row.received_ms, grace.deadline(row), row.receive_count)
