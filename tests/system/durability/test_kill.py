"""What was acknowledged outlives kill -9; and a disk that lies is found out by the same means."""

import json
import time
from pathlib import Path

from tests.system.durability import chaos
from tests.system.durability.conftest import MakeServer
from tests.system.durability.server import Server

KILLS = 6
SEED = 4
VISIBILITY_S = (2, 6)  # short, as the drain has to wait for the last of them
HIDDEN_S = 3


def test_kills_under_load_lose_and_bring_back_nothing(make_server: MakeServer, tmp_path: Path) -> None:
    verdict = chaos.run(make_server(), chaos.Plan(seed=SEED, kills=KILLS, visibility_s=VISIBILITY_S))
    print(verdict.line())
    verdict.keep(tmp_path / "history.jsonl")
    assert verdict.findings == [], verdict.evidence()
    assert verdict.kills == KILLS
    assert verdict.kills_in_flight >= 0.3 * KILLS
    assert verdict.acknowledged_between_min >= chaos.ACKNOWLEDGED_MIN


def test_chaos_finds_what_a_lying_disk_loses(make_server: MakeServer) -> None:
    liar = make_server(fault=("lie", "8"))
    verdict = chaos.run(liar, chaos.Plan(seed=SEED, kills=2, visibility_s=VISIBILITY_S))
    assert verdict.count("lost") > 0, verdict.line()


def test_deadline_in_flight_and_receive_count_survive_a_kill(server: Server) -> None:
    url = server.create("flight")
    server.call("SendMessage", QueueUrl=url, MessageBody="once")
    taken_s = time.monotonic()
    server.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=HIDDEN_S)
    server.restart()
    wanted = {"QueueUrl": url, "MessageSystemAttributeNames": ["ApproximateReceiveCount"]}
    answer = server.call("ReceiveMessage", WaitTimeSeconds=20, **wanted)
    assert time.monotonic() - taken_s >= HIDDEN_S - chaos.CLOCK_BOUND_MS / 1_000
    [message] = answer["Messages"]
    assert message["Body"] == "once"
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_handle_from_before_a_kill_deletes_after_it(server: Server) -> None:
    url = server.create("handle")
    server.call("SendMessage", QueueUrl=url, MessageBody="once")
    [message] = server.call("ReceiveMessage", QueueUrl=url)["Messages"]
    server.restart()
    server.call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    server.restart()
    assert chaos.is_empty(server, url)


def test_changed_visibility_survives_a_kill(server: Server) -> None:
    url = server.create("changed")
    server.call("SendMessage", QueueUrl=url, MessageBody="once")
    [message] = server.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]
    server.call(
        "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=HIDDEN_S
    )
    server.restart()
    assert server.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)["Messages"]


def test_leases_survive_a_kill(server: Server) -> None:
    url = server.create("leased")
    for number in range(5):
        server.call("SendMessage", QueueUrl=url, MessageBody=str(number))

    def read(attempt_id: str) -> object:
        wanted = {"MaxNumberOfMessages": 2, "VisibilityTimeout": 600, "ReceiveRequestAttemptId": attempt_id}
        return server.call("ReceiveMessage", QueueUrl=url, **wanted).get("Messages")

    ids = ("q/1/0/0", "q/1/0/1", "q/1/1/0", "q/1/1/1")
    first = [read(attempt_id) for attempt_id in ids]
    server.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle="lease:q/1/0", VisibilityTimeout=900)
    server.call("SendMessage", QueueUrl=url, MessageBody="late")
    server.restart()
    assert [read(attempt_id) for attempt_id in ids] == first
    assert first[3] is None, "sealed"
    server.call("DeleteMessage", QueueUrl=url, ReceiptHandle="lease:q/1/")
    server.restart()
    server.call("DeleteMessage", QueueUrl=url, ReceiptHandle="lease:q/1/")
    assert count(server, url) == 1


def test_same_invocation_after_a_kill_is_the_same_message(server: Server) -> None:
    url = server.create("twice")
    send = {"QueueUrl": url, "MessageBody": "once"}
    first = server.call("SendMessage", "call-1", **send)
    batch = {"QueueUrl": url, "Entries": [{"Id": str(number), "MessageBody": str(number)} for number in range(10)]}
    first_batch = server.call("SendMessageBatch", "call-2", **batch)
    server.restart()
    assert server.call("SendMessage", "call-1", **send) == first
    assert server.call("SendMessageBatch", "call-2", **batch) == first_batch
    assert count(server, url) == 11


def test_queue_attributes_survive_a_kill(server: Server) -> None:
    url = server.create("attributes", VisibilityTimeout="77", DelaySeconds="3")
    server.call("SetQueueAttributes", QueueUrl=url, Attributes={"MaximumMessageSize": "2048"})
    server.restart()
    attributes = server.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    expected = {"VisibilityTimeout": "77", "DelaySeconds": "3", "MaximumMessageSize": "2048"}
    assert expected.items() <= attributes.items()


def test_purged_messages_stay_gone_after_a_kill(server: Server) -> None:
    url = server.create("purged")
    fill(server, url, 50)
    server.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    server.call("PurgeQueue", QueueUrl=url)
    server.restart()
    assert chaos.is_empty(server, url)
    assert not server.call("ReceiveMessage", QueueUrl=url).get("Messages")


def test_deleted_queue_stays_gone_after_a_kill(server: Server) -> None:
    url = server.create("deleted")
    fill(server, url, 10)
    server.call("DeleteQueue", QueueUrl=url)
    server.restart()
    answer = server.connect().call("GetQueueUrl", {"QueueName": "deleted"})
    assert answer.status == 400
    assert json.loads(answer.body)["__type"].endswith("QueueDoesNotExist")
    again = server.create("deleted")
    assert chaos.is_empty(server, again)


def test_messages_of_many_kills_and_stops_all_come(server: Server) -> None:
    url = server.create("many")
    for number in range(3):
        server.call("SendMessage", QueueUrl=url, MessageBody=f"killed {number}")
        server.restart()
        server.call("SendMessage", QueueUrl=url, MessageBody=f"stopped {number}")
        assert server.stop() == 0
        server.start()
    answer = server.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    assert {message["Body"] for message in answer["Messages"]} == {
        f"{how} {number}" for how in ("killed", "stopped") for number in range(3)
    }


def fill(server: Server, url: str, messages: int) -> None:
    for first in range(0, messages, 10):
        entries = [{"Id": f"e{number}", "MessageBody": str(number)} for number in range(first, first + 10)]
        server.call("SendMessageBatch", QueueUrl=url, Entries=entries)


def count(server: Server, url: str) -> int:
    answer = server.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])
