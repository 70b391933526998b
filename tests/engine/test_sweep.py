"""Background reclaiming: bounded steps that go on until nothing is left, and touch nothing alive."""

import pytest

from elasticq.engine.ordering.contract import ADVANCED_MAX, has_due_messages
from elasticq.engine.residency import evict
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.stored.invocations import SWEPT
from elasticq.engine.sweep import QUEUES_A_STEP, RECLAIMED_A_STEP, Sweeper, expired_counts, reclaim, removable
from elasticq.model import commands as c
from elasticq.model.limits import MUTATION_ROWS_MAX
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create(MessageRetentionPeriod="60")
    return made


def fill(desk: Desk, count: int, name: str = "jobs") -> None:
    queue = desk.queue(name)
    first = next_sequence(queue.last_sequence, desk.context.term)
    now_ms = desk.context.now_ms
    desk.write([m.MessageStored(queue.id, first + at, "x", now_ms, "me") for at in range(count)])


def total(desk: Desk) -> int:
    return sum(queue.count for queue in desk.state.queues.values())


def sweep(desk: Desk, steps_max: int = 200) -> list[int]:
    """Messages removed by each step, until nothing more is found."""
    sweeper, removed = Sweeper(), []
    for _ in range(steps_max):
        mutations, is_more_waiting = sweeper.step(desk.state, desk.context.now_ms)
        before = total(desk)
        desk.write(mutations)
        removed.append(before - total(desk))
        assert removed[-1] <= MUTATION_ROWS_MAX
        if not mutations and not is_more_waiting:
            break
    return removed


def test_purged_messages_are_gone_at_once_and_their_memory_in_bounded_steps(desk: Desk) -> None:
    fill(desk, RECLAIMED_A_STEP + 500)
    desk.do(c.PurgeQueue(queue_url="jobs"))
    fill(desk, 3)
    assert desk.counts() == (3, 0, 0)
    assert sweep(desk) == [0]
    (_, purged), committed = desk.state.trash[0], 7
    assert reclaim(desk.state, committed)
    assert len(purged.contents) == 500
    assert not reclaim(desk.state, committed)
    assert (len(desk.state.trash), desk.queue().count) == (0, 3)


def test_memory_of_what_is_not_committed_to_be_purged_is_kept(desk: Desk) -> None:
    fill(desk, 10)
    desk.state.index = 8
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert not reclaim(desk.state, 7)
    assert len(desk.state.trash[0][1].contents) == 10


def test_deleted_queue_is_forgotten_after_a_minute(desk: Desk) -> None:
    fill(desk, 1_500)
    queue = desk.queue()
    desk.do(c.DeleteQueue(queue_url="jobs"))
    assert (queue.count, desk.state.contents_bytes) == (0, 0)
    assert list(desk.state.deleted_queues) == [queue.id]
    desk.wait(60)
    sweep(desk)
    assert (desk.state.deleted_queues, desk.state.deleted_names) == ({}, {})


def test_expired_messages_are_removed_oldest_first_and_young_ones_stay(desk: Desk) -> None:
    fill(desk, 1_200)
    desk.wait(30)
    fill(desk, 5)
    desk.wait(30)
    assert removable(desk.queue(), desk.context.now_ms) == sorted(desk.queue().contents)[:1_000]
    assert sweep(desk) == [1_000, 200, 0]
    assert desk.queue().count == 5


def test_in_flight_and_delayed_messages_expire_too(desk: Desk) -> None:
    desk.send()
    desk.send(delay_s=600)
    desk.receive_one(visibility_s=600)
    desk.wait(60)
    counts = expired_counts(desk.queue(), desk.context.now_ms)
    assert (counts.visible, counts.in_flight, counts.delayed) == (0, 1, 1)
    assert sweep(desk) == [2, 0]


def test_one_step_over_many_queues_keeps_the_bound(desk: Desk) -> None:
    for number in range(4):
        desk.create(f"q{number}", MessageRetentionPeriod="60")
        fill(desk, 400, f"q{number}")
    desk.wait(60)
    assert sum(sweep(desk)) == 1_600


def test_sequences_without_a_row_hide_no_expired_message(desk: Desk) -> None:
    fill(desk, 30)
    rows = sorted(desk.queue().contents)
    desk.write([m.MessagesRemoved(desk.queue().id, [x for x in rows if x % 3])])
    desk.wait(60)
    assert sum(sweep(desk)) == 10
    assert desk.queue().issued.count <= 1


def test_nothing_to_do_is_nothing_done(desk: Desk) -> None:
    fill(desk, 3)
    assert sweep(desk) == [0]


def test_counts_are_exact_though_more_expired_than_one_step_removes(desk: Desk) -> None:
    fill(desk, MUTATION_ROWS_MAX + 50)
    desk.wait(60)
    desk.send()
    assert desk.counts() == (1, 0, 0)


def test_expired_messages_on_disk_are_removed_by_their_age(desk: Desk) -> None:
    fill(desk, 10)
    desk.wait(30)
    fill(desk, 10)
    queue = desk.queue()
    for sequence in list(queue.contents):
        evict(desk.state, queue.id, sequence)
    desk.wait(31)
    assert sweep(desk) == [10, 0]
    assert queue.count == 10


def test_many_deleted_queues_go_without_a_pause() -> None:
    desk = Desk()
    for number in range(QUEUES_A_STEP + 1):
        desk.create(f"q{number}")
        desk.do(c.DeleteQueue(queue_url=f"q{number}"))
    desk.wait(61)
    sweeper, steps = Sweeper(), []
    for _ in range(2):
        mutations, is_more = sweeper.step(desk.state, desk.context.now_ms)
        desk.write(mutations)
        steps.append((len(mutations), is_more))
    assert steps == [(QUEUES_A_STEP, True), (1, False)]
    assert not desk.state.deleted_queues


def test_history_that_is_over_is_swept_once() -> None:
    desk = Desk()
    desk.create()
    desk.send(invocation=b"i" * 16)
    sweeper = Sweeper()
    assert sweeper.step(desk.state, desk.context.now_ms)[0] == []
    desk.wait(600)
    mutations, _ = sweeper.step(desk.state, desk.context.now_ms)
    assert mutations == [m.InvocationRecorded(SWEPT, desk.context.now_ms, 0, 0)]
    desk.write(mutations)
    assert [key for key, _ in desk.state.invocations.rows(0)] == [SWEPT]
    desk.wait(600)
    assert sweeper.step(desk.state, desk.context.now_ms)[0] == []


def test_messages_that_came_due_together_are_moved_in_bounded_steps(desk: Desk) -> None:
    """Nobody receives from the queue; what is due is counted at once and moved while nobody waits for it."""
    count = 5 * ADVANCED_MAX
    queue = desk.queue()
    first, due_ms = next_sequence(queue.last_sequence, desk.context.term), desk.context.now_ms + 9_000
    desk.write(
        [
            m.MessageStored(queue.id, first + at, "x", desk.context.now_ms, "me", visible_at_ms=due_ms)
            for at in range(count)
        ]
    )
    desk.context.now_ms = due_ms
    assert desk.counts() == (count, 0, 0)
    sweeper, steps = Sweeper(), 0
    while has_due_messages(queue.order, due_ms):
        mutations, is_more_waiting = sweeper.step(desk.state, due_ms)
        assert not mutations
        assert is_more_waiting is has_due_messages(queue.order, due_ms)
        steps += 1
    assert steps > 2
    assert desk.counts() == (count, 0, 0)
