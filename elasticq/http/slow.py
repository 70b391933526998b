"""Everything that is not hot, by aiohttp's web.Server: odd framing, Query by URL, health and readiness.

Only this module imports aiohttp, and it is imported on the first connection
that needs it. Requests of the SQS API give the same bytes here as on the hot
path: both go through exchange.py.
"""

import asyncio
from logging import LogRecord, getLogger
from time import perf_counter
from traceback import format_tb
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from elasticq import __version__
from elasticq.http import exchange, peeking, testing
from elasticq.http.caller import invocation
from elasticq.http.exchange import Answer
from elasticq.http.head import (
    FORM,
    FORM_FOR_JSON,
    JSON,
    OTHER,
    BadHead,
    checked_host,
    content_protocol,
    trace_header,
    wants_json,
)
from elasticq.http.responses import RETRY_AFTER_S
from elasticq.http.site import BUSY_TEXT, Site
from elasticq.model.commands import Call, Command
from elasticq.model.errors import AccessDenied, RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import REQUEST_BYTES_MAX
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire.operations import BY_TARGET, PEEK, Operation

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from elasticq.http.protocol import SqsProtocol

UNKNOWN_OPERATION = b"<UnknownOperationException/>"
PREFLIGHT_S = 600
CORS_HEADERS = (
    "authorization, content-type, x-amz-date, x-amz-target, x-amz-content-sha256, x-amz-security-token,"
    " x-amz-user-agent, x-amzn-query-mode, amz-sdk-invocation-id, amz-sdk-request"
)


def _without_words(record: LogRecord) -> bool:
    """aiohttp's complaints quote what a client sent: what and where is kept, the words are not."""
    kind, _, trace = record.exc_info or (None, None, None)
    name = "" if kind is None else kind.__name__
    record.msg, record.args, record.exc_info = "slow_path_failed %s\n%s", (name, "".join(format_tb(trace))), None
    return True


_complaints = getLogger("elasticq.http.aiohttp")
_complaints.addFilter(_without_words)


