"""Members whose clocks run fast, slow, hours off and jump: nothing is handed out early, by the millisecond."""

import time
from email.utils import parsedate_to_datetime

import pytest

from tests.system.cluster.clocked import Skew
from tests.system.cluster.cluster import Cluster, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load
from tests.system.durability.chaos import now_us

HOUR_MS = 3_600_000
FAST_PPM, SLOW_PPM = 500, -500  # quartz is off by a tenth of that
SKEWS = (
    Skew(drift_ppm=FAST_PPM),
    Skew(drift_ppm=SLOW_PPM, boot_ahead_ms=11 * HOUR_MS, wall_ahead_ms=5 * HOUR_MS),
    Skew(boot_ahead_ms=HOUR_MS // 2, wall_ahead_ms=-3 * HOUR_MS),
)
JUMP_MS = 50
JUMPS = 8
CHANGES = 8
HEARTBEAT_DELAY_MS = 150
HIDDEN_S = 12  # longer than a takeover and its grace


def wall_ahead_ms(cluster: Cluster, name: str) -> float:
    """As the member dates its answers: in whole seconds."""
    return (
        parsedate_to_datetime(cluster[name].ask("ListQueues").headers["date"]).timestamp() * 1_000 - time.time() * 1_000
    )


def replace_master(cluster: Cluster, load: Load, *, by_pause: bool) -> None:
    """It comes back when another has been master for a while."""
    master, since_us = cluster.master(), now_us()
    (cluster.pause if by_pause else cluster.kill9)(master)
    load.wait_for(100, since_us=since_us)
    assert cluster.master(other_than=master)
    (cluster.resume if by_pause else cluster.restart)(master)
    cluster.wait_ready()
    load.wait_for(50)


def test_clocks_that_disagree_make_nothing_early(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(skews=SKEWS).start()
    for name, skew in zip(cluster.names(), SKEWS, strict=True):
        assert abs(wall_ahead_ms(cluster, name) - skew.wall_ahead_ms) < 10_000
    founded = len(cluster.jumps)
    with Load(cluster) as load:
        load.wait_for(100)
        cluster.turn("n1", wall_ahead_ms=7 * HOUR_MS)
        until(lambda: wall_ahead_ms(cluster, "n1") > 6 * HOUR_MS, "the wall clock has jumped")
        replace_master(cluster, load, by_pause=False)
        replace_master(cluster, load, by_pause=True)
        load.assert_clean()
    assert len(cluster.jumps) == founded, "the checker forgave nothing but the drift"
    cluster.same_rows()


@pytest.mark.chaos
def test_clocks_that_disagree_make_nothing_early_over_many_masters(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(5, skews=[*SKEWS, Skew(FAST_PPM, 7 * HOUR_MS, 24 * HOUR_MS), Skew(SLOW_PPM)]).start()
    founded = len(cluster.jumps)
    with Load(cluster, clients=10) as load:
        load.wait_for(100)
        for number in range(CHANGES):
            name = cluster.names()[number % len(cluster.names())]
            cluster.turn(name, wall_ahead_ms=(-1) ** number * number * HOUR_MS)
            replace_master(cluster, load, by_pause=number % 3 == 1)
        load.assert_clean()
    assert len(cluster.jumps) == founded
    cluster.same_rows()


@pytest.mark.chaos
def test_time_of_a_master_that_was_cut_off_does_not_come_back(make_cluster: MakeCluster) -> None:
    """Its heartbeats took long, so its successor's time is as far behind; what that handed out stays hidden as long."""
    cluster = make_cluster().start()
    first = cluster.master()
    url = cluster[first].call("CreateQueue", QueueName="hidden")["QueueUrl"]
    cluster.slow(first, delay_ms=HEARTBEAT_DELAY_MS)
    slow_us = now_us()
    until(lambda: now_us() - slow_us > 1_000 * (HEARTBEAT_DELAY_MS + 500), "all heartbeats are slow")
    cluster.isolate(first)
    others = [name for name in cluster.names() if name != first]
    second = cluster.master(among=others, other_than=first)
    third = next(name for name in others if name != second)
    until(lambda: cluster[second].ask("SendMessage", QueueUrl=url, MessageBody="x").status == 200, "it serves")
    taken_us = now_us()
    assert cluster[second].call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=HIDDEN_S)["Messages"]
    until(lambda: not cluster[first].is_ready(), "the first one knows that it is cut off")
    cluster.kill9(second)
    cluster.heal()

    def comes_again() -> bool:
        reply = cluster[third].ask("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=5)
        return reply.status == 200 and "Messages" in reply.body

    until(comes_again, "the message is there again")
    assert now_us() - taken_us > HIDDEN_S * 1_000_000


def test_boot_time_clock_of_a_master_that_jumps_is_found(make_cluster: MakeCluster) -> None:
    """Each message that is hidden for a second or two meets some of the jumps, of whoever is the master then."""
    cluster = make_cluster(skews=SKEWS).start()
    ahead_ms = {name: skew.boot_ahead_ms for name, skew in zip(cluster.names(), SKEWS, strict=True)}
    with Load(cluster) as load:
        load.wait_for(100)
        for _ in range(JUMPS):
            master = cluster.master()
            ahead_ms[master] += JUMP_MS
            cluster.turn(master, boot_ahead_ms=ahead_ms[master])
            load.wait_for(25)
        verdict = load.judge()
    print(verdict.line())
    assert verdict.count("early") > 0, verdict.line()
    others = {finding.name for finding in verdict.findings} - {"early"}
    assert others <= {"resurrected"}, verdict.evidence()  # deleted by a handle that only the jump made old
