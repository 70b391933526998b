"""Checks of a history of queue operations by the rules for every queue. The modules in _MORE add rules of their own.

lost         an acknowledged send that no client received by the end of the drain and no client may have deleted; or a
             message that was received before the drain, was never deleted, and was not received in the drain
duplicated   one message of one send operation (all attempts) under two MessageIds
resurrected  delivered by a receive that began after an acknowledged delete with the live handle, or the cancelling of a
             scheduled message, had completed
early        held by two receives at once: delivered again although the visibility timeout of the first delivery cannot
             have ended
unexpected   a body that no client sent to this queue, or another body under a MessageId

Only certain facts are findings. Clients know intervals, not moments: a receive took its messages at some time between
invoke and completion. So two deliveries A and B certainly overlap only if each completed before the other's earliest
possible deadline.

``jumps`` hold when, and how far, the server's clock may have jumped forward. That can happen after all members
restarted at once, because they then use their wall clocks. ``drift`` is the share of true time by which the clock may
run too fast.
The checker does not support purges and retention, so a history must have none.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from elasticq.checks import dead_letters, fifo, leases, partitions, priorities
from elasticq.checks.history import Delete, Event
from elasticq.checks.queue_history import Delivery, Finding, Jump, Message, QueueHistory

_MORE: Final = (fifo, dead_letters, leases, priorities, partitions)
LOST, DUPLICATED, RESURRECTED, EARLY, UNEXPECTED = "lost", "duplicated", "resurrected", "early", "unexpected"


def check(
    events: Iterable[Event], *, jumps: Iterable[Jump] = (), drift: float = 0.0, drain_us: int | None = None
) -> list[Finding]:
    """Return all findings, in order of time.

    drain_us: when consumers began to receive and delete everything, until the queues were empty. None: the history was
        not drained, and no message can be called lost.
    """
    queue_history = QueueHistory(events, jumps, drift)
    findings = list(_unexpected(queue_history))
    for message in queue_history.messages.values():
        findings += _duplicated(queue_history, message)
        findings += _early(queue_history, message.deliveries)
        findings += _resurrected(queue_history, message.deliveries)
        if drain_us is not None:
            findings += _lost(queue_history, message, drain_us)
    for rules in _MORE:
        findings += rules.check(queue_history)
    return sorted(findings, key=lambda finding: (finding.at_us, finding.name, finding.evidence))


def _unexpected(queue_history: QueueHistory) -> Iterator[Finding]:
    for body, deliveries in queue_history.unknown.items():
        for delivery in deliveries:
            evidence = f"{delivery}: nobody sent {body[:60]!r} to {delivery.taken_by.queue}"
            yield Finding(UNEXPECTED, evidence, delivery.completed_us)
    body_of: dict[str, str] = {}
    for message in queue_history.messages.values():
        bodies = {sent.body for _, sent in message.sends}
        if len(bodies) == 1:
            body_of.update(dict.fromkeys(message.answered_ids, next(iter(bodies))))
    for message in queue_history.messages.values():
        groups = {sent.group for _, sent in message.sends}
        for delivery in message.deliveries:
            queue, handed_out = delivery.taken_by.queue, delivery.message
            before = body_of.setdefault(handed_out.message_id, handed_out.body)
            if queue not in queue_history.places(message.queue):
                evidence = f"{delivery}: nobody sent {handed_out.body[:60]!r} to {queue}"
            elif before != handed_out.body:
                evidence = f"{delivery}: body {handed_out.body[:60]!r}, before {before[:60]!r}"
            elif handed_out.group and handed_out.group not in groups:
                evidence = f"{delivery}: of group {handed_out.group}, sent to {', '.join(sorted(groups))}"
            else:
                continue
            yield Finding(UNEXPECTED, evidence, delivery.completed_us)


def _duplicated(queue_history: QueueHistory, message: Message) -> list[Finding]:
    """Return the findings for one send with several MessageIds. Each move task may have given the message one more."""
    if len(message.sends) > 1:
        return []  # the message has a deduplication id
    ids = message.ids
    if len(message.answered_ids) <= 1 and len(ids) <= 1 + queue_history.moves_of(message):
        return []
    return [Finding(DUPLICATED, f"{message} is {' and '.join(ids)}", message.invoked_us)]


def _early(queue_history: QueueHistory, deliveries: list[Delivery]) -> Iterator[Finding]:
    ordered = sorted(deliveries, key=lambda delivery: delivery.completed_us)
    for at, other in enumerate(ordered):
        for one in ordered[:at]:
            same_message = one.message.message_id == other.message.message_id
            is_another = same_message and one.taken_by is not other.taken_by and not _is_repeated(one, other)
            if is_another and queue_history.overlap(one, other):
                yield Finding(EARLY, f"{one}, then {other}", other.completed_us)


def _is_repeated(one: Delivery, other: Delivery) -> bool:
    """Return whether both are one delivery, answered again to a receive with the same ReceiveRequestAttemptId."""
    attempts = {one.taken_by.attempt_id, other.taken_by.attempt_id}
    return one.message.receipt_handle == other.message.receipt_handle and len(attempts) == 1 and "" not in attempts


def _is_certain(queue_history: QueueHistory, delete: Delete, deliveries: list[Delivery]) -> bool:
    """Return whether the delete used a live handle, or was of a message that no client had received.

    A delete with an older handle may succeed without effect (AWS).
    """
    if delete.outcome != "ok" or delete.complete_us is None:
        return False
    if not delete.receipt_handle:
        return True
    return any(
        delivery.message.receipt_handle == delete.receipt_handle
        and delete.complete_us < queue_history.hidden_until_us(delivery, delete.complete_us)
        for delivery in deliveries
    )


def _resurrected(queue_history: QueueHistory, deliveries: list[Delivery]) -> Iterator[Finding]:
    for message_id in dict.fromkeys(delivery.message.message_id for delivery in deliveries):
        same = [delivery for delivery in deliveries if delivery.message.message_id == message_id]
        deletes = queue_history.deletes.get(message_id, [])
        certain = [delete for delete in deletes if _is_certain(queue_history, delete, same)]
        if not certain:
            continue
        first = min(certain, key=lambda delete: delete.complete_us or 0)
        deleted_us = first.complete_us or 0
        for delivery in same:
            if delivery.taken_by.invoke_us > deleted_us:
                evidence = f"{first.client} deleted {message_id} by {deleted_us} us, then {delivery}"
                yield Finding(RESURRECTED, evidence, delivery.completed_us)


def _lost(queue_history: QueueHistory, message: Message, drain_us: int) -> list[Finding]:
    """Return the finding for a lost message.

    If it was sent again after the deduplication window, there are two messages, and either may be the received one.
    """
    deliveries = message.deliveries
    is_acknowledged = any(send.outcome == "ok" and sent.message_ids for send, sent in message.sends)
    if not is_acknowledged and not deliveries:
        return []
    ids = message.ids
    if not queue_history.is_one(message) or any(queue_history.deletes.get(message_id) for message_id in ids):
        return []
    if any(delivery.completed_us >= drain_us for delivery in deliveries):
        return []
    evidence = f"{message} at {message.invoked_us} us, {next(iter(ids))}: {_last_seen(deliveries)}"
    return [Finding(LOST, evidence, message.invoked_us)]


def _last_seen(deliveries: list[Delivery]) -> str:
    if not deliveries:
        return "never received"
    return f"not deleted and not seen again after {max(deliveries, key=lambda delivery: delivery.completed_us)}"
