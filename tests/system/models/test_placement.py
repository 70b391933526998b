"""A model of a change of the placement: which shard owns a queue's name (issue: many masters).

Shard 0 stores the placement. Shard A owns all names in version 1. Version 2 adds shard B, and gives it the name "moved"
unless A has such a queue already: then the name is pinned to A. All three are replicated logs, whose newest entries may
be lost with a master. Routers send creations to any shard, with routes of any age.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from tests.system.models.explorer import Explorer, Found

NAMES = ("moved", "stays")  # version 2 gives the first one to B
PENDING_MAX = 2
DELETIONS_MAX = 2


class Placement(NamedTuple):
    """The rows of shard 0. phase: 0 for version 1, 1 for prepared, 2 for active. pins: names that stay at A."""

    phase: int = 0
    pins: frozenset[str] = frozenset()


class Shard(NamedTuple):
    """The rows of a shard. phase: 0 for version 1, 1 for frozen, 2 for version 2. pins: those that it applied."""

    phase: int = 0
    queues: frozenset[str] = frozenset()
    pins: frozenset[str] = frozenset()
    deletions: int = 0


class World(NamedTuple):
    """Committed rows, the rows after each entry that is not committed, and the reports of A that were ever sent."""

    zero: Placement = Placement()
    zero_pending: tuple[Placement, ...] = ()
    a: Shard = Shard()
    a_pending: tuple[Shard, ...] = ()
    b: Shard = Shard()
    b_pending: tuple[Shard, ...] = ()
    reports: frozenset[frozenset[str]] = frozenset()


def steps(world: World, plant: str = "") -> Iterator[tuple[str, World]]:
    for log in ("zero", "a", "b"):
        pending = getattr(world, f"{log}_pending")
        if pending:
            committed = {log: pending[0], f"{log}_pending": pending[1:]}
            yield f"{log} commits", world._replace(**committed)
            yield f"master of {log} dies", world._replace(**{f"{log}_pending": ()})
        if len(pending) < PENDING_MAX:
            rows = pending[-1] if pending else getattr(world, log)
            for name, after in _entries(world, log, rows, plant):
                yield f"{log}: {name}", world._replace(**{f"{log}_pending": (*pending, after)})
    frozen = _newest(world.a, world.a_pending) if plant == "reports_uncommitted_freeze" else world.a
    if frozen.phase == 1:
        report = frozenset(name for name in frozen.queues if name == "moved")
        yield "A reports", world._replace(reports=world.reports | {report})


def _newest(committed: Shard, pending: tuple[Shard, ...]) -> Shard:
    return pending[-1] if pending else committed


def _entries(world: World, log: str, rows: Placement | Shard, plant: str) -> Iterator[tuple[str, Placement | Shard]]:
    """Yield the entries that the master of a log may append, as its rows after them."""
    if isinstance(rows, Placement):
        if rows.phase == 0:
            yield "prepare", Placement(1)
        if rows.phase == 1:
            for report in world.reports:
                yield "activate", Placement(2, frozenset() if plant == "pins_are_dropped" else report)
        return
    is_a = log == "a"
    if is_a and rows.phase == 0 and world.zero.phase >= 1:
        yield "freeze", rows._replace(phase=1)
    may_activate = world.zero.phase == 2 or (plant == "b_starts_early" and not is_a and world.zero.phase == 1)
    if may_activate and rows.phase < 2:
        yield "activate", rows._replace(phase=2, pins=world.zero.pins)
    for name in NAMES:
        if name in rows.queues:
            if rows.deletions < DELETIONS_MAX:
                yield f"delete {name}", rows._replace(queues=rows.queues - {name}, deletions=rows.deletions + 1)
        elif _may_create(is_a, rows, name, plant):
            yield f"create {name}", rows._replace(queues=rows.queues | {name})


def _may_create(is_a: bool, rows: Shard, name: str, plant: str) -> bool:
    """Return whether a shard creates a queue. The placement that it has applied decides, not the router's."""
    if plant == "routers_decide":
        return is_a or rows.phase == 2
    is_moved = name == "moved" and name not in rows.pins
    if not is_a:
        return rows.phase == 2 and is_moved
    if rows.phase == 0:
        return True
    if rows.phase == 1 and plant != "frozen_shard_creates":
        return name != "moved"
    return not is_moved or rows.phase == 1


def check(world: World) -> str:
    """Return which promise is broken for the durable rows, empty if none is."""
    if world.a.queues & world.b.queues:
        return "two shards have a queue of the same name"
    if world.a.phase == 2 and "moved" in world.a.queues and "moved" not in world.a.pins:
        return "a queue is at a shard that does not own its name"
    if world.b.phase == 2 and world.b.queues & world.b.pins:
        return "a queue is at a shard that does not own its name"
    return ""


def is_changed(world: World) -> bool:
    return world.zero.phase == world.a.phase == world.b.phase == 2


def searched(plant: str = "") -> Found:
    return Explorer(World(), partial(steps, plant=plant), states_max=1_000_000).find(check, is_changed)


PLANTS = {
    "reports_uncommitted_freeze": "a queue is at a shard that does not own its name",
    "pins_are_dropped": "a queue is at a shard that does not own its name",
    "b_starts_early": "two shards have a queue of the same name",
    "frozen_shard_creates": "a queue is at a shard that does not own its name",
    "routers_decide": "a queue is at a shard that does not own its name",
}


def test_name_has_one_owner_and_each_change_ends() -> None:
    found = searched()
    assert (found.fault, found.trail) == ("", ())
    assert found.states > 1_500, "the search covers many orders of events"


@pytest.mark.parametrize(("plant", "fault"), PLANTS.items())
def test_planted_faults_are_found(plant: str, fault: str) -> None:
    assert searched(plant).fault == fault