class SlowPath:
    """The factory of aiohttp connections, and the handler of their requests."""

    __slots__ = ("_server", "_site")

    def __init__(self, site: Site) -> None:
        self._site = site
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # a long poll whose client left ends
            access_log=None,
            logger=_complaints,
            keepalive_timeout=site.bounds.idle_ms / 1_000,
            auto_decompress=False,  # no client compresses, and a bomb would unpack before any bound
            max_line_size=8_190,
            max_field_size=8_190,
        )

    def handler(self) -> "RequestHandler":
        """A protocol for one connection."""
        return self._server()

    async def close(self) -> None:
        await self._server.shutdown(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._site.slow_requests += 1
        transport = request.transport
        if transport is None:
            raise asyncio.CancelledError
        connection: SqsProtocol = transport.get_protocol()  # type: ignore[assignment]
        connection.slow_began()
        try:
            response = await self._route(request, connection)
        finally:
            connection.slow_ended()
        if self._site.stopping:
            response.force_close()
        return response

    async def _route(self, request: web.BaseRequest, connection: "SqsProtocol") -> web.StreamResponse:
        page = _PAGES.get(request.rel_url.raw_path.removeprefix(self._site.context_path))
        if page is not None and request.method in ("GET", "HEAD"):
            return page(self._site)
        query = request.rel_url.raw_query_string
        reason = self._site.browsers.refusal(request.headers.get) if self._site.browsers is not None else ""
        if reason:
            return self._refuse(request, AccessDenied(reason))
        path = request.rel_url.raw_path
        if path in testing.PATHS:
            return await self._test(request, connection)
        if request.method == "OPTIONS":
            response: web.StreamResponse = self._preflight(request)
        elif path == peeking.PEEK_PATH and request.method == "POST":
            response = await self._peek(request, connection)
        elif path.startswith(peeking.LIST_PATH) and request.method in ("GET", "POST"):
            response = await self._list_messages(request, connection)
        elif request.method == "POST":
            response = await self._post(request, connection, query.encode())
        elif request.method == "GET" and "Action=" in query:
            response = await self._serve(request, connection, FORM, query.encode(), b"")
        else:
            return self._unknown(request, b"")
        self._allow_page(request, response)
        return response

    async def _test(self, request: web.BaseRequest, connection: "SqsProtocol") -> web.Response:
        """Orders of tests: no protocol of SQS, plain JSON."""
        site = self._site
        try:
            body = await self._read_body(request, connection)
            caller = self._admit(request, body)
            if not site.has_testing:
                raise AccessDenied(testing.CLOSED)
            path, invocation_id = request.rel_url.raw_path, _header(request, "amz-sdk-invocation-id")
            mark = invocation(caller[0], path, invocation_id, body)
            status, answer = await testing.TestingPages(site).answer(request.method, path, body, caller, mark)
        except SqsError as error:
            status, answer = error.status, {"code": error.code, "message": error.message}
        except RuntimeStopped:
            status, answer = 503, {"code": "ServiceUnavailable", "message": "The server is stopping."}
        return web.Response(status=status, body=msgspec.json.encode(answer), content_type="application/json")

    def _preflight(self, request: web.BaseRequest) -> web.Response:
        """A browser asks what a page of another origin may send; without the headers of ``_allow_page``: nothing."""
        if "Access-Control-Request-Method" not in request.headers:
            return _not_found()
        headers = {
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": CORS_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_S),
        }
        return web.Response(headers=headers)

    def _allow_page(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Pages of listed origins may read the answer."""
        origin, browsers = request.headers.get("Origin"), self._site.browsers
        if origin is not None and browsers is not None and browsers.is_foreign(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "x-amzn-RequestId, x-amzn-query-error"
            response.headers["Vary"] = "Origin"

    def _refuse(self, request: web.BaseRequest, error: SqsError) -> web.Response:
        """In the protocol of the request, as far as its head tells."""
        protocol = JSON if "X-Amz-Target" in request.headers else FORM
        request_id = self._request_id()
        response = self._respond(exchange.encode_error(protocol, error, request_id), request_id)
        response.force_close()  # its body was not read
        return response

    async def _post(self, request: web.BaseRequest, connection: "SqsProtocol", query: bytes) -> web.StreamResponse:
        protocol = content_protocol(_header(request, "Content-Type"))
        if protocol == OTHER:
            if "X-Amz-Target" in request.headers:
                protocol = JSON
            elif b"Action=" in query:
                protocol = FORM
            elif self._site.door is None:
                return _not_found()
        try:
            body = await self._read_body(request, connection)
        except SqsError as error:
            request_id = self._request_id()
            response = self._respond(exchange.encode_error(protocol, error, request_id), request_id)
            response.force_close()
            return response
        if protocol == OTHER:
            return self._unknown(request, body)
        form_or_body = body
        if protocol == FORM and query:
            form_or_body = query + b"&" + body if body else query
        return await self._serve(request, connection, protocol, form_or_body, body)

    async def _read_body(self, request: web.BaseRequest, connection: "SqsProtocol") -> bytes:
        """The deadline moves with what has come. Raises an SqsError where there is too much of it."""
        bounds, started_ms = self._site.bounds, self._site.clock()
        body = bytearray()
        connection.deadline_ms = started_ms + bounds.body_ms
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > REQUEST_BYTES_MAX:
                raise RequestTooLarge(f"The request is longer than {REQUEST_BYTES_MAX} bytes.")
            if not connection.slow_buffers(len(body)):
                raise ServiceUnavailable(BUSY_TEXT)
            patience_ms = bounds.body_ms + len(body) * 1_000 // bounds.body_bytes_per_s
            connection.deadline_ms = started_ms + patience_ms
        connection.slow_began()
        return bytes(body)

    async def _serve(
        self, request: web.BaseRequest, connection: "SqsProtocol", protocol: int, form_or_body: bytes, body: bytes
    ) -> web.StreamResponse:
        """One SQS request; ``body`` is what came as one, ``form_or_body`` has a form's URL parameters too."""
        request_id, began_s = self._request_id(), perf_counter()
        target = BY_TARGET.get(_header(request, "X-Amz-Target"))
        if protocol == FORM and wants_json(_header(request, "Accept")):
            protocol = FORM_FOR_JSON
        account, command, action = "", None, "" if target is None else target.name
        try:
            endpoint = self._endpoint(request)
        except BadHead as error:
            return web.Response(status=400, text=str(error))
        try:
            principal, account = self._admit(request, body)
            operation, command = exchange.decode(protocol, target, form_or_body, request.rel_url.raw_path)
            action = operation.name
            self._check_method(request, operation)
        except SqsError as error:
            self._count(request, request_id, action, account, command, error, error.status, began_s)
            return self._respond(exchange.encode_error(protocol, error, request_id), request_id)
        invocation_id = _header(request, "amz-sdk-invocation-id")
        mark = invocation(principal, operation.name, invocation_id, form_or_body)
        trace = trace_header(_header(request, "X-Amzn-Trace-Id"))
        call = Call(command, principal, account, endpoint, mark, connection.origin, trace)
        outcome = await self._submit(call, request)
        answer = exchange.encode(protocol, operation, command, outcome, request_id)
        self._count(request, request_id, action, account, command, outcome, answer.status, began_s)
        return self._respond(answer, request_id)

    def _count(
        self,
        request: web.BaseRequest,
        request_id: str,
        action: str,
        account: str,
        command: Command | None,
        outcome: Result | SqsError,
        status: int,
        began_s: float,
    ) -> None:
        headers = _lines(request) if self._site.watch.everything else []
        self._site.count(request_id, action, account, command, outcome, status, began_s, headers)

    async def _peek(self, request: web.BaseRequest, connection: "SqsProtocol") -> web.StreamResponse:
        request_id = self._request_id()
        try:
            body = await self._read_body(request, connection)
            principal, account = self._admit(request, body)
            _, command = exchange.decode(JSON, PEEK, body, "")
            call = Call(command, principal, account, self._endpoint(request), b"", connection.origin)
        except SqsError as error:
            return self._respond(exchange.encode_error(JSON, error, request_id), request_id)
        except BadHead as error:
            return web.Response(status=400, text=str(error))
        outcome = await self._submit(call, request)
        return self._respond(exchange.encode(JSON, PEEK, command, outcome, request_id), request_id)

    async def _list_messages(self, request: web.BaseRequest, connection: "SqsProtocol") -> web.StreamResponse:
        """LocalStack's view of a queue."""
        request_id = self._request_id()
        given, target = content_protocol(_header(request, "Content-Type")), _header(request, "X-Amz-Target")
        protocol = JSON if target else peeking.TREE if b"json" in _header(request, "Accept") else FORM
        try:
            body = await self._read_body(request, connection)
            principal, account = self._admit(request, body)
            endpoint = self._endpoint(request)
            members, action = peeking.members_of(request.rel_url.raw_query_string, given, body)
            action = target.decode("latin-1").rpartition(".")[2] or action
            listing = peeking.Listing(request.rel_url.raw_path, members, action)

            async def submit(command: Peek) -> Result | SqsError:
                call = Call(command, principal, account, endpoint, b"", connection.origin)
                return await self._submit(call, request)

            answer = await peeking.answer(protocol, listing, submit, request_id)
        except SqsError as error:
            answer = peeking.encode_error(protocol, error, request_id)
        except BadHead as error:
            return web.Response(status=400, text=str(error))
        return self._respond(answer, request_id)

    def _unknown(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """No request of SQS: whoever may not come in is not told even that."""
        try:
            self._admit(request, body)
        except SqsError as error:
            return self._refuse(request, error)
        return _not_found()

    def _admit(self, request: web.BaseRequest, body: bytes) -> tuple[str, str]:
        """(principal, account). Raises the SqsError that the client gets."""
        authorization = _header(request, "Authorization")
        door = self._site.door
        if door is None:
            return self._site.callers.identify(authorization)
        return door.admit(_lines(request), authorization, body)

    def _check_method(self, request: web.BaseRequest, operation: Operation) -> None:
        """A link or an image of any page makes a browser GET; only a signature tells that somebody meant it.

        Without a door an Authorization header is enough, as no page can have one sent.
        """
        if self._site.browsers is None or request.method == "POST" or operation.read_only:
            return
        authorization, door = _header(request, "Authorization"), self._site.door
        if not authorization and (door is None or not door.is_signed(_lines(request), authorization)):
            raise AccessDenied(f"{operation.name} by GET must be signed: use POST.")

    async def _submit(self, call: Call, request: web.BaseRequest) -> Result | SqsError:
        ticket = _Ticket(self._site, request.transport)
        try:
            self._site.submit(call, ticket)
            outcome = await ticket.future
        except RuntimeStopped:
            return ServiceUnavailable("The server is stopping.")
        except asyncio.CancelledError:
            ticket.leave()
            raise
        if request.transport is None or request.transport.is_closing():
            ticket.return_messages(outcome)
        return outcome

    def _endpoint(self, request: web.BaseRequest) -> str:
        if self._site.public_url:
            return self._site.public_url
        host = request.headers.get("Host")
        if host is None and request.version == (1, 0) and request.transport is not None:
            name, port = request.transport.get_extra_info("sockname")[:2]
            return f"{self._site.scheme}://{name}:{port}{self._site.context_path}"
        checked = checked_host((host or "").encode("utf-8", "surrogateescape"))
        return f"{self._site.scheme}://{checked}{self._site.context_path}"

    def _request_id(self) -> str:
        """Its numbers have a bit that the hot path's never reach."""
        return self._site.responses.request_id(self._site.slow_requests | 1 << 47)

    def _respond(self, answer: Answer, request_id: str) -> web.Response:
        headers = {"Content-Type": answer.content_type.decode(), "x-amzn-RequestId": request_id}
        if answer.query_error:
            headers["x-amzn-query-error"] = answer.query_error
        if answer.status == 503:
            headers["Retry-After"] = str(RETRY_AFTER_S)
        if answer.stale_ms >= 0:
            headers["x-elasticq-stale"] = str(answer.stale_ms)
        return web.Response(status=answer.status, body=answer.body, headers=headers)


def _header(request: web.BaseRequest, name: str) -> bytes:
    """Its bytes as they came; empty if there is none."""
    return request.headers.get(name, "").encode("utf-8", "surrogateescape")


def _lines(request: web.BaseRequest) -> list[bytes]:
    """Request line and header lines, as they are signed."""
    target = request.raw_path.encode("utf-8", "surrogateescape")
    return [b"%b %b HTTP/1.1" % (request.method.encode(), target)] + [b"%b:%b" % pair for pair in request.raw_headers]


class _Ticket:
    """A request that waits in a task of aiohttp."""

    __slots__ = ("_site", "_transport", "future")

    def __init__(self, site: Site, transport: asyncio.Transport | None) -> None:
        self._site = site
        self._transport = transport
        self.future: asyncio.Future[Result | SqsError] = site.loop.create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if self.future.done():
            self.return_messages(outcome)
        else:
            self.future.set_result(outcome)

    def abort(self) -> None:
        """A fault that a test ordered: the connection breaks, and with it the task that waits."""
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """The client is gone: the wait ends, and an answer that came in the same moment is given back."""
        if self.future.done() and not self.future.cancelled():
            self.return_messages(self.future.result())
        else:
            self._site.runtime.cancel(self)

    def return_messages(self, outcome: Result | SqsError) -> None:
        if isinstance(outcome, ReceiveMessageResult):
            self._site.loop.call_soon(self._site.runtime.undelivered, outcome)


def _not_found() -> web.Response:
    return web.Response(status=404, body=UNKNOWN_OPERATION, content_type="text/xml")


def _health(site: Site) -> web.Response:
    """Alive: this process answers. Says so when its durability is not the full one, and to clients what it is."""
    return web.Response(text=site.health, headers={"Server": f"elasticq/{__version__}"})


def _ready(site: Site) -> web.Response:
    status = site.runtime.status()
    if site.runtime.stopped or site.stopping:
        return web.Response(status=503, text="stopping")
    return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)


def _localstack_health(site: Site) -> web.Response:
    """What LocalStack's waiters ask for."""
    state = "running" if site.runtime.status().ready and not site.runtime.stopped else "starting"
    return web.json_response({"services": {"sqs": state}, "edition": "elasticq", "version": __version__})


_PAGES = {"/health": _health, "/ready": _ready, "/_localstack/health": _localstack_health}
