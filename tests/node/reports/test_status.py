"""What a member tells of itself: why it is not ready, how far it is, which leases it knows."""

from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model.topic_commands import CreateTopic, DeleteTopic, Subscribe
from elasticq.model.topic_results import TopicArnResult
from elasticq.node.leadership import TAKING_OVER
from elasticq.replication.replica import MASTER
from tests.node.cluster import Cluster, Solo


def test_a_cluster_of_one_tells_what_it_holds() -> None:
    solo = Solo()
    solo.create()
    solo.send()
    solo.create("empty")
    solo.do(c.PurgeQueue(queue_url="empty"))
    solo.start_call(c.ReceiveMessage(queue_url="empty", wait_time_seconds=20))
    status = solo.node.status(solo.now_ms)
    assert (status.role, status.master, status.ready, status.reason) == ("master", "a", True, "")
    assert (status.queues, status.waiters, status.leases) == (2, 1, 0)
    assert status.commit_index == status.applied_index == status.last_index == solo.node.replica.log.last_index
    assert status.time_ms == solo.time_ms
    assert status.contents_bytes == solo.node.state.contents_bytes > 0


def test_a_master_that_takes_over_is_not_ready_and_says_so() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.held = set(cluster.names)
    other = next(name for name in cluster.names if name != master)
    cluster.node(other).replica.role = MASTER
    status = cluster.node(other).status(cluster.now_ms)
    assert (status.ready, status.reason) == (False, TAKING_OVER)


def test_a_follower_is_ready_while_it_follows_and_tells_since_when_it_does_not() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.advance(300)
    follower = next(name for name in cluster.names if name != master)
    status = cluster.node(follower).status(cluster.now_ms)
    assert (status.role, status.master, status.ready) == ("follower", master, True)
    for other in cluster.names:
        if other != follower:
            cluster.part(follower, other)
    heard_ms = cluster.node(follower).replica.election.heard_ms
    assert heard_ms is not None
    cluster.advance(5_000)
    status = cluster.node(follower).status(cluster.now_ms)
    assert (status.ready, status.reason) == (False, "read-only: 1 of 3 members, 2 needed")
    assert status.stale_ms == cluster.now_ms - heard_ms


def test_a_member_whose_rows_are_being_replaced_is_not_ready() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    follower = next(name for name in cluster.names if name != master)
    cluster.transfers = False
    cluster.node(follower).damaged(1, [], cluster.now_ms)
    cluster.members[follower].drain()
    status = cluster.node(follower).status(cluster.now_ms)
    assert (status.ready, status.reason) == (False, "its rows on the disk are damaged: they are being replaced")


def test_a_lease_whose_time_is_up_is_told_as_expired() -> None:
    solo = Solo()
    solo.create()
    for number in range(3):
        solo.send(str(number))
    for batch in range(3):
        solo.do(c.ReceiveMessage("jobs", None, None, None, 1, 100 * (batch + 1), 0, f"reader/{batch}/0/0"))
        solo.advance(10)
    solo.now_ms += 150_000
    told = solo.node.leases(solo.now_ms, 10)
    assert sorted((lease.batch, lease.state) for lease in told) == [(0, m.LEASE_EXPIRED), (1, "open"), (2, "open")]
    assert {(lease.queue, lease.name, lease.messages) for lease in told} == {("jobs", "reader", 1)}
    assert len(solo.node.leases(solo.now_ms, 2)) == 2


def test_a_former_master_is_stale_since_it_was_cut_off() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.advance(60_000)
    assert cluster.node(master).status(cluster.now_ms).stale_ms == 0
    for other in cluster.names:
        if other != master:
            cluster.part(master, other)
    cut_ms = cluster.now_ms
    cluster.advance(5_000)
    status = cluster.node(master).status(cluster.now_ms)
    assert status.role != MASTER
    assert 0 < status.stale_ms <= cluster.now_ms - cut_ms


def test_the_lag_of_a_dead_member_is_unknown_and_its_silence_is_counted() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    dead, alive = sorted(name for name in cluster.names if name != master)
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    for other in (master, alive):
        cluster.part(dead, other)
    cluster.do(master, c.SendMessage(queue_url="jobs", message_body="x"))
    cluster.advance(4_000)
    seen = {member.id: member for member in cluster.node(master).status(cluster.now_ms).members}
    assert (seen[dead].lag, seen[dead].lag_ms, seen[dead].lost_ms) == (None, None, 4_000)
    assert (seen[alive].lag, seen[alive].lag_ms, seen[alive].lost_ms) == (0, 0, None)


def test_a_member_that_lags_says_for_how_long() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    late = sorted(name for name in cluster.names if name != master)[0]
    cluster.held = {late}
    for _ in range(3):
        cluster.do(master, c.SendMessage(queue_url="jobs", message_body="x"))
        cluster.advance(200)
    seen = {member.id: member for member in cluster.node(master).status(cluster.now_ms).members}
    assert seen[late].lag == 3
    assert 590 <= (seen[late].lag_ms or 0) <= 610


def test_queues_that_clients_cannot_see_are_not_counted() -> None:
    solo = Solo()
    solo.create()
    topic = solo.do(CreateTopic(name="news"))
    assert isinstance(topic, TopicArnResult)
    solo.do(Subscribe(topic_arn=topic.topic_arn, protocol="http", endpoint="http://192.0.2.1/"))
    assert len(solo.node.state.queues) == 2
    assert solo.node.status(solo.now_ms).queues == 1
    solo.do(DeleteTopic(topic_arn=topic.topic_arn))
    solo.advance(5_000)
    assert len(solo.node.state.queues) == 1
    assert solo.node.status(solo.now_ms).queues == 1
