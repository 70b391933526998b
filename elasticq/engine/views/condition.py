"""The condition of a queue, from which an operator's page decides whether the queue needs attention.

It takes a bounded time: O(1) for the counts, and a look at no more than LOOKED_AT_MAX messages in flight.
"""

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from elasticq.engine.ordering import looks
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import Grace
from elasticq.engine.views.figures import QueueFigures, figures

LOOKED_AT_MAX = 20


class Held(Struct, gc=False):
    """A message that was received and not deleted.

    group: its MessageGroupId, or None.
    first_received_ms, received_ms: times of the first and of the last receive.
    until_ms: when it becomes visible again.
    behind: how many messages of its group wait for it; 0 in a standard queue.
    """

    sequence: int
    group: str | None
    first_received_ms: int
    received_ms: int
    until_ms: int
    receive_count: int
    behind: int


class QueueCondition(Struct, gc=False):
    """The condition of one queue.

    visibility_ms: its visibility timeout.
    dead_letters_to: owner and name of its dead-letter queue, or None.
    held: some messages in flight, those whose last receive or visibility change is oldest.
    often: messages that were received OFTEN times or more (tally.py) and still exist.
    fetched_ms: cluster time of the last receive; None if this member has executed none.
    consumers: how many receives wait.
    sources: the names of some queues that send their dead letters to it.
    """

    figures: QueueFigures
    visibility_ms: int
    dead_letters_to: tuple[str, str] | None
    held: list[Held]
    often: list[Held]
    fetched_ms: int | None = None
    consumers: int = 0
    sources: list[str] = []


def condition(queue: Queue, grace: Grace, now_ms: int, often: Iterable[int] = ()) -> QueueCondition:
    """Return the condition of a queue. often: sequences of messages that were received often."""
    counted = figures(queue, now_ms)
    first = islice(looks.messages_in_flight(queue.order, now_ms), LOOKED_AT_MAX) if counted.in_flight else ()
    return QueueCondition(
        counted,
        queue.visibility_s * 1_000,
        None if queue.redrive is None else queue.redrive.target,
        [_held(queue, grace, sequence) for sequence in first],
        [_held(queue, grace, sequence) for sequence in often if sequence in queue.rows],
    )


def _held(queue: Queue, grace: Grace, sequence: int) -> Held:
    row, group = queue.rows[sequence], queue.order.group_name(sequence)
    fifo = looks.as_a(FifoOrder, queue.order)
    place = None if fifo is None or group is None else looks.groups(fifo).named(group)
    behind = 0 if place is None else looks.length(place) - 1
    return Held(sequence, group, row.first_received_ms, row.received_ms, grace.deadline(row), row.receive_count, behind)
