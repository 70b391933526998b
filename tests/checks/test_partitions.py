"""The rule of queues with partitions on hand-made histories."""

from zlib import crc32

from elasticq.checks.history import CreateQueue, Event, HandedOut, Receive, Send, SentMessage
from elasticq.checks.partitions import MISROUTED
from elasticq.checks.queue import check

COUNT = 4
QUEUE = CreateQueue(client="f", queue="q", invoke_us=0, complete_us=0, outcome="ok", is_fifo=True, partitions=COUNT)
OWN = crc32(b"red") % COUNT
OTHER = (OWN + 1) % COUNT


def sent(**groups: str) -> Send:
    messages = [SentMessage(body, [body], group, body, [str(at)]) for at, (body, group) in enumerate(groups.items(), 1)]
    return Send(client="p", queue="q", guid="g", invoke_us=1, complete_us=2, outcome="ok", messages=messages)


def received(body: str, partition: int | None, group: str = "") -> Receive:
    messages = [HandedOut(body, f"h{body}", body, group)]
    return Receive(
        client="c",
        queue="q",
        invoke_us=100,
        complete_us=105,
        outcome="ok",
        visibility_ms=0,
        messages=messages,
        partition=partition,
    )


def names(*events: Event) -> list[str]:
    return [finding.name for finding in check(events)]


def test_message_of_the_partition_and_any_of_the_whole_queue_are_right() -> None:
    assert names(QUEUE, sent(a="red"), received("a", OWN)) == []
    assert names(QUEUE, sent(a="red"), received("a", None)) == []


def test_message_of_another_partition_is_found_by_what_the_answer_or_the_send_told() -> None:
    assert names(QUEUE, sent(a="red"), received("a", OTHER, "red")) == [MISROUTED]
    assert names(QUEUE, sent(a="red"), received("a", OTHER)) == [MISROUTED]


def test_group_that_nobody_knows_is_no_finding() -> None:
    assert MISROUTED not in names(QUEUE, received("never sent", OTHER))
