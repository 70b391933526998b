"""The readers under kills at every step: nothing is lost, and designs that lose or keep messages are found."""

import logging
from collections.abc import Iterator

import pytest

from tests.spark.model.loop import Faults, Outcome, Setup, World, total
from tests.spark.model.planted import (
    CommitsOnlyInCommit,
    CommitsWhenPlanned,
    ExpiryPerCall,
    ForgetsWhatItCommitted,
    LastWriterWins,
)
from tests.spark.model.setups import ALONE, AWAY, KILLS, NOTHING_STUCK, ONCE, SETUPS, WAL

SEEDS = 6
CHAOS_KILLS = 100_000
PLANTED_SEEDS_MAX = 60


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the readers warn of is what happens here all the time."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def judged(name: str, seed: int) -> Outcome:
    outcome = World(seed, SETUPS[name]).run()
    assert outcome.lost == 0, f"{name}, seed {seed}: {outcome}"
    if name in ONCE:
        assert outcome.duplicates == 0, f"{name}, seed {seed}: {outcome}"
        assert outcome.differing_reads == 0, f"{name}, seed {seed}: {outcome}"
    if name in NOTHING_STUCK:
        assert outcome.stuck == 0, f"{name}, seed {seed}: {outcome}"
    return outcome


@pytest.mark.parametrize("name", SETUPS)
def test_nothing_is_lost_whatever_is_killed(name: str) -> None:
    outcome = total([judged(name, seed) for seed in range(SEEDS)])
    assert outcome.kills > 20
    assert outcome.batches > 20


@pytest.mark.chaos
def test_nothing_is_lost_in_a_hundred_thousand_kills(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: list[Outcome] = []
    kills = 0
    seed = 1_000
    while kills < CHAOS_KILLS:
        for name in SETUPS:
            outcomes.append(judged(name, seed))
            kills += outcomes[-1].kills
        seed += 1
    with capsys.disabled():
        print(f"\n{len(outcomes)} runs: {total(outcomes)}")


def test_runs_without_faults_read_each_message_once() -> None:
    calm = Faults(0, 0, 0, 0, 0, 0)
    for options in ({}, WAL, {"mode": "driver"}):
        outcome = World(1, Setup(faults=calm, options=options)).run()
        assert (outcome.lost, outcome.duplicates, outcome.stuck) == (0, 0, 0)


def test_a_run_repeats_from_its_seed() -> None:
    assert World(7, SETUPS["wal"]).run() == World(7, SETUPS["wal"]).run()


@pytest.mark.parametrize(
    ("design", "symptom"),
    [
        (Setup(faults=KILLS, options={"ack_mode": "onRead"}), "lost"),
        (Setup(faults=KILLS, reader=CommitsWhenPlanned), "lost"),
        (Setup(faults=AWAY, options=ALONE, sent_at_once=50, client=ExpiryPerCall), "lost"),
        (Setup(faults=KILLS, options=WAL, store=LastWriterWins), "lost"),
        (Setup(faults=KILLS, options=WAL, store=ForgetsWhatItCommitted), "lost"),
        (Setup(faults=Faults(0, 0, 0, 0, 0, 0), reader=CommitsOnlyInCommit), "stuck"),
    ],
    ids=["naive", "commit_when_planned", "expiry_per_call", "last_writer_wins", "no_committed_mark", "only_in_commit"],
)
def test_a_planted_design_is_found(design: Setup, symptom: str) -> None:
    assert any(getattr(World(seed, design).run(), symptom) for seed in range(PLANTED_SEEDS_MAX))
