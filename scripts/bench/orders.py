"""CPU time of message groups and priorities: a cycle (send, receive, delete) next to that of a standard queue.

    python scripts/bench orders [--cycles 20000] [--rounds 7] [--groups 1000] [--backlog 0]

It measures a node in memory without HTTP, because HTTP costs the same for all queues. So the ratios of whole requests
are smaller. The goals are for whole requests: FIFO 1.3x; priority 1.3x with 100,000 waiting messages (--backlog
100000); weighted 1.4x with 1,000 waiting groups (--backlog 1000).
"""

import argparse
import json
import statistics
import time
from itertools import count
from typing import Final

from elasticq.model import commands as c
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import ReceiveMessageResult
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import Durable, Vote

ENDPOINT: Final = "http://localhost:9324"
WALL_MS: Final = 1_700_000_000_000
CYCLES_PER_MS: Final = 20
BODY: Final = "x" * 256
QUEUES: Final = {
    "standard": "jobs",
    "fair": "tenants",
    "FIFO": "jobs.fifo",
    "priority": "urgent",
    "weighted": "customers",
}
PRIORITIES: Final = 10
WEIGHTS: Final = 10


def attributes_of(kind: str, groups: list[str]) -> dict[str, str]:
    if kind == "weighted":
        weights = {name: 1 + at % WEIGHTS for at, name in enumerate(groups)}
        return {"ElasticqFairness": "weighted", "ElasticqGroupWeights": json.dumps(weights)}
    return {"FIFO": {"FifoQueue": "true"}, "priority": {"ElasticqOrder": "priority"}}.get(kind, {})


class Bench:
    """One node with a queue of each kind."""

    def __init__(self, groups: int, backlog: int) -> None:
        self.groups = [f"group-{number}" for number in range(groups)]
        self.numbers = count(1)
        settings = NodeSettings(member_id="a", voters=("a",), volatile=True)
        self.node = Node(settings, Durable(Vote(0, None), []), b"e" * 32)
        self.node.start(0, WALL_MS)
        self.now_ms = 0
        for kind, name in QUEUES.items():
            self.do(c.CreateQueue(queue_name=name, attributes=attributes_of(kind, self.groups)))
            for _ in range(backlog):
                self.do(self.message(name, next(self.numbers)))

    def do(self, command: c.Command, invocation: bytes = b"") -> object:
        effects = self.node.effects
        self.node.submit(c.Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, invocation), 1, self.now_ms)
        outcome = effects.replies[0].outcome
        assert not isinstance(outcome, SqsError), outcome
        effects.replies.clear()
        effects.records.clear()
        return outcome

    def message(self, name: str, number: int) -> c.SendMessage:
        url = f"{ENDPOINT}/{DEFAULT_ACCOUNT}/{name}"
        if name == QUEUES["standard"]:
            return c.SendMessage(queue_url=url, message_body=BODY)
        if name == QUEUES["priority"]:
            priority = c.MessageAttributeValue("Number", str(number % PRIORITIES))
            return c.SendMessage(queue_url=url, message_body=BODY, message_attributes={"ElasticqPriority": priority})
        group = self.groups[number % len(self.groups)]
        deduplication_id = f"id-{number}" if name == QUEUES["FIFO"] else None
        return c.SendMessage(
            queue_url=url, message_body=BODY, message_group_id=group, message_deduplication_id=deduplication_id
        )

    def cycle_us(self, name: str, cycles: int) -> float:
        url = f"{ENDPOINT}/{DEFAULT_ACCOUNT}/{name}"
        receive = c.ReceiveMessage(queue_url=url)
        started_s = time.process_time()
        for number in range(cycles):
            if number % CYCLES_PER_MS == 0:
                self.now_ms += 1
            guids = [next(self.numbers).to_bytes(8, "little") * 2 for _ in range(3)]
            self.do(self.message(name, next(self.numbers)), guids[0])
            result = self.do(receive, guids[1])
            assert isinstance(result, ReceiveMessageResult)
            handle = result.messages[0].receipt_handle
            self.do(c.DeleteMessage(queue_url=url, receipt_handle=handle), guids[2])
        return (time.process_time() - started_s) / cycles * 1_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cycles", type=int, default=20_000, help="cycles of each queue in a round (20000)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (7)")
    parser.add_argument("--groups", type=int, default=1_000, help="message groups in each queue (1000)")
    parser.add_argument("--backlog", type=int, default=0, help="messages that wait in each queue (0)")


def main(options: argparse.Namespace) -> None:
    bench = Bench(options.groups, options.backlog)
    found: dict[str, list[float]] = {kind: [] for kind in QUEUES}
    for _ in range(options.rounds):
        for kind, name in QUEUES.items():
            found[kind].append(bench.cycle_us(name, options.cycles))
    for kind, figures in found.items():
        ratio = statistics.median(mine / base for mine, base in zip(figures, found["standard"], strict=True))
        print(f"{kind:9} {statistics.median(figures):6.1f} us  {ratio:5.2f}x")
