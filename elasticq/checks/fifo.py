"""Rules for FIFO queues, in addition to those of every queue: order in groups, blocked groups, deduplication, attempts.

overtaken         delivered while an earlier message of its group was certainly there and not in the same answer: out of
                  order, a gap, or past one in flight
misordered        one answer has messages of a group in an order other than that of their sequence numbers; or of two
                  messages of a group, the one sent after the other's acknowledgement has the smaller sequence number
not_deduplicated  sends with one deduplication id within five minutes of the first made two messages, or got different
                  MessageIds or SequenceNumbers
attempt_differs   a receive with an earlier ReceiveRequestAttemptId, whose messages were all still in flight, got other
                  messages or handles

Sequence numbers are the order of storing. So a delivered message proves that all messages of its group with smaller
numbers were stored before. A message never returns to a queue that it left. So a message that is seen there later was
there all the time.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct, field

from elasticq.checks.history import Receive
from elasticq.checks.queue_history import Delivery, Finding, Message, QueueHistory

OVERTAKEN, MISORDERED = "overtaken", "misordered"
NOT_DEDUPLICATED, ATTEMPT_DIFFERS = "not_deduplicated", "attempt_differs"


class Life(Struct):
    """A message in one FIFO queue. ``last_us`` is when the newest receive that got it there began."""

    message_id: str
    number: int
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def last_us(self) -> int:
        return max((delivery.taken_by.invoke_us for delivery in self.deliveries), default=0)


def check(queue_history: QueueHistory) -> Iterator[Finding]:
    fifo = {queue.queue for queue in queue_history.queues.values() if queue.is_fifo}
    if not fifo:
        return
    messages = [message for message in queue_history.messages.values() if message.queue in fifo]
    for message in messages:
        yield from _not_deduplicated(queue_history, message)
    for (queue, _), lives in _groups(queue_history, fifo).items():
        yield from _overtaken(queue_history, queue, lives)
    for receive in queue_history.receives:
        if receive.queue in fifo:
            yield from _misordered_answer(receive)
    yield from _misordered_sends(messages)
    for repeats in queue_history.attempts.values():
        yield from _attempt_differs(queue_history, repeats)


def _not_deduplicated(queue_history: QueueHistory, message: Message) -> list[Finding]:
    if len(message.sends) == 1 or not queue_history.is_one(message):
        return []
    answered, numbers, ids = message.answered_ids, message.answered_numbers, message.ids
    if len(answered) <= 1 and len(numbers) <= 1 and len(ids) <= 1 + queue_history.moves_of(message):
        return []
    evidence = f"{message}, sent {len(message.sends)} times, is {' and '.join(ids)} with {' and '.join(numbers)}"
    return [Finding(NOT_DEDUPLICATED, evidence, message.invoked_us)]


# --- groups -------------------------------------------------------------------------


def _groups(queue_history: QueueHistory, fifo: set[str]) -> dict[tuple[str, str], list[Life]]:
    """Return the messages of each (queue, group), ordered by sequence number."""
    found: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for message in queue_history.messages.values():
        lives = message.lives
        groups = {sent.group for _, sent in message.sends}
        if message.queue in fifo and len(groups) == 1 and len(message.answered_numbers) == 1:
            for message_id in message.answered_ids:
                lives.setdefault((message.queue, message_id), [])
        for (queue, message_id), deliveries in lives.items():
            numbers = {delivery.message.sequence_number for delivery in deliveries} or message.answered_numbers.keys()
            if queue in fifo and len(numbers) == 1 and "" not in numbers:
                group = deliveries[0].message.group if deliveries else next(iter(groups))
                found[queue, group].append(Life(message_id, int(next(iter(numbers))), deliveries))
    for lives_of_group in found.values():
        lives_of_group.sort(key=lambda life: life.number)
    return found


def _overtaken(queue_history: QueueHistory, queue: str, lives: list[Life]) -> Iterator[Finding]:
    is_left = queue_history.is_left(queue)
    for at, life in enumerate(lives):
        for delivery in _distinct(life.deliveries):
            together = _together(queue_history, delivery)
            for earlier in lives[:at]:
                if earlier.message_id not in together and _is_there(
                    queue_history, earlier, delivery.completed_us, is_left
                ):
                    seen = max(earlier.deliveries, key=lambda each: each.completed_us, default="nobody yet")
                    evidence = f"{delivery} ({life.number}) before {earlier.message_id} ({earlier.number}), had {seen}"
                    yield Finding(OVERTAKEN, evidence, delivery.completed_us)


def _together(queue_history: QueueHistory, delivery: Delivery) -> set[str]:
    """Return the MessageIds in the same answer, or in the answers to the same lease so far.

    The messages of a lease do not block other messages of that lease.
    """
    receive = delivery.taken_by
    if receive.lease:
        return queue_history.leases[receive.queue, receive.lease].told_until(receive)
    return {message.message_id for message in receive.messages}


def _distinct(deliveries: list[Delivery]) -> list[Delivery]:
    """Return the deliveries by time, without those that only repeat one for a ReceiveRequestAttemptId."""
    found: dict[str, Delivery] = {}
    for delivery in sorted(deliveries, key=lambda each: each.completed_us):
        found.setdefault(delivery.message.receipt_handle, delivery)
    return list(found.values())


def _is_there(queue_history: QueueHistory, life: Life, by_us: int, is_left: bool) -> bool:
    """Return whether the message was certainly in its queue from the moment it was stored until ``by_us``."""
    if life.last_us >= by_us:
        return True
    is_deleted = any(delete.invoke_us < by_us for delete in queue_history.deletes.get(life.message_id, ()))
    return not is_deleted and not is_left


def _misordered_answer(receive: Receive) -> Iterator[Finding]:
    newest: dict[str, int] = {}
    for message in receive.messages:
        number = int(message.sequence_number or 0)
        if number and number <= newest.get(message.group, 0):
            evidence = (
                f"{Delivery(receive, message)} ({number}) behind {newest[message.group]} of group {message.group}"
            )
            yield Finding(MISORDERED, evidence, receive.complete_us or 0)
        newest[message.group] = max(number, newest.get(message.group, 0))


def _misordered_sends(messages: list[Message]) -> Iterator[Finding]:
    """Yield the findings between two sends, and between the entries of one batch."""
    groups: defaultdict[tuple[str, str], list[tuple[int, int, Message]]] = defaultdict(list)
    batches: dict[tuple[str, str], int] = {}
    for message in messages:
        names = {sent.group for _, sent in message.sends}
        if len(message.answered_numbers) != 1 or len(names) != 1:
            continue
        number, group = int(next(iter(message.answered_numbers))), next(iter(names))
        ends = [send.complete_us for send, _ in message.sends if send.outcome == "ok" and send.complete_us is not None]
        groups[message.queue, group].append((number, min(ends, default=1 << 62), message))
        batch = message.sends[0][0].guid, group
        if len(message.sends) == 1 and batches.setdefault(batch, number) > number:
            yield Finding(MISORDERED, f"{message} has {number} in its batch", message.invoked_us)
    for numbered in groups.values():
        numbered.sort(key=lambda each: each[0])
        earliest_us, first = 1 << 62, None  # among those with greater numbers, the one that was acknowledged first
        for number, done_us, message in reversed(numbered):
            if first is not None and earliest_us < message.invoked_us:
                evidence = f"{message} has {number}, though {first} was acknowledged before it began"
                yield Finding(MISORDERED, evidence, message.invoked_us)
            if done_us < earliest_us:
                earliest_us, first = done_us, message


def _attempt_differs(queue_history: QueueHistory, repeats: list[Receive]) -> Iterator[Finding]:
    answered = sorted((each for each in repeats if each.complete_us is not None), key=lambda each: each.invoke_us)
    for one, other in pairwise(answered):
        if one.messages and _holds_all(queue_history, one, other):
            handles = [message.receipt_handle for message in one.messages]
            if [message.receipt_handle for message in other.messages] != handles:
                got = ", ".join(message.message_id for message in other.messages) or "nothing"
                evidence = f"{other.client} repeats {other.attempt_id} at {other.invoke_us} us and gets {got}"
                yield Finding(ATTEMPT_DIFFERS, evidence, other.complete_us or 0)


def _holds_all(queue_history: QueueHistory, one: Receive, other: Receive) -> bool:
    """Return whether no message of the answer ``one`` can have become visible or changed before ``other`` ended."""
    by_us = other.complete_us or 0
    for message in one.messages:
        changes = [
            change
            for change in queue_history.changes.get(message.receipt_handle, ())
            if change.invoke_us != other.invoke_us
        ]
        touched = [*changes, *queue_history.deletes.get(message.message_id, ())]
        if any(each.invoke_us < by_us for each in touched):
            return False
    return one.invoke_us + one.visibility_ms * 1_000 - queue_history.early_us(one.invoke_us, by_us) > by_us
