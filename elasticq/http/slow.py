"""Everything that is not hot, by aiohttp's web.Server: odd framing, Query by URL, health and readiness.

Only this module imports aiohttp, and it is imported on the first connection
that needs it. A request comes here whole, judged by the same reader as a hot
one: aiohttp sees its head alone, and what is not of the head comes with
``Asked``. Requests of the SQS API give the same bytes here as on the hot path:
both go through exchange.py.
"""

import asyncio
from logging import LogRecord, getLogger
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web
from msgspec import Struct

from elasticq import __version__
from elasticq.http import exchange, peeking, testing
from elasticq.http.caller import invocation
from elasticq.http.exchange import Answer
from elasticq.http.failures import Failures
from elasticq.http.head import (
    FORM,
    FORM_FOR_JSON,
    JSON,
    OTHER,
    Head,
    wants_json,
)
from elasticq.http.responses import RETRY_AFTER_S
from elasticq.http.site import BUSY_TEXT, WAITING_FREE_BYTES, Site, command_bytes
from elasticq.model.commands import Call, Command
from elasticq.model.errors import AccessDenied, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import HEAD_BYTES_MAX
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire.operations import PEEK, Operation

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from elasticq.http.protocol import SqsProtocol

UNKNOWN_OPERATION = b"<UnknownOperationException/>"
PREFLIGHT_S = 600
NEVER_S = 100_000_000
"""aiohttp ends no idle connection: the site's sweep does, which knows of hot requests too."""
CORS_HEADERS = (
    "authorization, content-type, x-amz-date, x-amz-target, x-amz-content-sha256, x-amz-security-token,"
    " x-amz-user-agent, x-amzn-query-mode, amz-sdk-invocation-id, amz-sdk-request"
)


def _without_words(record: LogRecord) -> bool:
    """aiohttp's complaints quote what a client sent: what and where is kept, the words are not.

    That a client left before its answer was written is no fault of ours.
    """
    _, failure, trace = record.exc_info or (None, None, None)
    if isinstance(failure, ConnectionError):
        return False
    line = _failures.line("slow_path_failed", failure, trace)
    record.msg, record.args, record.exc_info = "%s", (line,), None
    return bool(line)


_failures = Failures()
_complaints = getLogger("elasticq.http.aiohttp")
_complaints.addFilter(_without_words)


