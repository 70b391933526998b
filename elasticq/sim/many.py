"""The runs of many scenarios, in several processes at the same time."""

import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import FrameType

from elasticq.sim.faults import Scenario
from elasticq.sim.process import EndlessCall
from elasticq.sim.world import Outcome, run

CHUNK = 4
RUN_CPU_S = 60.0
"""The CPU time after which a run counts as endless. Most runs take half a second, the longest some seconds."""


def judged(scenario: Scenario) -> Outcome:
    """Run a scenario. Return its outcome without the history, which is large.

    If a member's call does not end within RUN_CPU_S, the outcome has a finding.
    """
    signal.signal(signal.SIGVTALRM, _end)
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_CPU_S)
    try:
        outcome = run(scenario)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    outcome.history = []
    return outcome


def _end(number: int, frame: FrameType | None) -> None:
    raise EndlessCall(f"no end after {RUN_CPU_S:g} s of CPU time")


def run_all(scenarios: Iterable[Scenario], processes: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each scenario, in their order. processes: how many run at the same time, 0: one per core."""
    context = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        yield from pool.map(judged, scenarios, chunksize=CHUNK)
