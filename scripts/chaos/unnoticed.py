"""Faults that programs with plain boto3 at its defaults must not notice: masters are killed, members restart.

The clusters have three real processes with sync on. Unless a part says otherwise, programs call one member, which
stays up.

1. The master, always another member, is killed by kill -9 again and again. Then all members restart one after
   another. The member that the programs call restarts under a supervisor, which keeps its port open.
2. Messages are sent and received at a fixed rate, and the master is killed every ten seconds.
3. The master is killed, or cut off from the others, while programs use a FIFO queue of 99 groups.
4. A proxy cuts the replies of calls of every action, through a follower and through the master. Then it does so
   while the master is killed. Each call has one effect, and its second attempt gets the reply of the first.
5. The master is killed or cut off while programs call only a proxy.
6. All members are down for a while. Programs that use elasticq.client.wrap notice nothing. Plain ones get a clear
   error, and no refused message appears later.

The program prints two distributions in ms: the longest times without an answered call, and the slowest calls. The time
of a receive includes its own wait of up to a second. It also prints at how many faults calls other than receives were
under way. The status is 1 after any exception, and if a message was lost, doubled, out of order, or received after its
delete.
"""

import argparse
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from tests.system.cluster.beside import beside
from tests.system.cluster.cluster import Cluster, judged, let_pass, until
from tests.system.cluster.cut_calls import cut_calls
from tests.system.cluster.outage import Programs, switch_off
from tests.system.cluster.plain import Plain, move_master_off
from tests.system.cluster.rolling import SUPERVISED, restart_gracefully

CALLS_BETWEEN = 100
EACH_KILL_S = 10
RATE_PRODUCERS, RATE_CONSUMERS = 40, 10
GROUPS = 99
CUT_AT_ONCE = 4  # programs
CUT_KILLS = 3

Fault = Callable[[Cluster], tuple[str, float]]
"""It returns the member that it hit, and when, in monotonic seconds."""


class Seen(NamedTuple):
    """The figures of a fault: longest time without an answered call, longest call, and calls under way when it came."""

    gap_s: float
    longest_s: float
    under_way: int


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=50, help="kill -9 of the master (50)")
    parser.add_argument("--restarts", type=int, default=10, help="rolling restarts by SIGTERM (10)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="length of part 2, with a kill every ten seconds (10)"
    )
    parser.add_argument("--rate", type=float, default=200, help="messages a second in part 2 (200)")
    parser.add_argument("--ordered", type=int, default=20, help="masters killed or cut off under FIFO groups (20)")
    parser.add_argument("--cut", type=int, default=1_000, help="replies to cut (1000)")
    parser.add_argument("--proxied", type=int, default=20, help="masters killed or cut off behind a proxy (20)")
    parser.add_argument("--off", type=float, default=90, help="seconds during which all members are down (90)")
    parser.add_argument("--memory", action="store_true", help="members store messages in memory only, in parts 1 to 5")


def main(options: argparse.Namespace) -> int:
    parts: list[tuple[Callable[[Cluster], bool], bool]] = []
    if options.kills or options.restarts:
        parts.append((partial(kills_and_restarts, options=options), options.memory))
    if options.minutes:
        parts.append((partial(kills_at_a_rate, options=options), options.memory))
    if options.ordered:
        parts.append((partial(faults_in_order, faults=options.ordered), options.memory))
    if options.cut:
        parts.append((partial(cut_replies, cuts=options.cut), options.memory))
    if options.proxied:
        parts.append((partial(faults_beside_a_proxy, faults=options.proxied), options.memory))
    if options.off:
        parts.append((partial(off, off_s=options.off), False))
    each = (judged("elasticq-unnoticed-", 3, part, memory=memory, extra=SUPERVISED) for part, memory in parts)
    return max(each, default=0)


# Each part returns whether a program noticed anything.


def kills_and_restarts(cluster: Cluster, options: argparse.Namespace) -> bool:
    with Plain(cluster["n1"], "unnoticed") as plain:
        report("kill -9 of the master", [once(cluster, plain, kill) for _ in range(options.kills)])
        rounds = range(options.restarts)
        report("SIGTERM of a member", [once(cluster, plain, stop(name)) for _ in rounds for name in ("n2", "n3")])
        report("restart of the clients' own member", [once(cluster, plain, restart_own) for _ in rounds])
        return tell(plain)


def kills_at_a_rate(cluster: Cluster, options: argparse.Namespace) -> bool:
    load = Plain(cluster["n1"], "rate", producers=RATE_PRODUCERS, consumers=RATE_CONSUMERS, rate_per_s=options.rate)
    seen = []
    with load as plain:
        plain.wait_for(CALLS_BETWEEN)
        began_s = time.monotonic()
        for number in range(round(60 * options.minutes / EACH_KILL_S)):
            let_pass(max(0.0, began_s + number * EACH_KILL_S - time.monotonic()))
            seen.append(once(cluster, plain, kill))
        took_s = time.monotonic() - began_s
        sent, received = len(plain.sent), len(plain.deleted_s)
        report(f"kill -9 of the master every {took_s / len(seen):.1f} s", seen)
        print(f"messages a second: {sent / took_s:.0f} in, {received / took_s:.0f} out", flush=True)
        return tell(plain)


