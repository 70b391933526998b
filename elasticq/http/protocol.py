"""One connection of the SQS port: where each request ends, the hot path, and single requests for aiohttp.

Every head is judged by one reader (head.py) and every body is read to its end
here, whichever path answers it: no two parsers look at the bytes of a
connection. A request that is legal but not hot is handed to aiohttp when it is
whole, its body apart from its head, so that nothing of a body, a trailer or
the next request can be taken for something else (docs/adr/0015). The next one
is looked at when aiohttp has written its answer.

A hot request is one synchronous pass: bytes, command, node, result, bytes, one
write. ``_hold`` says why the next request may not be looked at yet (0: it may):

    PARKED   the node keeps the reply (a long poll, or a sync); what the client
             sends ahead is buffered, beyond a bound the socket is not read
    SLOW     aiohttp has a request; the same
    WRITING  the client does not read its replies
    YIELDED  16 requests of one burst are answered, other connections come first
    CLOSING  bad framing, too large, too late, Connection: close
"""

import asyncio
import re
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from elasticq.http import exchange
from elasticq.http.caller import invocation
from elasticq.http.chunks import Chunks
from elasticq.http.context import BUSY_TEXT, NEVER_MS, WAITING_FREE_BYTES, ServerContext, SlowPath, command_bytes
from elasticq.http.exchange import Answer
from elasticq.http.faults import Submit
from elasticq.http.head import CHUNKED, JSON, BadHead, Head, without_body
from elasticq.model.commands import Call, Command, Origin, ReceiveMessage
from elasticq.model.errors import RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.limits import HEAD_BYTES_MAX, REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX
from elasticq.model.results import ReceiveMessageResult, Result, StaleResult
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire import json, query
from elasticq.wire.operations import Operation

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

_BURST: Final = range(16)
"""Requests of one connection that are answered in a row; then other connections are served."""

PARKED, WRITING, YIELDED, SLOW, CLOSING = 1, 2, 4, 8, 16

_Pending = tuple[Head, Operation, Command, str, float]
"""A request whose reply is outstanding: head, operation, command, account, and when it began by perf_counter."""
_WITH_HEADERS: Final = (SqsError, StaleResult)
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")


