"""Sessions end by themselves, and background work is done in bounded steps, when it is due and not before."""

from typing import Any

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.consumer_groups import sweep as group_sweep
from elasticq.engine.consumer_groups.actions import consumer_id
from elasticq.engine.consumer_groups.rebalance import STEP_MAX
from elasticq.engine.stored import consumer_group_rows as r
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.errors import ElasticqGroupDoesNotExist, ElasticqNotHolder, ElasticqUnknownConsumer
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


# --- more than an entry may change ----------------------------------------------------

MANY = 2 * STEP_MAX + 300


def holding_many() -> tuple[GroupDesk, Any]:
    """A consumer that holds more than an entry may change."""
    desk = desk_with(MANY)
    view = desk.join()
    desk.sweep_groups()
    view = desk.beat(view)
    assert len(view.assigned) == MANY
    return desk, view


def sizes(desk: GroupDesk, steps: int = 100) -> list[int]:
    """How much each step of background work changes, until it is done."""
    found = []
    for _ in range(steps):
        step = group_sweep.step(desk.state, desk.context.now_ms)
        if not step.mutations and step.next_ms != 0:
            break
        found.append(len(step.mutations))
        desk.write(step.mutations)
    return found


def test_what_a_consumer_leaves_goes_to_others_in_steps_and_to_none_before() -> None:
    desk, view = holding_many()
    other = desk.join()
    before = len(desk.steps)
    desk.leave(view)
    assert len(desk.steps[before]) < STEP_MAX + 10
    with pytest.raises(ElasticqNotHolder):
        desk.fenced_receive("q-02299", view.assigned[-1].token)
    assert isinstance(desk.do(g.ElasticqHeartbeat("g", view.consumer_id)), ElasticqUnknownConsumer)
    held = {row.token for row in desk.index().by_resource.values()}
    still = {name for name, _ in desk.index().by_resource}
    third = desk.join()
    assert len(still) == MANY - 2 * STEP_MAX
    assert not still & set(names(third)), "what one holds who is about to go is nobody's"
    assert max(sizes(desk)) < 2 * STEP_MAX
    assert [consumer.consumer_id for consumer in desk.shown().consumers] == [other.consumer_id, third.consumer_id]
    assert len(desk.beat(other).assigned) + len(desk.beat(third).assigned) == MANY
    assert not held & desk.state.groups.assignments.keys()


def test_a_session_that_ends_with_many_resources_ends_in_steps() -> None:
    desk, _ = holding_many()
    desk.wait(11)
    assert max(sizes(desk)) < STEP_MAX + 10
    assert desk.shown().consumers == []
    assert not desk.state.groups.assignments


def test_a_group_with_many_rows_is_gone_at_once_and_its_rows_in_steps() -> None:
    desk, view = holding_many()
    for _ in range(3):
        desk.join()
    before = len(desk.steps)
    desk.do(g.ElasticqDeleteGroup("g"))
    assert len(desk.steps[before]) < STEP_MAX + 10
    with pytest.raises(ElasticqGroupDoesNotExist):
        desk.shown()
    with pytest.raises(ElasticqNotHolder):
        desk.fenced_receive("q-02299", view.assigned[-1].token)
    desk.do(g.ElasticqSetGroup("g", queue_name_prefix="q-"))
    again = desk.join()
    restarted = replayed([mutation for chunk in dump(desk.state) for mutation in chunk])
    for state in (desk.state, restarted):
        (orphan,) = state.groups.orphans.values()
        assert len(orphan.consumers) == 4
    while step := group_sweep.step(restarted, desk.context.now_ms).mutations:
        assert len(step) < STEP_MAX + 10
        for mutation in step:
            apply(restarted, mutation)
    desk.sweep_groups()
    for state in (desk.state, restarted):
        assert not state.groups.orphans
        assert [consumer_id(number) for number in state.groups.consumers] == [again.consumer_id]
        assert {row.group for row in state.groups.assignments.values()} == {desk.index().row.number}
    assert len(desk.beat(again).assigned) == MANY


def test_a_deletion_of_many_rows_that_is_rolled_back_never_was() -> None:
    desk, view = holding_many()
    undo: Undo = []
    desk.do(g.ElasticqDeleteGroup("g"), undo=undo)
    roll_back(undo)
    assert not desk.state.groups.orphans
    after = desk.beat(view)
    assert (names(after), after.version, after.revoking) == (names(view), view.version, [])


def test_groups_that_are_due_together_are_looked_at_one_after_the_other() -> None:
    desk = desk_with(0)
    for name in "abc":
        desk.group(name)
        desk.join(name)
    desk.state.groups.dirty.clear()
    for number in range(group_sweep.LOOKED_AT_A_STEP // 2):
        desk.create(f"q-{number:05}")
    steps = sizes(desk)
    assert len(steps) >= 15
    assert max(steps) < STEP_MAX + 10
