"""``elasticq sim``: it prints seeds and totals, replays what it saved, and shrinks what fails."""

from pathlib import Path

import msgspec
import pytest

from elasticq.checks.history import load_lines
from elasticq.sim.cli import main
from elasticq.sim.faults import Fault, Scenario, scenario
from elasticq.sim.invariants import TERM_RAISED_AT_RESTART
from elasticq.sim.shrink import shrink
from elasticq.sim.world import run
from tests.sim import planted


def test_seed_is_printed_with_its_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--first", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 3 members 3: ")
    assert lines[-1].startswith("first seed 3, 3 members: 1 seeds, ")
    assert lines[-1].endswith("seeds a core-minute")


def test_saved_scenario_replays_to_the_same_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, history = tmp_path / "scenario.json", tmp_path / "history.jsonl"
    main(["--seed", "4", "--save", str(saved), "--history", str(history)])
    first = capsys.readouterr().out.splitlines()[0]
    main(["--replay", str(saved)])
    assert capsys.readouterr().out.splitlines()[0] == first
    assert len(list(load_lines(history.read_bytes().splitlines()))) >= 300


def test_trace_tells_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seed", "4", "--trace"])
    out = capsys.readouterr().out
    assert " start m1 1" in out
    assert " master m" in out
    assert " heal all" in out


def test_failing_scenario_shrinks_to_the_one_fault_that_matters() -> None:
    seeded = scenario(1, 3, kinds=("restart", "loss_burst", "clock_jump"), background=(), count=12, duration_ms=24_000)
    with planted.restarted_member_raises_its_term():
        small = shrink(seeded, TERM_RAISED_AT_RESTART)
        assert [finding.name for finding in run(small).findings] == [TERM_RAISED_AT_RESTART]
    assert [fault.kind for fault in small.faults] == ["restart"]
    assert small.duration_ms < seeded.duration_ms
    assert not run(small).findings


def test_scenario_survives_its_json() -> None:
    made = scenario(9, 5)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Scenario) == made
    assert all(isinstance(fault, Fault) for fault in made.faults)
