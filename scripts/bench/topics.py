"""CPU time of a publish to a topic, next to that of a send to a queue.

    python scripts/bench topics [--calls 2000] [--rounds 7]
    python scripts/bench topics --servers [--runs 3] [--seconds 3]

It measures a node in memory without HTTP, because HTTP costs the same for both. So the ratios of whole requests are
smaller. The goals are for whole requests: 1.6x a send for a publish to one queue, 4x for ten queues, 1 us for a
subscription whose filter refuses, and 100 us for a publish that 3 of 10,000 filters accept.

With --servers it measures whole requests by scripts/bench/loadgen.py over 16 connections. The servers are elasticq,
uncompiled and (if there are compiled modules) compiled; GoAWS, if GOAWS_BIN names its program; and LocalStack, if
LOCALSTACK_PYTHON names a Python that has it. The server's CPU time counts until each copy is in its queue.
"""

import argparse
import json
import os
import statistics
import sys
import time
from typing import Final, NamedTuple

import servers
from orders import BODY, CYCLES_PER_MS, ENDPOINT, Bench

from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION

QUEUES: Final = 10


class Plan(NamedTuple):
    """A topic, and how many of its subscriptions accept each publish, or refuse it by a filter of one attribute."""

    name: str
    taking: int
    refusing: int = 0
    has_filters: bool = False


ONE, TEN = Plan("one", 1), Plan("ten", 10)
FILTERED, FEW, MANY = (Plan(name, 3, count, True) for name, count in (("filtered", 0), ("few", 100), ("many", 10_000)))
TOPICS: Final = (ONE, TEN, FILTERED, FEW, MANY)
SEND: Final = "send"
REQUESTS: Final = (
    servers.Row("send", "elasticq", ("-workload", "send")),
    servers.Row("query send", "elasticq", ("-workload", "send", "-proto", "query"), beside="send"),
    servers.Row("publish to 1 queue", "elasticq", ("-workload", "publish", "-subscribed", "1"), "1.6x", "send"),
    servers.Row("publish to 10 queues", "elasticq", ("-workload", "publish", "-subscribed", "10"), "4x", "send"),
)
KIND: Final = {"kind": c.MessageAttributeValue("String", "wanted")}


def arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:{DEFAULT_REGION}:{DEFAULT_ACCOUNT}:{name}"


class Topics(Bench):
    """A node with a queue for sends, and with the topics of TOPICS."""

    def __init__(self) -> None:
        super().__init__(groups=1, backlog=0)
        for at in range(QUEUES):
            self.do(c.CreateQueue(queue_name=f"queue-{at}"))
        for topic in TOPICS:
            self.do(t.CreateTopic(name=topic.name))
            for at in range(topic.taking):
                self.subscribe(topic.name, at, "wanted" if topic.has_filters else "")
            for at in range(topic.refusing):
                self.subscribe(topic.name, topic.taking + at, f"other-{at}")

    def subscribe(self, name: str, queue: int, kind: str) -> None:
        attributes = {"RawMessageDelivery": "true"}
        if kind:
            attributes["FilterPolicy"] = json.dumps({"kind": [kind]})
        endpoint = arn("sqs", f"queue-{queue}")
        self.do(t.Subscribe(topic_arn=arn("sns", name), protocol="sqs", endpoint=endpoint, attributes=attributes))

    def send(self, name: str) -> None:
        self.do(c.SendMessage(queue_url=f"{ENDPOINT}/{DEFAULT_ACCOUNT}/{name}", message_body=BODY))

    def publish(self, name: str) -> None:
        self.do(t.Publish(topic_arn=arn("sns", name), message=BODY, message_attributes=KIND))

    def call_us(self, row: str, calls: int) -> float:
        call, name = (self.send, "jobs") if row == SEND else (self.publish, row)
        started_s = time.process_time()
        for number in range(calls):
            if number % CYCLES_PER_MS == 0:
                self.now_ms += 1
            call(name)
        taken_us = (time.process_time() - started_s) / calls * 1_000_000
        for each in ("jobs", *(f"queue-{at}" for at in range(QUEUES))):
            self.do(c.PurgeQueue(queue_url=f"{ENDPOINT}/{DEFAULT_ACCOUNT}/{each}"))
        return taken_us


def measure_servers(runs: int, seconds: float) -> None:
    """Measure and print the rows of all servers, in turns. The ratio is to a send of the same server and run."""
    generator = [sys.executable, str(servers.HERE / "loadgen.py")]
    ways = [way for way in servers.ways() if way.has_topics]
    found: dict[str, list[servers.Figures]] = {row.title + way.goes_by: [] for way in ways for row in REQUESTS}
    print(f"{servers.CONNECTIONS} connections, 256 B, median of {runs}, load {os.getloadavg()[0]:.1f}")
    for _ in range(runs):
        for way in ways:
            with servers.running(servers.SERVER, way) as (process, url):
                for row in REQUESTS:
                    found[row.title + way.goes_by].append(servers.load(generator, row, url, process.pid, seconds))
    print(f"{'':36}{'us/request':>11}{'requests/s':>11}{'p50 ms':>8}{'p99 ms':>8}  {'ratio to send':14} goal")
    for way in ways:
        for row in REQUESTS:
            figures = found[row.title + way.goes_by]
            one = servers.median(figures)
            sends = zip(figures, found[SEND + way.goes_by], strict=True)
            ratio = statistics.median((mine.request_us or 0) / (send.request_us or 1) for mine, send in sends)
            print(
                f"{row.title + way.goes_by:36}{one.request_us:11.1f}{one.messages_a_s:11.0f}"
                f"{one.p50_ms:8.2f}{one.p99_ms:8.2f}  {ratio:12.2f}x  {'' if way.peer else row.goal}"
            )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=2_000, help="calls of each kind in a round (2000)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (7)")
    parser.add_argument("--servers", action="store_true", help="measure whole requests instead of a node alone")
    parser.add_argument("--runs", type=int, default=3, help="runs of each server (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of a row, after 1 s of warm-up (3)")


def main(options: argparse.Namespace) -> None:
    if options.servers:
        measure_servers(options.runs, options.seconds)
    else:
        measure_node(options.calls, options.rounds)


def measure_node(calls: int, rounds: int) -> None:
    topics = Topics()
    found: dict[str, list[float]] = {row: [] for row in (SEND, *(topic.name for topic in TOPICS))}
    for _ in range(rounds):
        for row, figures in found.items():
            figures.append(topics.call_us(row, calls))
    medians = {row: statistics.median(figures) for row, figures in found.items()}
    for row, title in ((SEND, "send"), (ONE.name, "publish to 1 queue"), (TEN.name, "publish to 10 queues")):
        ratio = statistics.median(mine / base for mine, base in zip(found[row], found[SEND], strict=True))
        print(f"{title:40} {medians[row]:6.1f} us  {ratio:5.2f}x")
    refused_us = (medians[FEW.name] - medians[FILTERED.name]) / FEW.refusing
    print(f"{'a filter that refuses':40} {refused_us:6.2f} us")
    print(f"{f'publish that {MANY.taking} of {MANY.refusing:,} filters take':40} {medians[MANY.name]:6.1f} us")
