"""Background reclaiming: bounded steps that go on until nothing is left, and touch nothing alive."""

import pytest

from elasticq.engine import mutations as m
from elasticq.engine.identity import next_sequence
from elasticq.engine.sweep import Sweeper, expired_counts, removable
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
    first = next_sequence(queue.last_sequence, desk.turn.term)
    now_ms = desk.turn.now_ms
    desk.write([m.MessageStored(queue.id, first + at, "x", now_ms, "me") for at in range(count)])


def sweep(desk: Desk, steps_max: int = 200) -> list[int]:
    """Rows removed by each step, until nothing more is found."""
    sweeper, removed = Sweeper(), []
    for _ in range(steps_max):
        mutations, is_more_waiting = sweeper.step(desk.state, desk.turn.now_ms)
        desk.write(mutations)
        removed.append(sum(len(x.sequences) for x in mutations if isinstance(x, m.MessagesRemoved)))
        assert all(len(getattr(x, "sequences", ())) <= MUTATION_ROWS_MAX for x in mutations)
        if not mutations and not is_more_waiting:
            break
    return removed


def test_purge_is_reclaimed_in_bounded_steps(desk: Desk) -> None:
    fill(desk, 2_500)
    desk.do(c.PurgeQueue(queue_url="jobs"))
    fill(desk, 3)
    assert desk.counts() == (3, 0, 0)
    assert sweep(desk) == [1_000, 1_000, 500, 0]
    assert desk.counts() == (3, 0, 0)
    assert len(desk.queue().rows) == 3


def test_deleted_queue_is_reclaimed_in_bounded_steps_and_then_forgotten(desk: Desk) -> None:
    fill(desk, 1_500)
    queue = desk.queue()
    desk.do(c.DeleteQueue(queue_url="jobs"))
    assert desk.state.bytes_stored == 1_500
    assert sweep(desk) == [1_000, 500, 0]
    assert (queue.rows, desk.state.bytes_stored) == ({}, 0)
    assert list(desk.state.doomed) == [queue.id]
    desk.wait(60)
    sweep(desk)
    assert (desk.state.doomed, desk.state.deleted_names) == ({}, {})


def test_expired_messages_are_removed_oldest_first_and_young_ones_stay(desk: Desk) -> None:
    fill(desk, 1_200)
    desk.wait(30)
    fill(desk, 5)
    desk.wait(30)
    assert removable(desk.queue(), desk.turn.now_ms) == sorted(desk.queue().rows)[:1_000]
    assert sweep(desk) == [1_000, 200, 0]
    assert len(desk.queue().rows) == 5


def test_in_flight_and_delayed_messages_expire_too(desk: Desk) -> None:
    desk.send()
    desk.send(delay_s=600)
    desk.receive_one(visibility_s=600)
    desk.wait(60)
    counts = expired_counts(desk.queue(), desk.turn.now_ms)
    assert (counts.visible, counts.in_flight, counts.delayed) == (0, 1, 1)
    assert sweep(desk) == [2, 0]


def test_one_step_over_many_queues_keeps_the_bound(desk: Desk) -> None:
    for number in range(4):
        desk.create(f"q{number}", MessageRetentionPeriod="60")
        fill(desk, 400, f"q{number}")
    desk.wait(60)
    assert sum(sweep(desk)) == 1_600
    for steps in desk.steps:
        assert sum(len(getattr(x, "sequences", ())) for x in steps) <= MUTATION_ROWS_MAX


def test_sequences_without_a_row_hide_no_expired_message(desk: Desk) -> None:
    fill(desk, 30)
    rows = sorted(desk.queue().rows)
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
