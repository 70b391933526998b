"""What programs with plain boto3 at its defaults see while masters are killed and members restart: it shall be nothing.

A cluster of three real processes with sync on. Producers and consumers go through one member, which stays up; the
master, always another one, is killed by kill -9 again and again, and then all members but that one restart one after
another. Prints the distribution of the longest times without an answered call, and of the slowest calls, in ms (of a
receive its own wait of up to a second is part). Status 1 after any exception, for any message that was lost or sent
twice, and for any that came back after its delete.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.system.cluster.cluster import Cluster, judged
from tests.system.cluster.plain import Plain
from tests.system.cluster.test_unnoticed import move_master_off

CALLS_BETWEEN = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="kill -9 of the master (50)")
    parser.add_argument("--restarts", type=int, default=10, help="rolling restarts by SIGTERM (10)")
    parser.add_argument("--memory", action="store_true", help="members keep messages in memory only")
    options = parser.parse_args()
    return judged("elasticq-unnoticed-", 3, lambda cluster: run(cluster, options), memory=options.memory)


def run(cluster: Cluster, options: argparse.Namespace) -> bool:
    """True for anything that was noticed."""
    with Plain(cluster["n1"], "unnoticed") as plain:
        report("kill -9 of the master", [once(cluster, plain, kill) for _ in range(options.kills)])
        rolling = [stop(name) for _ in range(options.restarts) for name in ("n2", "n3")]
        report("SIGTERM of a member", [once(cluster, plain, fault) for fault in rolling])
        verdict = plain.judge()
    print(f"{verdict.calls} calls, {verdict.sent} messages sent, {verdict.exceptions} exceptions", flush=True)
    for text, count in plain.exceptions.most_common():
        print(f"  {count} x {text}")
    print(f"lost: {verdict.lost}\nsent twice: {verdict.twice}\ncame back after their delete: {verdict.back}")
    return not verdict.is_unnoticed


def once(cluster: Cluster, plain: Plain, fault: Callable[[Cluster], str]) -> tuple[float, float]:
    """The longest time without an answered call, and the longest call, in seconds; and all is well again."""
    plain.wait_for(CALLS_BETWEEN)
    began_s = time.monotonic()
    name = fault(cluster)
    plain.wait_for(CALLS_BETWEEN)
    seen = plain.gap_s(began_s), plain.longest_s(began_s)
    if not cluster[name].is_running():
        cluster.restart(name)
    cluster.wait_ready()
    return seen


def kill(cluster: Cluster) -> str:
    master = move_master_off(cluster, "n1")
    cluster.kill9(master)
    return master


def stop(name: str) -> Callable[[Cluster], str]:
    def stopped(cluster: Cluster) -> str:
        cluster[name].stop()
        return name

    return stopped


def report(what: str, seen: list[tuple[float, float]]) -> None:
    if not seen:
        return
    gaps_ms = sorted(1_000 * gap_s for gap_s, _ in seen)
    slowest_ms = sorted(1_000 * longest_s for _, longest_s in seen)
    print(
        f"{what}: {len(seen)} times; no call answered for {statistics.median(gaps_ms):.0f} ms (median), "
        f"{gaps_ms[int(0.9 * (len(gaps_ms) - 1))]:.0f} ms (p90), {gaps_ms[-1]:.0f} ms (longest); "
        f"slowest call {statistics.median(slowest_ms):.0f} ms (median), {slowest_ms[-1]:.0f} ms (longest)",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
