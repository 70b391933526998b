"""Runs many scenarios in as many processes as there are cores; outcomes come in the order of the scenarios."""

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
"""CPU time after which a run is judged to be endless; most take half a second, the longest a few."""


def judged(scenario: Scenario) -> Outcome:
    """Return a run's outcome without its history, which is large. A member that does not end has failed."""
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
    """Yield the outcome of each scenario. ``processes``: 0 for one a core."""
    context = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        yield from pool.map(judged, scenarios, chunksize=CHUNK)
