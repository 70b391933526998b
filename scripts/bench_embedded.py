"""How long an embedded server takes to start and to stop: the median of 20, once everything is imported.

python scripts/bench_embedded.py            # a thread of this process
python scripts/bench_embedded.py --process  # a process of its own, its imports included
python scripts/bench_embedded.py --cluster  # three members, until they have a master
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

RUNS = 20
START_MAX_MS, STOP_MAX_MS = 300, 50


def measure(make: Callable[[], object], runs: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each start and stop; between them one client has come and gone."""
    starts, stops = [], []
    for _ in range(runs):
        server = make()
        began = time.perf_counter()
        server.start()  # type: ignore[attr-defined]
        served = time.perf_counter()
        server.client().list_queues()  # type: ignore[attr-defined]
        stopping = time.perf_counter()
        server.stop()  # type: ignore[attr-defined]
        starts.append((served - began) * 1_000)
        stops.append((time.perf_counter() - stopping) * 1_000)
    return starts, stops


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--process", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    began = time.perf_counter()
    from elasticq.testing import Cluster, ElasticQ

    print(f"import   {(time.perf_counter() - began) * 1_000:6.1f} ms")
    kind = Cluster if options.cluster else ElasticQ
    settings = {"process": True} if options.process and not options.cluster else {}
    warm = kind(**settings)
    warm.start()
    warm.client().list_queues()
    warm.stop()
    starts, stops = measure(lambda: kind(**settings), options.runs)
    for name, times in (("start", starts), ("stop", stops)):
        print(f"{name:8} {statistics.median(times):6.1f} ms median, {max(times):6.1f} ms worst of {len(times)}")
    if options.process or options.cluster:
        return 0
    return int(statistics.median(starts) > START_MAX_MS or statistics.median(stops) > STOP_MAX_MS)


if __name__ == "__main__":
    sys.exit(main())
