"""A server process is flooded and stays inside 256 MB: it answers, and nothing that it acknowledged is lost.

Its peak of resident memory is what the kernel counted (VmHWM). Beside each flood an honest client sends; whatever
it was told 200 for must be there afterwards.
"""

import json
import resource
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from elasticq.model.limits import REQUEST_BYTES_MAX
from tests.system.cluster.cluster import until
from tests.system.durability.connection import Broken, Connection, request
from tests.system.durability.server import Server

MEGABYTE = 1_048_576
LIMIT_MB = 256
OPENED_AT_ONCE = 64
"""Fewer than the backlog of the port holds. A connection beyond the backlog is tried again only after 1 s."""
SETTINGS = {"ELASTICQ_STORAGE__MEMORY_MB": "16", "ELASTICQ_HTTP__BUFFERS_MB": "32", "ELASTICQ_ADMIN__PORT": "0"}
FILES_SPARE = 500
HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SEND = b"X-Amz-Target: AmazonSQS.SendMessage\r\nContent-Type: application/x-amz-json-1.0\r\n"
TIMEOUT_S = 30


class Flood:
    """One server, the sockets that the flood holds open, and the statuses of its answers."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = server.create("flooded")
        self.held: list[socket.socket] = []
        self.statuses: Counter[int] = Counter()
        self.seen: dict[int, int] = {}

    def open(self, data: bytes) -> None:
        """Open one more connection and send ``data``, as far as the server takes it.

        After each OPENED_AT_ONCE connections, wait until the server has accepted them.
        """
        connection = socket.create_connection(("127.0.0.1", self.server.port), TIMEOUT_S)
        self.held.append(connection)
        with suppress(ConnectionError):
            connection.sendall(data)
        if len(self.held) % OPENED_AT_ONCE == 0:
            with suppress(Broken), closing(Connection(self.server.port)) as last:
                last.call("GetQueueUrl", {"QueueName": "flooded"})  # the answer, or a refusal, comes after all accepts

    def look(self) -> Counter[int]:
        """The statuses of all replies so far; a held connection is looked at until it has one."""
        for connection in self.held:
            connection.setblocking(False)
            with suppress(OSError):
                if start := connection.recv(12, socket.MSG_PEEK):
                    self.seen[connection.fileno()] = int(start[9:12])
        return self.statuses + Counter(self.seen.values())

    def burst(self, requests: list[bytes], connections: int = 1) -> None:
        """Send requests ahead of their replies, shared out to so many connections, and read all replies."""
        with ExitStack() as stack:
            shares = [requests[at::connections] for at in range(connections)]
            opened = [stack.enter_context(closing(Connection(self.server.port))) for _ in shares]
            for connection, share in zip(opened, shares, strict=True):
                connection.send(b"".join(share))
            for connection, share in zip(opened, shares, strict=True):
                for _ in share:
                    self.statuses[connection.read().status] += 1

    def body(self, **members: object) -> bytes:
        return json.dumps({"QueueUrl": self.url, **members}).encode()

    def end(self) -> None:
        for connection in self.held:
            connection.close()
        self.held.clear()


class Honest:
    """Sends small messages one after the other until it is told to stop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.create("kept")
        self.acknowledged: set[str] = set()
        self.refused: Counter[int] = Counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        number = 0
        while not self._over.is_set():
            with suppress(Broken), closing(Connection(self._server.port)) as connection:
                while not self._over.is_set():
                    number += 1
                    answer = connection.call("SendMessage", {"QueueUrl": self.url, "MessageBody": f"kept {number}"})
                    if answer.status == 200:
                        self.acknowledged.add(f"kept {number}")
                    else:
                        self.refused[answer.status] += 1
                    self._over.wait(0.005)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def received(self) -> set[str]:
        """Everything in its queue."""
        found: set[str] = set()
        while messages := self._server.call(
            "ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=600
        ).get("Messages"):
            found.update(message["Body"] for message in messages)
        return found


def endless_heads(flood: Flood) -> None:
    for _ in range(3_000):
        flood.open(HEAD + b"X-Long: " + b"x" * 8_000)


def huge_heads(flood: Flood) -> None:
    for _ in range(200):
        flood.open(HEAD + b"X-Long: " + b"x" * MEGABYTE)


def slow_bodies(flood: Flood) -> None:
    for _ in range(200):
        flood.open(HEAD + SEND + b"Content-Length: %d\r\n\r\n" % REQUEST_BYTES_MAX + b"x" * MEGABYTE)


