"""Deduplication ids of standard queues outlive a restart on rows, a failover and five minutes."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import SWEPT
from elasticq.model import commands as c
from elasticq.model.results import SendMessageResult
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import Base, Durable, Vote
from tests.node.cluster import WALL_MS, Cluster, Solo
from tests.node.test_content_cache import Deep

WINDOW = {"ElasticqIdempotencyWindow": "3600"}
SEND = c.SendMessage(queue_url="once", message_body="x", message_deduplication_id="a")


@pytest.mark.parametrize("waits_s", [0, 600, 3_590])
def test_id_is_taken_after_a_restart(waits_s: int) -> None:
    deep = Deep()
    deep.do(c.CreateQueue(queue_name="once", attributes=WINDOW))
    first = deep.do(SEND)
    deep.store()
    for _ in range(waits_s // 10):
        deep.advance(10_000)
    deep.send("something else, so that the rows go on")
    deep.store()
    deep.restart()
    again = deep.do(SEND)
    assert isinstance(first, SendMessageResult)
    assert again == first
    for _ in range(370):
        deep.advance(10_000)
    assert deep.do(SEND) != first


def test_rows_of_ids_that_are_free_leave_the_disk() -> None:
    deep = Deep()
    deep.do(c.CreateQueue(queue_name="once", attributes={"ElasticqIdempotencyWindow": "400"}))
    deep.do(SEND)
    deep.store()
    counts = []
    for _ in range(2):
        deep.advance(390_000)
        deep.send("x")
        deep.store()
        counts.append(deep.connection.execute("SELECT count(*) FROM invocations").fetchone()[0])
    assert counts == [1, 0]


def test_id_is_taken_after_a_failover() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="once", attributes=WINDOW))
    first = cluster.do(master, SEND)
    cluster.advance(300)
    cluster.crash(master)
    cluster.names = tuple(name for name in cluster.names if name != master)
    cluster.advance(5_000)
    transfer_target = next(name for name in cluster.names if cluster.node(name).serving)
    assert cluster.do(transfer_target, SEND) == first


def test_idle_members_forget_what_calls_did() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="once", attributes={"ElasticqIdempotencyWindow": "400"}))
    cluster.do(master, SEND, b"i" * 16)
    cluster.advance(300_000)
    known = [
        (member.node.state.invocations.count, member.node.state.sent_ids.count) for member in cluster.members.values()
    ]
    assert set(known) == {(1, 1)}
    cluster.do(master, c.DeleteQueue(queue_url="once"))
    cluster.advance(2_000_000)
    known = [
        (member.node.state.invocations.count, member.node.state.sent_ids.count) for member in cluster.members.values()
    ]
    assert set(known) == {(1, 0)}


def test_a_member_alone_forgets_without_a_queue() -> None:
    solo = Solo()
    solo.do(c.CreateQueue(queue_name="once"), b"c" * 16)
    solo.do(c.DeleteQueue(queue_url="once"), b"d" * 16)
    solo.advance(600_000)
    assert [key for key, _ in solo.node.state.invocations.rows(0)] == [SWEPT]
    entries = len(solo.entries)
    solo.advance(3_600_000)
    assert len(solo.entries) == entries
    assert solo.node.effects.wake_at_ms is None


def test_a_wall_clock_that_is_hours_ahead_makes_nobody_forget() -> None:
    """A member that restarted goes by its wall clock until it hears a master; what it forgets then sends twice."""
    durable = Durable(Vote(2, None), [], Base(5, 2, WALL_MS), 5)
    recorded = m.InvocationRecorded(b"g" * 16, WALL_MS, 1 << 40, 1 << 40)
    settings = NodeSettings(member_id="a", voters=("a", "b", "c"))
    node = Node(settings, durable, b"e" * 32, [m.ClusterFounded("c", b"k" * 32, 1), recorded])
    node.start(1_000, WALL_MS + 6 * 3_600_000)
    node.tick(100_000)
    assert node.state.invocations.count == 1
