"""The acceptor: as many connections as there is room for, and handshakes that are silent give way."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from elasticq.net import acceptor as acceptors
from elasticq.net.acceptor import Acceptor, listeners_of
from tests.peers.test_tls import Authority

PATIENCE_S = 20.0


class Hello(asyncio.Protocol):
    """Greets, and counts those who are there."""

    def __init__(self, there: set["Hello"]) -> None:
        self._there = there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._there.add(self)
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        transport.write(b"hello\n")  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self._there.discard(self)


@asynccontextmanager
async def greeting(bound: int, tls: ssl.SSLContext | None = None, handshake_s: float = 60) -> AsyncIterator[int]:
    """A port that greets."""
    there: set[Hello] = set()
    listeners = await listeners_of("127.0.0.1", 0, 64)
    acceptor = Acceptor(
        "test",
        asyncio.get_running_loop(),
        listeners,
        lambda: Hello(there),
        count=lambda: len(there),
        connections_max=bound,
        tls=tls,
        handshake_s=handshake_s,
    )
    acceptor.start()
    try:
        yield listeners[0].getsockname()[1]
    finally:
        acceptor.close()


async def said(reader: asyncio.StreamReader) -> bytes:
    """The greeting, or nothing from a connection that was closed."""
    try:
        return await asyncio.wait_for(reader.readline(), PATIENCE_S)
    except ConnectionResetError:
        return b""


async def test_what_there_is_no_room_for_is_closed_at_once() -> None:
    async with greeting(2) as port:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert sorted([await said(reader) for reader, _ in opened]) == [b"", b"hello\n", b"hello\n"]
        kept = next(writer for reader, writer in opened if not reader.at_eof())
        kept.close()
        while True:  # its place is free as soon as its end has come
            reader, _ = await asyncio.open_connection("127.0.0.1", port)
            if await said(reader):
                break


async def test_a_handshake_gives_way_to_the_next_one(tmp_path: Path) -> None:
    server, client = contexts(tmp_path)
    async with greeting(4, server) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        ended = [asyncio.ensure_future(said(reader)) for reader, _ in silent]
        reader, _ = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        assert await said(reader) == b"hello\n"
        done, _ = await asyncio.wait(ended, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        assert done
        assert not ended[-1].done()
        for one in ended:
            one.cancel()


async def test_a_silent_handshake_ends_after_its_time(tmp_path: Path) -> None:
    server, _ = contexts(tmp_path)
    async with greeting(4, server, handshake_s=0.1) as port:
        reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader) == b""


async def test_where_the_system_has_no_file_left_it_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptors, "PAUSE_S", 0.01)
    tried = []

    class Poor(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            tried.append(self)
            if len(tried) < 3:
                raise OSError(24, "Too many open files")
            return super().accept()

    monkeypatch.setattr(acceptors.socket, "socket", Poor)
    async with greeting(4) as port:
        monkeypatch.undo()
        reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader) == b"hello\n"
    assert len(tried) >= 3


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::", ""])
async def test_all_addresses_of_a_host_get_one_port(host: str) -> None:
    listeners = await listeners_of(host, 0, 8)
    assert len({listener.getsockname()[1] for listener in listeners}) == 1
    for listener in listeners:
        listener.close()


async def test_a_port_that_is_taken_is_an_error() -> None:
    (first,) = await listeners_of("127.0.0.1", 0, 8)
    with pytest.raises(OSError, match="in use"):
        await listeners_of("127.0.0.1", first.getsockname()[1], 8)
    first.close()


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    files = Authority(folder, "one").settings("server")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files["tls_cert"], files["tls_key"])
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    return server, client
