"""Consumers of a group that pause, die, join and leave: never two holders, never a write with an old token.

Three parts, each with a fresh cluster of three real processes with sync on:

pauses    Three processes are consumers and write to a file that the token guards. Their session lasts 2 s. They are
          stopped for up to 3.5 s and continued. Every twentieth time one is killed and started again.
soak      There are about seven consumers. One joins or leaves each second, and the master is killed every 20 s.
measure   How long it takes after a clean leave, and after a kill, until others hold what a consumer had.

The checker of groups checks what the consumers noted. The program prints a line for each part. After a finding or a
stale write its status is 1, and it keeps the directories.
"""

import argparse
from functools import partial
from math import ceil

from tests.system.cluster.cluster import Cluster, judged, until
from tests.system.groups import crew, soak

SOAK_SESSION_MS = 10_000
KILL_EACH_S = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pauses", type=int, default=1_000, help="pauses of consumers (1000); 0: no such part")
    parser.add_argument("--minutes", type=float, default=10, help="length of the soak (10); 0: no such part")
    parser.add_argument("--leaves", type=int, default=100, help="clean leaves to measure (100)")
    parser.add_argument("--measured-kills", type=int, default=10, help="kills to measure (10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the faults (1)")


def main(options: argparse.Namespace) -> int:
    status = 0
    if options.pauses:
        status |= _part(partial(pauses, number=options.pauses, seed=options.seed))
    if options.minutes:
        status |= _part(partial(soaked, minutes=options.minutes, seed=options.seed))
    if options.leaves or options.measured_kills:
        status |= _part(partial(measured, leaves=options.leaves, kills=options.measured_kills))
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
    """Print how long other consumers had to wait. There is no bound: the reader decides what is too long."""
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
