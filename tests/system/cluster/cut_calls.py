"""A program with plain boto3 whose every call is cut once: it shall see each call's one effect, and no exception.

A round is a life of a standard and of a FIFO queue, with every action that changes messages: some 24 calls, each
of which the cutter cuts. The program asserts what it sees; nobody else uses its queues.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from tests.system.cluster.cluster import boto3_at, until
from tests.system.cluster.cutter import Cutter

VISIBILITY_S = 600  # what stays hidden by mistake does not come again while somebody looks
BATCH = 3
NOBODYS = {
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
}


def make_round(sqs: Any, name: str) -> None:
    """One round with queues of this name."""
    for suffix in ("", ".fifo"):
        _live(sqs, f"{name}{suffix}")


def _live(sqs: Any, name: str) -> None:
    is_fifo = name.endswith(".fifo")
    attributes = {"VisibilityTimeout": str(VISIBILITY_S)}
    more: dict[str, str] = {}
    if is_fifo:
        # No content-based deduplication: what is sent twice has to be seen.
        attributes["FifoQueue"] = "true"
        more["MessageGroupId"] = "one"
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    if is_fifo:  # a group that is out is waited for by nobody
        sent = _send(sqs, url, name, more)
        got = _receive(sqs, url, len(sent))
    else:
        with ThreadPoolExecutor(1) as pool:  # receives that wait already when their messages come
            waiting = pool.submit(_receive, sqs, url, 1 + BATCH)
            sent = _send(sqs, url, name, more)
            got = waiting.result()
    assert {body: each["MessageId"] for body, each in got.items()} == {body: ids[0] for body, ids in sent.items()}
    if is_fifo:
        assert list(got) == list(sent), "in order"
        numbers = {body: each["Attributes"]["SequenceNumber"] for body, each in got.items()}
        assert numbers == {body: ids[1] for body, ids in sent.items()}
    handles = [each["ReceiptHandle"] for each in got.values()]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handles[0], VisibilityTimeout=VISIBILITY_S)
    kept = [{"Id": str(at), "ReceiptHandle": handle, "VisibilityTimeout": 0} for at, handle in enumerate(handles)]
    assert len(sqs.change_message_visibility_batch(QueueUrl=url, Entries=kept)["Successful"]) == len(handles)
    again = _receive(sqs, url, len(sent))
    assert {body: each["MessageId"] for body, each in again.items()} == {body: ids[0] for body, ids in sent.items()}
    handles = [each["ReceiptHandle"] for each in again.values()]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles[0])
    gone = [{"Id": str(at), "ReceiptHandle": handle} for at, handle in enumerate(handles[1:])]
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=gone)["Successful"]) == len(gone)
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(NOBODYS))["Attributes"]
    assert left == NOBODYS, left
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)


def _send(sqs: Any, url: str, name: str, more: dict[str, str]) -> dict[str, tuple[str, str]]:
    """By body: MessageId and SequenceNumber as they were answered."""
    sent: dict[str, tuple[str, str]] = {}

    def once(body: str) -> dict[str, str]:
        return more | {"MessageDeduplicationId": body} if more else {}

    body = f"{name}-alone"
    answer = sqs.send_message(QueueUrl=url, MessageBody=body, **once(body))
    sent[body] = answer["MessageId"], answer.get("SequenceNumber", "")
    bodies = [f"{name}-{at}" for at in range(BATCH)]
    entries = [{"Id": str(at), "MessageBody": body, **once(body)} for at, body in enumerate(bodies)]
    for each in sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]:
        sent[bodies[int(each["Id"])]] = each["MessageId"], each.get("SequenceNumber", "")
    assert len(sent) == 1 + BATCH
    return sent


def _receive(sqs: Any, url: str, count: int) -> dict[str, Any]:
    """Each message by its body, once. One that somebody else's attempt hid would never come."""
    got: dict[str, Any] = {}

    def is_whole() -> bool:
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageSystemAttributeNames=["All"]
        )
        for message in answer.get("Messages", ()):
            assert message["Body"] not in got, f"{message['Body']} came twice"
            got[message["Body"]] = message
        return len(got) >= count

    until(is_whole, f"{count} messages come; {sorted(got)}")
    return got


def rounds(sqs: Any, cutter: Cutter, name: str, cuts: int) -> None:
    """Rounds until the cutter cut so often."""
    number = 0
    while sum(cutter.cuts.values()) < cuts:
        number += 1
        make_round(sqs, f"{name}-{number}")


def cut_calls(port: int, name: str, cuts: int) -> Cutter:
    """The program through a cutter before this port."""
    with Cutter(port) as cutter, closing(boto3_at(cutter.port)) as sqs:
        rounds(sqs, cutter, name, cuts)
    return cutter
