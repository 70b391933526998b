"""Costs of a deep backlog: memory of a stored message, CPU of a message next to an empty server, time to restart.

Unique 256-byte bodies are sent in batches of 10 over several connections into several queues, because a queue has at
most 120,000 messages in flight. Memory is the private memory of the server's processes, minus that of an empty server.
The server runs on core 0 and the generator on core 1 if the machine allows it.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import measure

HANDLE = re.compile(rb'"ReceiptHandle":"([^"]+)"')
CONNECTIONS = 16
QUEUES = 20
BODY_BYTES = 256
BATCH = 10
IN_FLIGHT_MAX = 120_000
HIDE_S = 43_200
TIMEOUT_S = 120
SETTLE_S = 120


class Server:
    """A server process, pinned to its core."""

    def __init__(self, directory: Path, *, memory: bool = False) -> None:
        self.storage = ["--memory"] if memory else ["--data-dir", str(directory)]
        self.start()

    def start(self) -> None:
        command = measure.server_command(*self.storage)
        self.process = subprocess.Popen(command, cwd=measure.ROOT, stdout=subprocess.PIPE, text=True)
        measure.pin(self.process.pid, measure.SERVER_CORE)
        self.port = urlsplit(measure.address(self.process)).port or 0

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()

    def cpu_s(self) -> float:
        return measure.cpu_s(self.process.pid)

    def private_bytes(self) -> int:
        """Return the private memory of all its processes: clean, dirty and swapped out."""
        return sum(private_bytes(pid) for pid in measure.family(self.process.pid))

    def settle(self) -> None:
        """Wait until the server has no work left: under 1 % of a core over a second. Give up after SETTLE_S."""
        end_s = time.monotonic() + SETTLE_S
        before_s = -1.0
        while self.cpu_s() - before_s > 0.01 and time.monotonic() < end_s:
            before_s = self.cpu_s()
            time.sleep(1)


def private_bytes(pid: int) -> int:
    text = (measure.PROC / str(pid) / "smaps_rollup").read_text()
    wanted = ("Private_Clean:", "Private_Dirty:", "Swap:")
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(wanted))


class Link:
    """A keep-alive connection: ``send``, then ``read``."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, action: str, body: bytes) -> None:
        head = (
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-Target: AmazonSQS.{action}\r\n"
            f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)

    def read(self) -> bytes:
        """Return the next answer. Exit if it is an error or a batch with a failure."""
        answer = self._answer()
        if not answer.startswith(b"HTTP/1.1 200") or b'"Failed":[{' in answer:
            raise SystemExit(f"refused: {answer[:600].decode(errors='replace')}")
        return answer

    def _answer(self) -> bytes:
        data = self._socket.recv(262_144)
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head = data[:end].lower()
        whole = end + 4 + int(head.partition(b"content-length:")[2].partition(b"\r")[0])
        while len(data) < whole:
            data += self._more()
        return data

    def is_served(self) -> bool:
        """Return whether the server answers. It does not until a member that has just started is master."""
        self.send("ListQueues", b"{}")
        return self._answer().startswith(b"HTTP/1.1 200")

    def _more(self) -> bytes:
        more = self._socket.recv(262_144)
        if not more:
            raise SystemExit("the server closed a connection")
        return more

    def call(self, action: str, **parameters: object) -> bytes:
        self.send(action, json.dumps(parameters).encode())
        return self.read().partition(b"\r\n\r\n")[2]


def served_link(server: Server) -> Link:
    """Return a connection on which the server has answered."""
    link = Link(server.port)
    while not link.is_served():
        pass
    return link


def batch_form(url: str) -> bytes:
    """Return the body of a SendMessageBatch with ten places (%d) for numbers."""
    filling = "".join(random.choices("abcdefghijklmnopqrstuvwxyz012345", k=BODY_BYTES - 12))
    entries = ",".join(f'{{"Id":"{at}","MessageBody":"%012d{filling}"}}' for at in range(BATCH))
    return f'{{"QueueUrl":"{url}","Entries":[{entries}]}}'.encode()


