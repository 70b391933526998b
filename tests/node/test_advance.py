"""The clock is advanced: everything in cluster time follows, on every member and after failover; elections do not."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, LeaseExpired, PurgeQueueInProgress
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.limits import CLOCK_ADVANCE_MS_MAX
from elasticq.model.results import ClockResult, QueuesDeletedResult, ReceiveMessageResult
from elasticq.node.clock import ROUNDING_MS
from elasticq.replication.records import Base, Durable, Vote
from tests.node.cluster import WALL_MS, Cluster, Solo
from tests.node.test_move_tasks import PREFIX, redrive, task

ADVANCE = AdvanceClock(advance_ms=30_000)


def turn(solo: Solo, seconds: int) -> ClockResult:
    result = solo.do(AdvanceClock(advance_ms=seconds * 1_000))
    assert isinstance(result, ClockResult)
    return result


# --- one member -------------------------------------------------------------------


def test_advance_is_told_in_cluster_time_and_later_entries_have_it(solo: Solo) -> None:
    assert turn(solo, 30).time_ms == solo.time_ms + 30_000
    solo.send()
    assert solo.entries[-1].time_ms == solo.time_ms + 30_000
    assert solo.node.status(solo.now_ms).time_ms == solo.time_ms + 30_000


def test_received_message_is_visible_again_when_the_clock_passed_its_timeout(solo: Solo) -> None:
    solo.send()
    assert len(solo.receive(visibility_s=30)) == 1
    turn(solo, 29)
    assert solo.receive() == []
    turn(solo, 1)
    assert len(solo.receive()) == 1


def test_delay_and_retention_follow_the_clock(solo: Solo) -> None:
    solo.send("late", delay_s=900)
    assert solo.receive() == []
    turn(solo, 900)
    assert [message.body for message in solo.receive(visibility_s=0)] == ["late"]
    turn(solo, 4 * 86_400)
    assert solo.receive() == []
    solo.advance(10)
    (queue,) = solo.node.state.queues.values()
    assert queue.count == 0


def test_long_poll_is_woken_by_the_clock(solo: Solo) -> None:
    solo.send("late", delay_s=60)
    ticket = solo.poll()
    turn(solo, 60)
    solo.advance(1)
    (answer,) = solo.answers(ticket)
    assert isinstance(answer, ReceiveMessageResult)
    assert [message.body for message in answer.messages] == ["late"]


def test_long_poll_of_an_empty_queue_waits_on_in_real_time(solo: Solo) -> None:
    ticket = solo.poll(wait_s=20)
    turn(solo, 3_600)
    solo.advance(19_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert solo.answers(ticket) == [ReceiveMessageResult()]


def test_deduplication_id_is_free_when_the_clock_passed_five_minutes(solo: Solo) -> None:
    solo.do(c.CreateQueue("jobs.fifo", {"FifoQueue": "true"}))
    send = c.SendMessage("jobs.fifo", "body", message_group_id="g", message_deduplication_id="d")
    first = solo.do(send)
    turn(solo, 299)
    assert solo.do(send) == first
    turn(solo, 1)
    assert solo.do(send) != first


def test_lease_ends_when_the_clock_passed_its_deadline(solo: Solo) -> None:
    solo.send()
    leased = c.ReceiveMessage(
        "jobs", max_number_of_messages=10, visibility_timeout=60, receive_request_attempt_id="reader/1/0/0"
    )
    first = solo.do(leased)
    turn(solo, 59)
    assert solo.do(leased) == first
    turn(solo, 1)
    with pytest.raises(LeaseExpired):
        solo.do(leased)
    assert len(solo.receive()) == 1


def test_sixty_second_rule_follows_the_clock() -> None:
    solo = Solo(sixty_second_rules=True)
    solo.create()
    solo.do(c.PurgeQueue("jobs"))
    with pytest.raises(PurgeQueueInProgress):
        solo.do(c.PurgeQueue("jobs"))
    turn(solo, 60)
    solo.do(c.PurgeQueue("jobs"))


def test_slow_move_task_makes_up_for_the_time_that_was_skipped(solo: Solo) -> None:
    redrive(solo)
    for number in range(60):
        solo.send(str(number))
    solo.receive(10, visibility_s=0)
    for _ in range(12):
        solo.receive(10, visibility_s=0)
    solo.do(c.StartMessageMoveTask(f"{PREFIX}dlq", None, 1))
    solo.advance(500)
    assert (task(solo).approximate_number_of_messages_moved or 0) < 3
    turn(solo, 30)
    solo.advance(50)
    assert 30 <= (task(solo).approximate_number_of_messages_moved or 0) <= 33


def test_retry_of_an_advance_is_not_another_one(solo: Solo) -> None:
    solo.do(AdvanceClock(advance_ms=3_600_000), b"i" * 16)
    solo.do(AdvanceClock(advance_ms=3_600_000), b"i" * 16)
    assert solo.node.status(solo.now_ms).time_ms == solo.time_ms + 3_600_000


def test_clock_never_goes_back(solo: Solo) -> None:
    for advance_ms in (-1, CLOCK_ADVANCE_MS_MAX + 1):
        with pytest.raises(InvalidParameterValue):
            solo.do(AdvanceClock(advance_ms=advance_ms))
    assert turn(solo, 0).time_ms == solo.time_ms
    for _ in range(10):
        turn(solo, CLOCK_ADVANCE_MS_MAX // 1_000)
    with pytest.raises(InvalidParameterValue):
        turn(solo, CLOCK_ADVANCE_MS_MAX // 1_000)


def test_advance_shares_an_entry_whose_other_commands_see_the_old_time() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.synced_at_once = False
    solo.start_call(c.SendMessage("jobs", "first"))  # its sync is under way: what follows shares the next entry
    tickets = [solo.start_call(AdvanceClock(advance_ms=30_000)), solo.start_call(c.SendMessage("jobs", "second"))]
    solo.synced_at_once = True
    solo.call_node("tick")
    assert all(len(solo.answers(ticket)) == 1 for ticket in tickets)
    assert solo.entries[-1].time_ms == solo.time_ms
    solo.send("third")
    assert solo.entries[-1].time_ms == solo.time_ms + 30_000


def test_restart_goes_on_where_the_log_ended(solo: Solo) -> None:
    lasting = Solo(volatile=False)
    lasting.create()
    lasting.do(ADVANCE)
    lasting.send()
    last_ms = lasting.entries[-1].time_ms
    again = Solo(volatile=False, durable=Durable(Vote(1, "a"), lasting.entries))
    assert again.node.status(again.now_ms).time_ms == again.time_ms + 30_000 >= last_ms


def test_restart_from_rows_remembers_the_advance() -> None:
    base = Base(5, 1, WALL_MS + 30_000)
    rows = [m.ClusterFounded("c", b"k" * 32, 1), m.ClockAdvanced(30_000)]
    solo = Solo(volatile=False)
    solo.member.__init__(solo.member.settings, Durable(Vote(1, "a"), [], base, 5), b"e" * 32, rows)  # type: ignore[misc]
    solo.node.start(solo.now_ms, WALL_MS + solo.now_ms)
    solo.call_node("tick")
    assert solo.node.status(solo.now_ms).time_ms == solo.time_ms + 30_000


def test_reset_deletes_the_queues_of_an_account_in_bounded_steps(solo: Solo) -> None:
    solo.create("other")
    other = c.Call(c.CreateQueue("theirs"), "p", "1" * 12, "http://x")
    solo.node.submit(other, "theirs", solo.now_ms)
    assert solo.do(DeleteAllQueues("0" * 12)) == QueuesDeletedResult(2, is_more=False)
    assert [queue.name for queue in solo.node.state.queues.values()] == ["theirs"]
    assert solo.do(DeleteAllQueues()) == QueuesDeletedResult(1, is_more=False)
    assert solo.do(DeleteAllQueues()) == QueuesDeletedResult(0, is_more=False)


# --- several ----------------------------------------------------------------------


def times(cluster: Cluster) -> set[int]:
    return {cluster.node(name).status(cluster.now_ms).time_ms - WALL_MS - cluster.now_ms for name in cluster.members}


def assert_ahead(cluster: Cluster, ms: int) -> None:
    """No member's clock is further ahead, nor behind by more than what rounding costs in two changes of master."""
    assert all(ms - 4 * ROUNDING_MS <= each <= ms for each in times(cluster)), times(cluster)


