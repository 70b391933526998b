"""What passing a send on costs: CPU a message of each member, sent to a member that follows and to the master.

    python scripts/bench_forward.py [--seconds 5] [--rounds 3] [--sqsload PROGRAM]

Three real members with sync on, 64 connections in boto3's shape (with ids), 256-byte bodies; medians of the rounds.
sqsload (Go) drives it where it is named or can be built, scripts/loadgen.py elsewhere. The accepting member's cost is
what it spends beyond the other follower in the same run, the master's what it spends beyond a send of its own client.
To read a request and to write its answer is a part of the accepting member's cost that passing on has no share in: a
server alone that keeps nothing spends less than its whole on that, and is measured, too.
Goal: at most 25 us on the accepting member, and 12 us more on the master.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import bench
import measure

from elasticq import BUILD
from tests.system.cluster.cluster import HOST, Cluster

CONNECTIONS: Final = 64
NO_RELAYS: Final = {"ELASTICQ_FAULT_ROUTES": ""}


class Spent(NamedTuple):
    """CPU a message in us; ``accepting`` is the member that the clients were connected to."""

    master: float
    accepting: float
    other: float
    messages_a_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sqsload", help="the program, built already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="elasticq-bench-") as name:
        directory = Path(name)
        generator = [options.sqsload] if options.sqsload else bench.build_generator(directory)
        cluster = Cluster(directory / "cluster", environment=NO_RELAYS)
        alone = Cluster(directory / "alone", 1, memory=True, environment=NO_RELAYS)
        try:
            cluster.start()
            alone.start()
            master, follower = cluster.master(), cluster.followers()[0]
            spend(cluster, generator, master, 1)  # warm
            spend(alone, generator, alone.master(), 1)
            whole, own, passed_on = [], [], []
            for _ in range(options.rounds):
                whole.append(spend(alone, generator, alone.master(), options.seconds).master)
                own.append(spend(cluster, generator, master, options.seconds))
                passed_on.append(spend(cluster, generator, follower, options.seconds))
        finally:
            alone.end()
            cluster.end()
    build = "compiled" if BUILD.is_compiled else "pure Python"
    print(f"CPU us a message, {CONNECTIONS} connections, {generator[-1]}, {build}, medians of {options.rounds}\n")
    print(f"{'sent to':14}{'master':>10}{'accepting':>12}{'other':>10}{'messages a s':>16}")
    for title, seen in (("the master", own), ("a follower", passed_on)):
        medians = Spent(*(statistics.median(column) for column in zip(*seen, strict=True)))
        print(f"{title:14}{medians.master:10.1f}{medians.accepting:12.1f}{medians.other:10.1f}{medians[3]:16,.0f}")
    accepting = statistics.median(each.accepting - each.other for each in passed_on)
    more = statistics.median(b.master - a.master for a, b in zip(own, passed_on, strict=True))
    print(f"\npassing on: {accepting:.1f} us on the accepting member (goal 25), {more:+.1f} us on the master (goal 12)")
    print(f"a server alone, in memory, spends {statistics.median(whole):.1f} us on the whole of such a send")


def spend(cluster: Cluster, generator: list[str], target: str, seconds: float) -> Spent:
    """Sends to ``target`` for a while."""
    master = cluster.master()
    pids = {member.name: member.process.pid for member in cluster.members.values() if member.process}
    before_s = {name: measure.cpu_s(pid) for name, pid in pids.items()}
    command = [*generator, "-endpoint", f"http://{HOST}:{cluster[target].port}", "-pid", str(pids[target])]
    command += ["-workload", "send", "-shape", "boto3", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "-warm", "0s"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["r"]
    if told["errors"] or cluster.master() != master:
        raise SystemExit(f"{told['errors']} errors, master {master}, then {cluster.master()}")
    messages = told["msgs_per_s"] * told["seconds"]
    cpu_us = {name: (measure.cpu_s(pid) - before_s[name]) / messages * 1e6 for name, pid in pids.items()}
    others = [cpu_us[name] for name in pids if name not in (master, target)]
    return Spent(cpu_us[master], cpu_us[target], statistics.mean(others or [0.0]), told["msgs_per_s"])


if __name__ == "__main__":
    main()
