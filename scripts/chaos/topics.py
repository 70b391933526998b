"""Kills of the master under 200 publishes a second to five queues: none may be partial, lost or doubled.

The cluster has three real processes with sync on. Publishers call all members, and repeat an unanswered publish under
the same invocation id. After each kill the queues are drained and checked, and the killed member starts again.
The program prints a line for each kill and the sum. A publish is a finding if only some queues have it, if it was
answered and no queue has it, or if one queue has it twice. Then the status is 1, and the directories are kept.
"""

import argparse
from functools import partial

from tests.system.cluster.cluster import Cluster, judged
from tests.system.cluster.publishing import Publishing, kill_master


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=50, help="kills of the master (50)")


def main(arguments: argparse.Namespace) -> int:
    return judged("elasticq-chaos-topics-", 3, partial(kill_masters, kills=arguments.kills))


def kill_masters(cluster: Cluster, kills: int) -> bool:
    """Return whether any publish was partial, lost or doubled."""
    sums = [0, 0, 0, 0, 0]
    Publishing.prepare(cluster)
    for kill in range(1, kills + 1):
        master, verdict = kill_master(cluster)
        cluster.restart(master)
        cluster.wait_ready()
        evils = verdict.partial, verdict.lost, verdict.doubled
        figures = verdict.published, verdict.unknown, *map(len, evils)
        sums = [one + other for one, other in zip(sums, figures, strict=True)]
        print(f"kill {kill}: {verdict.line()}", flush=True)
        for evidence in (each for evil in evils for each in evil):
            print(f"  {evidence}", flush=True)
    answered, unknown, split, lost, doubled = sums
    print(f"{kills} kills: {answered} answered, {unknown} not, {split} partial, {lost} lost, {doubled} doubled")
    return bool(split or lost or doubled)
