"""What the history of calls costs a send: CPU, memory and bytes in the log, with ids of an SDK beside without.

    python scripts/bench_history.py [--calls 1000000] [--rounds 5]

CPU: a node alone in memory, without HTTP, in a process of its own for each measurement; the cost is the median of the
differences within a round. Making the key of an id, which the connection does, is named apart. Memory: what the table
of ids grows by, alone in a process. Log: what stands in an entry besides the message. Goal: 1.5 us and 50 bytes of
memory a send.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import measure

from elasticq import BUILD
from elasticq.engine.stored.invocations import Invocations
from elasticq.engine.stored.mutations import InvocationRecorded, encode
from elasticq.http.admission.caller import invocation
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import Durable, Vote

ENDPOINT: Final = "http://localhost:9324"
URL: Final = f"{ENDPOINT}/{DEFAULT_ACCOUNT}/jobs"
WALL_MS: Final = 1_700_000_000_000
CALLS_PER_MS: Final = 20
CHUNK: Final = 10_000
QUEUE_ID: Final = 1 << 40
BODY: Final = "x" * 256
MESSAGE: Final = c.SendMessage(queue_url=URL, message_body=BODY)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", choices=list(MEASURES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(MEASURES[options.measure](options.calls))
        return
    rounds = [{what: apart(options.calls, what) for what in MEASURES} for _ in range(options.rounds)]

    def median(figure: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(map(figure, rounds))

    build = "compiled" if BUILD.is_compiled else "pure Python"
    print(f"{options.calls:,} sends, median of {options.rounds}, {build}; a send:")
    print(f"  without an id     {median(lambda round: round['without']):8.2f} us")
    print(f"  with an id        {median(lambda round: round['with']):8.2f} us")
    print(f"  its history       {median(lambda round: round['with'] - round['without']):8.2f} us (goal 1.5)")
    print(f"  key of its id     {statistics.median(key_us() for _ in range(options.rounds)):8.2f} us")
    print(f"  memory            {median(lambda round: round['memory']):8.1f} bytes (goal 50)")
    print(f"  log               {log_bytes():8} bytes")


def apart(calls: int, what: str) -> float:
    command = [sys.executable, str(Path(__file__).resolve()), "--calls", str(calls), "--measure", what]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cpu_us(calls: int, *, has_ids: bool) -> float:
    bench, random, spent_s = Bench(), Random(1), 0.0
    for at in range(-1, calls // CHUNK):
        keys = [random.randbytes(16) if has_ids else b"" for _ in range(CHUNK)]
        began_s = time.process_time()
        for key in keys:
            bench.do(MESSAGE, key)
        if at >= 0:  # the first ones warm it
            spent_s += time.process_time() - began_s
        bench.do(c.PurgeQueue(queue_url=URL), b"")
    return spent_s / (calls // CHUNK * CHUNK) * 1e6


def memory_bytes(calls: int) -> float:
    random, table = Random(1), Invocations()
    before = measure.rss_bytes(os.getpid())
    for at in range(calls):
        key = random.randbytes(16)
        table.put(key, InvocationRecorded(key, WALL_MS + at // CALLS_PER_MS, QUEUE_ID, at))
    return (measure.rss_bytes(os.getpid()) - before) / calls


def log_bytes() -> int:
    return len(encode([InvocationRecorded(bytes(range(16)), WALL_MS, QUEUE_ID, QUEUE_ID + 1_000_000)])) - len(
        encode([])
    )


MEASURES: Final[dict[str, Callable[[int], float]]] = {
    "without": partial(cpu_us, has_ids=False),
    "with": partial(cpu_us, has_ids=True),
    "memory": memory_bytes,
}


class Bench:
    """A node with one queue."""

    def __init__(self) -> None:
        settings = NodeSettings(member_id="a", voters=("a",), volatile=True, sixty_second_rules=False)
        self.node = Node(settings, Durable(Vote(0, None), []), b"e" * 32)
        self.node.start(0, WALL_MS)
        self.calls = 0
        self.do(c.CreateQueue(queue_name="jobs", attributes={}), b"")

    def do(self, command: c.Command, key: bytes) -> None:
        effects = self.node.effects
        self.calls += 1
        call = c.Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, key)
        self.node.submit(call, 1, self.calls // CALLS_PER_MS)
        effects.replies.clear()
        effects.records.clear()


def key_us() -> float:
    body, invocation_id = BODY.encode(), b"5f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    began_s = time.process_time()
    for _ in range(CHUNK):
        invocation("anonymous", "000000000000", "SendMessage", invocation_id, body)
    return (time.process_time() - began_s) / CHUNK * 1e6


if __name__ == "__main__":
    main()
