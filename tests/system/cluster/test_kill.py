"""kill -9 of one, two and all members under load (F1, F2, F5, F6, F7)."""

import json
from contextlib import closing
from itertools import permutations
from typing import Any

import pytest

from tests.system.cluster.cluster import Cluster, Member, ask, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load
from tests.system.durability.chaos import CLOCK_BOUND_MS, now_us

GAP_MAX_MS = 2_500
BACK_MAX_MS = 5_000
ORDERS = list(permutations(["n1", "n2", "n3"]))


@pytest.mark.chaos
def test_killed_follower_is_not_noticed_and_comes_back(cluster: Cluster) -> None:  # F1
    with Load(cluster) as load:
        load.wait_for(100)
        follower = cluster.followers()[0]
        term = cluster.term()
        killed_us = now_us()
        cluster.kill9(follower)
        load.wait_for(100)
        print(f"follower killed: gap {load.gap_ms(killed_us):.0f} ms, p99 of sends {load.p99_ms(killed_us):.0f} ms")
        cluster.restart(follower)
        cluster.wait_ready()
        load.wait_for(50, by=follower)
        assert cluster.term() == term
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.parametrize("memory", [False, pytest.param(True, marks=pytest.mark.chaos)], ids=["disk", "memory"])
def test_killed_master_is_replaced_and_nothing_is_lost(make_cluster: MakeCluster, memory: bool) -> None:  # F2
    cluster = make_cluster(memory=memory).start()
    url = cluster["n1"].call("CreateQueue", QueueName="handle")["QueueUrl"]
    cluster["n1"].call("SendMessage", QueueUrl=url, MessageBody="held over the failover")
    [held] = cluster["n2"].call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]
    with Load(cluster) as load:
        load.wait_for(100)
        master = cluster.master()
        killed_us = now_us()
        cluster.kill9(master)
        load.wait_for(50, since_us=killed_us)
        gap_ms = load.gap_ms(killed_us)
        print(f"master killed: gap {gap_ms:.0f} ms")
        assert cluster.master(other_than=master)
        survivor = cluster.running()[0]
        assert not survivor.call("ReceiveMessage", QueueUrl=url).get("Messages")
        survivor.call("DeleteMessage", QueueUrl=url, ReceiptHandle=held["ReceiptHandle"])
        if not memory:
            cluster.restart(master)
            cluster.wait_ready()
            load.wait_for(50, by=master)
        load.assert_clean()
    assert gap_ms < GAP_MAX_MS
    counts = survivor.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_lease_outlives_the_master(cluster: Cluster) -> None:
    url = cluster["n1"].call("CreateQueue", QueueName="leased")["QueueUrl"]
    for number in range(4):
        cluster["n1"].call("SendMessage", QueueUrl=url, MessageBody=str(number))
    wanted = {"QueueUrl": url, "MaxNumberOfMessages": 2, "VisibilityTimeout": 600}
    ids = ("q/1/0/0", "q/1/1/0", "q/1/1/1")
    first = [cluster["n2"].call("ReceiveMessage", ReceiveRequestAttemptId=each, **wanted) for each in ids]
    master = cluster.master()
    cluster.kill9(master)
    assert cluster.master(other_than=master)
    survivor = cluster.running()[0]
    survivor.call("SendMessage", QueueUrl=url, MessageBody="late")
    assert [survivor.call("ReceiveMessage", ReceiveRequestAttemptId=each, **wanted) for each in ids] == first
    assert "Messages" not in first[2]
    survivor.call("DeleteMessage", QueueUrl=url, ReceiptHandle="lease:q/1/")
    listed = ask(survivor.admin_port, "GET", "/leases").body
    assert [(each["partition"], each["state"]) for each in listed["leases"]] == [(1, "committed"), (0, "committed")]
    counts = survivor.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (counts["ApproximateNumberOfMessages"], counts["ApproximateNumberOfMessagesNotVisible"]) == ("1", "0")


