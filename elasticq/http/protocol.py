"""One connection of the SQS port: it serves frequent (hot) requests itself and passes the others to aiohttp.

framing.py finds where each request ends. This module passes a complete request
that is legal but not hot to aiohttp: the head as bytes, the body separately. So
aiohttp can never mistake a body, a trailer or the next request for a head
(docs/adr/0015). The connection reads its next request after aiohttp has written
the answer.

A hot request is one synchronous pass: bytes, command, node, result, bytes, one
write. rest_call.py serves hot requests of the REST API in the same way.
"""

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from elasticq.http.admission import audit
from elasticq.http.admission.caller import invocation
from elasticq.http.connection import exchange
from elasticq.http.connection.exchange import Answer
from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import JSON, REST, without_body
from elasticq.http.context import BUSY_TEXT, NEVER_MS, WAITING_FREE_BYTES, ServerContext, SlowPath, command_bytes
from elasticq.http.faults import Submit
from elasticq.http.framing import CLOSING, PARKED, SLOW, WRITING, YIELDED, Framing
from elasticq.model.commands import Call, Command, Origin, ReceiveMessage
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.group_commands import ElasticqHeartbeat
from elasticq.model.results import ReceiveMessageResult, Result, StaleResult
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire import json, query
from elasticq.wire.fence import add_fence
from elasticq.wire.operations import Operation
from elasticq.wire.services import guess, of_operation

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from elasticq.http.pages.rest_call import RestCall

# Compiled code finds these names of its own module without a dict lookup, and those of an interpreted one with it.
_Call: Final = Call
_ReceiveMessageResult: Final = ReceiveMessageResult
_SqsError: Final = SqsError
_StaleResult: Final = StaleResult
_LOGGED: Final = audit.LOGGED
_time_s: Final = perf_counter

_Pending = tuple[Head, Operation, Command, str, float]
"""A request that waits for its reply: head, operation, command, owner, and its start by perf_counter in seconds."""


