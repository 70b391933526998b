"""The figures of a queue for operators: the number of messages in each state, and the age of the oldest."""

from msgspec import Struct

from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import Row

PASSED_MAX = 1_000


class QueueFigures(Struct, gc=False):
    """The figures of one queue.

    oldest_ms: since when its oldest message can be received, or was; None if all are delayed, or there are none. It is
    the time of its send or the end of its delay.
    last_sequence: sequence of its newest message. is_dead_letter_queue: another queue sends its dead letters to it.
    kind: that of ordering/kinds.py. dead_letters_to: owner and name of its dead-letter queue, None without one.
    """

    account: str
    name: str
    visible: int
    in_flight: int
    delayed: int
    oldest_ms: int | None
    last_sequence: int = 0
    is_dead_letter_queue: bool = False
    kind: str = "standard"
    dead_letters_to: tuple[str, str] | None = None


def figures(queue: Queue, now_ms: int) -> QueueFigures:
    """Return the figures of a queue. Expired messages count until the sweeper removes them, which is soon.

    It takes O(1), plus the time to move the messages whose deadline has passed.
    """
    counts = queue.order.counts(now_ms)
    oldest_ms = _oldest_ms(queue, now_ms) if counts.visible + counts.in_flight else None
    return QueueFigures(
        queue.account,
        queue.name,
        counts.visible,
        counts.in_flight,
        counts.delayed,
        oldest_ms,
        queue.last_sequence,
        kind=queue.kind.name,
        dead_letters_to=None if queue.redrive is None else queue.redrive.target,
    )


def _oldest_ms(queue: Queue, now_ms: int) -> int | None:
    """Return since when the oldest message that is not delayed can be received.

    The search stops after PASSED_MAX sequences without such a message. Then the time may be too late.
    """
    order = queue.order
    first, _ = next(order.untouched_pairs(), (None, None))
    found = [] if first is None or order.is_delayed(first, now_ms) else [queue.sent_by_ms(first)]
    for passed, sequence in enumerate(queue.issued):
        row = queue.row(sequence)
        if row is not None and not order.is_delayed(sequence, now_ms):
            found.append(_available_ms(queue, sequence, row))
            break
        if passed == PASSED_MAX:
            break
    return min(found, default=now_ms)


def _available_ms(queue: Queue, sequence: int, row: Row) -> int:
    """Return when a message could be received for the first time. A delay of a message that was received counts only
    while its content is in memory.
    """
    sent_ms = queue.sent_by_ms(sequence)
    if not row.delivery_number:
        return max(sent_ms, row.visible_at_ms)
    content = queue.contents.get(sequence)
    return sent_ms if content is None else max(sent_ms, min(content.visible_at_ms, row.first_received_ms))
