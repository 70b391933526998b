"""The index of consumer groups says what the rows say, and no history gives a resource two holders."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.state import State
from elasticq.engine.stored import consumer_group_rows as r
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_index import Groups
from elasticq.engine.stored.delivery_rows import Grace
from elasticq.engine.stored.queue_names import QueueNames
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.errors import SqsError
from elasticq.model.group_results import GroupViewResult
from tests.engine.desk import replayed
from tests.engine.group_desk import GroupDesk, names

Step = tuple[str, int, int]
ACTIONS = (
    "join", "join", "join", "leave", "beat", "beat", "give", "give", "give", "spare", "move", "drain", "queue", "queue",
    "drop", "set", "delete", "wait", "sweep", "takeover",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5), st.integers(0, 5)), max_size=40)
SETTINGS: tuple[dict[str, Any], ...] = (
    {"queue_name_prefix": "q-"},
    {"queue_names": ["q-0", "q-1", "q-5"]},
    {"queue_names": ["q-1", "q-2", "q-3"], "max_per_consumer": 1},
    {"max_per_consumer": 2},
    {"rebalance_delay_ms": 3_000},
    {"rebalance_delay_ms": 0, "max_per_consumer": 0, "session_timeout_ms": 4_000},
)


class GroupDriver:
    """Commands on two groups as plain steps; every error is an answer like any other."""

    def __init__(self) -> None:
        self.desk = GroupDesk()
        self.desk.context.sixty_second_rules = False
        self.undo: Undo | None = None
        self.views: list[GroupViewResult] = []
        for name in ("g", "h"):
            self._do(g.ElasticqSetGroup(name, queue_name_prefix="q-"))
        for number in range(4):
            self._queue(number, 0)

    def run(self, steps: Sequence[Step]) -> None:
        for action, a, b in steps:
            getattr(self, f"_{action}")(a, b)

    def _do(self, command: c.Command) -> object:
        try:
            return self.desk.do(command, undo=self.undo)
        except SqsError as error:
            return error

    def _group(self, a: int) -> str:
        return "gh"[a % 2]

    def _view(self, a: int) -> GroupViewResult | None:
        return self.views[a % len(self.views)] if self.views else None

    def _note(self, result: object) -> None:
        if isinstance(result, GroupViewResult):
            self.views = [each for each in self.views if each.consumer_id != result.consumer_id] + [result]

    def _join(self, a: int, b: int) -> None:
        self._note(self._do(g.ElasticqJoinGroup(self._group(a), weight=max(b - 2, 0) or None)))

    def _leave(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None:
            self._do(g.ElasticqLeaveGroup(view.group_name, view.consumer_id))

    def _beat(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None:
            self._note(self._do(g.ElasticqHeartbeat(view.group_name, view.consumer_id)))

    def _give(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None:
            tokens = [each.token for each in view.revoking]
            self._note(self._do(g.ElasticqHeartbeat(view.group_name, view.consumer_id, tokens)))

    def _spare(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None:
            tokens = [each.token for each in view.assigned][:b]
            self._note(self._do(g.ElasticqHeartbeat(view.group_name, view.consumer_id, [*tokens, *tokens, 999])))

    def _move(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None:
            self._do(g.ElasticqMoveResource(view.group_name, f"q-{b}", view.consumer_id))

    def _drain(self, a: int, b: int) -> None:
        view = self._view(a)
        if view is not None and b == 0:
            self._do(g.ElasticqDrainConsumer(view.group_name, view.consumer_id))

    def _queue(self, a: int, b: int) -> None:
        self._do(c.CreateQueue(f"q-{a}"))

    def _drop(self, a: int, b: int) -> None:
        self._do(c.DeleteQueue(f"q-{a}"))

    def _set(self, a: int, b: int) -> None:
        self._do(g.ElasticqSetGroup(self._group(a), **SETTINGS[b]))

    def _delete(self, a: int, b: int) -> None:
        if b == 0:
            self._do(g.ElasticqDeleteGroup(self._group(a)))
            self._do(g.ElasticqSetGroup(self._group(a), queue_name_prefix="q-"))

    def _wait(self, a: int, b: int) -> None:
        self.desk.wait((0.1, 1, 2, 3, 5, 11)[b])

    def _sweep(self, a: int, b: int) -> None:
        if self.undo is None:
            self.desk.sweep_groups()

    def _takeover(self, a: int, b: int) -> None:
        now_ms = self.desk.context.now_ms
        self.desk.context.term += 1
        self.desk.write([m.TookOver(self.desk.context.term, "b", now_ms - 1_400, now_ms + 2_000)], self.undo)

    def settle(self) -> None:
        """Everybody gives back what is asked back, and nobody's session ends, until nothing changes."""
        for _ in range(12):
            self.desk.wait(1)
            self.desk.sweep_groups()
            for consumer in list(self.desk.state.groups.consumers.values()):
                group = self.desk.state.groups.by_number[consumer.row.group].row.name
                tokens = list(consumer.revoking)
                self._do(g.ElasticqHeartbeat(group, f"{consumer.row.number:016x}", tokens))


