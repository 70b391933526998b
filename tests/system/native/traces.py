"""Fixed seeds of the simulator and the hashes of their runs: ``python -m tests.system.native.traces PART``.

Runs are short, as there are many, and each is run twice. Longer ones are in tests/sim, in pure Python.
"""

import sys
from collections.abc import Iterator

from elasticq.sim.faults import Scenario, scenario
from elasticq.sim.world import run

DURATION_MS = 16_000
PARTS = 10


def scenarios() -> list[Scenario]:
    """200: clusters of three, five and seven, a member alone, and members with other bounds."""
    return [
        *(scenario(seed, 3, duration_ms=DURATION_MS) for seed in range(9_000, 9_120)),
        *(scenario(seed, 5, duration_ms=DURATION_MS) for seed in range(9_200, 9_225)),
        *(scenario(seed, 7, duration_ms=DURATION_MS) for seed in range(9_300, 9_305)),
        *(scenario(seed, 1, duration_ms=DURATION_MS) for seed in range(9_400, 9_420)),
        *(scenario(seed, 3, duration_ms=DURATION_MS, is_mixed=True) for seed in range(9_500, 9_530)),
    ]


def traces(part: int) -> Iterator[str]:
    """A line for each run of a part: its cluster, its seed, and the hash of all that happened."""
    for chosen in scenarios()[part::PARTS]:
        yield f"{chosen.members} members, seed {chosen.seed}: {run(chosen).trace_hash}"


if __name__ == "__main__":
    for line in traces(int(sys.argv[1])):
        print(line)
