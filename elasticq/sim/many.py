"""Runs many scenarios in as many processes as there are cores; outcomes come in the order of the scenarios."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from elasticq.sim.faults import Scenario
from elasticq.sim.world import Outcome, run

CHUNK = 4


def judged(scenario: Scenario) -> Outcome:
    """Return a run's outcome without its history, which is large."""
    outcome = run(scenario)
    outcome.history = []
    return outcome


def run_all(scenarios: Iterable[Scenario], processes: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each scenario. ``processes``: 0 for one a core."""
    context = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        yield from pool.map(judged, scenarios, chunksize=CHUNK)
