"""The rule for priority queues, in addition to those of every queue.

misprioritised   an answer has a message before one whose priority was certainly lower

Answers to leases may have been chosen long before, so they are not checked.

A priority is certain if no client tried to change it, or if one change certainly had its effect before the receive
began. The order of equal priorities is unknown, because sends do not define one.
"""

from collections.abc import Iterator
from itertools import pairwise

from elasticq.checks.history import Receive
from elasticq.checks.queue_history import Delivery, Finding, QueueHistory

MISPRIORITISED = "misprioritised"


def check(queue_history: QueueHistory) -> Iterator[Finding]:
    for receive in queue_history.receives:
        made = queue_history.queues.get(receive.queue)
        if made is not None and made.has_priorities and not receive.lease:
            yield from _misprioritised(queue_history, receive, made.default_priority)


def _misprioritised(queue_history: QueueHistory, receive: Receive, default: int) -> Iterator[Finding]:
    deliveries = [Delivery(receive, message) for message in receive.messages]
    known = [(_certain_priority(queue_history, delivery, default), delivery) for delivery in deliveries]
    for (one, first), (other, second) in pairwise([pair for pair in known if pair[0] is not None]):
        if one is not None and other is not None and one > other:
            evidence = f"{first} (priority {one}) in front of {second.message.message_id} ({other})"
            yield Finding(MISPRIORITISED, evidence, first.completed_us)


def _certain_priority(queue_history: QueueHistory, delivery: Delivery, default: int) -> int | None:
    message = queue_history.by_body.get(delivery.message.body)
    if message is None or len(message.sends) > 1:
        return None
    changes = [change for message_id in message.ids for change in queue_history.priorities.get(message_id, ())]
    if not changes:
        given = message.sends[0][1].priority
        return default if given is None else given
    change = changes[0]
    is_certain = len(changes) == 1 and change.outcome == "ok" and delivery.message.message_id in change.changed
    is_before = change.complete_us is not None and change.complete_us < delivery.taken_by.invoke_us
    return change.priority if is_certain and is_before else None
