"""The reduction of a failing scenario: a shorter run, a calmer network, fewer kinds of fault, then as few faults as
possible.

A smaller scenario is accepted only if it still has a finding of the same name. The number of runs is bounded, because
each run takes as long as the first one.
"""

from collections.abc import Callable

from msgspec.structs import replace

from elasticq.sim.faults import Fault, Scenario
from elasticq.sim.world import run

RUNS_MAX = 120
DURATION_MIN_MS = 8_000

Fails = Callable[[Scenario], bool]


def shrink(scenario: Scenario, name: str, report: Callable[[str], None] = lambda line: None) -> Scenario:
    """Return the smallest scenario found that still has a finding called ``name``. report: gets lines of progress."""
    runs = 0

    def fails(candidate: Scenario) -> bool:
        nonlocal runs
        if runs >= RUNS_MAX:
            return False
        runs += 1
        return any(finding.name == name for finding in run(candidate).findings)

    for step in (_halve, _calm, _drop_kinds, _drop_faults):
        scenario = step(scenario, fails)
        report(f"{step.__name__[1:]}: {scenario.duration_ms} ms, {len(scenario.faults)} faults, after {runs} runs")
    return scenario


def _shortened(scenario: Scenario, duration_ms: int) -> Scenario:
    heal_ms = scenario.heal_ms * duration_ms // scenario.duration_ms
    kept = tuple(
        replace(fault, until_ms=min(fault.until_ms, heal_ms)) for fault in scenario.faults if fault.at_ms < heal_ms
    )
    return replace(scenario, duration_ms=duration_ms, heal_ms=heal_ms, faults=kept)


def _halve(scenario: Scenario, fails: Fails) -> Scenario:
    while scenario.duration_ms // 2 >= DURATION_MIN_MS:
        shorter = _shortened(scenario, scenario.duration_ms // 2)
        if not fails(shorter):
            return scenario
        scenario = shorter
    return scenario


def _calm(scenario: Scenario, fails: Fails) -> Scenario:
    """Try a network without loss, duplicates and stragglers, and clocks without skew."""
    for change in (
        {"loss_share": 0.0},
        {"duplicate_share": 0.0},
        {"straggler_share": 0.0},
        {"wall_skew_ms": (0,) * scenario.members},
    ):
        calmer = replace(scenario, **change)
        if calmer != scenario and fails(calmer):
            scenario = calmer
    return scenario


def _drop_kinds(scenario: Scenario, fails: Fails) -> Scenario:
    for kind in dict.fromkeys(fault.kind for fault in scenario.faults):
        fewer = replace(scenario, faults=tuple(fault for fault in scenario.faults if fault.kind != kind))
        if fails(fewer):
            scenario = fewer
    return scenario


def _drop_faults(scenario: Scenario, fails: Fails) -> Scenario:
    """Remove smaller and smaller pieces of the list of faults: delta debugging (Zeller and Hildebrandt 2002)."""
    size = max(1, len(scenario.faults) // 2)
    while scenario.faults:
        fewer = _without_a_piece(scenario, size, fails)
        if fewer is not None:
            scenario = fewer
        elif size == 1:
            break
        size = max(1, min(size // 2 if fewer is None else size, len(scenario.faults)))
    return scenario


def _without_a_piece(scenario: Scenario, size: int, fails: Fails) -> Scenario | None:
    faults: tuple[Fault, ...] = scenario.faults
    for at in range(0, len(faults), size):
        fewer = replace(scenario, faults=faults[:at] + faults[at + size :])
        if fails(fewer):
            return fewer
    return None
