"""Faults meet the phases that they can meet: by chance, or because they wait for them."""

from collections import Counter

from msgspec.structs import replace

from elasticq.sim import phases
from elasticq.sim.faults import KINDS, PHASE_PATIENCE_MS, Fault, scenario
from elasticq.sim.many import run_all
from elasticq.sim.world import World

SEEDS = range(1, 25)
RARE = {
    ("crash_master", phases.ELECTION),
    ("isolate_master", phases.ELECTION),
    ("cut_master_from_majority", phases.ELECTION),
    ("pause_master", phases.ELECTION),
    ("crash_appending_master", phases.ELECTION),
    ("isolate_appending_master", phases.ELECTION),
    ("leave", phases.ELECTION),
    ("wipe", phases.ELECTION),
}
"""They need a master: without one they do nothing."""


def _waiting(kind: str, phase: str, *more: Fault) -> World:
    faults = tuple(Fault(at_ms, at_ms + 500, kind, 0, 1, phase=phase) for at_ms in (6_000, 16_000, 26_000))
    made = scenario(11, 3, kinds=("cut",), background=(), count=1, features=("leases",), mode="majority", volatile=())
    return World(replace(made, faults=(*faults, *more)))


def test_fault_waits_for_its_phase() -> None:
    world = _waiting("crash_master", phases.LEASE_SEALED)
    assert not world.run().findings
    assert world.injector.met["crash_master", phases.LEASE_SEALED] == world.injector.struck > 0


def test_fault_whose_phase_does_not_come_lapses() -> None:
    world = _waiting("crash_master", phases.MOVING)
    assert not world.run().findings
    assert world.injector.struck == 0
    assert not world.injector.waiting
    assert PHASE_PATIENCE_MS < 10_000, "the three were given at ten seconds from each other"


def test_fault_waits_for_a_hand_over() -> None:
    """The shortest of all phases: a fault that did not wait for it would hardly ever meet it."""
    transfers = [Fault(at_ms, at_ms, "transfer", 1) for at_ms in (6_500, 16_500, 26_500)]
    world = _waiting("crash", phases.HAND_OVER, *transfers)
    assert not world.run().findings
    assert world.injector.met["crash", phases.HAND_OVER] > 0


def test_a_few_seeds_meet_the_phases() -> None:
    met: phases.Met = Counter()
    scenarios = [scenario(seed, 3, features=("leases", "dead_letters", "move_tasks", "fifo")) for seed in SEEDS]
    for outcome in run_all(scenarios):
        assert not outcome.findings
        met.update(outcome.met)
    print(phases.table(met, KINDS))
    by_phase = Counter({phase: sum(met[kind, phase] > 0 for kind in KINDS) for phase in phases.PHASES})
    assert not any(met[pair] for pair in RARE)
    for phase in (phases.LEASE_OPEN, phases.LEASE_SEALED, phases.TWO_AT_ONCE):
        assert by_phase[phase] >= len(KINDS) // 2, phase
    assert all(by_phase[phase] for phase in (phases.ELECTION, phases.TAKEOVER, phases.SNAPSHOT, phases.MOVING)), (
        by_phase
    )
