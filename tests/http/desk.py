"""A port in memory: a real Node and Runtime, a clock that the test moves, transports that are lists of bytes."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from elasticq.http.connection.bounds import Bounds
from elasticq.http.context import ServerContext
from elasticq.http.protocol import SqsProtocol
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.runtime.runtime import Runtime
from elasticq.storage.memory import MemoryStorage
from elasticq.wire.browsers import Browsers
from elasticq.wire.sigv4 import Key

HOST = "127.0.0.1:9324"
QUEUE_URL = f"http://{HOST}/000000000000/orders"
PATIENCE_S = 30
WALL_MS = 1_800_000_000_000


class Line(asyncio.Transport):
    """The client's end of a connection: what was written to it, and what was done to it."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__({"peername": (address, 50_000), "sockname": ("127.0.0.1", 9324)})
        self.received = bytearray()
        self.ended = False  # closed, aborted, or FIN sent
        self.aborted = False
        self.reading = True
        self.protocol: Any = None
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "written after the end"
        self.received += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        if not self._closing:
            self._closing = self.ended = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return len(self.received)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def get_protocol(self) -> Any:
        return self.protocol


class Desk:
    """One server without a socket. The clock stands still unless ``pass_ms`` is called."""

    def __init__(
        self,
        bounds: Bounds | None = None,
        entropy: bytes = bytes(32),
        *,
        auth: str = "off",
        keys: Sequence[Key] = (),
        browsers: Browsers | None = None,
        has_testing: bool = False,
        own_region: str = "",
    ) -> None:
        self.now_ms = 1_000_000
        self.wall_ms = WALL_MS
        self.failures: list[BaseException] = []
        loop = asyncio.get_running_loop()
        storage = MemoryStorage()
        settings = NodeSettings(member_id="a-1", voters=("a-1",), volatile=True)
        self.node = Node(settings, storage.load().durable, entropy)
        self.runtime = Runtime(
            self.node, storage, loop, self.failures.append, clock=self._clock, wall_clock=lambda: 1_800_000_000_000
        )
        self.runtime.start()
        self.context = ServerContext(
            self.runtime,
            loop,
            entropy,
            node_name="a",
            default_account="000000000000",
            own_region=own_region,
            bounds=bounds,
            auth=auth,
            keys=keys,
            browsers=browsers,
            has_testing=has_testing,
            clock=self._clock,
            wall_clock=lambda: self.wall_ms,
        )

    def _clock(self) -> int:
        return self.now_ms

    def pass_ms(self, span_ms: int) -> None:
        """Time goes by; the sweep looks once a second, as it does in life."""
        until_ms = self.now_ms + span_ms
        while self.now_ms < until_ms:
            self.now_ms = min(self.now_ms + 1_000, until_ms)
            self.context.sweep()

    def connect(self, address: str = "127.0.0.1") -> tuple[SqsProtocol, Line]:
        line = Line(address)
        line.protocol = SqsProtocol(self.context)
        line.protocol.connection_made(line)
        return line.protocol, line

    async def exchange(self, *parts: bytes, replies: int) -> list["Response"]:
        """Send ``parts`` on a new connection and wait for ``replies`` answers."""
        protocol, line = self.connect()
        for part in parts:
            protocol.data_received(part)
        await until(lambda: len(responses(line.received)) >= replies)
        return responses(line.received)

    async def ask(self, request: bytes) -> "Response":
        return (await self.exchange(request, replies=1))[0]

    async def close(self) -> None:
        await self.context.stop(0)
        self.runtime.close()


class Response(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def essence(self) -> tuple[int, str, str, bytes]:
        """Without what differs between two answers to the same request."""
        body = re.sub(rb"<RequestId>[^<]*", b"<RequestId>", self.body)
        return self.status, self.headers["content-type"], self.headers.get("x-amzn-query-error", ""), body


def responses(data: bytes | bytearray) -> list[Response]:
    """The complete responses in ``data``."""
    found, rest = [], bytes(data)
    while b"\r\n\r\n" in rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        size = int(headers.get("content-length", 0))  # a 204 has none
        if len(rest) < size:
            break
        found.append(Response(int(first.split()[1]), headers, rest[:size]))
        rest = rest[size:]
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until ``condition`` holds."""

    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), PATIENCE_S)


async def settle(turns: int = 8) -> None:
    """Let the loop do what is due now."""
    for _ in range(turns):
        await asyncio.sleep(0)


Asking = Callable[[bytes], Awaitable[Response]]


def json_request(action: str, members: dict[str, Any] | bytes, *headers: str, path: str = "/") -> bytes:
    body = members if isinstance(members, bytes) else msgspec.json.encode(members)
    return post(
        body, "Content-Type: application/x-amz-json-1.0", f"X-Amz-Target: AmazonSQS.{action}", *headers, path=path
    )


def form_request(form: str, *headers: str, path: str = "/") -> bytes:
    return post(form.encode(), "Content-Type: application/x-www-form-urlencoded", *headers, path=path)


def post(body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {HOST}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", *lines, "", ""]).encode()


def chunked(request: bytes) -> bytes:
    """The same request in chunks, which only the slow path reads."""
    head, _, body = request.partition(b"\r\n\r\n")
    head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(body[at : at + 7]), body[at : at + 7]) for at in range(0, len(body), 7))
    return head + b"\r\n\r\n" + chunks + b"0\r\n\r\n"