def slow_chunks(flood: Flood) -> None:
    for _ in range(200):
        flood.open(HEAD + SEND + b"Transfer-Encoding: chunked\r\n\r\n100000\r\n" + b"x" * (MEGABYTE - 1))


def big_messages(flood: Flood) -> None:
    message = request("SendMessage", flood.body(MessageBody="x" * 1_000_000))
    for _ in range(40):
        flood.burst([message] * 5)


def unread_replies(flood: Flood) -> None:
    big_messages(flood)
    receive = request("ReceiveMessage", flood.body(MaxNumberOfMessages=10, VisibilityTimeout=0))
    for _ in range(200):
        flood.open(receive * 16)


def long_polls(flood: Flood) -> None:
    """As many as this process may have files, and the server connections."""
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    poll = request("ReceiveMessage", flood.body(WaitTimeSeconds=20))
    for _ in range(min(9_500, files_max - FILES_SPARE)):
        flood.open(poll)


def sent_ahead(flood: Flood) -> None:
    poll = request("ReceiveMessage", flood.body(WaitTimeSeconds=20))
    for _ in range(300):
        flood.open(poll + b"x" * 250_000)


def many_queues(flood: Flood) -> None:
    names = [f"queue-{number}" for number in range(10_000)]
    creates = [request("CreateQueue", json.dumps({"QueueName": name}).encode()) for name in names]
    flood.burst(creates, connections=50)  # a sync of the disk serves those of all connections


def too_many_connections(flood: Flood) -> None:
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for _ in range(min(10_500, files_max - FILES_SPARE)):
        with suppress(ConnectionError):
            flood.open(b"")


FLOODS = [
    endless_heads, huge_heads, slow_bodies, slow_chunks, big_messages, unread_replies, long_polls, sent_ahead,
    many_queues, too_many_connections,
]  # fmt: skip
REFUSED_EARLY = {"huge_heads": 431, "slow_bodies": 503, "slow_chunks": 503}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", tmp_path / "log", environment=SETTINGS)
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def all_files() -> Iterator[None]:
    """This process holds the clients' ends of all connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def peak_mb(server: Server) -> int:
    assert server.process
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1_024


@pytest.mark.parametrize("pour", FLOODS)
def test_flooded_server_lives_within_its_memory_and_loses_nothing(
    server: Server, pour: Callable[[Flood], None]
) -> None:
    flood, honest = Flood(server), Honest(server)
    try:
        pour(flood)
        if expected := REFUSED_EARLY.get(pour.__name__):
            assert set(until(flood.look, "an early refusal")) == {expected}
        until(lambda: len(honest.acknowledged) > 10, "the honest client is served")
        assert peak_mb(server) < LIMIT_MB
    finally:
        honest.stop()
        flood.end()
    assert server.process
    assert server.process.poll() is None, server.log.read_text()
    assert set(flood.statuses) <= {200, 503}, flood.statuses
    assert set(honest.refused) <= {503}, honest.refused
    assert honest.acknowledged <= honest.received()
    assert peak_mb(server) < LIMIT_MB
    assert "Traceback" not in server.log.read_text()


@pytest.mark.chaos
def test_all_floods_after_each_other_lose_nothing(server: Server) -> None:
    """Also not when the process is killed at their end."""
    flood, honest = Flood(server), Honest(server)
    try:
        for pour in FLOODS:
            pour(flood)
            flood.end()
    finally:
        honest.stop()
        flood.end()
    assert peak_mb(server) < LIMIT_MB
    server.restart()
    assert honest.acknowledged <= honest.received()
    assert peak_mb(server) < LIMIT_MB


def test_server_that_keeps_all_in_memory_refuses_what_would_not_fit(tmp_path: Path) -> None:
    settings = SETTINGS | {"ELASTICQ_STORAGE__MEMORY_MAX_MB": "64"}
    server = Server(tmp_path / "data", tmp_path / "log", environment=settings, memory=True)
    server.start()
    flood, honest = Flood(server), Honest(server)
    try:
        until(lambda: len(honest.acknowledged) > 10, "the honest client is served")
        big_messages(flood)
        until(lambda: honest.refused[503] > 0, "the honest client is refused, too")
        server.call("PurgeQueue", QueueUrl=flood.url)
        before = len(honest.acknowledged)
        until(lambda: len(honest.acknowledged) > before, "there is room again")
        honest.stop()
        assert set(flood.statuses) == {200, 503}, flood.statuses
        assert honest.acknowledged <= honest.received()
        assert peak_mb(server) < LIMIT_MB
    finally:
        honest.stop()
        flood.end()
        server.kill()
