"""What a master does although nobody asks: expired messages, purged queues, a short log."""

import sys

from elasticq.engine.residency import OVERHEAD_BYTES
from elasticq.engine.stored import mutations as m
from elasticq.engine.sweep import RECLAIMED_A_STEP
from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.extensions import AdvanceClock
from elasticq.model.limits import MUTATION_ROWS_MAX
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn, topic_arn
from elasticq.model.topic_results import PublishCounts
from elasticq.node.housekeeping import LOG_KEPT_ENTRIES, SWEEP_AGAIN_MS
from tests.node.cluster import Cluster, Solo, mutations, restored


def test_memory_log_is_bounded(solo: Solo) -> None:
    for _ in range(LOG_KEPT_ENTRIES + 100):
        solo.send()
    solo.advance(2_000)
    log = solo.node.replica.log
    assert log.last_index - log.base_index <= LOG_KEPT_ENTRIES


def test_a_member_alone_in_memory_does_not_keep_its_messages_twice(solo: Solo) -> None:
    for _ in range(20):
        solo.send("x" * 200_000)
    solo.advance(2_000)
    assert solo.node.replica.log.size_bytes < 1_000_000


def test_purge_is_one_entry_and_its_memory_comes_back_by_ticks(solo: Solo) -> None:
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(10)]
    for _ in range(220):
        solo.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    before = len(solo.entries)
    solo.do(c.PurgeQueue(queue_url="jobs"))
    solo.send("after")
    solo.advance(2_000)
    assert [type(x) for x in mutations(solo, before)] == [m.QueuePurged, m.MessageStored]
    assert solo.node.status(solo.now_ms).contents_bytes == OVERHEAD_BYTES + sys.getsizeof("after")
    assert not solo.node.state.trash


def test_memory_comes_back_where_no_queue_is_left(solo: Solo) -> None:
    """Nothing else is due then: of a large queue only the first step was done, and the rest stayed for ever."""
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(10)]
    for _ in range(RECLAIMED_A_STEP // 10 + 1):
        solo.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    solo.do(c.DeleteQueue(queue_url="jobs"))
    solo.do(AdvanceClock(3_600_000))
    solo.advance(1_000)
    assert (solo.node.state.deleted_queues, list(solo.node.state.trash)) == ({}, [])


def test_each_member_gives_back_its_own_memory() -> None:
    """Also one that is never master."""
    cluster = Cluster()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x" * 100) for at in range(10)]
    for _ in range(RECLAIMED_A_STEP // 10 + 1):
        cluster.do(master, c.SendMessageBatch(queue_url="jobs", entries=entries))
    cluster.do(master, c.PurgeQueue(queue_url="jobs"))
    assert all(cluster.node(name).state.trash for name in cluster.names)
    cluster.advance(3_000)
    assert [list(cluster.node(name).state.trash) for name in cluster.names] == [[], [], []]


def test_deleted_queue_and_expired_messages_leave_no_row(solo: Solo) -> None:
    solo.create("short", MessageRetentionPeriod="60")
    solo.do(c.SendMessage(queue_url="short", message_body="x"))
    solo.send()
    solo.do(c.DeleteQueue(queue_url="jobs"))
    solo.advance(62_000)
    status = solo.node.status(solo.now_ms)
    assert (status.contents_bytes, status.queues) == (0, 1)
    assert solo.node.state.deleted_queues == {}


def test_a_sweep_that_finds_more_than_a_step_may_remove_is_known_to_be_behind(solo: Solo) -> None:
    solo.create("short", MessageRetentionPeriod="60")
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(10)]
    for _ in range(MUTATION_ROWS_MAX // 10 + 1):
        solo.do(c.SendMessageBatch(queue_url="short", entries=entries))
    queue = solo.node.state.queue(DEFAULT_ACCOUNT, "short")
    solo.advance(59_000)
    assert (solo.node.housekeeping.is_sweep_behind, queue.count) == (False, MUTATION_ROWS_MAX + 10)
    until_ms = solo.now_ms + 5_000
    while not solo.node.housekeeping.is_sweep_behind and solo.now_ms < until_ms:
        solo.advance(SWEEP_AGAIN_MS // 2)
    assert (solo.node.housekeeping.is_sweep_behind, queue.count) == (True, 10)
    solo.advance(2 * SWEEP_AGAIN_MS)
    assert (solo.node.housekeeping.is_sweep_behind, queue.count) == (False, 0)


def test_sweep_goes_on_after_a_restart() -> None:
    solo = Solo(volatile=False)
    solo.create()
    for _ in range(30):
        solo.send()
    solo.do(c.DeleteQueue(queue_url="jobs"))
    again = Solo(volatile=False, durable=restored([record for _, record in solo.member.disk]))
    again.advance(62_000)
    assert (again.node.state.contents_bytes, again.node.state.deleted_queues) == (0, {})


def test_idle_node_without_queues_asks_for_no_wake_up() -> None:
    assert Solo().node.effects.wake_at_ms is None


def test_an_advanced_clock_makes_background_work_due_at_once(solo: Solo) -> None:
    solo.advance(1_500)
    wake_ms = solo.node.effects.wake_at_ms
    assert wake_ms is not None
    assert wake_ms > solo.now_ms
    solo.do(AdvanceClock(5_000))
    assert solo.node.effects.wake_at_ms == 0


def test_copies_that_are_stored_in_steps_are_counted_by_topic(solo: Solo) -> None:
    solo.do(t.CreateTopic("news"))
    topic = topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "news")
    for number in range(30):
        if number:
            solo.create(f"q{number}")
        solo.do(t.Subscribe(topic, "sqs", queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, f"q{number}")))
    published = solo.do(t.Publish(topic_arn=topic, message="x" * 250_000))
    assert published.counts == PublishCounts(), "they are more than an entry holds"
    solo.advance(3_000)
    assert solo.node.housekeeping.delivered == {(DEFAULT_ACCOUNT, "news"): PublishCounts(delivered=29, failed=1)}