def test_all_members_follow_and_nobody_stands_for_election(cluster: Cluster) -> None:
    master = cluster.elect()
    term = cluster.node(master).replica.term
    cluster.do(next(name for name in cluster.names if name != master), ADVANCE)  # forwarded
    cluster.advance(10)
    assert_ahead(cluster, 30_000)
    cluster.advance(5_000)
    assert_ahead(cluster, 30_000)
    assert cluster.serving() == [master]
    assert cluster.node(master).replica.term == term


def test_new_master_has_the_advanced_time_once(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, ADVANCE)
    cluster.advance(10)
    cluster.crash(master)
    new = cluster.elect_other(master)
    cluster.advance(500)
    assert_ahead(cluster, 30_000)
    cluster.do(new, ADVANCE)
    cluster.restart(master)
    cluster.advance(1_000)
    assert_ahead(cluster, 60_000)


def test_all_restarted_members_have_the_advanced_time(cluster: Cluster) -> None:
    cluster.do(cluster.elect(), ADVANCE)
    cluster.advance(500)
    for name in cluster.names:
        cluster.crash(name)
    for name in cluster.names:
        cluster.restart(name)
    cluster.elect()
    cluster.advance(500)
    assert_ahead(cluster, 30_000)


def test_advance_of_a_master_that_nobody_heard_is_taken_back(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.isolate(old)
    cluster.submit(old, ADVANCE)
    cluster.settle()
    cluster.elect_other(old)
    cluster.heal()
    cluster.advance(2_000)
    assert_ahead(cluster, 0)


def test_member_over_a_snapshot_has_the_advanced_time(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, ADVANCE)
    cluster.advance(100)
    late = next(name for name in cluster.names if name != master)
    assert cluster.install(late, master)
    cluster.advance(1_000)
    assert_ahead(cluster, 30_000)
