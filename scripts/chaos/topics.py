"""Kills the master again and again under 200 publishes a second to five queues: 0 partial, 0 lost, 0 doubled.

A cluster of three real processes with sync on. Publishers ask all members and repeat what was not answered under the
same invocation id. After each kill the queues are emptied and judged, and the killed member comes back. Prints a line
for each kill and the sum; status 1 if any publish was in some queues only, in none though it was answered, or in one
twice. The members' directories are kept then.
"""

import argparse
from functools import partial

from tests.system.cluster.cluster import Cluster, judged
from tests.system.cluster.publishing import Publishing, kill_master


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=50)


def main(arguments: argparse.Namespace) -> int:
    return judged("elasticq-chaos-topics-", 3, partial(kill_masters, kills=arguments.kills))


def kill_masters(cluster: Cluster, kills: int) -> bool:
    """Whether any publish was partial, lost or doubled."""
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
