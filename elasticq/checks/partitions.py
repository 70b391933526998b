"""Rule of FIFO queues with partitions, beside those of every FIFO queue.

misrouted   a receive that asked for one partition got a message whose group belongs to another one

Which partition a group belongs to is said here once more, and not asked of the server: another answer tomorrow, or of
another member, is what the rule is there to find.
"""

from zlib import crc32

from elasticq.checks.history import HandedOut, Receive
from elasticq.checks.queue_history import Delivery, Finding, QueueHistory

MISROUTED = "misrouted"


def check(queue_history: QueueHistory) -> list[Finding]:
    findings: list[Finding] = []
    for receive in queue_history.receives:
        made = queue_history.queues.get(receive.queue)
        if receive.partition is not None and made is not None:
            findings += _misrouted(queue_history, receive, receive.partition, made.partitions)
    return findings


def _misrouted(queue_history: QueueHistory, receive: Receive, partition: int, count: int) -> list[Finding]:
    findings = []
    for message in receive.messages:
        group = _group(queue_history, message)
        if group and crc32(group.encode()) % count != partition:
            evidence = f"{Delivery(receive, message)} of group {group}, asked for partition {partition} of {count}"
            findings.append(Finding(MISROUTED, evidence, receive.complete_us or 0))
    return findings


def _group(queue_history: QueueHistory, message: HandedOut) -> str:
    """The message's group as the answer told it, else as it was sent; empty where sends of it differ in that."""
    known = queue_history.by_body.get(message.body)
    sent = {each.group for _, each in known.sends} if known is not None and not message.group else set()
    return message.group or (sent.pop() if len(sent) == 1 else "")
