"""The framing of one connection: bytes become complete requests, and early requests wait in a buffer.

One reader (head.py) parses every head, and this module reads every body to its
end, for the hot path and for aiohttp. So no two parsers read the bytes of a
connection. This module also refuses malformed, too long and too late requests.

``_hold`` has the reasons why the next request must wait (0: it need not):

    PARKED   a request waits for its reply (a long poll, or a sync). Requests that the client sends
             ahead are buffered; at a bound, the socket is not read
    SLOW     aiohttp has a request; requests sent ahead are buffered in the same way
    WRITING  the client does not read its replies
    YIELDED  16 requests of a burst were answered, or one long answer was sent; other connections come first
    CLOSING  bad framing, too large, too late, Connection: close
"""

import asyncio
import re
from abc import ABC, abstractmethod
from typing import Final

from elasticq.http.connection import exchange
from elasticq.http.connection.chunks import Chunks
from elasticq.http.connection.exchange import Answer
from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import CHUNKED, JSON, BadHead
from elasticq.http.context import BUSY_TEXT, NEVER_MS, ServerContext
from elasticq.model.errors import RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.limits import HEAD_BYTES_MAX, REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX
from elasticq.wire.services import guess

_BURST: Final = range(16)
"""The server answers at most 16 requests of one connection in a row; then it serves other connections."""
LONG_ANSWER_BYTES: Final = 65_536
"""A longer answer ends a burst. An answer of 1 MB takes 4 ms, and one turn of the loop serves all ready connections."""

PARKED: Final = 1
WRITING: Final = 2
YIELDED: Final = 4
SLOW: Final = 8
CLOSING: Final = 16

_BARE_LF: Final = re.compile(rb"(?<!\r)\n")