class Asked(Struct):
    """One request. aiohttp parsed nothing but the head that was judged, so its view of the headers is the reader's."""

    request: web.BaseRequest
    head: Head
    body: bytes
    connection: "SqsProtocol"

    @property
    def path(self) -> str:
        return self.request.rel_url.raw_path

    @property
    def query(self) -> str:
        return self.request.rel_url.raw_query_string


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
            keepalive_timeout=NEVER_S,
            auto_decompress=False,  # no client compresses, and a bomb would unpack before any bound
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
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
        assert connection.slow_request is not None
        keeps_open = False
        try:
            response = await self._route(Asked(request, *connection.slow_request, connection))
            if self._site.stopping:
                response.force_close()
            if isinstance(response.body, bytes):
                connection.hold(2 * len(response.body))  # it is kept beside what the transport has of it
            await response.prepare(request)
            await response.write_eof()  # here, so that the next request waits until all of it is written
            keeps_open = bool(response.keep_alive)
        finally:
            connection.slow_ended(keeps_open=keeps_open)
        return response

    async def _route(self, asked: Asked) -> web.Response:
        request, path = asked.request, asked.path
        page = _PAGES.get(path.removeprefix(self._site.context_path))
        if page is not None and request.method in ("GET", "HEAD"):
            return page(self._site)
        reason = self._site.refusal(request.headers.get)
        if reason:
            return self._refuse(asked, AccessDenied(reason))
        if path in testing.PATHS:
            return await self._test(asked)
        if request.method == "OPTIONS":
            response = self._preflight(request)
        elif path == peeking.PEEK_PATH and request.method == "POST":
            response = await self._peek(asked)
        elif path.startswith(peeking.LIST_PATH) and request.method in ("GET", "POST"):
            response = await self._list_messages(asked)
        elif request.method == "POST":
            response = await self._post(asked)
        elif request.method == "GET" and "Action=" in asked.query:
            response = await self._serve(asked, FORM, asked.query.encode())
        else:
            return self._unknown(asked)
        self._allow_page(request, response)
        return response

    async def _test(self, asked: Asked) -> web.Response:
        """Orders of tests: no protocol of SQS, plain JSON."""
        site, method, path = self._site, asked.request.method, asked.path
        try:
            caller = self._admit(asked)
            if not site.has_testing:
                raise AccessDenied(testing.CLOSED)
            mark = invocation(caller[0], path, asked.head.invocation_id, asked.body)
            status, answer = await testing.TestingPages(site).answer(method, path, asked.body, caller, mark)
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

    def _allow_page(self, request: web.BaseRequest, response: web.Response) -> None:
        """Pages of listed origins may read the answer."""
        origin, browsers = request.headers.get("Origin"), self._site.browsers
        if origin is not None and browsers is not None and browsers.is_foreign(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "x-amzn-RequestId, x-amzn-query-error"
            response.headers["Vary"] = "Origin"

    def _refuse(self, asked: Asked, error: SqsError) -> web.Response:
        """In the protocol of the request, as far as its head tells."""
        protocol = JSON if _has_target(asked.request) else FORM
        request_id = self._request_id()
        return self._respond(exchange.encode_error(protocol, error, request_id), request_id)

    async def _post(self, asked: Asked) -> web.Response:
        protocol, query = asked.head.protocol, asked.query.encode()
        if protocol == OTHER:
            if _has_target(asked.request):
                protocol = JSON
            elif b"Action=" in query:
                protocol = FORM
            elif self._site.door is None:
                return _not_found()
            else:
                return self._unknown(asked)
        form_or_body = asked.body
        if protocol != JSON and query:
            form_or_body = query + b"&" + asked.body if asked.body else query
        return await self._serve(asked, protocol, form_or_body)

    async def _serve(self, asked: Asked, protocol: int, form_or_body: bytes) -> web.Response:
        """One SQS request; ``form_or_body``: a form has its URL's parameters too."""
        request_id, began_s, head = self._request_id(), perf_counter(), asked.head
        if protocol == FORM and _wants_json(asked.request):
            protocol = FORM_FOR_JSON
        account, command, action = "", None, "" if head.operation is None else head.operation.name
        try:
            principal, account = self._admit(asked)
            operation, command = exchange.decode(protocol, head.operation, form_or_body, asked.path)
            action = operation.name
            self._check_method(asked, operation)
            self._make_room(asked, command, len(form_or_body))
        except SqsError as error:
            self._site.count(request_id, action, account, command, error, error.status, began_s, head.lines)
            return self._respond(exchange.encode_error(protocol, error, request_id), request_id)
        mark = invocation(principal, operation.name, head.invocation_id, form_or_body)
        call = Call(
            command, principal, account, self._endpoint(asked), mark, asked.connection.origin, head.trace_header
        )
        outcome = await self._submit(call, asked.request)
        answer = exchange.encode(protocol, operation, command, outcome, request_id)
        self._site.count(request_id, action, account, command, outcome, answer.status, began_s, head.lines)
        return self._respond(answer, request_id)

    async def _peek(self, asked: Asked) -> web.Response:
        request_id = self._request_id()
        try:
            principal, account = self._admit(asked)
            _, command = exchange.decode(JSON, PEEK, asked.body, "")
        except SqsError as error:
            return self._respond(exchange.encode_error(JSON, error, request_id), request_id)
        call = Call(command, principal, account, self._endpoint(asked), b"", asked.connection.origin)
        outcome = await self._submit(call, asked.request)
        return self._respond(exchange.encode(JSON, PEEK, command, outcome, request_id), request_id)

    async def _list_messages(self, asked: Asked) -> web.Response:
        """LocalStack's view of a queue."""
        request_id, request, head = self._request_id(), asked.request, asked.head
        target = request.headers.get("X-Amz-Target", "")
        protocol = JSON if target else peeking.TREE if "json" in request.headers.get("Accept", "") else FORM
        try:
            principal, account = self._admit(asked)
            members, action = peeking.members_of(asked.query, head.protocol, asked.body)
            action = target.rpartition(".")[2] or action
            listing = peeking.Listing(asked.path, members, action)

            async def submit(command: Peek) -> Result | SqsError:
                call = Call(command, principal, account, self._endpoint(asked), b"", asked.connection.origin)
                return await self._submit(call, request)

            answer = await peeking.answer(protocol, listing, submit, request_id)
        except SqsError as error:
            answer = peeking.encode_error(protocol, error, request_id)
        return self._respond(answer, request_id)

    def _unknown(self, asked: Asked) -> web.Response:
        """No request of SQS: whoever may not come in is not told even that."""
        try:
            self._admit(asked)
        except SqsError as error:
            return self._refuse(asked, error)
        return _not_found()

    def _admit(self, asked: Asked) -> tuple[str, str]:
        """(principal, account). Raises the SqsError that the client gets."""
        head, door = asked.head, self._site.door
        if door is None:
            return self._site.callers.identify(head.authorization)
        return door.admit(head.lines, head.authorization, asked.body)

    def _make_room(self, asked: Asked, command: Command, body_bytes: int) -> None:
        """Until ``slow_ended``. Raises ServiceUnavailable."""
        held_bytes = command_bytes(command, body_bytes)
        if held_bytes > WAITING_FREE_BYTES:
            if not self._site.has_room(held_bytes):
                raise ServiceUnavailable(BUSY_TEXT)
            asked.connection.hold(held_bytes)

    def _check_method(self, asked: Asked, operation: Operation) -> None:
        """A link or an image of any page makes a browser GET; only a signature tells that somebody meant it.

        Without a door an Authorization header is enough, as no page can have one sent.
        """
        if self._site.browsers is None or asked.request.method == "POST" or operation.read_only:
            return
        head, door = asked.head, self._site.door
        if not head.authorization and (door is None or not door.is_signed(head.lines, head.authorization)):
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
        elif isinstance(outcome, ReceiveMessageResult) and self._site.is_full:
            ticket.return_messages(outcome)
            return ServiceUnavailable(BUSY_TEXT)
        return outcome

    def _endpoint(self, asked: Asked) -> str:
        """HTTP/1.0 may leave the Host out."""
        site, transport = self._site, asked.request.transport
        if asked.head.endpoint or site.public_url or transport is None:
            return asked.head.endpoint or site.public_url
        name, port = transport.get_extra_info("sockname")[:2]
        return f"{site.scheme}://{name}:{port}{site.context_path}"

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


def _has_target(request: web.BaseRequest) -> bool:
    return "X-Amz-Target" in request.headers


def _wants_json(request: web.BaseRequest) -> bool:
    return any(wants_json(accept) for accept in request.headers.getall("Accept", ()))


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
