"""The figures of a queue for operators: the number of messages in each state, and the age of the oldest."""

from msgspec import Struct

from elasticq.engine.state import Queue

PASSED_MAX = 1_000


class QueueFigures(Struct, gc=False):
    """The figures of one queue.

    oldest_ms: when its oldest message was sent; None if there is none. last_sequence: sequence of its newest message.
    is_dead_letter_queue: another queue sends its dead letters to it.
    """

    account: str
    name: str
    visible: int
    in_flight: int
    delayed: int
    oldest_ms: int | None
    last_sequence: int = 0
    is_dead_letter_queue: bool = False


def figures(queue: Queue, now_ms: int) -> QueueFigures:
    """Return the figures of a queue. Expired messages count until the sweeper removes them, which is soon.

    It takes O(1), plus the time to move the messages whose deadline has passed.
    """
    counts = queue.order.counts(now_ms)
    oldest_ms = _oldest_ms(queue) if queue.count else None
    return QueueFigures(
        queue.account, queue.name, counts.visible, counts.in_flight, counts.delayed, oldest_ms, queue.last_sequence
    )


def _oldest_ms(queue: Queue) -> int | None:
    """Return when the oldest message was sent, approximately if many leading sequences have no message.

    The search stops after PASSED_MAX sequences; the sweeper trims those in front.
    """
    sequence = queue.issued.first()
    if sequence is not None and queue.row(sequence) is not None:  # the common case; a scrape asks all queues
        return queue.sent_by_ms(sequence)
    for passed, sequence in enumerate(queue.issued):
        if passed == PASSED_MAX or queue.row(sequence) is not None:
            break
    return None if sequence is None else queue.sent_by_ms(sequence)
