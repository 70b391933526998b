"""Whole clusters under seeded faults: fixed seeds, fresh ones by date, and the same run twice."""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elasticq.sim.cli import Totals, describe
from elasticq.sim.faults import scenario
from elasticq.sim.many import run_all
from elasticq.sim.world import Outcome, run

FIXED = [(1, range(1, 11)), (3, range(1, 66)), (5, range(1, 26))]
FRESH = [(3, 150), (5, 50)]
FRESH_FIRST = int(datetime.datetime.now(datetime.UTC).strftime("%Y%m%d")) * 1_000
OPERATIONS_ALONE = 150  # while a member alone is down, nothing is done
SIMULATED_MS, OPERATIONS, FAULTS, ELECTIONS = 60_000, 200, 3, 2  # at least, a seed

ROOT = Path(__file__).parents[2]
TRACE_SCRIPT = """
from elasticq.sim.faults import scenario
from elasticq.sim.world import run
print(run(scenario(7, 3)).trace_hash)
"""


def _run_all(members: int, seeds: range) -> list[Outcome]:
    totals = Totals()
    outcomes = list(run_all([scenario(seed, members) for seed in seeds]))
    for outcome in outcomes:
        totals.add(outcome)
        if outcome.findings:
            print(describe(outcome))
    print(f"{members} members, seeds {seeds.start} to {seeds.stop - 1}: {totals.line()}")
    return outcomes


def _failures(outcomes: list[Outcome]) -> list[str]:
    return [describe(outcome) for outcome in outcomes if outcome.findings]


@pytest.mark.parametrize(("members", "seeds"), FIXED)
def test_fixed_seeds_break_no_invariant(members: int, seeds: range) -> None:
    outcomes = _run_all(members, seeds)
    assert not _failures(outcomes)
    for outcome in outcomes:
        assert outcome.simulated_ms >= SIMULATED_MS, describe(outcome)
        assert outcome.operations >= (OPERATIONS if members > 1 else OPERATIONS_ALONE), describe(outcome)
        assert outcome.faults >= FAULTS, describe(outcome)
    if members > 1:
        assert sum(outcome.transfers.installed for outcome in outcomes) >= len(outcomes) // 4
        assert sum(outcome.orders for outcome in outcomes) >= len(outcomes) // 4
    assert sum(outcome.elections >= ELECTIONS for outcome in outcomes) * 2 >= len(outcomes)


@pytest.mark.parametrize(("members", "count"), FRESH)
def test_fresh_seeds_of_today_break_no_invariant(members: int, count: int) -> None:
    outcomes = _run_all(members, range(FRESH_FIRST, FRESH_FIRST + count))
    assert not _failures(outcomes), f"repeat with: python -m elasticq sim --members {members} --seed N"


def test_trace_does_not_depend_on_hash_order() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE_SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(traces) == 1
    assert traces.pop().strip() == run(scenario(7, 3)).trace_hash
