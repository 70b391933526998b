"""Prints what many of one thing cost: a drain with 200,000 stored, 1,000 idle long polls, 10,000 empty queues.

Drains are compared by the server's CPU a message with those of a queue that never
holds more than 2,000, standard and FIFO (100 groups), in turn. A server of its own
for each queue, on core 0, the generator on core 1 where the machine allows it.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import measure
from bench_deep import BATCH, GENERATOR_CORE, HANDLE, Link, Load, Server

GROUPS = 100
ROUND = 2_000
POLL_S = 20


class FifoLoad(Load):
    """The same load on one FIFO queue, its messages dealt out to the groups in turn."""

    def __init__(self, server: Server, queues: int) -> None:
        super().__init__(server, queues)
        self.urls = [
            json.loads(
                self.links[0].call(
                    "CreateQueue", QueueName=f"{at}.fifo", Attributes={"FifoQueue": "true"} | self.attributes()
                )
            )["QueueUrl"]
            for at in range(queues)
        ]
        self.forms = [self.form(url) for url in self.urls]

    def attributes(self) -> dict[str, str]:
        return {"ContentBasedDeduplication": "true"}

    def form(self, url: str) -> bytes:
        filling = "x" * 244
        # The number chooses the group too: its last two digits, so that a batch holds ten groups.
        entries = ",".join(
            f'{{"Id":"{at}","MessageGroupId":"{{group{at}}}","MessageBody":"%012d{filling}"}}' for at in range(BATCH)
        )
        return f'{{"QueueUrl":"{url}","Entries":[{entries}]}}'.encode()

    def send(self, messages: int) -> int:
        forms = self.forms
        sent = 0
        while sent < messages:
            first = self.number % GROUPS
            self.forms = [grouped(form, first) for form in forms]
            sent += super().send(min(messages - sent, BATCH))
        self.forms = forms
        return sent


def grouped(form: bytes, first: int) -> bytes:
    for at in range(BATCH):
        form = form.replace(b"{group%d}" % at, b"%d" % ((first + at) % GROUPS))
    return form


def drained_s(server: Server, load: Load, messages: int) -> float:
    """Server CPU of one drain."""
    before_s = server.cpu_s()
    drained = load.drain(messages)
    spent_s = server.cpu_s() - before_s
    if drained < messages:
        raise SystemExit(f"only {drained:,} of {messages:,} messages came")
    return spent_s


def bench_drain(kind: type[Load], title: str, stored: int, directory: Path) -> None:
    """The two queues take turns, so that a noisy machine is noisy for both."""
    servers = [Server(directory, memory=True) for _ in range(2)]
    try:
        deep, shallow = [kind(server, 1) for server in servers]
        for load in (deep, shallow):
            load.send(ROUND)
            load.drain(ROUND)
        deep.send(stored)
        spent_s = {deep: 0.0, shallow: 0.0}
        rounds = stored // ROUND // 2
        for _ in range(rounds):
            shallow.send(ROUND)
            for load in (deep, shallow):
                spent_s[load] += drained_s(load.server, load, ROUND)
    finally:
        for server in servers:
            server.end(signal.SIGKILL)
    deep_us, empty_us = (spent_s[load] / (rounds * ROUND) * 1e6 for load in (deep, shallow))
    print(f"{title:34} {deep_us:8.1f} us a message with {stored:,} stored, {empty_us:.1f} empty: ", end="")
    print(f"{empty_us / deep_us:.0%} of the empty rate (goal 90 %)", flush=True)


def bench_idle_polls(polls: int, seconds: int, directory: Path) -> None:
    """Long polls of 20 s, each begun again when it ends empty."""
    server = Server(directory / "polls", memory=True)
    try:
        links = [Link(server.port) for _ in range(polls)]
        url = json.loads(links[0].call("CreateQueue", QueueName="idle"))["QueueUrl"]
        body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": POLL_S}).encode()
        for link in links:
            link.send("ReceiveMessage", body)
        server.settle()
        before_s, started_s = server.cpu_s(), time.monotonic()
        while time.monotonic() - started_s < seconds:
            for link in links:
                if HANDLE.search(link.read()):
                    raise SystemExit("an idle queue had a message")
                link.send("ReceiveMessage", body)
        share = (server.cpu_s() - before_s) / (time.monotonic() - started_s)
    finally:
        server.end(signal.SIGKILL)
    print(f"{f'{polls:,} idle long polls':34} {share:8.2%} of a core over {seconds} s (goal 1 %)", flush=True)


def bench_queues(queues: int, directory: Path) -> None:
    server = Server(directory / "queues", memory=True)
    try:
        link = Link(server.port)
        for at in range(100):
            link.call("CreateQueue", QueueName=f"warm-{at}")
        server.settle()
        before = server.private_bytes()
        for at in range(queues):
            link.call("CreateQueue", QueueName=f"queue-{at}")
        server.settle()
        a_queue = (server.private_bytes() - before) / queues
    finally:
        server.end(signal.SIGKILL)
    print(f"{f'{queues:,} empty queues':34} {a_queue:8.0f} B a queue (goal 2,048)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=200_000)
    parser.add_argument("--polls", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--queues", type=int, default=10_000)
    options = parser.parse_args()
    measure.pin(os.getpid(), GENERATOR_CORE)
    with tempfile.TemporaryDirectory(prefix="elasticq-crowds-") as name:
        directory = Path(name)
        bench_drain(Load, "drain, standard", options.stored, directory)
        bench_drain(FifoLoad, f"drain, FIFO of {GROUPS} groups", options.stored, directory)
        bench_idle_polls(options.polls, options.seconds, directory)
        bench_queues(options.queues, directory)


if __name__ == "__main__":
    main()