class SqsProtocol(asyncio.Protocol):
    """A client's connection, and the ticket of its one request in progress.

    slow_request: head and body of the request that aiohttp answers, None while there is none.
    """

    __slots__ = (
        "_address",
        "_authenticator",
        "_body",
        "_buffer",
        "_buffers_bytes",
        "_chunks",
        "_context",
        "_counts",
        "_eof",
        "_head",
        "_hold",
        "_identify",
        "_is_secure",
        "_is_watched",
        "_pending",
        "_read",
        "_reading_paused",
        "_reply_bytes",
        "_slow",
        "_submit",
        "_submitting",
        "_transport",
        "_waiting_bytes",
        "deadline_ms",
        "origin",
        "slow_request",
    )

    _transport: asyncio.Transport
    _pending: _Pending | None

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._read = context.reader.read
        self._identify = context.callers.identify
        self._authenticator = context.authenticator
        self._submit = context.submit
        self._counts = context.meter.counts
        self._is_watched = context.request_log.everything
        self._address = ""
        self._pending = None
        self._hold = 0
        self._buffer = b""
        self._head: Head | None = None
        self._body = bytearray()
        self._chunks: Chunks | None = None
        self._buffers_bytes = 0
        self._waiting_bytes = 0
        self._reply_bytes = 0
        self._submitting = False
        self._eof = False
        self._reading_paused = False
        self._slow: RequestHandler | None = None
        self.slow_request: tuple[Head, bytes] | None = None
        self._is_secure = False
        self.origin: Origin | None = None
        self.deadline_ms = NEVER_MS

    # --- the transport's callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        context = self._context
        self._is_secure = transport.get_extra_info("sslcontext") is not None
        if self._authenticator is not None:
            self.origin = self._authenticator.origin(transport.get_extra_info("peername"), is_secure=self._is_secure)
        self.deadline_ms = context.idle_until_ms
        open_connections = len(context.connections)
        context.connections.add(self)
        if open_connections >= context.bounds.connections_max + context.bounds.refused_max:
            self._transport.abort()
        elif open_connections >= context.bounds.connections_max or context.stopping or self._is_one_too_many():
            self._refuse(503, "too many connections")

    def _is_one_too_many(self) -> bool:
        """Count this connection to its address; True if the address has more than it may have."""
        bound = self._context.bounds.connections_per_address
        if not bound:
            return False
        self._address = self._transport.get_extra_info("peername")[0]
        self._context.addresses[self._address] += 1
        return self._context.addresses[self._address] > bound

    def data_received(self, data: bytes) -> None:
        if self._hold:
            self._receive_held(data)
        elif self._head is not None:
            self._receive_body(self._head, data)
        elif self._buffer:
            data = self._buffer + data
            self._buffer = b""
            self._weigh()
            self._serve(data, False)
        else:
            self._serve(data, True)

    def eof_received(self) -> bool | None:
        """The client sends no more. Stay open for replies still to come, but not for a long poll: its client left.

        What aiohttp answers ends, too, as it may be a long poll.
        """
        self._eof = True
        if self._hold & SLOW:
            return None
        if self._hold & PARKED and self._is_receiving():
            self._leave()
            return None
        return not self._is_secure and bool(self._hold & (PARKED | WRITING | YIELDED))  # TLS has no half-open end

    def pause_writing(self) -> None:
        """The client does not read its replies: its connection ends at the deadline.

        It ends at once where all connections together buffer too much.
        """
        if self._slow is not None:
            self._slow.pause_writing()
        self._hold |= WRITING
        self.deadline_ms = self._context.idle_until_ms
        if not self._weigh():
            self._context.loop.call_soon(self.abort)  # not within the write that led here

    def resume_writing(self) -> None:
        self._hold &= ~WRITING
        self._weigh()
        if self._slow is not None:
            self._slow.resume_writing()
        if self._hold & SLOW:
            self.deadline_ms = NEVER_MS
        else:
            self._resume_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        self._context.connections.discard(self)
        if self._address:
            addresses = self._context.addresses
            addresses[self._address] -= 1
            if not addresses[self._address]:
                del addresses[self._address]
        if self._slow is not None:
            self._slow.connection_lost(exc)
        elif self._hold & PARKED:
            self._leave()
        self._hold = self._hold & ~WRITING | CLOSING
        self._forget()

    # --- the hot path ---

    def _serve(self, data: bytes, fresh: bool) -> None:
        """Answer the requests in ``data``. ``fresh``: the first byte of ``data`` came just now."""
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
                continue
            return
        self._buffer = data
        self._resume_soon()

    def _execute(self, head: Head, body: bytes) -> None:
        """Decode a request and submit its command; ``release`` writes the reply, mostly before this returns."""
        operation = head.operation
        account, command, began_s = "", None, perf_counter()
        try:
            if self._authenticator is None:
                principal, account = self._identify(head.authorization)
            else:
                principal, account = self._authenticator.admit(head.lines, head.authorization, body)
            if operation is not None and head.protocol == JSON:
                command = json.decode(operation, body)
            else:
                operation, command = exchange.decode(self._context.service, head.protocol, operation, body, head.path)
        except Exception as failure:
            self._fail(head, failure, operation, account, command, began_s)
            return
        held_bytes = command_bytes(command, len(body))
        if held_bytes > WAITING_FREE_BYTES and not self._context.has_room(held_bytes):
            self._fail(head, ServiceUnavailable(BUSY_TEXT), operation, account, command, began_s)
            return
        invocation_key = head.invocation_id and invocation(principal, operation.name, head.invocation_id, body)
        self._pending = head, operation, command, account, began_s
        self._hold = PARKED
        self._submitting = True
        try:
            self._submit(
                Call(command, principal, account, head.endpoint, invocation_key, self.origin, head.trace_header), self
            )
        except RuntimeStopped:
            self.abort()
        self._submitting = False
        if self._hold & PARKED:
            self.deadline_ms = NEVER_MS
            if held_bytes > WAITING_FREE_BYTES:
                self.hold(held_bytes)

    def release(self, outcome: Result | SqsError) -> None:
        """Write the outcome of the request, or give a receive's messages back where nobody can read them any more."""
        if not self._submitting and (self._hold & CLOSING or self._transport.is_closing()):
            self._give_back(outcome)
            return
        context = self._context
        if context.buffers_bytes > context.bounds.buffers_bytes_max and isinstance(outcome, ReceiveMessageResult):
            context.loop.call_soon(context.runtime.undelivered, outcome)
            outcome = ServiceUnavailable(BUSY_TEXT)
        context.hot_requests += 1
        assert self._pending is not None
        head, operation, command, account, began_s = self._pending
        self._pending = None  # the connection may be idle for long
        self._hold &= ~PARKED
        if self._waiting_bytes:
            self.hold(0)
        responses = context.responses
        if head.close or context.stopping or isinstance(outcome, _WITH_HEADERS):
            request_id = responses.request_id(context.hot_requests)
            answer = exchange.encode(context.service, head.protocol, operation, command, outcome, request_id)
            self._write(head, answer, request_id)
            context.count(request_id, operation.name, account, command, outcome, answer.status, began_s, head.lines)
        else:
            try:
                if head.protocol == JSON:
                    start, body = responses.json_ok, json.encode(operation, command, outcome)
                else:
                    request_id = responses.request_id(context.hot_requests)
                    start, body = responses.xml_ok, query.encode(operation, command, outcome, request_id)
            except Exception as failure:
                self._fail(head, failure, operation, account, command, began_s)
            else:
                self._reply_bytes = len(body)
                parts = start, context.hot_requests, self._reply_bytes, body
                self._transport.write(b"%b%012x\r\nContent-Length: %d\r\n\r\n%b" % parts)
                self.deadline_ms = context.idle_until_ms
                is_slow = self._counts[operation.name](command, account, outcome, began_s)
                if is_slow or self._is_watched:
                    request_id = responses.request_id(context.hot_requests)
                    context.request_log.answered(
                        request_id, operation.name, account, command, began_s, head.lines, is_slow=is_slow
                    )
        if not self._submitting and (self._buffer or self._eof or self._reading_paused):
            self._resume_soon()

    def _give_back(self, outcome: Result | SqsError) -> None:
        """Give a receive's messages back, in a later callback: the runtime is in the middle of releasing."""
        self._hold &= ~PARKED
        self._pending = None
        self.hold(0)
        if isinstance(outcome, ReceiveMessageResult):
            self._context.loop.call_soon(self._context.runtime.undelivered, outcome)

    def _fail(
        self,
        head: Head,
        failure: Exception,
        operation: Operation | None,
        account: str,
        command: Command | None,
        began_s: float,
    ) -> None:
        """Answer an error that was found before or after the node did its part."""
        self._context.hot_requests += 1
        error = failure if isinstance(failure, SqsError) else exchange.internal_failure(failure)
        request_id = self._context.responses.request_id(self._context.hot_requests)
        answer = exchange.encode_error(self._context.service, head.protocol, error, request_id)
        self._write(head, answer, request_id)
        action = "" if operation is None else operation.name
        self._context.count(request_id, action, account, command, error, error.status, began_s, head.lines)

    def _write(self, head: Head, answer: Answer, request_id: str) -> None:
        """Write any answer but a plain success, and end the connection where the answer is the last one."""
        context = self._context
        close = head.close or context.stopping
        self._transport.write(context.responses.write(answer, request_id, close))
        self.deadline_ms = context.idle_until_ms
        if close:
            self._end()

    # --- parts of requests, and requests held back ---

    def _keep_part_of_head(self, data: bytes, fresh: bool) -> None:
        if len(data) > HEAD_BYTES_MAX:
            self._refuse(431, "the head is too long")
        elif _BARE_LF.search(data):
            self._refuse(400, "a line that ends with a bare LF")
        else:
            self._buffer = data
            if not self._weigh():
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
        self._be_patient(self._context.now_ms, head.body_bytes)
        if part and not self._weigh():
            self._refuse_early(head, ServiceUnavailable(BUSY_TEXT))

    def _be_patient(self, began_ms: int, body_bytes: int) -> None:
        bounds = self._context.bounds
        self.deadline_ms = began_ms + bounds.body_ms + body_bytes * 1_000 // bounds.body_bytes_per_s

    def _receive_body(self, head: Head, data: bytes) -> None:
        """Take more of the body that ``head`` announced; usually all of it comes in one piece."""
        if self._chunks is not None:
            self._receive_chunks(head, self._chunks, data)
            return
        rest = b""
        if self._body or len(data) != head.body_bytes:
            whole = self._body
            whole += data
            if len(whole) < head.body_bytes:
                if not self._weigh():
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
        elif not self._weigh():
            self._refuse_early(head, ServiceUnavailable(BUSY_TEXT))
        elif rest is not None:
            self._end_of_body(head, bytes(self._body), rest)
        else:
            self._be_patient(chunks.began_ms, len(self._body))

    def _end_of_body(self, head: Head, body: bytes, rest: bytes) -> None:
        self._head = self._chunks = None
        if self._body:
            self._body = bytearray()
            self._weigh()
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
        """Keep bytes until the reply to the request before them is out."""
        if self._hold & CLOSING:
            return
        self._buffer = data
        if not self._weigh():
            self._context.loop.call_soon(self.abort)  # its reply is not out: nothing can be said
        elif len(data) > self._context.bounds.held_bytes_max and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _weigh(self) -> bool:
        """Tell the server context how much this connection buffers; False if there is no room for it."""
        size_bytes = len(self._buffer) + len(self._body) + self._waiting_bytes
        if self.slow_request is not None:
            size_bytes += len(self.slow_request[1])
        if self._hold & WRITING and not self._hold & SLOW:
            # A reply of which the system took a part is kept whole.
            size_bytes += max(self._transport.get_write_buffer_size(), self._reply_bytes)
        old_bytes, self._buffers_bytes = self._buffers_bytes, size_bytes
        return self._context.buffer(old_bytes, size_bytes)

    def hold(self, size_bytes: int) -> None:
        """Count a waiting request's memory, or that of aiohttp's reply until it is written; 0: it holds no more."""
        self._waiting_bytes = size_bytes
        self._weigh()

    def _forget(self) -> None:
        """Drop everything of the requests under way."""
        self._buffer = b""
        self._waiting_bytes = 0
        self._body = bytearray()
        self._head = self._chunks = self.slow_request = None
        self._weigh()

    def _resume_soon(self) -> None:
        """Go on with the buffer in a later callback: other connections come first, and nothing recurs."""
        if not self._hold & (YIELDED | CLOSING):
            self._hold |= YIELDED
            self._context.loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._hold &= ~YIELDED
        if self._hold:
            return
        data, self._buffer = self._buffer, b""
        if data:
            self._weigh()
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if data and self._head is not None:
            self._receive_body(self._head, data)
        elif data:
            self._serve(data, True)
        if self._eof and not self._hold:
            self._end()

    # --- leaving the hot path ---

    def _hand_over(self, head: Head, body: bytes) -> None:
        """Give a whole request to aiohttp until ``slow_ended``.

        aiohttp gets the head alone; the body stays in ``slow_request``.
        """
        if self._slow is None:
            self._slow = _slow_path(self._context).handler()
            self._slow.connection_made(self._transport)
        self._hold |= SLOW
        self.deadline_ms = NEVER_MS
        self.slow_request = head, body
        self._weigh()
        self._slow.data_received(without_body(head.lines))

    def slow_ended(self, *, keeps_open: bool) -> None:
        """The slow path has written its answer. ``keeps_open``: False where aiohttp closes the connection then."""
        self._hold &= ~SLOW
        self.slow_request = None
        self.deadline_ms = self._context.idle_until_ms
        self.hold(0)
        if not keeps_open:
            self._hold |= CLOSING
            self._forget()
        elif self._buffer or self._eof or self._reading_paused:
            self._resume_soon()

    def _refuse_size(self, head: Head) -> None:
        self._refuse_early(head, RequestTooLarge(f"The request is longer than {_body_bytes_max(head)} bytes."))

    def _refuse_early(self, head: Head, error: SqsError) -> None:
        """Answer an error to a request whose body is not read to its end, and end the connection."""
        request_id = self._context.responses.request_id(0)
        answer = exchange.encode_error(self._context.service, head.protocol, error, request_id)
        self._linger(self._context.responses.write(answer, request_id, True))

    def _refuse(self, status: int, reason: str) -> None:
        """Answer in plain text bytes that are no request, and end the connection."""
        answer = Answer(status, b"text/plain", reason.encode())
        self._linger(self._context.responses.write(answer, self._context.responses.request_id(0), True))

    def _linger(self, response: bytes) -> None:
        """Write, send FIN and read on for a moment.

        Closing on unread bytes would reset the connection, and the client might never see why.
        """
        self._transport.write(response)
        self._hold |= CLOSING
        self._forget()
        self.deadline_ms = self._context.clock() + self._context.bounds.linger_ms
        if self._eof:
            self._transport.close()
        elif not self._is_secure:  # under TLS the deadline ends it: a client that reads is told by "close"
            self._transport.write_eof()

    def _end(self) -> None:
        """Close when everything that was written is out."""
        self._hold |= CLOSING
        self._buffer = b""
        self._transport.close()

    def _is_receiving(self) -> bool:
        return self._pending is not None and isinstance(self._pending[2], ReceiveMessage)

    def _leave(self) -> None:
        """Cancel a waiting receive whose client is gone."""
        runtime = self._context.runtime
        if self._is_receiving():
            self._hold |= CLOSING
            runtime.cancel(self)

    # --- for the server context ---

    def expire(self) -> None:
        """End the connection at its deadline: with a 408 in the middle of a request, else without a word."""
        if self._hold & (CLOSING | WRITING):
            self.abort()
        elif self._head is not None or (self._buffer and not self._hold):
            self._refuse(408, "the request came too slowly")
        else:
            self._end()

    def stop(self) -> None:
        if not self._hold and self._head is None and not self._buffer:
            self._end()

    def submit_by(self, submit: Submit) -> None:
        self._submit = submit

    def abort(self) -> None:
        self._hold |= CLOSING
        self._transport.abort()


def _slow_path(context: ServerContext) -> SlowPath:
    """aiohttp's part, imported when first needed: it is most of a start's CPU, and boto3 never needs it."""
    if context.slow_path is None:
        from elasticq.http import slow

        context.slow_path = slow.SlowPath(context)
    return context.slow_path


def _body_bytes_max(head: Head) -> int:
    """Return the longest body that is read to its end. Forms share a bound, as a form's action stands in its body."""
    if head.protocol != JSON:
        return REQUEST_BYTES_MAX
    return SMALL_REQUEST_BYTES_MAX if head.operation is None else head.operation.body_bytes_max
