"""What plain boto3 sees through a member that stays up while masters die and members restart: nothing."""

import json
import time
from contextlib import ExitStack, closing

import pytest

from tests.system.cluster.cluster import Cluster, let_pass, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.plain import Plain, kill_masters, move_master_off
from tests.system.cluster.rolling import SUPERVISED, restart_gracefully
from tests.system.durability.connection import request

KILLS = 1
GROUPS = 99
POLLS = 300
LOST_S = 10
WOKEN_S = 20  # all of them, on a busy machine


@pytest.mark.parametrize("groups", [0, GROUPS], ids=["standard", "fifo"])
def test_killed_masters_are_not_noticed(cluster: Cluster, groups: int) -> None:
    with Plain(cluster["n1"], "unnoticed", groups=groups) as plain:
        gaps_s = kill_masters(cluster, plain, KILLS, lambda: move_master_off(cluster, plain.member.name))
        verdict = plain.judge()
    print(f"{KILLS} kills, {verdict.calls} calls, gaps {[round(gap_s, 3) for gap_s in gaps_s]} s")
    assert not plain.exceptions
    verdict.assert_unnoticed()


@pytest.mark.chaos
def test_members_that_restart_one_after_another_are_not_noticed(cluster: Cluster) -> None:
    with Plain(cluster["n1"], "rolling") as plain:
        for name in ("n2", "n3"):
            plain.wait_for(50)
            assert cluster[name].stop() == 0
            plain.wait_for(50)
            cluster.restart(name)
            cluster.wait_ready()
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


def test_restart_of_all_three_is_not_noticed_through_the_address_of_one(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(extra=SUPERVISED).start()
    with Plain(cluster["n1"], "supervised") as plain:
        for name in cluster.names():
            plain.wait_for(50)
            restart_gracefully(cluster, name)
        plain.wait_for(50)
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


def test_receives_that_wait_on_many_queues_wait_on_when_the_master_dies(cluster: Cluster) -> None:  # F32
    master = move_master_off(cluster, "n1")
    front, other = (member for member in cluster.members.values() if member.name != master)
    urls = [front.call("CreateQueue", QueueName=f"polled-{number}")["QueueUrl"] for number in range(POLLS)]
    with ExitStack() as stack:
        polls = []
        for number, url in enumerate(urls):
            poll = stack.enter_context(closing((front, other)[number % 2].connect()))
            poll.send(request("ReceiveMessage", json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20}).encode()))
            polls.append(poll)
        until(lambda: cluster[master].metric("waiters") == POLLS, "all receives wait at the master")
        cluster.kill9(master)
        began_s = time.monotonic()
        for url in urls:
            front.call("SendMessage", QueueUrl=url, MessageBody=url)
        for url, poll in zip(urls, polls, strict=True):
            answer = poll.read()
            assert answer.status == 200
            assert [message["Body"] for message in json.loads(answer.body)["Messages"]] == [url]
        assert time.monotonic() - began_s < WOKEN_S


@pytest.mark.chaos
@pytest.mark.parametrize("groups", [0, GROUPS], ids=["standard", "fifo"])
@pytest.mark.parametrize("fault", ["pause", "isolate"])
def test_master_that_is_lost_for_a_while_is_not_noticed(cluster: Cluster, fault: str, groups: int) -> None:  # F8, F10
    with Plain(cluster["n1"], "lost", groups=groups) as plain:
        master = move_master_off(cluster, "n1")
        plain.wait_for(100)
        if fault == "pause":
            cluster.pause(master)
        else:
            cluster.isolate(master)
        let_pass(LOST_S)
        plain.wait_for(100)
        if fault == "pause":
            cluster.resume(master)
        else:
            cluster.heal()
        cluster.wait_ready()
        plain.wait_for(100)
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


@pytest.mark.chaos
def test_minority_that_is_alone_for_a_while_is_not_noticed(cluster: Cluster) -> None:
    """Both other members are gone for ten seconds: calls wait, and have their effect when one is back."""
    with Plain(cluster["n1"], "minority") as plain:
        plain.wait_for(100)
        for name in ("n2", "n3"):
            cluster.kill9(name)
        began_s = time.monotonic()
        until(lambda: time.monotonic() - began_s >= 10, "ten seconds pass")
        cluster.restart("n2")
        plain.wait_for(100)
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()
