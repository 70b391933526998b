"""A run at rest is judged: each thing that may be wrong then is found by its name, and nothing where all is well."""

from collections.abc import Callable

import pytest

from elasticq.checks.history import Send, SentMessage
from elasticq.checks.queue import LOST
from elasticq.node.orders import AddVoter
from elasticq.sim import verdict
from elasticq.sim.faults import scenario
from elasticq.sim.member import Member
from elasticq.sim.world import World


def _at_rest() -> World:
    """A world whose run is over."""
    world = World(scenario(3, 3, kinds=("cut",), background=(), count=1, duration_ms=12_000, volatile=(), features=()))
    assert world.run().findings == []
    return world


def _names(world: World) -> set[str]:
    verdict.judge_at_rest(world.cluster, world.judge, world.workload, world.clients, world.operator)
    return {finding.name for finding in world.trace.findings}


def _follower(world: World) -> Member:
    return next(member for member in world.cluster.members if member is not world.cluster.master)


def _nothing_was_written(world: World) -> None:
    world.workload.first_write_after_heal_us = None


def _nobody_served_in_time(world: World) -> None:
    world.judge.served_us = world.scenario.heal_ms * 1_000 + verdict.RECOVERY_MAX_US + 1


def _an_order_is_open(world: World) -> None:
    world.operator.want(lambda: AddVoter("nobody"), lambda: False)


def _a_follower_stays_behind(world: World) -> None:
    master = world.cluster.master
    assert master is not None
    assert master.node is not None
    master.node.replica.commit_index += verdict.BEHIND_ENTRIES_MAX + 100


def _a_member_in_memory_is_no_voter(world: World) -> None:
    follower = _follower(world)
    follower.is_volatile, follower.id = True, "m9-another"


def _a_message_never_came(world: World) -> None:
    message = SentMessage("never", message_ids=["id"])
    event = Send(client="p", queue=world.workload.sources[0].name, invoke_us=5_000_000, messages=[message])
    event.outcome, event.complete_us = "ok", 5_100_000
    world.workload.history.append(event)


def _all_are_down(world: World) -> None:
    for member in world.cluster.members:
        member.crash()


def test_nothing_is_found_where_all_is_well() -> None:
    assert _names(_at_rest()) == set()


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (_nothing_was_written, verdict.NO_PROGRESS),
        (_nobody_served_in_time, verdict.NO_PROGRESS),
        (_an_order_is_open, verdict.ORDER_NOT_DONE),
        (_a_follower_stays_behind, verdict.LEFT_BEHIND),
        (_a_member_in_memory_is_no_voter, verdict.LEFT_OUT),
        (_a_message_never_came, LOST),
        (_all_are_down, verdict.NO_MASTER),
    ],
)
def test_what_is_wrong_at_rest_is_found_by_its_name(damage: Callable[[World], None], name: str) -> None:
    world = _at_rest()
    damage(world)
    assert _names(world) == {name}


def test_recovery_counts_from_when_enough_voters_have_their_rows() -> None:
    world = _at_rest()
    _nobody_served_in_time(world)
    world.judge.voteless_us = world.scenario.heal_ms * 1_000 + 1
    assert _names(world) == set()


def test_voters_that_are_down_or_wait_for_a_snapshot_are_not_enough() -> None:
    world = _at_rest()
    master, follower = world.cluster.master, _follower(world)
    assert master is not None
    assert master.node is not None
    assert follower.node is not None
    membership = master.node.replica.membership
    assert not world.judge._lacks_votes(membership)
    follower.crash()
    assert not world.judge._lacks_votes(membership)
    master.node.replica.is_whole = False
    assert world.judge._lacks_votes(membership)
