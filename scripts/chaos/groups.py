"""Consumers of a group that pause, die, join and leave all the time: never two holders, no write with an old token.

Three parts, each with a fresh cluster of three real processes with sync on:

pauses    three consumers as processes write to a file that the token guards; they are stopped for up to 3.5 s and
          continued, with a session of 2 s, and each twentieth time killed and started anew
soak      seven consumers, one of which joins or leaves each second; the master is killed every 20 s
measure   how long after a clean leave, and after a kill, others hold what a consumer had

What the consumers noted is judged by the checker of groups. Prints a line for each part; status 1 if there was a
finding or a stale write. The directories are kept then.
"""

import argparse
from functools import partial
from math import ceil

from tests.system.cluster.cluster import Cluster, judged, until
from tests.system.groups import crew, soak

SOAK_SESSION_MS = 10_000
KILL_EACH_S = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pauses", type=int, default=1_000, help="0 leaves them out")
    parser.add_argument("--minutes", type=float, default=10, help="of the soak; 0 leaves it out")
    parser.add_argument("--leaves", type=int, default=100, help="that are measured; 0 leaves them out")
    parser.add_argument("--kills", type=int, default=10, help="that are measured; 0 leaves them out")
    parser.add_argument("--seed", type=int, default=1)


def main(options: argparse.Namespace) -> int:
    status = 0
    if options.pauses:
        status |= _part(partial(pauses, number=options.pauses, seed=options.seed))
    if options.minutes:
        status |= _part(partial(soaked, minutes=options.minutes, seed=options.seed))
    if options.leaves or options.kills:
        status |= _part(partial(measured, leaves=options.leaves, kills=options.kills))
    return status


def _part(judge: object) -> int:
    return judged("elasticq-chaos-groups-", 3, judge)


def pauses(cluster: Cluster, number: int, seed: int) -> bool:
    """Return whether anything is wrong."""
    workers = _crew(cluster)
    try:
        verdict = workers.judged(*workers.torment(number, seed))
    finally:
        workers.end()
    print(verdict.line(), flush=True)
    print(*verdict.findings, *verdict.stale, sep="\n", end="", flush=True)
    return bool(verdict.findings or verdict.stale)


def soaked(cluster: Cluster, minutes: float, seed: int) -> bool:
    """Return whether anything is wrong."""
    settings = {"seed": seed, "kill_each_s": KILL_EACH_S, "session_ms": SOAK_SESSION_MS}
    figures = soak.soak(cluster, cluster.directory / "soak", minutes * 60, **settings)
    print(figures.line(), flush=True)
    print(*figures.findings, *figures.stale, sep="\n", end="", flush=True)
    return bool(figures.findings or figures.stale)


def measured(cluster: Cluster, leaves: int, kills: int) -> bool:
    """Print how long others had to wait; what is too long is for the reader to judge."""
    if leaves:
        _print("after a clean leave", soak.leaving_takes(cluster, cluster.directory / "leaves", leaves))
    if kills:
        workers = _crew(cluster)
        try:
            _print(f"after a kill, session {crew.SESSION_MS} ms", [workers.killing_takes() for _ in range(kills)])
        finally:
            workers.end()
    return False


def _crew(cluster: Cluster) -> crew.Crew:
    workers = crew.Crew(cluster.directory / "crew", cluster.endpoints())
    for name in ("a", "b", "c"):
        workers.start(name)
    until(workers.is_even, "all is held, evenly")
    return workers


def _print(what: str, times_ms: list[float]) -> None:
    times_ms.sort()
    middle, high = (times_ms[ceil(len(times_ms) * part) - 1] for part in (0.5, 0.99))
    told = f"p50 {middle:.0f} ms, p99 {high:.0f} ms, most {times_ms[-1]:.0f} ms"
    print(f"{what}: others held all after {told} ({len(times_ms)} times)", flush=True)
