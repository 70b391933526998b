"""SIGSTOP of a member, as a machine that swaps or a virtual machine that moves (F8, F9)."""

import time

import pytest

from tests.system.cluster.cluster import Cluster, let_pass, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load
from tests.system.durability.chaos import now_us

PAUSED_S = 10
GAP_MAX_MS = 2_500


@pytest.mark.chaos
def test_paused_master_is_replaced_and_answers_nothing_old(cluster: Cluster) -> None:  # F8
    with Load(cluster) as load:
        load.wait_for(200)
        master = cluster.master()
        paused_us = now_us()
        cluster.pause(master)
        load.wait_for(50, since_us=paused_us)
        gap_ms = load.gap_ms(paused_us)
        print(f"master paused: gap {gap_ms:.0f} ms")
        assert cluster.master(other_than=master)
        let_pass(PAUSED_S)
        cluster.resume(master)
        cluster.wait_ready()
        load.wait_for(50, by=master)
        load.assert_clean()
    assert gap_ms < GAP_MAX_MS
    cluster.same_rows()


@pytest.mark.chaos
@pytest.mark.parametrize("mode", ["async", "one", "majority"])
def test_paused_follower_does_not_slow_others(make_cluster: MakeCluster, mode: str) -> None:  # F9
    cluster = make_cluster(mode=mode).start()
    url = cluster["n1"].call("CreateQueue", QueueName="mode")["QueueUrl"]
    master, follower = cluster.master(), cluster.followers()[0]
    term = cluster.term()
    with Load(cluster) as load:
        load.wait_for(100)
        cluster.pause(follower)
        began_s = time.monotonic()
        cluster[master].call("SendMessage", QueueUrl=url, MessageBody="during")
        assert time.monotonic() - began_s < 1
        let_pass(PAUSED_S)
        load.wait_for(100)
        cluster.resume(follower)
        cluster.wait_ready()
        assert cluster.master() == master
        assert cluster.term() == term
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_mode_all_refuses_while_a_voter_is_paused(make_cluster: MakeCluster) -> None:  # F9
    cluster = make_cluster(mode="all").start()
    member = cluster[cluster.master()]
    url = member.call("CreateQueue", QueueName="all")["QueueUrl"]
    member.call("SendMessage", QueueUrl=url, MessageBody="before")
    follower = cluster.followers()[0]
    cluster.pause(follower)
    began_s = time.monotonic()
    refused = member.ask("SendMessage", "call-1", QueueUrl=url, MessageBody="during")
    took_s = time.monotonic() - began_s
    assert refused.status == 503, refused
    assert 4 < took_s < 8
    cluster.resume(follower)
    cluster.wait_ready()

    def sent() -> bool:
        return member.ask("SendMessage", "call-1", QueueUrl=url, MessageBody="during").status == 200

    until(sent, "the repetition succeeds")
    counts = member.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "2"
    cluster.same_rows()
