"""What a queue's state tells people: how much of which kind is in it, and how old the oldest is."""

from msgspec import Struct

from elasticq.engine.state import Queue

PASSED_MAX = 1_000


class QueueFigures(Struct, gc=False):
    """oldest_ms: when its oldest message was sent, None where there is none; last_sequence: that of the newest one.

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
    """The figures of a queue. Messages that have expired count until they are swept, which is soon.

    It costs O(1) besides noting whose deadline has passed.
    """
    counts = queue.order.counts(now_ms)
    oldest_ms = _oldest_ms(queue) if queue.count else None
    return QueueFigures(
        queue.account, queue.name, counts.visible, counts.in_flight, counts.delayed, oldest_ms, queue.last_sequence
    )


def _oldest_ms(queue: Queue) -> int | None:
    """When the oldest message was sent. A bounded look is enough: the sweeper trims the sequences before it."""
    sequence = queue.issued.first()
    if sequence is not None and queue.row(sequence) is not None:  # so in nearly every queue, and a scrape asks all
        return queue.sent_by_ms(sequence)
    for passed, sequence in enumerate(queue.issued):
        if passed == PASSED_MAX or queue.row(sequence) is not None:
            break
    return None if sequence is None else queue.sent_by_ms(sequence)