class Framing(asyncio.Protocol, ABC):
    """A connection that splits its bytes into requests. ``SqsProtocol`` (protocol.py) executes each complete request.

    slow_request: head and body of the request that is at aiohttp, or None.
    out: answers to write at the end of this turn of the loop.
    """

    __slots__ = (
        "_body",
        "_buffer",
        "_buffers_bytes",
        "_chunks",
        "_context",
        "_eof",
        "_head",
        "_hold",
        "_is_secure",
        "_outbox",
        "_read",
        "_reading_paused",
        "_reply_bytes",
        "_transport",
        "_waiting_bytes",
        "deadline_ms",
        "out",
        "slow_request",
    )

    _transport: asyncio.Transport

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._outbox = context.outbox
        self._read = context.reader.read
        self._hold = 0
        self._buffer = b""
        self._head: Head | None = None
        self._body = bytearray()
        self._chunks: Chunks | None = None
        self._buffers_bytes = 0
        self._waiting_bytes = 0
        self._reply_bytes = 0
        self._eof = False
        self._reading_paused = False
        self._is_secure = False
        self.slow_request: tuple[Head, bytes] | None = None
        self.out = b""
        self.deadline_ms = NEVER_MS

    @abstractmethod
    def _execute(self, head: Head, body: bytes) -> None:
        """Answer a request on the hot path."""

    @abstractmethod
    def _hand_over(self, head: Head, body: bytes) -> None:
        """Pass a request to aiohttp."""

    def data_received(self, data: bytes) -> None:
        if self._hold:
            self._receive_held(data)
        elif self._head is not None:
            self._receive_body(self._head, data)
        elif self._buffer:
            data = self._buffer + data
            self._buffer = b""
            self._count_buffers()
            self._serve(data, False)
        else:
            self._serve(data, True)

    def _serve(self, data: bytes, fresh: bool) -> None:
        """Answer the requests in ``data``. ``fresh``: the first byte of ``data`` has just arrived."""
        self._reply_bytes = 0
        for _ in _BURST:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > HEAD_BYTES_MAX:
                self._keep_part_of_head(data, fresh)
                return
            try:
                head = self._read(data[:end])
            except BadHead as error:
                self._refuse(400, str(error))
                return
            next_at = end + 4 + head.body_bytes
            execute = self._execute if head.hot else self._hand_over
            if next_at == len(data):
                execute(head, data[end + 4 :])
            elif next_at > len(data):
                self._wait_for_body(head, data[end + 4 :])
            else:
                execute(head, data[end + 4 : next_at])
                data = data[next_at:]
                fresh = True
                if self._hold:
                    self._keep(data)
                    return
                if self._reply_bytes > LONG_ANSWER_BYTES:
                    break
                continue
            return
        self._buffer = data
        self._resume_soon()

    # --- parts of requests, and requests held back ---

    def _keep_part_of_head(self, data: bytes, fresh: bool) -> None:
        if len(data) > HEAD_BYTES_MAX:
            self._refuse(431, "the head is too long")
        elif _BARE_LF.search(data):
            self._refuse(400, "a line ends with a bare LF")
        else:
            self._buffer = data
            if not self._count_buffers():
                self._refuse(503, BUSY_TEXT)
                return
            if fresh and data:
                self.deadline_ms = self._context.clock() + self._context.bounds.header_ms

    def _wait_for_body(self, head: Head, part: bytes) -> None:
        self._head = head
        if head.body_bytes == CHUNKED:
            self._chunks = Chunks(self._context.now_ms)
            self._receive_chunks(head, self._chunks, part)
            return
        if head.body_bytes > _body_bytes_max(head):
            self._refuse_size(head)
            return
        self._body += part
        self._extend_deadline(self._context.now_ms, head.body_bytes)
        if part and not self._count_buffers():
            self._refuse_early(head, ServiceUnavailable(BUSY_TEXT))

    def _extend_deadline(self, began_ms: int, body_bytes: int) -> None:
        bounds = self._context.bounds
        self.deadline_ms = began_ms + bounds.body_ms + body_bytes * 1_000 // bounds.body_bytes_per_s

    def _receive_body(self, head: Head, data: bytes) -> None:
        """Add a piece to the body that ``head`` announced. Usually the whole body comes in one piece."""
        if self._chunks is not None:
            self._receive_chunks(head, self._chunks, data)
            return
        rest = b""
        if self._body or len(data) != head.body_bytes:
            whole = self._body
            whole += data
            if len(whole) < head.body_bytes:
                if not self._count_buffers():
                    self._refuse_early(head, ServiceUnavailable(BUSY_TEXT))
                return
            data, rest = bytes(whole[: head.body_bytes]), bytes(whole[head.body_bytes :])
        self._end_of_body(head, data, rest)

    def _receive_chunks(self, head: Head, chunks: Chunks, data: bytes) -> None:
        try:
            rest = chunks.feed(data, self._body)
        except BadHead as error:
            self._refuse(400, str(error))
            return
        if len(self._body) > _body_bytes_max(head):
            self._refuse_size(head)
        elif not self._count_buffers():
            self._refuse_early(head, ServiceUnavailable(BUSY_TEXT))
        elif rest is not None:
            self._end_of_body(head, bytes(self._body), rest)
        else:
            self._extend_deadline(chunks.began_ms, len(self._body))

    def _end_of_body(self, head: Head, body: bytes, rest: bytes) -> None:
        self._head = self._chunks = None
        if self._body:
            self._body = bytearray()
            self._count_buffers()
        if head.hot:
            self._execute(head, body)
        else:
            self._hand_over(head, body)
        if rest and self._hold:
            self._keep(rest)
        elif rest:
            self._serve(rest, True)

    def _receive_held(self, data: bytes) -> None:
        if not self._hold & CLOSING:
            self._keep(self._buffer + data)

    def _keep(self, data: bytes) -> None:
        """Keep bytes until the reply to the previous request is written."""
        if self._hold & CLOSING:
            return
        self._buffer = data
        if not self._count_buffers():
            self._context.loop.call_soon(self.abort)  # an error must not be written before the outstanding reply
        elif len(data) > self._context.bounds.held_bytes_max and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _count_buffers(self) -> bool:
        """Report to the server context how much this connection buffers. Return False if that is more than allowed."""
        size_bytes = len(self._buffer) + len(self._body) + self._waiting_bytes
        if self.slow_request is not None:
            size_bytes += len(self.slow_request[1])
        if self._hold & WRITING and not self._hold & SLOW:
            # The transport keeps all of a reply until the system has taken all of it.
            size_bytes += max(self._transport.get_write_buffer_size(), self._reply_bytes)
        old_bytes, self._buffers_bytes = self._buffers_bytes, size_bytes
        return self._context.buffer(old_bytes, size_bytes)

    def hold(self, size_bytes: int) -> None:
        """Set the bytes that count for a waiting request, or for a reply that aiohttp is writing; 0 for none."""
        self._waiting_bytes = size_bytes
        self._count_buffers()

    def _forget(self) -> None:
        """Drop all data of the requests in progress."""
        self._buffer = b""
        self._waiting_bytes = 0
        self._body = bytearray()
        self._head = self._chunks = self.slow_request = None
        self._count_buffers()

    def _resume_soon(self) -> None:
        """Go on with the buffer in a later callback, so other connections come first and the stack does not grow."""
        if not self._hold & (YIELDED | CLOSING):
            self._hold |= YIELDED
            self._context.loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._hold &= ~YIELDED
        if self._hold:
            return
        data, self._buffer = self._buffer, b""
        if data:
            self._count_buffers()
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if data and self._head is not None:
            self._receive_body(self._head, data)
        elif data:
            self._serve(data, True)
        if self._eof and not self._hold:
            self._end()

    # --- answers, refusals and ends ---

    def flush(self) -> None:
        """Write the answers that wait for the end of the turn. Called before any other action on the transport."""
        out = self.out
        if out:
            self.out = b""
            self._reply_bytes = len(out)
            if not self._transport.is_closing():
                self._transport.write(out)

    def _refuse_size(self, head: Head) -> None:
        self._refuse_early(head, RequestTooLarge(f"The request is longer than {_body_bytes_max(head)} bytes."))

    def _refuse_early(self, head: Head, error: SqsError) -> None:
        """Answer an error to a request before its body is complete, and end the connection."""
        request_id = self._context.responses.request_id(0)
        answer = exchange.encode_error(
            guess(self._context.services, head.authorization, b""), head.protocol, error, request_id
        )
        self._linger(self._context.responses.write(answer, request_id, True))

    def _refuse(self, status: int, reason: str) -> None:
        """Answer malformed bytes with a plain-text error, and end the connection."""
        answer = Answer(status, b"text/plain", reason.encode())
        self._linger(self._context.responses.write(answer, self._context.responses.request_id(0), True))

    def _linger(self, response: bytes) -> None:
        """Write a response, send FIN (not under TLS), and keep reading for up to ``linger_ms``.

        Closing a socket with unread bytes resets the connection, and the client might never see the response.
        """
        self._outbox.say(self, response)
        self.flush()
        self._hold |= CLOSING
        self._forget()
        self.deadline_ms = self._context.clock() + self._context.bounds.linger_ms
        if self._eof:
            self._transport.close()
        elif not self._is_secure:  # under TLS the client closes, or expire() at the deadline
            self._transport.write_eof()

    def _end(self) -> None:
        """Close the connection after everything written has been sent."""
        self.flush()
        self._hold |= CLOSING
        self._buffer = b""
        self._transport.close()

    # --- for the server context ---

    def expire(self) -> None:
        """End the connection at its deadline: with a 408 in the middle of a request, otherwise without an answer."""
        if self._hold & (CLOSING | WRITING):
            self.abort()
        elif self._head is not None or (self._buffer and not self._hold):
            self._refuse(408, "the request came too slowly")
        else:
            self._end()

    def stop(self) -> None:
        if not self._hold and self._head is None and not self._buffer:
            self._end()

    def abort(self) -> None:
        self.flush()
        self._hold |= CLOSING
        self._transport.abort()


def _body_bytes_max(head: Head) -> int:
    """Return the largest allowed body in bytes. All forms share one bound, because the body names a form's action."""
    if head.protocol != JSON:
        return REQUEST_BYTES_MAX
    return SMALL_REQUEST_BYTES_MAX if head.operation is None else head.operation.body_bytes_max
