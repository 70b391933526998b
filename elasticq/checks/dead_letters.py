"""Rules for dead letters and moved messages: each is in one place at a time, and moves after the right receive count.

received_too_often  received more often than maxReceiveCount in a queue with a dead-letter queue
moved_early         a dead letter that was received less often than that
moved_twice         one MessageId entered one queue twice: two deliveries with one receive count, or two SequenceNumbers
copied              seen in a place that it had left: after the next place, alternately in two places, or in flight in
                    both

The rule that no message is lost also holds for dead letters. Consumers must drain dead-letter queues, too.
"""

from collections.abc import Iterator
from itertools import combinations

from elasticq.checks.history import CreateQueue
from elasticq.checks.queue_history import Delivery, Finding, Message, QueueHistory

RECEIVED_TOO_OFTEN, MOVED_EARLY = "received_too_often", "moved_early"
MOVED_TWICE, COPIED = "moved_twice", "copied"

Place = tuple[str, str]  # (queue, MessageId)


def check(queue_history: QueueHistory) -> Iterator[Finding]:
    if not queue_history.moves and not any(queue.dead_letter_queue for queue in queue_history.queues.values()):
        return
    sources = {queue.dead_letter_queue: queue for queue in queue_history.queues.values() if queue.dead_letter_queue}
    for message in queue_history.messages.values():
        lives = message.lives
        for (queue, _), deliveries in lives.items():
            yield from _received_too_often(queue_history.queues.get(queue), deliveries)
            yield from _moved_early(sources.get(queue), deliveries)
            yield from _moved_twice(deliveries)
        for one, other in combinations(lives.items(), 2):
            yield from _copied(queue_history, message, one, other)


def _received_too_often(queue: CreateQueue | None, deliveries: list[Delivery]) -> list[Finding]:
    if queue is None or not queue.dead_letter_queue:
        return []
    handles = {delivery.message.receipt_handle for delivery in deliveries}
    often = max(len(handles), *(delivery.message.receive_count for delivery in deliveries))
    if often <= queue.receives_max:
        return []
    evidence = f"{deliveries[-1]} from {queue.queue}, {often} receives of {queue.receives_max}"
    return [Finding(RECEIVED_TOO_OFTEN, evidence, deliveries[-1].completed_us)]


def _moved_early(source: CreateQueue | None, deliveries: list[Delivery]) -> list[Finding]:
    return [
        Finding(MOVED_EARLY, f"{delivery}: receive {delivery.message.receive_count}", delivery.completed_us)
        for delivery in deliveries
        if source is not None and delivery.message.is_dead_letter
        if 0 < delivery.message.receive_count <= source.receives_max
    ]


def _moved_twice(deliveries: list[Delivery]) -> Iterator[Finding]:
    """Yield the findings in one place. A receipt handle that was answered twice is one delivery."""
    by_handle = {delivery.message.receipt_handle: delivery for delivery in deliveries}
    for one, other in combinations(by_handle.values(), 2):
        same_count = one.message.receive_count == other.message.receive_count > 0
        if same_count or one.message.sequence_number != other.message.sequence_number:
            evidence = f"{one}, then {other}: receive {other.message.receive_count} of both, or two sequence numbers"
            yield Finding(MOVED_TWICE, evidence, other.completed_us)


def _copied(
    queue_history: QueueHistory,
    message: Message,
    one: tuple[Place, list[Delivery]],
    other: tuple[Place, list[Delivery]],
) -> list[Finding]:
    for (place, first), (next_place, second) in ((one, other), (other, one)):
        left_us = max(delivery.taken_by.invoke_us for delivery in first)
        come_us = min(delivery.completed_us for delivery in first)
        if _rank(message, place) < _rank(message, next_place):
            come_us = -1  # the message was there before, even if no client saw it
        if any(come_us < each.taken_by.invoke_us and each.completed_us < left_us for each in second):
            return [Finding(COPIED, f"{message}: {first[0]}, {second[0]}, then {first[-1]}", left_us)]
    pairs = [(a, b) for a in one[1] for b in other[1] if queue_history.overlap(a, b)]
    return [Finding(COPIED, f"{message}: {a} and {b}", b.completed_us) for a, b in pairs[:1]]


def _rank(message: Message, place: Place) -> int:
    """Return 0 for the place where the message was sent, 1 for a dead letter's place, and 2 for places after moves.

    The order of the places after moves is unknown.
    """
    queue, message_id = place
    if list(message.answered_ids) != [message_id]:
        return 2
    return int(queue != message.queue)
