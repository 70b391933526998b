"""Messages for later on a real cluster whose master is killed, and then all members: each comes once, at its time."""

import time
from collections.abc import Iterator
from typing import Any

from tests.system.cluster.cluster import Cluster, Member, until

HOUR_MS = 3_600_000
SOON_MS = 3_000
FIRST_RECEIVED = "ApproximateFirstReceiveTimestamp"


def now_ms() -> int:
    return int(time.time() * 1_000)


def scheduled(member: Member, url: str, bodies: list[str], due_ms: int) -> dict[str, str]:
    """Send; the MessageIds by body."""
    deliver_at = {"ElasticqDeliverAt": {"DataType": "Number", "StringValue": str(due_ms)}}
    entries = [{"Id": body, "MessageBody": body, "MessageAttributes": deliver_at} for body in bodies]
    told = member.call("SendMessageBatch", QueueUrl=url, Entries=entries)["Successful"]
    return {each["Id"]: each["MessageId"] for each in told}


def received(member: Member, url: str) -> Iterator[dict[str, Any]]:
    """One receive, whose messages stay hidden."""
    answer = member.call(
        "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=3_600, WaitTimeSeconds=1,
        MessageSystemAttributeNames=[FIRST_RECEIVED],
    )  # fmt: skip
    yield from answer.get("Messages", [])


def delayed(member: Member, url: str) -> dict[str, str]:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    return dict(member.call("GetQueueAttributes", QueueUrl=url, AttributeNames=names)["Attributes"])


def test_messages_for_later_come_once_and_at_their_time_over_killed_members(cluster: Cluster) -> None:
    url = cluster["n1"].call("CreateQueue", QueueName="later")["QueueUrl"]
    late_ms = now_ms() + HOUR_MS
    ids: dict[str, str] = {}
    for kind in ("kept", "soon", "gone", "back"):
        ids |= scheduled(cluster["n2"], url, [f"{kind}{number}" for number in range(10)], late_ms)

    def named(kind: str) -> list[str]:
        return [message_id for body, message_id in ids.items() if body.startswith(kind)]

    def reschedule(member: Member, message_ids: list[str], due_ms: int) -> None:
        told = member.call("ElasticqReschedule", QueueUrl=url, MessageIds=message_ids, DeliverAt=due_ms)
        assert sorted(told["Changed"]) == sorted(message_ids)

    soon_ms = now_ms() + SOON_MS
    reschedule(cluster["n3"], named("soon")[:5], soon_ms)
    reschedule(cluster["n3"], named("back"), soon_ms + HOUR_MS // 2)
    cluster["n1"].call("ElasticqCancelScheduled", QueueUrl=url, MessageIds=named("gone")[:5])
    master = cluster.master()
    cluster.kill9(master)
    assert cluster.master(other_than=master)
    survivor = cluster.running()[0]
    reschedule(survivor, named("soon")[5:], soon_ms)
    reschedule(survivor, named("back"), late_ms + HOUR_MS)
    told = survivor.call("ElasticqCancelScheduled", QueueUrl=url, MessageIds=named("gone"))
    assert sorted(told["NotFound"]) == sorted(named("gone")[:5]), "what is cancelled is gone"
    got: list[str] = []

    def take() -> bool:
        for message in received(survivor, url):
            assert int(message["Attributes"][FIRST_RECEIVED]) >= soon_ms, "not before its time"
            got.append(message["Body"])
        return len(got) >= 10

    until(take, "all that are due soon have come")
    assert sorted(got) == [f"soon{number}" for number in range(10)]
    waiting = {"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "20"}
    assert delayed(survivor, url) == waiting
    for member in cluster.members.values():  # from their disks
        member.kill9()
    for member in cluster.members.values():
        member.start()
    cluster.wait_ready()
    assert delayed(cluster["n1"], url) == waiting
    cluster.same_rows()
    reschedule(cluster["n2"], named("kept") + named("back"), 0)
    got.clear()
    soon_ms = 0
    survivor = cluster["n3"]
    until(lambda: take() and len(got) >= 20, "the others are due now")
    assert sorted(got) == sorted(body for body in ids if body.startswith(("kept", "back")))
    assert list(received(survivor, url)) == []
    assert delayed(survivor, url) == {"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0"}
