"""Kills the master again and again under 200 publishes a second to five queues: 0 partial, 0 lost, 0 doubled.

A cluster of three real processes with sync on. Publishers ask all members and repeat what was not answered under the
same invocation id. After each kill the queues are emptied and judged, and the killed member comes back. Prints a line
for each kill and the sum; status 1 if any publish was in some queues only, in none though it was answered, or in one
twice.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.system.cluster.cluster import Cluster
from tests.system.cluster.publishing import Publishing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-topics-"))
    cluster = Cluster(directory / "cluster")
    sums = [0, 0, 0, 0, 0]
    try:
        cluster.start()
        Publishing.prepare(cluster)
        for kill in range(1, arguments.kills + 1):
            with Publishing(cluster) as publishing:
                publishing.wait_for(100)
                master = cluster.master()
                cluster.kill9(master)
                publishing.wait_for(200)
                verdict = publishing.judge()
            cluster.restart(master)
            cluster.wait_ready()
            evils = verdict.partial, verdict.lost, verdict.doubled
            figures = verdict.published, verdict.unknown, *map(len, evils)
            sums = [one + other for one, other in zip(sums, figures, strict=True)]
            print(f"kill {kill}: {verdict.line()}", flush=True)
            for evidence in (each for evil in evils for each in evil):
                print(f"  {evidence}", flush=True)
    finally:
        cluster.end()
        shutil.rmtree(directory, ignore_errors=True)
    answered, unknown, partial, lost, doubled = sums
    told = f"{answered} answered, {unknown} not, {partial} partial, {lost} lost, {doubled} doubled"
    print(f"{arguments.kills} kills: {told}")
    return 1 if partial or lost or doubled else 0


if __name__ == "__main__":
    sys.exit(main())
