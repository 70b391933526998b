"""How long nobody's write is acknowledged when the master goes: killed, stopped, or by ``cluster transfer``.

A cluster of real processes with sync on, messages stored, and light load from clients on all members; then one
fault after another. The gap is the longest time without an acknowledged write that touches the span from the
fault to ten writes begun after it; "nothing" is the same without a fault, on the same machine in the same
minutes. With ``--join`` also the sends' p99 before and while a fourth member takes a copy. At the end the
clients' history is judged and the rows are compared; status 1 for any finding.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.system.cluster.cluster import Cluster, ask, judged, let_pass, until
from tests.system.cluster.load import Load, fill
from tests.system.durability.chaos import now_us

WRITES_AFTER = 10
QUIET_WRITES = 30  # acknowledged between two faults
NOTHING_S = 0.3
BEFORE_JOIN_S = 20
FILL_PATIENCE_S = 600


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--messages", type=int, default=0, help="stored before, beside the load (0)")
    parser.add_argument("--kills", type=int, default=50, help="kill -9 of the master (50)")
    parser.add_argument("--stops", type=int, default=10, help="SIGTERM of the master (10)")
    parser.add_argument("--transfers", type=int, default=20, help="cluster transfer (20)")
    parser.add_argument("--nothing", type=int, default=20, help="times that nothing happens (20)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pace-ms", type=float, default=30, help="between two operations of a client (30)")
    parser.add_argument("--join", action="store_true", help="add a fourth member first")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return judged("elasticq-failover-", options.members, lambda cluster: measure(cluster, options) > 0)


def measure(cluster: Cluster, options: argparse.Namespace) -> int:
    """The number of findings."""
    store(cluster, options.messages)
    pace_s = options.pace_ms / 1_000
    with Load(cluster, seed=options.seed, clients=options.clients, boto3_clients=0, pace_s=pace_s) as load:
        load.wait_for(QUIET_WRITES)
        if options.join:
            join(cluster, load)
        repeat("nothing", options.nothing, cluster, load, nothing)
        repeat("kill -9", options.kills, cluster, load, lambda: kill(cluster))
        repeat("SIGTERM", options.stops, cluster, load, lambda: stop(cluster))
        repeat("transfer", options.transfers, cluster, load, lambda: transfer(cluster))
        verdict = load.judge()
    print(verdict.line())
    if verdict.findings:
        verdict.keep(cluster.directory / "history.jsonl")
        print(verdict.evidence())
    cluster.same_rows()
    return len(verdict.findings)


def store(cluster: Cluster, messages: int) -> None:
    if messages:
        began_s = time.monotonic()
        url = str(cluster["n1"].call("CreateQueue", QueueName="stored")["QueueUrl"])
        fill(cluster, url, messages)
        print(f"{messages} messages stored in {time.monotonic() - began_s:.0f} s", flush=True)
        cluster.wait_ready(patience_s=FILL_PATIENCE_S)


def repeat(name: str, times: int, cluster: Cluster, load: Load, fault: Callable[[], str]) -> None:
    """``fault`` tells the member that is to be started again, if any."""
    gaps_ms = []
    for _ in range(times):
        load.wait_for(QUIET_WRITES)
        cluster.master()
        began_us = now_us()
        gone = fault()
        load.wait_for(WRITES_AFTER, since_us=began_us)
        gaps_ms.append(load.gap_ms(began_us))
        if gone:
            if cluster[gone].process:
                assert cluster[gone].ended() == 0, cluster[gone].said()
            cluster.restart(gone)
        cluster.wait_ready()
    if gaps_ms:
        gaps_ms.sort()
        print(
            f"{name}: {times} times, gap median {gaps_ms[times // 2]:.0f} ms, "
            f"p90 {gaps_ms[times * 9 // 10]:.0f} ms, longest {gaps_ms[-1]:.0f} ms",
            flush=True,
        )


def nothing() -> str:
    let_pass(NOTHING_S)
    return ""


def kill(cluster: Cluster) -> str:
    master = cluster.master()
    cluster.kill9(master)
    return master


def stop(cluster: Cluster) -> str:
    """Nobody waits for its end: the cluster is to go on before it."""
    master = cluster.master()
    cluster[master].signal(signal.SIGTERM)
    return master


def transfer(cluster: Cluster) -> str:
    """By the admin port itself: a Python that starts for the command would take a core meanwhile."""
    port = cluster[cluster.master()].admin_port
    body = json.dumps({"order": "transfer"}).encode()
    reply = ask(port, "POST", "/cluster/orders", body, {"Content-Type": "application/json"})
    assert reply.status == 200, reply
    return ""


def join(cluster: Cluster, load: Load) -> None:
    let_pass(BEFORE_JOIN_S)
    before_ms = load.p99_ms()
    began_us = now_us()
    joiner = cluster.add().name
    cluster.promote(joiner, patience_s=FILL_PATIENCE_S)
    until(lambda: joiner in cluster.voters(), f"{joiner} is a voter")
    print(
        f"join: sends' p99 {before_ms:.0f} ms before, {load.p99_ms(began_us):.0f} ms during "
        f"({(now_us() - began_us) / 1e6:.1f} s)",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