class Load:
    """The generator: one request in flight on each connection. All requests of a round use one queue."""

    def __init__(self, server: Server, queues: int) -> None:
        self.server = server
        self.links = [Link(server.port) for _ in range(CONNECTIONS)]
        names = [f"deep-{number}" for number in range(queues)]
        self.urls = [json.loads(self.links[0].call("CreateQueue", QueueName=name))["QueueUrl"] for name in names]
        self.forms = [batch_form(url) for url in self.urls]
        self.number = 0
        self.rounds = 0

    def all(self, action: str, bodies: list[bytes]) -> list[bytes]:
        links = self.links[: len(bodies)]
        for link, body in zip(links, bodies, strict=True):
            link.send(action, body)
        return [link.read() for link in links]

    def turn(self) -> int:
        """Begin a round; return the number of its queue."""
        self.rounds += 1
        return self.rounds % len(self.urls)

    def send(self, messages: int) -> int:
        sent = 0
        while sent < messages:
            form = self.forms[self.turn()]
            bodies = []
            for _ in range(min(CONNECTIONS, -(-(messages - sent) // BATCH))):
                bodies.append(form % tuple(range(self.number, self.number + BATCH)))
                self.number += BATCH
            self.all("SendMessageBatch", bodies)
            sent += len(bodies) * BATCH
        return sent

    def receive(self, queue: int, requests: int = CONNECTIONS) -> list[list[bytes]]:
        """Receive on several connections; return the receipt handles of each answer that has messages."""
        asked = {"QueueUrl": self.urls[queue], "MaxNumberOfMessages": BATCH, "VisibilityTimeout": HIDE_S}
        answers = self.all("ReceiveMessage", [json.dumps(asked).encode()] * min(requests, CONNECTIONS))
        return [handles for handles in map(HANDLE.findall, answers) if handles]

    def each(self, action: str, queue: int, handles: list[list[bytes]], more: bytes = b"") -> None:
        """Call a batch action for each list of at most ten handles."""
        head = f'{{"QueueUrl":"{self.urls[queue]}","Entries":['.encode()
        for at in range(0, len(handles), CONNECTIONS):
            some = handles[at : at + CONNECTIONS]
            self.all(
                action,
                [
                    head
                    + b",".join(b'{"Id":"%d","ReceiptHandle":"%b"%b}' % (i, one, more) for i, one in enumerate(ten))
                    + b"]}"
                    for ten in some
                ],
            )

    def drain(self, messages: int) -> int:
        """Receive and delete so many messages in tens, or all; return how many."""
        drained = empty = 0
        while drained < messages and empty < len(self.urls):
            queue = self.turn()
            wanted = -(-(messages - drained) // BATCH)
            handles = self.receive(queue, wanted)
            empty = 0 if handles else empty + 1
            if handles:
                self.each("DeleteMessageBatch", queue, handles)
                drained += sum(map(len, handles))
        return drained

    def churn(self, messages: int) -> int:
        """Receive so many messages, delete a random half and make the rest visible; return how many were deleted."""
        deleted = 0
        for queue in range(len(self.urls)):
            wanted = min(messages // len(self.urls), IN_FLIGHT_MAX)
            taken: list[bytes] = []
            while len(taken) < wanted and (tens := self.receive(queue, -(-(wanted - len(taken)) // BATCH))):
                taken += [handle for ten in tens for handle in ten]
            random.shuffle(taken)
            half = len(taken) // 2
            self.each("DeleteMessageBatch", queue, in_tens(taken[:half]))
            self.each("ChangeMessageVisibilityBatch", queue, in_tens(taken[half:]), b',"VisibilityTimeout":0')
            deleted += half
        return deleted

    def stored(self) -> int:
        """Return how many messages are visible or in flight, as the server counts them."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answers = [self.links[0].call("GetQueueAttributes", QueueUrl=url, AttributeNames=names) for url in self.urls]
        return sum(int(value) for answer in answers for value in json.loads(answer)["Attributes"].values())


def in_tens(handles: list[bytes]) -> list[list[bytes]]:
    return [handles[at : at + BATCH] for at in range(0, len(handles), BATCH)]


def cpu_us(server: Server, work: Callable[[int], int], messages: int) -> float:
    """Return the server's CPU time in us for a message of ``work``, including the work that follows."""
    server.settle()
    before_s, started_s = server.cpu_s(), time.monotonic()
    done = work(messages)
    wall_s = time.monotonic() - started_s
    server.settle()
    if done < messages:
        print(f"  only {done:,} of {messages:,} messages were handled")
    print(f"  {work.__name__}: {done / wall_s:,.0f} messages/s")
    return (server.cpu_s() - before_s) / max(1, done) * 1e6


def measure_empty(directory: Path, probe: int, queues: int) -> tuple[float, float]:
    """Return the CPU time in us of a message in send and in drain on an empty server."""
    server = Server(directory)
    try:
        load = Load(server, queues)
        warm_up(load)
        return cpu_us(server, load.send, probe), cpu_us(server, load.drain, probe)
    finally:
        server.end(signal.SIGKILL)


def warm_up(load: Load) -> None:
    load.send(10_000)
    load.drain(10_000)


def print_memory(title: str, server: Server, empty_bytes: int, stored: int) -> None:
    server.settle()
    private = server.private_bytes()
    a_message = (private - empty_bytes) / stored
    print(f"{title:42} {a_message:8.1f} B a message (goal 64): {private / 1e6:,.0f} MB, {stored:,} stored", flush=True)


def print_restart(server: Server, load: Load, stored: int, how: signal.Signals) -> None:
    server.end(how)
    started_s = time.monotonic()
    server.start()
    link = served_link(server)
    first_s = time.monotonic() - started_s
    load.links = [link, *(Link(server.port) for _ in range(CONNECTIONS - 1))]
    now_stored = load.stored()
    print(f"restart after {how.name} to first answer {first_s:18.2f} s (goal 2 with 1 M), {now_stored:,} stored")
    if now_stored != stored:
        print(f"  {stored:,} were stored before")


def run(messages: int, queues: int, directory: Path) -> None:
    probe = max(BATCH, min(1_000_000, messages // 2))
    empty_send_us, empty_drain_us = measure_empty(directory / "empty", probe, queues)
    server = Server(directory / "deep")
    try:
        load = Load(server, queues)
        warm_up(load)
        server.settle()
        empty_bytes = server.private_bytes()
        print(f"empty server {empty_bytes / 1e6:,.0f} MB private, filling with {messages:,} messages", flush=True)
        load.send(messages - probe)
        send_us = cpu_us(server, load.send, probe)
        print_memory("memory, never received", server, empty_bytes, load.stored())
        print_pair("send by 10", send_us, empty_send_us)
        print_pair("receive 10 + delete 10", cpu_us(server, load.drain, probe), empty_drain_us)
        load.send(probe)
        before = load.stored()
        deleted = load.churn(messages // 5)
        if load.stored() != before - deleted:
            raise SystemExit(f"{deleted:,} of {before:,} were deleted, and {load.stored():,} are left")
        print_memory("memory, a fifth received, half of it deleted", server, empty_bytes, load.stored())
        for how in (signal.SIGKILL, signal.SIGTERM):
            print_restart(server, load, load.stored(), how)
    finally:
        server.end(signal.SIGKILL)


def print_pair(title: str, deep_us: float, empty_us: float) -> None:
    print(
        f"{title + ', CPU a message at depth':42} {deep_us:8.1f} µs, empty {empty_us:.1f}: "
        f"{deep_us / empty_us:.2f}x (goal 1.1)",
        flush=True,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=10_000_000, help="messages in the backlog (10000000)")
    parser.add_argument("--queues", type=int, default=QUEUES, help="queues that share the backlog (%(default)s)")
    parser.add_argument("--directory", help="folder for the data (the system's temporary folder)")


def main(options: argparse.Namespace) -> None:
    measure.pin(os.getpid(), measure.GENERATOR_CORE)
    with tempfile.TemporaryDirectory(prefix="elasticq-deep-", dir=options.directory) as directory:
        run(options.messages, options.queues, Path(directory))