def faults_in_order(cluster: Cluster, faults: int) -> bool:
    with Plain(cluster["n1"], "ordered", groups=GROUPS) as plain:
        for what, fault in (("kill -9 of the master", kill), ("master cut off", isolate)):
            report(f"{what}, {GROUPS} groups", [once(cluster, plain, fault) for _ in range(faults // 2)])
        return tell(plain)


def faults_beside_a_proxy(cluster: Cluster, faults: int) -> bool:
    with beside(cluster) as proxy:
        until(proxy.is_ready, f"the proxy is ready: {proxy.said()}")
        with Plain(proxy, "proxied") as plain:
            for what, fault in (("kill -9 of the master", kill_any), ("master cut off", isolate_any)):
                report(f"{what}, through a proxy", [once(cluster, plain, fault) for _ in range(faults // 2)])
            return tell(plain)


def cut_replies(cluster: Cluster, cuts: int) -> bool:
    names = [cluster.followers()[0], cluster.master()] * (CUT_AT_ONCE // 2)
    is_noticed = cut_at(cluster, names, cuts, "still", lambda: None)
    move_master_off(cluster, "n1")

    def kill_masters() -> None:
        for _ in range(CUT_KILLS):
            master, _ = kill(cluster)
            cluster.restart(master)
            cluster.wait_ready()

    return cut_at(cluster, ["n1"] * CUT_AT_ONCE, cuts // 4, "killed", kill_masters) or is_noticed


def cut_at(cluster: Cluster, names: list[str], cuts: int, what: str, meanwhile: Callable[[], None]) -> bool:
    """Run a program through each of these members, and ``meanwhile`` at the same time.

    Return whether a program ended by an error or a reply differs.
    """
    with ThreadPoolExecutor() as pool:
        each = -(-cuts // len(names))
        running = [
            pool.submit(cut_calls, cluster[name].port, f"{what}-{at}-{name}", each) for at, name in enumerate(names)
        ]
        meanwhile()
        errors = [error for future in running if (error := future.exception())]
        cutters = [future.result() for future in running if not future.exception()]
    differing = [text for cutter in cutters for text in cutter.differing]
    print(
        f"{sum(sum(cutter.cuts.values()) for cutter in cutters)} calls cut ({what}), "
        f"{sum(cutter.cut_hastily for cutter in cutters)} of them before their reply; "
        f"{len(errors)} programs ended by an error, {len(differing)} replies differ",
        flush=True,
    )
    for text in [*map(repr, errors), *differing]:
        print(f"  {text}")
    return bool(errors or differing)


def off(cluster: Cluster, off_s: float) -> bool:
    with Programs(cluster) as programs:
        dark_s = switch_off(cluster, programs, off_s)
        refused = len(programs.refused_between(*dark_s))
        findings = programs.judge(dark_s)
    print(
        f"all members down for {off_s:.0f} s: {len(programs.patient_sent)} patient sends, "
        f"{len(programs.plain)} plain ones, {refused} of them refused while no log could be written",
        flush=True,
    )
    for text, count in programs.refused.most_common():
        print(f"  {count} x {text}")
    print("\n".join(f"{name}: {found}" for name, found in findings._asdict().items()))
    return not findings.are_none


# Steps of the parts.


def once(cluster: Cluster, plain: Plain, fault: Fault) -> Seen:
    """Cause a fault, heal the cluster and wait until it is ready; return what the programs saw."""
    plain.wait_for(CALLS_BETWEEN)
    name, at_s = fault(cluster)
    plain.wait_for(CALLS_BETWEEN)
    seen = Seen(plain.gap_s(at_s), plain.longest_s(at_s), plain.under_way(at_s))
    if not cluster[name].is_running():
        cluster.restart(name)
    cluster.heal()
    cluster.wait_ready()
    return seen


def kill(cluster: Cluster) -> tuple[str, float]:
    move_master_off(cluster, "n1")
    return kill_any(cluster)


def kill_any(cluster: Cluster) -> tuple[str, float]:
    master, at_s = cluster.master(), time.monotonic()
    cluster.kill9(master)
    return master, at_s


def isolate(cluster: Cluster) -> tuple[str, float]:
    move_master_off(cluster, "n1")
    return isolate_any(cluster)


def isolate_any(cluster: Cluster) -> tuple[str, float]:
    """Cut the master off: its links to other members stay open, but carry nothing."""
    master, at_s = cluster.master(), time.monotonic()
    cluster.isolate(master)
    return master, at_s


def stop(name: str) -> Fault:
    def stopped(cluster: Cluster) -> tuple[str, float]:
        at_s = time.monotonic()
        cluster[name].stop()
        return name, at_s

    return stopped


def restart_own(cluster: Cluster) -> tuple[str, float]:
    at_s = time.monotonic()
    restart_gracefully(cluster, "n1")
    return "n1", at_s


def report(what: str, seen: list[Seen]) -> None:
    if not seen:
        return
    met = [each.under_way for each in seen if each.under_way]
    print(
        f"{what}: {len(seen)} times, {len(met)} of them ({100 * len(met) / len(seen):.0f} %) while calls other than "
        f"receives were under way, up to {max(met, default=0)}\n"
        f"  no call answered for: {spread([each.gap_s for each in seen])}\n"
        f"  slowest call: {spread([each.longest_s for each in seen])}",
        flush=True,
    )


def spread(times_s: list[float]) -> str:
    ordered_ms = sorted(1_000 * time_s for time_s in times_s)

    def part(share: float) -> float:
        return ordered_ms[math.ceil(share * len(ordered_ms)) - 1]

    return (
        f"{part(0.5):.0f} ms (p50), {part(0.9):.0f} ms (p90), {part(0.99):.0f} ms (p99), {ordered_ms[-1]:.0f} ms (max)"
    )


def tell(plain: Plain) -> bool:
    """Print what the programs saw; return whether they noticed anything."""
    verdict = plain.judge()
    print(f"{verdict.calls} calls, {verdict.sent} messages sent, {verdict.exceptions} exceptions", flush=True)
    for text, count in plain.exceptions.most_common():
        print(f"  {count} x {text}")
    for name, bodies in verdict._asdict().items():
        if isinstance(bodies, list):
            print(f"{name}: {bodies}", flush=True)
    return not verdict.is_unnoticed
