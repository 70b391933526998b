"""The rule for FIFO queues with partitions, in addition to those of every FIFO queue.

misrouted   a receive that asked for one partition got a message whose group belongs to another one

This module computes the partition of a group itself and does not ask the server. The rule must also find a server that
computes it differently tomorrow, or at another member.
"""

from collections.abc import Iterator
from zlib import crc32

from elasticq.checks.history import HandedOut, Receive
from elasticq.checks.queue_history import Delivery, Finding, QueueHistory

MISROUTED = "misrouted"


def check(queue_history: QueueHistory) -> Iterator[Finding]:
    for receive in queue_history.receives:
        made = queue_history.queues.get(receive.queue)
        if receive.partition is not None and made is not None:
            yield from _misrouted(queue_history, receive, receive.partition, made.partitions)


def _misrouted(queue_history: QueueHistory, receive: Receive, partition: int, count: int) -> Iterator[Finding]:
    for message in receive.messages:
        group = _group(queue_history, message)
        if group and crc32(group.encode()) % count != partition:
            evidence = f"{Delivery(receive, message)} of group {group}, asked for partition {partition} of {count}"
            yield Finding(MISROUTED, evidence, receive.complete_us or 0)


def _group(queue_history: QueueHistory, message: HandedOut) -> str:
    """Return the message's group from the answer, otherwise from its sends; empty if the sends differ."""
    known = queue_history.by_body.get(message.body)
    sent = {each.group for _, each in known.sends} if known is not None and not message.group else set()
    return message.group or (sent.pop() if len(sent) == 1 else "")