def index_of(state: State) -> Any:
    groups = state.groups
    return (
        {
            number: (
                group.row,
                group.status,
                {each: (x.row, dict(x.held), dict(x.revoking)) for each, x in sorted(group.consumers.items())},
                dict(sorted(group.present.items())),
                dict(sorted(group.by_resource.items())),
            )
            for number, group in groups.by_number.items()
        },
        sorted(groups.consumers),
        groups.rows(),
    )


def check_laws(log: list[m.Mutation]) -> None:
    """A token is given once, tokens grow, and a resource is assigned only when the one before was given back."""
    held: dict[tuple[int, str, int], int] = {}
    rows: dict[int, r.ResourceAssigned] = {}
    last = 0
    for mutation in log:
        if isinstance(mutation, r.ResourceFreed):
            row = rows.pop(mutation.token)
            del held[row.group, row.name, row.partition]
        elif isinstance(mutation, r.ResourceAssigned):
            key = mutation.group, mutation.name, mutation.partition
            old = rows.get(mutation.token)
            if old is None:
                assert key not in held, "two holders"
                assert mutation.token > last, "tokens grow"
                assert not mutation.is_revoked
                last, held[key] = mutation.token, mutation.token
            else:
                assert mutation.is_revoked or not old.is_revoked, "what was revoked is given back first"
                assert (mutation.consumer, mutation.queue_id) == (old.consumer, old.queue_id)
            rows[mutation.token] = mutation


@settings(max_examples=100, deadline=None)
@given(steps=STEPS)
def test_the_index_is_what_the_rows_say(steps: list[Step]) -> None:
    driver = GroupDriver()
    driver.run(steps)
    state = driver.desk.state
    check_laws(driver.desk.log)
    for other in (replayed(driver.desk.log), replayed(driver.desk.log, times=2)):
        assert index_of(other) == index_of(state)
        assert state_digest(other) == state_digest(state)
    dumped = replayed([mutation for chunk in dump(state) for mutation in chunk])
    assert index_of(dumped) == index_of(state)
    assert state_digest(dumped) == state_digest(state)


@settings(max_examples=80, deadline=None)
@given(before=STEPS, after=STEPS)
def test_what_is_rolled_back_never_was(before: list[Step], after: list[Step]) -> None:
    driver = GroupDriver()
    driver.run(before)
    index, digest = index_of(driver.desk.state), state_digest(driver.desk.state)
    driver.undo = []
    driver.run(after)
    roll_back(driver.undo)
    assert index_of(driver.desk.state) == index
    assert state_digest(driver.desk.state) == digest


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_group_that_is_left_alone_comes_to_rest_with_even_shares(steps: list[Step]) -> None:
    driver = GroupDriver()
    driver.run(steps)
    driver._join(0, 3)
    driver.settle()
    for group in driver.desk.state.groups.by_number.values():
        assert not group.status.started_ms
        assert not any(row.is_revoked for row in group.by_resource.values())
        eligible = [each for each in group.consumers.values() if each.row.weight]
        most = group.row.max_per_consumer or len(group.present)
        held = sum(len(each.held) for each in eligible)
        assert held == min(len(group.present), most * len(eligible))
        if not group.row.max_per_consumer:
            weights = sum(each.row.weight for each in eligible)
            for each in eligible:
                assert abs(len(each.held) - len(group.present) * each.row.weight / weights) < 1


