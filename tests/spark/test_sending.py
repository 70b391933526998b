"""What becomes of a batch that fails in part, at all, for a while or for ever; without Spark or a server."""

from typing import Any

import pytest

from elasticq.client import SqsError, Unreachable
from elasticq.spark.entries import Outgoing, outgoing
from elasticq.spark.sending import Failed, Failure, Pace, Sender


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float, /) -> None:
        self.now_s += seconds


class Queue:
    """Fails entries as ``faults`` says: body -> the code and fault of each of its next tries."""

    def __init__(self, **faults: list[tuple[str, bool]]) -> None:
        self.faults = faults
        self.stored: list[str] = []
        self.calls: list[list[str]] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]], **page: int) -> dict[str, Any]:
        self.calls.append([entry["MessageBody"] for entry in Entries])
        answer: dict[str, Any] = {"Successful": []}
        for entry in Entries:
            if faults := self.faults.get(entry["MessageBody"]):
                code, is_sender = faults.pop(0)
                failed = {"Id": entry["Id"], "Code": code, "SenderFault": is_sender, "Message": "no"}
                answer.setdefault("Failed", []).append(failed)
            else:
                self.stored.append(entry["MessageBody"])
                answer["Successful"].append({"Id": entry["Id"]})
        return answer


def messages(*bodies: str) -> list[Outgoing]:
    return [outgoing({"body": body}, "body", None) for body in bodies]


def sender(queue: Any, rejected: list[tuple[str, str]] | None = None, retry_s: float = 120) -> Sender:
    def reject(message: Outgoing, failure: Failure) -> None:
        assert rejected is not None
        rejected.append((message.row["body"], failure.code))

    clock = FakeClock()
    return Sender(queue, "url", retry_s, Pace(0), reject=None if rejected is None else reject, clock=clock)


def test_only_failed_entries_are_sent_again() -> None:
    queue = Queue(b=[("InternalError", False)] * 2, d=[("RequestThrottled", True)])
    made = sender(queue)
    made.send(messages(*"abcd"))
    assert queue.calls == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
    assert queue.stored == ["a", "c", "d", "b"]
    assert (made.counts.sent, made.counts.resent, made.counts.calls) == (4, 3, 3)


def test_an_entry_that_fails_for_all_of_retry_seconds_fails_the_task() -> None:
    made = sender(Queue(a=[("InternalError", False)] * 1_000), retry_s=30)
    with pytest.raises(Failed, match=r"1 messages .* for 30 s: InternalError"):
        made.send(messages("a"))
    assert made.clock.monotonic() >= 130


def test_a_fault_of_the_sender_fails_the_task_or_goes_to_the_rejects() -> None:
    with pytest.raises(Failed, match="InvalidMessageContents"):
        sender(Queue(b=[("InvalidMessageContents", True)])).send(messages("a", "b"))
    rejected: list[tuple[str, str]] = []
    queue = Queue(b=[("InvalidMessageContents", True)])
    made = sender(queue, rejected)
    made.send(messages(*"abc"))
    assert queue.stored == ["a", "c"]
    assert rejected == [("b", "InvalidMessageContents")]
    assert made.counts.rejected == 1


class Spoilt(Queue):
    """Refuses the whole call when one of its entries is bad, as AWS does for a missing MessageGroupId."""

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]], **page: int) -> dict[str, Any]:
        if any(entry["MessageBody"] == "bad" for entry in Entries):
            raise SqsError("SendMessageBatch", "MissingParameter", "MissingParameter", "no", 400, True)
        return super().send_message_batch(QueueUrl, Entries)


def test_one_bad_entry_does_not_take_its_batch_along() -> None:
    rejected: list[tuple[str, str]] = []
    queue = Spoilt()
    sender(queue, rejected).send(messages("a", "bad", "c"))
    assert queue.stored == ["a", "c"]
    assert rejected == [("bad", "MissingParameter")]


@pytest.mark.parametrize(
    "error",
    [
        SqsError("SendMessageBatch", "AccessDenied", "AccessDeniedException", "no", 403, True),
        SqsError("SendMessageBatch", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "no", 400, True),
        SqsError("SendMessageBatch", "ServiceUnavailable", "ServiceUnavailable", "no", 503, False),
        Unreachable("refused"),
    ],
)
def test_what_no_entry_is_to_blame_for_fails_the_task_at_once_and_rejects_nothing(error: Exception) -> None:
    class Broken:
        def send_message_batch(self, **members: Any) -> dict[str, Any]:
            raise error

    rejected: list[tuple[str, str]] = []
    with pytest.raises(Failed):
        sender(Broken(), rejected).send(messages("a", "b"))
    assert rejected == []


def test_a_rate_is_kept() -> None:
    clock = FakeClock()
    made = Sender(Queue(), "url", 120, Pace(5, clock), clock=clock)
    for _ in range(4):
        made.send(messages(*"abcdefghij"))
    assert clock.monotonic() == pytest.approx(106)  # after the first batch 2 s for each