class SqsProtocol(Framing):
    """A client's connection. It is also the ticket of its one request in progress, unless that is ``_rest``.

    address: the client's IP address; empty for a Unix socket. requests: the number of its hot requests.
    """

    __slots__ = (
        "_address",
        "_authenticator",
        "_counts",
        "_identify",
        "_is_watched",
        "_pending",
        "_rest",
        "_slow",
        "_submit",
        "_submitting",
        "address",
        "origin",
        "requests",
    )

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._identify = context.callers.identify
        self._authenticator = context.authenticator
        self._submit = context.submit
        self._counts = context.meter.counts
        self._is_watched = context.request_log.everything
        self._address = ""
        self.address = ""
        self.requests = 0
        self._pending: _Pending | None = None
        self._submitting = False
        self._rest: RestCall | None = None
        self._slow: RequestHandler | None = None
        self.origin: Origin | None = None

    # --- the transport's callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        context = self._context
        peername = transport.get_extra_info("peername")
        self.address = str(peername[0]) if isinstance(peername, tuple) else ""
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
        """Count this connection for its address. Return whether the address now has more connections than allowed."""
        bound = self._context.bounds.connections_per_address
        if not bound:
            return False
        self._address = self._transport.get_extra_info("peername")[0]
        self._context.addresses[self._address] += 1
        return self._context.addresses[self._address] > bound

    def eof_received(self) -> bool | None:
        """Return whether to keep the connection open after the client's FIN.

        It stays open while replies are still due. A long poll ends, because its client has probably left. A
        request at aiohttp ends too, because it may be a long poll.
        """
        self._eof = True
        self.flush()
        if self._hold & SLOW:
            return None
        if self._hold & PARKED and self._may_wait():
            self._leave()
            return None
        return not self._is_secure and bool(self._hold & (PARKED | WRITING | YIELDED))  # TLS has no half-open state

    def pause_writing(self) -> None:
        """Note that the client does not read its replies. If it does not read until the deadline, the connection ends.

        It ends at once if all connections together buffer too much.
        """
        if self._slow is not None:
            self._slow.pause_writing()
        self._hold |= WRITING
        self.deadline_ms = self._context.idle_until_ms
        if not self._count_buffers():
            self._context.loop.call_soon(self.abort)  # not inside the write that called this method

    def resume_writing(self) -> None:
        self._hold &= ~WRITING
        self._count_buffers()
        if self._slow is not None:
            self._slow.resume_writing()
        if self._hold & SLOW:
            self.deadline_ms = NEVER_MS
        else:
            self._resume_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        self.out = b""
        self._context.connections.discard(self)
        self._context.note_requests(self.address, self.requests)
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

    def _execute(self, head: Head, body: bytes) -> None:
        """Decode a request and submit its command. ``release`` writes the reply, usually before this returns."""
        if head.protocol == REST:
            self._execute_rest(head, body)
            return
        operation = head.operation
        account, command, began_s = "", None, _time_s()
        try:
            if self._authenticator is None:
                principal, account = self._identify(head.authorization)
            else:
                principal, account = self._authenticator.admit(head.lines, head.authorization, body)
            if head.protocol != JSON:
                operation, command = query.decode_any(self._context.services, body, head.path, head.authorization)
            elif operation is not None:
                command = json.decode(operation, body)
            else:
                raise exchange.unknown_operation()
            if head.fence:
                add_fence(command, head.fence)
        except Exception as failure:
            self._fail(head, failure, operation, account, command, began_s, body)
            return
        held_bytes = command_bytes(command, len(body))
        if held_bytes > WAITING_FREE_BYTES and not self._context.has_room(held_bytes):
            self._fail(head, ServiceUnavailable(BUSY_TEXT), operation, account, command, began_s)
            return
        invocation_key = head.invocation_id and invocation(
            principal, account, operation.name, head.invocation_id, body, "/" if head.protocol == JSON else head.path
        )
        self._pending = head, operation, command, account, began_s
        self._hold = PARKED
        self._submitting = True
        try:
            self._submit(
                _Call(command, principal, account, head.endpoint, invocation_key, self.origin, head.trace_header), self
            )
        except RuntimeStopped:
            self.abort()
        self._submitting = False
        if self._hold & PARKED:
            self.deadline_ms = NEVER_MS
            if held_bytes > WAITING_FREE_BYTES:
                self.hold(held_bytes)

    def release(self, outcome: Result | SqsError) -> None:
        """Write the outcome of the request. If the client is gone, return the messages of a receive to their queue."""
        if not self._submitting and (self._hold & CLOSING or self._transport.is_closing()):
            self._return_messages(outcome)
            return
        context = self._context
        if isinstance(outcome, _ReceiveMessageResult) and context.buffers_bytes > context.bounds.buffers_bytes_max:
            context.loop.call_soon(context.runtime.undelivered, outcome)
            outcome = ServiceUnavailable(BUSY_TEXT)
        context.hot_requests += 1
        self.requests += 1
        assert self._pending is not None
        head, operation, command, account, began_s = self._pending
        self._pending = None  # an idle connection keeps no request in memory
        self._hold &= ~PARKED
        if self._waiting_bytes:
            self.hold(0)
        responses, name = context.responses, operation.name
        if head.close or context.stopping or type(outcome) is _StaleResult or isinstance(outcome, _SqsError):
            request_id = responses.request_id(context.hot_requests)
            answer = exchange.encode(context.services, head.protocol, operation, command, outcome, request_id)
            self._write(head, answer, request_id)
            context.count(request_id, name, account, command, outcome, answer.status, began_s, head)
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
                self._outbox.say(self, responses.ok(start, context.hot_requests, body))
                self.deadline_ms = context.idle_until_ms
                is_slow = self._counts[name](command, account, outcome, began_s)
                if is_slow or self._is_watched:
                    request_id = responses.request_id(context.hot_requests)
                    context.request_log.answered(
                        request_id, name, account, command, began_s, head.lines, is_slow=is_slow
                    )
        if name in _LOGGED:
            self._audit(head, operation, command, account, outcome)
        if not self._submitting and (self._buffer or self._eof or self._reading_paused):
            self._resume_soon()

    def _return_messages(self, outcome: Result | SqsError) -> None:
        """Return a receive's messages to their queue, in a later callback: the runtime is inside a release."""
        self._hold &= ~PARKED
        assert self._pending is not None
        head, operation, command, account, _ = self._pending
        if operation.name in audit.LOGGED:
            self._audit(head, operation, command, account, outcome)
        self._pending = None
        self.hold(0)
        if isinstance(outcome, ReceiveMessageResult):
            self._context.loop.call_soon(self._context.runtime.undelivered, outcome)

    def _audit(
        self, head: Head, operation: Operation, command: Command, account: str, outcome: Result | SqsError
    ) -> None:
        if not isinstance(outcome, SqsError):
            principal = self._context.callers.identify(head.authorization)[0]
            audit.tell(operation.name, command, principal, account, self._transport.get_extra_info("peername"))

    def _fail(
        self,
        head: Head,
        failure: Exception,
        operation: Operation | None,
        account: str,
        command: Command | None,
        began_s: float,
        body: bytes = b"",
    ) -> None:
        """Answer a request with an error that arose outside the node: before or after it executed the command.

        body: the request's body if no operation could be read from it.
        """
        self._context.hot_requests += 1
        self.requests += 1
        error = failure if isinstance(failure, SqsError) else exchange.internal_failure(failure)
        request_id = self._context.responses.request_id(self._context.hot_requests)
        services = self._context.services
        service = guess(services, head.authorization, body) if operation is None else of_operation(services, operation)
        answer = exchange.encode_error(service, head.protocol, error, request_id)
        self._write(head, answer, request_id)
        action = "" if operation is None else operation.name
        self._context.count(request_id, action, account, command, error, error.status, began_s, head)

    def _write(self, head: Head, answer: Answer, request_id: str) -> None:
        """Write any answer that is not a plain success. End the connection if the answer is its last."""
        context = self._context
        close = head.close or context.stopping
        self._outbox.say(self, context.responses.write(answer, request_id, close))
        self.deadline_ms = context.idle_until_ms
        if close:
            self._end()

    # --- the REST API ---

    def _execute_rest(self, head: Head, body: bytes) -> None:
        """Answer a request of the REST API. ``rest_ended`` writes the answer, usually before this returns."""
        if self._context.is_importing:
            self._hand_over(head, body)
            return
        call = self._rest = _rest_call(self, self._context, head, body)
        self._hold = PARKED
        self._submitting = True
        is_begun = call.begin()
        self._submitting = False
        if not is_begun:
            self._hold, self._rest = 0, None
            self._hand_over(head, body)
        elif self._hold & PARKED:
            self.deadline_ms = NEVER_MS

    def admit(self, head: Head, body: bytes) -> tuple[str, str]:
        """Return principal and owner of the caller. Raise the SqsError that the client gets if it is not admitted."""
        if self._authenticator is None:
            return self._identify(head.authorization)
        return self._authenticator.admit(head.lines, head.authorization, body)

    def make_room(self, held_bytes: int) -> None:
        """Count a large command's memory. Raise ServiceUnavailable if the port's buffers are full."""
        if held_bytes > WAITING_FREE_BYTES:
            if not self._context.has_room(held_bytes):
                raise ServiceUnavailable(BUSY_TEXT)
            self.hold(held_bytes)

    @property
    def is_gone(self) -> bool:
        """Return whether the connection has ended, so that nobody can read an answer."""
        return bool(self._hold & CLOSING) or self._transport.is_closing()

    def rest_ended(
        self, head: Head, status: int, content_type: str, body: bytes, headers: dict[str, str] | None
    ) -> None:
        """Write the answer to a request of the REST API and go on with the next one. headers: None for a plain 200."""
        context = self._context
        self._rest = None
        self._hold &= ~PARKED
        if self._waiting_bytes:
            self.hold(0)
        close = head.close or context.stopping
        if headers is None and not close:
            self._outbox.say(self, b"%b%d\r\n\r\n%b" % (context.responses.rest_ok, len(body), body))
        else:
            response = context.responses.write_rest(status, content_type, body, headers or {}, close)
            self._outbox.say(self, response)
        self.deadline_ms = context.idle_until_ms
        if close:
            self._end()
        elif not self._submitting and (self._buffer or self._eof or self._reading_paused):
            self._resume_soon()

    # --- leaving the hot path ---

    def _hand_over(self, head: Head, body: bytes) -> None:
        """Pass a complete request to aiohttp. ``slow_ended`` reports its end.

        aiohttp gets only the head; the body stays in ``slow_request``.
        """
        self.flush()  # aiohttp writes to the transport itself
        self._hold |= SLOW
        self.deadline_ms = NEVER_MS
        self.slow_request = head, body
        self._count_buffers()
        if self._context.is_importing:
            assert self._context.importing is not None
            self._context.importing.add_done_callback(self._begin_slow)
        else:
            self._begin_slow()

    def _begin_slow(self, _: object = None) -> None:
        if self.slow_request is None:
            return  # the client left before the import ended
        if self._slow is None:
            self._slow = _slow_path(self._context).handler()
            self._slow.connection_made(self._transport)
        self._slow.data_received(without_body(self.slow_request[0].lines))

    def slow_ended(self, *, keeps_open: bool) -> None:
        """Go on after the slow path has written its answer. ``keeps_open``: False if aiohttp closes the connection."""
        self._hold &= ~SLOW
        self.slow_request = None
        self.deadline_ms = self._context.idle_until_ms
        self.hold(0)
        if not keeps_open:
            self._hold |= CLOSING
            self._forget()
        elif self._buffer or self._eof or self._reading_paused:
            self._resume_soon()

    def _leave(self) -> None:
        """Cancel a waiting receive or heartbeat whose client is gone.

        The answer to a heartbeat would extend the session of a dead consumer.
        """
        if self._may_wait():
            self._hold |= CLOSING
            self._context.runtime.cancel(self if self._rest is None else self._rest)

    def _may_wait(self) -> bool:
        if self._rest is not None:
            return self._rest.is_receiving
        return self._pending is not None and isinstance(self._pending[2], (ReceiveMessage, ElasticqHeartbeat))

    def submit_by(self, submit: Submit) -> None:
        self._submit = submit


def _rest_call(connection: SqsProtocol, context: ServerContext, head: Head, body: bytes) -> "RestCall":
    """Return the call of a hot request of the REST API. Its module is imported at the first such request."""
    from elasticq.http.pages.rest_call import RestCall

    return RestCall(connection, context, head, body)


def _slow_path(context: ServerContext) -> SlowPath:
    """Return the slow path, which is imported when first needed.

    Its import takes most of the CPU time of a start, and clients such as boto3 never need it.
    """
    if context.slow_path is None:
        from elasticq.http.pages import slow

        context.slow_path = slow.SlowPath(context)
    return context.slow_path
