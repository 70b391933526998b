"""The target of what web servers answer to notifications: a Poster asks one whose answer is the input."""

import asyncio
from typing import Final

from elasticq.push.addresses import AddressRefused, Guard
from elasticq.push.post import Outcome, Poster
from tests.system.fuzz.choices import Choices
from tests.system.fuzz.http_targets import loop
from tests.system.fuzz.target import Target, check_told

_TIMEOUT_S: Final = 0.3


class _Site:
    """A web server that answers each request with ``answer`` and closes the connection."""

    def __init__(self) -> None:
        self.answer = b""
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


_site = _Site()


def judge_answers(data: bytes) -> None:
    loop().run_until_complete(_judge_answer(data))


async def _judge_answer(data: bytes) -> None:
    await _site.start()
    _site.answer = data
    poster = Poster(Guard([]), connections_max=2, timeout_s=_TIMEOUT_S)
    try:
        outcome = await poster.post(f"http://127.0.0.1:{_site.port}/", {"Content-Type": "text/plain"}, b"")
    finally:
        await poster.close()
    assert isinstance(outcome, Outcome)
    if outcome.is_done:
        codes = [line.split()[1:2] for line in data.split(b"\n") if line.split()[1:2]]
        assert any(code[0][:1] == b"2" and len(code[0]) == 3 for code in codes), "done without a 2xx"
    else:
        assert outcome.reason, "a failure that says nothing"


def judge_endpoints(data: bytes) -> None:
    """URLs of subscribers: an address that is refused is refused in whatever way it is written."""
    choices = Choices(data)
    host = choices.choice(
        [
            "169.254.169.254",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "2852039166",
            "0xa9fea9fe",
            "[fe80::1%25lo]",
        ]
    )
    text = choices.randbytes(choices.below(60)).decode("latin-1")
    guard = Guard(["169.254.0.0/16", "fe80::/10"], [9_325])
    try:
        guard.check(text, choices.below(70_000))
    except AddressRefused as refused:
        check_told(refused)
    if choices.flag():
        scheme, user, port = (choices.choice(of) for of in (("http", "https"), ("", "u@", "u:p@"), ("", ":1", ":80")))
        url = f"{scheme}://{user}{host}{port}/{text}"
    else:
        url = text
    outcome = loop().run_until_complete(_refused(url))
    assert not outcome.is_done
    assert outcome.reason


async def _refused(url: str) -> Outcome:
    """Everything is refused, so that nothing leaves this machine whatever the URL is."""
    poster = Poster(Guard(["0.0.0.0/0", "::/0"]), connections_max=1, timeout_s=_TIMEOUT_S)
    try:
        return await poster.post(url, {}, b"")
    finally:
        await poster.close()


TARGETS = {
    "answers": Target(
        judge_answers,
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\nRetry-After: 9\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"HTTP/1.0 301 Moved\r\nLocation: http://169.254.169.254/\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\nContent-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        ],
        ["HTTP/1.1 200", "Content-Length:", "Transfer-Encoding:", "chunked", "gzip", "Set-Cookie:", "Location:"],
        1_000,
    ),
    "endpoints": Target(
        judge_endpoints, [bytes(range(at, at + 40)) for at in range(0, 60, 4)], ["::ffff:", "%25", "@"], 200
    ),
}