def test_views_of_consumers_that_come_and_go() -> None:
    desk = GroupDesk()
    desk.group()
    desk.queues(6)
    first = desk.join()
    assert len(first.assigned) == 6
    second = desk.join()
    assert not second.assigned, "nobody gets what another one still holds"
    first = desk.beat(first)
    assert len(first.revoking) == 3
    first = desk.give_back(first)
    assert first.version > second.version
    second = desk.beat(second)
    assert sorted(names(first) + names(second)) == [f"q-0000{number}" for number in range(6)]
    desk.leave(first)
    assert len(desk.beat(second).assigned) == 6


def test_a_queue_that_is_made_anew_waits_for_who_holds_the_old_one() -> None:
    desk = GroupDesk()
    desk.group()
    desk.queues(1)
    first = desk.join()
    second = desk.join()
    desk.do(c.DeleteQueue("q-00000"))
    desk.create("q-00000")
    desk.sweep_groups()
    first = desk.beat(first)
    assert (names(first), [each.resource for each in first.revoking]) == ([], ["q-00000"])
    assert not desk.beat(second).assigned
    first = desk.give_back(first)
    holders = [view for view in (desk.beat(first), desk.beat(second)) if view.assigned]
    assert len(holders) == 1
    assert holders[0].assigned[0].token > first.version - 1


def test_more_than_an_entry_holds_is_shared_out_in_steps() -> None:
    desk = GroupDesk()
    desk.group()
    desk.queues(1_200)
    view = desk.join()
    assert len(view.assigned) == 1_000
    assert max(map(len, desk.steps)) <= 1_010
    desk.sweep_groups()
    assert len(desk.beat(view).assigned) == 1_200


@pytest.mark.pure
def test_a_prefix_has_no_more_resources_than_a_group_may_have(monkeypatch: Any) -> None:
    monkeypatch.setattr("elasticq.engine.stored.consumer_group_index.RESOURCES_MAX", 3)
    desk = GroupDesk()
    desk.group()
    desk.queues(5)
    present = desk.index().present
    assert len(present) == 3
    desk.do(c.DeleteQueue("q-00001"))
    assert sorted(name for name, _ in desk.index().present) == ["q-00000", "q-00002", "q-00003"]


def test_consumer_whose_removal_was_rolled_back_is_over_once() -> None:
    groups = Groups(QueueNames())
    row = r.ConsumerSet(1, 1, "", 1, joined_ms=1, deadline_ms=2, version=1)
    groups.put_consumer(row)
    groups.drop_consumer(1)
    groups.put_consumer(row)
    for _ in range(2):
        assert [each.row for each in groups.ended_sessions(Grace(), 3, 10)] == [row]


def test_rows_that_no_master_of_ours_would_write_do_not_break_the_background_work() -> None:
    desk = GroupDesk()
    desk.group()
    desk.queues(1)
    view = desk.join()
    number, queue = next(iter(desk.state.groups.by_number)), desk.queue("q-00000").id
    consumer = int(view.consumer_id, 16)
    desk.write([r.ResourceAssigned(77, number, queue, "q-00000", r.WHOLE, consumer, 0)])
    desk.write([r.ResourceAssigned(78, number, queue, "q-00001", r.WHOLE, 99, 0), r.ResourceFreed(79, queue)])
    desk.write([r.ConsumerRemoved(98), r.ConsumerGroupDeleted(97), r.ConsumerChanged(96, 1)])
    desk.queues(2)
    desk.wait(11)
    desk.sweep_groups()
    assert desk.shown().consumers == []


@pytest.mark.pure
@settings(max_examples=100)
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=60), at=st.integers(0, 60))
def test_a_prefix_has_the_first_of_its_queues_whatever_comes_and_goes(steps: list[tuple[bool, int]], at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elasticq.engine.stored.consumer_group_index.RESOURCES_MAX", 4)
        desk = GroupDesk()
        undo: Undo = []
        desk.group()
        marks: list[list[str]] = []
        for place, (comes, number) in enumerate(steps):
            if place == at:
                marks.append(sorted(name for name, _ in desk.index().present))
            name, kept = f"q-{number}", undo if place >= at else None
            is_there = (desk.index().row.account, name) in desk.state.names
            if comes and not is_there:
                desk.do(c.CreateQueue(name), undo=kept)
            elif not comes and is_there:
                desk.do(c.DeleteQueue(name), undo=kept)
            found = sorted(name for _, name in desk.state.names)[:4]
            assert sorted(name for name, _ in desk.index().present) == found
        roll_back(undo)
        for mark in marks:
            assert sorted(name for name, _ in desk.index().present) == mark
