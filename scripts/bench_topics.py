"""What a publish to a topic costs: CPU of a publish, beside that of a send to a queue.

    python scripts/bench_topics.py [--calls 2000] [--rounds 7]

A node alone in memory, without HTTP, so that what is the same for both hides little: of whole requests the ratios are
smaller. Goals, of whole requests: a publish to one queue 1.6x a send, to ten 4x; a subscription whose filter refuses
1 us; a publish that 3 of 10,000 filters take 100 us.
"""

import argparse
import json
import statistics
import time
from typing import Final, NamedTuple

from bench_orders import BODY, CYCLES_PER_MS, ENDPOINT, Bench

from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION

QUEUES: Final = 10


class Plan(NamedTuple):
    """A topic: how many subscriptions take what is published to it and, with filters of one attribute, refuse it."""

    name: str
    taking: int
    refusing: int = 0
    has_filters: bool = False


ONE, TEN = Plan("one", 1), Plan("ten", 10)
FILTERED, FEW, MANY = (Plan(name, 3, count, True) for name, count in (("filtered", 0), ("few", 100), ("many", 10_000)))
TOPICS: Final = (ONE, TEN, FILTERED, FEW, MANY)
SEND: Final = "send"
KIND: Final = {"kind": c.MessageAttributeValue("String", "wanted")}


def arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:{DEFAULT_REGION}:{DEFAULT_ACCOUNT}:{name}"


class Topics(Bench):
    """A queue, and topics by how many queues take what is published to them."""

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    bench = Topics()
    found: dict[str, list[float]] = {row: [] for row in (SEND, *(topic.name for topic in TOPICS))}
    for _ in range(options.rounds):
        for row, figures in found.items():
            figures.append(bench.call_us(row, options.calls))
    medians = {row: statistics.median(figures) for row, figures in found.items()}
    for row, title in ((SEND, "send"), (ONE.name, "publish to 1 queue"), (TEN.name, "publish to 10 queues")):
        ratio = statistics.median(mine / base for mine, base in zip(found[row], found[SEND], strict=True))
        print(f"{title:40} {medians[row]:6.1f} us  {ratio:5.2f}x")
    refused_us = (medians[FEW.name] - medians[FILTERED.name]) / FEW.refusing
    print(f"{'a filter that refuses':40} {refused_us:6.2f} us")
    print(f"{f'publish that {MANY.taking} of {MANY.refusing:,} filters take':40} {medians[MANY.name]:6.1f} us")


if __name__ == "__main__":
    main()
