"""The connections of the admin port. aiohttp gets a request only when all its bytes have arrived.

    waiting --- head and body are here ---> inside (aiohttp answers; more may follow) --- silence ---> ended
       '------- too long, too slow, or the port is full -----------------------------------------------> ended

Without this, a client that never ends its request would keep its connection for ever. Some hundreds of such clients
would fill the port, and probes would take this member for dead. Requests are small, so whole ones fit into memory.
"""

import asyncio
from typing import Final, Protocol, cast

from elasticq.model.limits import HEAD_BYTES_MAX

REQUEST_S: Final = 10.0  # from the connection, or a request's first byte, to the request's last byte
SILENT_S: Final = 75.0  # after the last byte of a request; an order is answered within 60 s
ORDER_BYTES_MAX: Final = 4_096
BODY_BYTES_MAX: Final = 4 * 1_048_576
"""Enough for a form with the longest message (each byte may be written as three) and definitions of many queues."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The Content-Security-Policy of every answer of the port."""

WAITING, ASKED, ORDERED = 0, 1, 2
"""States of connections. When the port is full, it closes connections of the lowest state first."""

_REFUSAL: Final = (
    b"HTTP/1.1 %%s\r\nContent-Length: 0\r\nConnection: close\r\nContent-Security-Policy: %b\r\n\r\n" % POLICY.encode()
)
_HEAD_ENDS: Final = b"\r\n\r\n"
_LENGTH, _CODING, _ENCODING = b"content-length", b"transfer-encoding", b"content-encoding"


class Owner(Protocol):
    """The port, as its connections see it."""

    def admit(self, connection: "AdminConnection") -> asyncio.Protocol | None:
        """Admit a new connection. Return the protocol that answers its requests, None if the port stops."""

    def forget(self, connection: "AdminConnection") -> None:
        """Forget a closed connection."""

    def claim_long_body(self, connection: "AdminConnection") -> bool:
        """Return whether the connection may buffer a body of more than ORDER_BYTES_MAX.

        If so, it counts as a holder of a long body until ``release_long_body`` is called.
        """

    def release_long_body(self, connection: "AdminConnection") -> None:
        """End the connection's claim on a long body, if it has one."""


class Refused(Exception):
    """A refusal of the request. Its argument is status and reason of the answer's status line."""


class AdminConnection(asyncio.Protocol):
    """One connection.

    until_s: the loop's time at which the port closes it, unless it has sent a whole request; address: the client's IP
    address.
    """

    _transport: asyncio.Transport

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._loop = loop
        self._handler: asyncio.Protocol | None = None
        self._buffer = b""
        self._awaited_bytes = 0  # the request cannot be complete with fewer bytes
        self.address = ""
        self.state = WAITING
        self.until_s = loop.time() + REQUEST_S

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._handler = self._owner.admit(self)
        if self._handler is None:
            self._transport.abort()
        else:
            self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._handler is None or self._transport.is_closing():
            return
        if not self._buffer:
            self.until_s = self._loop.time() + REQUEST_S
            if self.state != ORDERED:
                self.state = WAITING
        self._buffer += data
        if len(self._buffer) < self._awaited_bytes:
            return
        try:
            while self._buffer and (size_bytes := self._whole_bytes()):
                request, self._buffer = self._buffer[:size_bytes], self._buffer[size_bytes:]
                self.state = ORDERED if request.startswith(b"POST") else max(self.state, ASKED)
                self.until_s = self._loop.time() + (REQUEST_S if self._buffer else SILENT_S)
                self._owner.release_long_body(self)
                self._handler.data_received(request)
        except Refused as refusal:
            self._transport.write(_REFUSAL % refusal.args[0])
            self._transport.close()

    def _whole_bytes(self) -> int:
        """Return the length of the first request if all of it is here, else 0. Raise Refused."""
        size_bytes, body_bytes = _measured(self._buffer)
        if body_bytes > ORDER_BYTES_MAX and not self._owner.claim_long_body(self):
            raise Refused(b"503 Service Unavailable")
        self._awaited_bytes = size_bytes
        if size_bytes and len(self._buffer) >= size_bytes:
            self._awaited_bytes = 0
            return size_bytes
        return 0

    def eof_received(self) -> bool | None:
        return None if self._handler is None else self._handler.eof_received()

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.forget(self)
        if self._handler is not None:
            self._handler.connection_lost(exc)

    def abort(self) -> None:
        self._transport.abort()


def _measured(data: bytes) -> tuple[int, int]:
    """Return the lengths of the first request in ``data`` and of its body, both 0 while its head is incomplete.

    Raise Refused if the head is too long, or if the body's length cannot be known or is out of bounds.
    """
    end = data.find(_HEAD_ENDS)
    if end < 0 and len(data) <= HEAD_BYTES_MAX:
        return 0, 0
    if not 0 <= end <= HEAD_BYTES_MAX:
        raise Refused(b"431 Request Header Fields Too Large")
    lengths = []
    for line in data[:end].split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name == _CODING:
            raise Refused(b"411 Length Required")
        if name == _ENCODING and value.strip().lower() != b"identity":
            raise Refused(b"415 Unsupported Media Type")
        if name == _LENGTH:
            lengths.append(value.strip())
    body_bytes = _body_bytes(lengths)
    return end + len(_HEAD_ENDS) + body_bytes, body_bytes


def _body_bytes(lengths: list[bytes]) -> int:
    if not lengths:
        return 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > 10:
        raise Refused(b"400 Bad Request")
    body_bytes = int(lengths[0])
    if body_bytes > BODY_BYTES_MAX:
        raise Refused(b"413 Content Too Large")
    return body_bytes