def rest(member: Member, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    reply = ask(member.port, method, path, json.dumps(body or {}).encode())
    assert reply.status == 200, reply
    return dict(reply.body)


def test_priorities_and_ids_of_rest_outlive_the_master(cluster: Cluster) -> None:
    member = cluster["n1"]
    attributes = {"ElasticqOrder": "priority", "ElasticqDefaultPriority": "5"}
    url = member.call("CreateQueue", QueueName="urgent", Attributes=attributes)["QueueUrl"]
    queue = "/api/v1/queues/urgent"
    ids = {body: rest(member, "POST", f"{queue}/messages", {"content": body})["id"] for body in "abcd"}
    changed = [rest(member, "GET", f"{queue}/messages/{ids['d']}")["message_id"]]
    assert member.call("ElasticqChangePriority", QueueUrl=url, MessageIds=changed, Priority=-1)["Changed"] == changed
    rest(member, "PUT", f"{queue}/messages/{ids['b']}/priority", {"priority": 9})
    [held] = member.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]
    assert held["Body"] == "d"
    master = cluster.master()
    cluster.kill9(master)
    assert cluster.master(other_than=master)
    survivor = cluster.running()[0]
    rest(survivor, "POST", f"{queue}/messages/{ids['d']}/nack")
    # After a takeover what is hidden stays so for a while.
    until(lambda: rest(survivor, "GET", queue)["ready"] == 4, "all are visible")
    wanted = {"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 600}
    assert [each["Body"] for each in survivor.call("ReceiveMessage", **wanted)["Messages"]] == ["d", "a", "c", "b"]
    for number in ids.values():
        rest(survivor, "POST", f"{queue}/messages/{number}/ack")
    assert rest(survivor, "GET", queue)["total"] == 0


@pytest.mark.chaos
def test_five_lose_two_and_go_on(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(5).start()
    with Load(cluster) as load:
        load.wait_for(100)
        master = cluster.master()
        other = cluster.followers()[0]
        killed_us = now_us()
        cluster.kill9(master)
        cluster.kill9(other)
        load.wait_for(200, since_us=killed_us)
        print(f"two of five killed: gap {load.gap_ms(killed_us):.0f} ms")
        cluster.restart(master)
        cluster.restart(other)
        load.assert_clean()
    cluster.same_rows()


def test_one_of_three_only_reads(make_cluster: MakeCluster) -> None:  # F5
    cluster = make_cluster(environment={"ELASTICQ_CLUSTER__HOLD_S": "1"}).start()
    url = cluster["n1"].call("CreateQueue", QueueName="reads")["QueueUrl"]
    with Load(cluster) as load:
        load.wait_for(50)
        *lost, last = (cluster.master(), *cluster.followers())
        for name in lost:
            cluster.kill9(name)
        member = cluster[last]
        until(lambda: member.ask("SendMessage", QueueUrl=url, MessageBody="no").status == 503, "sends are refused")
        listed = member.ask("ListQueues")
        assert listed.status == 200
        assert any(each.endswith("/reads") for each in listed.body["QueueUrls"])
        assert int(listed.headers["x-elasticq-stale"]) >= 0
        refused = member.ask("SendMessage", QueueUrl=url, MessageBody="no")
        assert (refused.status, refused.code) == (503, "ServiceUnavailable")
        assert "read-only: 1 of 3 members, 2 needed" in refused.message
        assert member.ask("ReceiveMessage", QueueUrl=url).status == 503
        assert not member.is_ready()
        cluster.restart(lost[0])
        back_us = now_us()
        load.wait_for(20, since_us=back_us)
        written_ms = (load.after(back_us)[0].at_us - back_us) / 1_000
        print(f"one is back: a write after {written_ms:.0f} ms")
        assert written_ms < BACK_MAX_MS
        cluster.restart(lost[1])
        load.assert_clean()
    assert "x-elasticq-stale" not in member.ask("ListQueues").headers


@pytest.mark.parametrize(
    "order", [ORDERS[3], *(pytest.param(order, marks=pytest.mark.chaos) for order in ORDERS if order != ORDERS[3])]
)
def test_all_killed_and_started_in_any_order_keep_everything(cluster: Cluster, order: tuple[str, ...]) -> None:  # F6
    url = cluster["n1"].call("CreateQueue", QueueName="flight")["QueueUrl"]
    cluster["n1"].call("SendMessage", QueueUrl=url, MessageBody="in flight")
    [held] = cluster["n1"].call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]
    with Load(cluster) as load:
        load.wait_for(100)
        # The first to start has the oldest log: the others go on without it for a while.
        cluster.kill9(order[0])
        load.wait_for(50)
        for name in order[1:]:
            cluster.kill9(name)
        for name in order[:-1]:
            cluster.restart(name)
        started_us = now_us()
        load.wait_for(50, since_us=started_us)
        cluster.restart(order[-1])
        load.assert_clean()
    member = cluster[order[0]]
    assert not member.call("ReceiveMessage", QueueUrl=url).get("Messages")
    member.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=held["ReceiptHandle"], VisibilityTimeout=0)
    wanted = {"QueueUrl": url, "MessageSystemAttributeNames": ["ApproximateReceiveCount"], "WaitTimeSeconds": 5}
    [again] = member.call("ReceiveMessage", **wanted)["Messages"]
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    cluster.same_rows()


def test_same_invocation_after_a_failover_is_the_same_message(cluster: Cluster) -> None:
    url = cluster["n1"].call("CreateQueue", QueueName="twice")["QueueUrl"]
    first = cluster["n1"].call("SendMessage", "call-1", QueueUrl=url, MessageBody="once")
    killed = cluster.master()
    cluster.kill9(killed)
    survivor = cluster[cluster.master(other_than=killed)]

    def sent() -> dict:
        reply = survivor.ask("SendMessage", "call-1", QueueUrl=url, MessageBody="once")
        return reply.body if reply.status == 200 else {}

    assert until(sent, "the new master serves") == first


@pytest.mark.chaos
def test_all_killed_in_async_mode_lose_only_the_last_moments(make_cluster: MakeCluster) -> None:  # F7
    cluster = make_cluster(mode="async").start()
    with Load(cluster, boto3_clients=0) as load:
        load.wait_for(300)
        for name in cluster.names():
            cluster.kill9(name)
        killed_us = now_us()
        for name in cluster.names():
            cluster.restart(name)
        load.wait_for(100, since_us=now_us())
        verdict = load.judge()
    print(verdict.line())
    others = [finding for finding in verdict.findings if finding.name != "lost"]
    assert others == [], verdict.evidence()
    window_us = 1_000_000 + CLOCK_BOUND_MS * 1_000
    assert all(finding.at_us > killed_us - window_us for finding in verdict.findings), verdict.evidence()


@pytest.mark.chaos
def test_restarted_member_catches_up_without_a_snapshot(cluster: Cluster) -> None:
    url = cluster["n1"].call("CreateQueue", QueueName="delta")["QueueUrl"]
    follower = cluster.followers()[0]
    cluster.kill9(follower)
    with closing(cluster[cluster.master()].boto3()) as sqs:
        for number in range(50):
            sqs.send_message(QueueUrl=url, MessageBody=str(number))
    cluster.restart(follower)
    cluster.wait_ready()
    assert "snapshot" not in cluster[follower].said()
    cluster.same_rows()
