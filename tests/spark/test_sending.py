"""What becomes of a batch that fails in part, at all, for a while or for ever; without Spark or a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from elasticq.client import SqsError, Unreachable
from elasticq.spark.entries import BATCH_BYTES_MAX, BadRow, Batch, Identity, Ids, Outgoing, outgoing
from elasticq.spark.rejects import Rejects
from elasticq.spark.sending import Failed, Failure, Pace, Sender

IDENTITY = Identity("query", "7", 3)


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


def test_batches_end_at_ten_messages_and_one_mebibyte_with_attributes_counted() -> None:
    batch = Batch()
    for number in range(10):
        assert batch.add(messages(str(number))[0]) == []
    assert len(batch.add(messages("x")[0])) == 10
    assert [message.entry["MessageBody"] for message in batch.take()] == ["x"]
    # Name, type and value count, in bytes: 1 + 6 + 2 of an ä.
    big = outgoing({"body": "b" * (BATCH_BYTES_MAX - 10), "attributes": [("n", "ä")]}, "body", None)
    assert big.size_bytes == BATCH_BYTES_MAX - 1
    assert batch.add(big) == []
    assert batch.add(messages("1")[0]) == []
    assert len(batch.add(messages("2")[0])) == 2


def test_attributes_become_boto3s() -> None:
    row = {
        "value": "body",
        "attributes": [
            ("text", {"type": "String", "string": "a", "binary": None}),
            ("count", {"type": "Number.int", "string": "1", "binary": None}),
            ("picture", {"type": "Binary.png", "string": None, "binary": b"\x00"}),
        ],
        "delaySeconds": 3,
    }
    assert outgoing(row, "value", "group").entry == {
        "MessageBody": "body",
        "MessageGroupId": "group",
        "DelaySeconds": 3,
        "MessageAttributes": {
            "text": {"DataType": "String", "StringValue": "a"},
            "count": {"DataType": "Number.int", "StringValue": "1"},
            "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00"},
        },
    }


@pytest.mark.parametrize("body", [None, "", b"\xff"])
def test_a_row_without_text_is_a_bad_row(body: object) -> None:
    with pytest.raises(BadRow):
        outgoing({"body": body}, "body", None)


def ids(bodies: list[str], identity: Identity = IDENTITY) -> dict[str, list[str]]:
    made, found = Ids(identity), {}
    for body in bodies:
        found.setdefault(body, []).append(made.of({"MessageBody": body}))
    return found


def test_ids_are_the_same_again_in_any_order_and_tell_equal_messages_apart() -> None:
    first = ids(["a", "b", "a", "c"])
    assert ids(["c", "a", "a", "b"]) == first
    assert len({one for some in first.values() for one in some}) == 4


@pytest.mark.parametrize("other", [Identity("else", "7", 3), Identity("query", "8", 3), Identity("query", "7", 4)])
def test_ids_of_another_query_batch_or_partition_are_others(other: Identity) -> None:
    assert ids(["a"], other) != ids(["a"])


def test_rejects_appear_whole_at_the_end_or_not_at_all(tmp_path: Path) -> None:
    Rejects(str(tmp_path), "none").close()
    rejects = Rejects(str(tmp_path / "new"), "task")
    rejects.add({"body": "ä", "binary": b"\xff"}, "Code", "why")
    assert list((tmp_path / "new").glob("*.jsonl")) == []
    rejects.close()
    (line,) = (tmp_path / "new" / "task.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "error": "Code", "message": "why", "row": {"body": "ä", "binary": {"base64": "/w=="}},
    }  # fmt: skip
