"""Connections of the admin port that say nothing whole, in time or in length."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from elasticq.admin import admission
from elasticq.admin import port as ports
from elasticq.admin.admission import BODY_BYTES_MAX
from elasticq.admin.port import LARGE_MAX, AdminPort
from tests.admin.member import Member

PATIENCE_S = 10


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The status line, or nothing where the connection was closed."""
    try:
        return await asyncio.wait_for(reader.readline(), PATIENCE_S)
    except ConnectionResetError:
        return b""


async def asking(port: AdminPort, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(data)
    return reader, writer


@asynccontextmanager
async def listening(**settings: int) -> AsyncIterator[AdminPort]:
    port = AdminPort(Member(), "127.0.0.1", 0, **settings)
    await port.start()
    try:
        yield port
    finally:
        await port.stop()


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics"])
async def test_connections_that_say_nothing_whole_give_way_to_probes(path: str) -> None:
    async with listening(connections_max=8) as port:
        halves = [await asking(port, b"GET /cluster HTTP/1.1\r\nHost: a\r\n") for _ in range(20)]
        reader, _ = await asking(port, b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode())
        assert b" 200 " in await answer(reader)
        assert await answer(halves[0][0]) == b""


async def test_silent_connections_give_way_after_those_that_say_nothing_whole() -> None:
    async with listening(connections_max=2) as port:
        first, _ = await asking(port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in await answer(first)
        half, _ = await asking(port, b"GET /health")
        third, _ = await asking(port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in await answer(third)
        assert await answer(half) == b""
        assert not first.at_eof()
        fourth, _ = await asking(port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in await answer(fourth)
        await asyncio.wait_for(first.read(), PATIENCE_S)


@pytest.mark.parametrize(
    "data", [b"", b"GET /health HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"]
)
async def test_a_request_that_is_not_whole_in_time_ends(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "REQUEST_S", 0.05)
    monkeypatch.setattr(ports, "SWEEP_S", 0.02)
    async with listening() as port:
        reader, _ = await asking(port, data)
        assert await answer(reader) == b""


async def test_a_silent_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "SILENT_S", 0.05)
    monkeypatch.setattr(ports, "SWEEP_S", 0.02)
    async with listening() as port:
        reader, _ = await asking(port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), PATIENCE_S)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Transfer-Encoding: chunked", b"411"),
        (b"Content-Length: 1\r\nContent-Length: 1", b"400"),
        (b"Content-Length: -1", b"400"),
        (b"Content-Length: %d" % (BODY_BYTES_MAX + 1), b"413"),
        (b"X: " + b"x" * 17_000, b"431"),
        (b"Content-Encoding: gzip\r\nContent-Length: 2", b"415"),
    ],
)
async def test_a_request_without_a_plain_short_length_is_refused(head: bytes, status: bytes) -> None:
    async with listening() as port:
        reader, _ = await asking(port, b"POST /cluster/orders HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % head)
        assert (await answer(reader)).split()[1] == status
        assert b"\r\nContent-Security-Policy: default-src 'none'; " in b"\r\n" + await reader.read()


async def test_few_long_bodies_are_held_at_a_time_and_the_others_are_told_to_come_again() -> None:
    head = b"POST /cluster/orders HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES_MAX
    async with listening() as port:
        held = [await asking(port, head) for _ in range(LARGE_MAX)]
        reader, _ = await asking(port, head)
        assert (await answer(reader)).split()[1] == b"503"
        reader, writer = held[0]
        writer.write(b"x" * BODY_BYTES_MAX)
        assert (await answer(reader)).split()[1] == b"415"
        reader, writer = await asking(port, head)
        writer.write(b"x" * BODY_BYTES_MAX)
        assert (await answer(reader)).split()[1] == b"415"


async def test_requests_may_come_in_pieces_and_one_after_the_other() -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        request = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        for at in range(len(request)):
            writer.write(request[at : at + 1])
            await writer.drain()
        writer.write(request * 2 + request[:-1])
        for _ in range(3):
            assert await asyncio.wait_for(reader.readuntil(b"OK durability=os"), PATIENCE_S)
        writer.write(request[-1:])
        assert await asyncio.wait_for(reader.readuntil(b"OK durability=os"), PATIENCE_S)
        writer.close()
