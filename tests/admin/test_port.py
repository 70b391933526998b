"""The admin port as a socket."""

import asyncio
import subprocess
import sys

import aiohttp
import pytest

from elasticq.admin.admission import POLICY
from elasticq.admin.port import AdminPort
from elasticq.model.limits import HEAD_BYTES_MAX
from tests.admin.member import Member

PATIENCE_S = 10


async def test_a_port_from_the_kernel_answers_until_it_stops() -> None:
    port = AdminPort(Member(), "127.0.0.1", 0)
    await port.start()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port.port}/health") as answer,
    ):
        assert await answer.text() == "OK durability=os"
    await port.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port.port)


async def test_a_long_line_is_answered_with_the_headers_that_protect_an_answer() -> None:
    port = AdminPort(Member(), "127.0.0.1", 0)
    await port.start()
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port.port}/nothing?{'x' * (HEAD_BYTES_MAX - 1_000)}"
        async with session.get(url) as answer:
            assert (answer.status, answer.headers["Content-Security-Policy"]) == (404, POLICY)
    await port.stop()


async def test_a_client_that_comes_before_the_start_is_answered() -> None:
    port = AdminPort(Member(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(b"GET /ready HTTP/1.0\r\n\r\n")
    await port.start()
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    assert answer.startswith(b"HTTP/1.0 200 OK")
    writer.close()
    await port.stop()


async def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    port = AdminPort(Member(), "127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        AdminPort(Member(), "127.0.0.1", port.port)
    await port.stop()


def test_aiohttp_is_not_imported_before_the_port_starts() -> None:
    code = "import sys, elasticq.admin.port; assert 'aiohttp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
