"""Sessions end by themselves, and background work is done in bounded steps, when it is due and not before."""

from typing import Any

import pytest

from elasticq.engine import consumer_rows as r
from elasticq.engine import group_sweep
from elasticq.engine import mutations as m
from elasticq.engine.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from tests.engine.desk import replayed
from tests.engine.group_desk import GroupDesk, names


def desk_with(queues: int) -> GroupDesk:
    made = GroupDesk()
    made.group()
    made.queues(queues)
    return made


def test_nothing_is_due_without_groups_and_consumers() -> None:
    desk = GroupDesk()
    assert group_sweep.step(desk.state, desk.context.now_ms) == group_sweep.GroupStep([], None)
    desk.group()
    desk.queues(2)
    assert group_sweep.step(desk.state, desk.context.now_ms) == group_sweep.GroupStep([], None)


def test_a_session_ends_to_the_millisecond_and_others_get_what_it_held() -> None:
    desk = desk_with(4)
    first = desk.join()
    second = desk.join()
    desk.give_back(first)
    desk.wait(4)
    desk.beat(second)
    end_ms = group_sweep.step(desk.state, desk.context.now_ms).next_ms
    assert end_ms == desk.context.now_ms + 6_000
    desk.context.now_ms = end_ms - 1
    assert group_sweep.step(desk.state, desk.context.now_ms).mutations == []
    desk.wait(0.001)
    desk.sweep_groups()
    assert len(desk.shown().consumers) == 1
    assert len(desk.beat(second).assigned) == 4


def test_what_a_dead_consumer_was_asked_for_is_free_too() -> None:
    desk = desk_with(4)
    desk.join()
    second = desk.join()
    for _ in range(3):
        desk.wait(4)
        desk.beat(second)
        desk.sweep_groups()
    assert len(names(desk.beat(second))) == 4


def test_a_new_master_gives_everybody_a_grace() -> None:
    desk = desk_with(1)
    view = desk.join()
    desk.wait(9)
    now_ms = desk.context.now_ms
    desk.write([m.TookOver(2, "b", now_ms - 1_400, now_ms + 3_000)])
    desk.wait(2)
    desk.sweep_groups()
    assert names(desk.beat(view)) == ["q-00000"], "its deadline fell into the time without a master"
    desk.wait(10)
    desk.sweep_groups()
    assert desk.shown().consumers == []


def test_many_sessions_that_end_together_end_in_steps() -> None:
    desk = desk_with(1)
    for _ in range(group_sweep.CONSUMERS_A_STEP + 5):
        desk.join()
    desk.wait(10)
    step = group_sweep.step(desk.state, desk.context.now_ms)
    assert step.next_ms == 0
    desk.write(step.mutations)
    assert len(desk.shown().consumers) == 5
    desk.sweep_groups()
    assert desk.shown().consumers == []


def test_queues_that_come_and_go_are_followed() -> None:
    desk = desk_with(0)
    desk.do(g.ElasticqSetGroup("h", queue_names=["q-00001", "other"]))
    by_prefix, by_name = desk.join(), desk.join("h")
    desk.queues(2)
    desk.create("other")
    desk.sweep_groups()
    assert names(desk.beat(by_prefix)) == ["q-00000", "q-00001"]
    assert names(desk.beat(by_name)) == ["other", "q-00001"], "groups share queues out each on its own"
    desk.do(c.DeleteQueue("q-00001"))
    desk.sweep_groups()
    assert [each.resource for each in desk.beat(by_name).revoking] == ["q-00001"]
    assert names(desk.give_back(by_prefix)) == ["q-00000"]


def test_groups_that_have_nothing_to_do_are_not_looked_at_again() -> None:
    desk = desk_with(3)
    assert not desk.state.groups.dirty
    desk.create("q-9")
    assert desk.state.groups.dirty
    desk.sweep_groups()
    assert not desk.state.groups.dirty


def test_partitions_of_a_queue_are_resources() -> None:
    desk = GroupDesk()
    desk.group(partitions_of="stream.fifo")
    desk.create("stream.fifo", FifoQueue="true")
    desk.sweep_groups()
    assert desk.shown().resources == [], "it has none"
    desk.do(c.DeleteQueue("stream.fifo"))
    desk.create("stream.fifo", FifoQueue="true", ElasticqPartitions="3")
    desk.sweep_groups()
    view = desk.join()
    assert [(each.resource, each.partition) for each in view.assigned] == [
        ("stream.fifo/0", 0),
        ("stream.fifo/1", 1),
        ("stream.fifo/2", 2),
    ]
    desk.do(c.DeleteQueue("stream.fifo"))
    desk.sweep_groups()
    assert len(desk.beat(view).revoking) == 3


def test_what_a_roll_back_takes_back_is_shared_out_again() -> None:
    """The same member may be the next master: what it found done is not done any more."""
    desk = GroupDesk()
    desk.group()
    view = desk.join()
    desk.create("q-1")
    undo: Undo = []
    desk.write(group_sweep.step(desk.state, desk.context.now_ms).mutations, undo)
    desk.sweep_groups()
    assert names(desk.beat(view)) == ["q-1"]
    roll_back(undo)
    assert names(desk.beat(view)) == []
    desk.sweep_groups()
    assert names(desk.beat(view)) == ["q-1"]


@pytest.mark.parametrize(
    "lost",
    [
        r.ConsumerGroupSet,
        r.GroupRebalanced,
        r.ConsumerSet,
        r.ResourceAssigned,
        r.TokensGiven,
        r.ConsumerGroupSet | r.ConsumerSet,
    ],
)
def test_rows_that_a_repair_lost_end_no_member_and_keep_nothing_from_others(lost: Any) -> None:
    desk = desk_with(3)
    desk.join()
    desk.join()
    left = [row for chunk in dump(desk.state) for row in chunk if not isinstance(row, lost)]
    desk.state = replayed(left)
    desk.sweep_groups()
    desk.wait(11)
    desk.sweep_groups()
    assert not desk.state.groups.consumers
    desk.group()
    assert len(names(desk.join())) == 3


def test_a_session_whose_renewal_was_rolled_back_ends_in_time() -> None:
    desk = desk_with(1)
    view = desk.join()
    desk.wait(5)
    undo: Undo = []
    desk.beat(view, undo=undo)
    desk.wait(6)
    assert group_sweep.step(desk.state, desk.context.now_ms).mutations == []
    roll_back(undo)
    desk.sweep_groups()
    assert desk.shown().consumers == []
