"""The slow path: aiohttp's web.Server answers requests that are not hot.

These are odd framing, Query by URL, health and readiness, and all other pages.
This module imports aiohttp, so it is imported at the first connection that needs
it. A request arrives here complete, after the same reader has checked it as for
the hot path. aiohttp sees only its head; the rest comes with ``Asked``. Requests
of the SQS API get the same bytes here as on the hot path, because both use
exchange.py.
"""

import asyncio
import re
from html import escape
from logging import LogRecord, getLogger
from time import perf_counter
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from elasticq import __version__
from elasticq.http.admission import audit
from elasticq.http.admission.caller import credential_of, invocation
from elasticq.http.connection import exchange
from elasticq.http.connection.exchange import Answer
from elasticq.http.connection.facts import Head
from elasticq.http.connection.failures import Failures
from elasticq.http.connection.head import (
    FORM,
    FORM_FOR_JSON,
    JSON,
    OTHER,
    wants_json,
)
from elasticq.http.connection.responses import RETRY_HEADERS
from elasticq.http.context import (
    BUSY_TEXT,
    STOPPING_TEXT,
    WAITING_FREE_BYTES,
    Connection,
    ServerContext,
    command_bytes,
    rest_bytes,
)
from elasticq.http.pages import peeking, rest, testing
from elasticq.http.pages.rest_call import BASES
from elasticq.http.pages.rest_call import Asked as RestAsked
from elasticq.model.commands import Call, Command
from elasticq.model.errors import AccessDenied, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import HEAD_BYTES_MAX
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire.fence import add_fence
from elasticq.wire.headers import NOT_FOR_POSTS, NOTIFICATION_TYPE
from elasticq.wire.operations import PEEK, SQS
from elasticq.wire.services import guess

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

_CERTIFICATE: Final = re.compile(r"/SimpleNotificationService-[0-9a-f]{32}\.pem")
"""The path of the certificate in notifications. The name changes with the certificate; there is one at a time."""
LINKS: Final = frozenset(("ConfirmSubscription", "Unsubscribe"))
"""Actions of SNS that subscribers call by links in the messages that they get."""
UNKNOWN_OPERATION = b"<UnknownOperationException/>"
PREFLIGHT_S = 600
NEVER_S = 100_000_000
"""aiohttp must not end idle connections. The sweep of the server context does, which also knows hot requests."""
CORS_HEADERS = (
    "authorization, content-type, x-amz-date, x-amz-target, x-amz-content-sha256, x-amz-security-token,"
    " x-amz-user-agent, x-amzn-query-mode, amz-sdk-invocation-id, amz-sdk-request"
)


def _without_text(record: LogRecord) -> bool:
    """Replace the text of an aiohttp error by the exception's type and place, because it may quote the request.

    Return whether to log the record. It is not logged if the client left before its answer was written, nor if
    the same place was logged within the last minute.
    """
    _, failure, trace = record.exc_info or (None, None, None)
    if isinstance(failure, ConnectionError):
        return False
    line = _failures.line("slow_path_failed", failure, trace)
    record.msg, record.args, record.exc_info = "%s", (line,), None
    return bool(line)


_failures = Failures()
_aiohttp_log = getLogger("elasticq.http.aiohttp")
_aiohttp_log.addFilter(_without_text)


class Asked(Struct):
    """One request. aiohttp parsed the head after our strict reader, so both have the same headers."""

    request: web.BaseRequest
    head: Head
    body: bytes
    connection: Connection

    @property
    def path(self) -> str:
        return self.request.rel_url.raw_path

    @property
    def query(self) -> str:
        return self.request.rel_url.raw_query_string

    @property
    def credential(self) -> bytes:
        """Return the text with the scope of the signature, from a header or from the URL."""
        return credential_of(self.head.lines, self.head.authorization)


class SlowPath:
    """The aiohttp server: it makes protocols for connections, and answers their requests."""

    __slots__ = ("_context", "_server")

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # ends a long poll whose client left
            access_log=None,
            logger=_aiohttp_log,
            keepalive_timeout=NEVER_S,
            auto_decompress=False,  # no client compresses, and a bomb would unpack before any bound applies
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
        )

    def handler(self) -> "RequestHandler":
        """Return aiohttp's protocol for one connection."""
        return self._server()

    async def close(self) -> None:
        await self._server.shutdown(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._context.slow_requests += 1
        transport = request.transport
        connection: Connection | None = transport and transport.get_protocol()  # type: ignore[assignment]
        if connection is None:  # the client left before this began; under TLS the transport still exists then
            raise asyncio.CancelledError
        assert connection.slow_request is not None
        keeps_open, response = False, None
        try:
            response = await self._route(Asked(request, *connection.slow_request, connection))
            if self._context.stopping:
                response.force_close()
            if isinstance(response, web.Response) and isinstance(response.body, bytes):
                connection.hold(2 * len(response.body))  # aiohttp and the transport each keep it
            await response.prepare(request)
            if isinstance(response, rest.Stream):
                await response.run()
            await response.write_eof()  # here, so that the next request waits until the answer is written
            keeps_open = bool(response.keep_alive)
        finally:
            if isinstance(response, rest.Stream):
                response.end()
            connection.slow_ended(keeps_open=keeps_open)
        return response

    async def _route(self, asked: Asked) -> web.StreamResponse:
        request, path = asked.request, asked.path
        response: web.StreamResponse
        if NOTIFICATION_TYPE in request.headers:
            return self._refuse(asked, AccessDenied(NOT_FOR_POSTS))
        page = _PAGES.get(path.removeprefix(self._context.context_path))
        if page is not None and request.method in ("GET", "HEAD"):
            return page(self._context)
        if _CERTIFICATE.fullmatch(path.removeprefix(self._context.context_path)) and request.method == "GET":
            return await self._certificate()
        reason = self._context.refusal(request.headers.get)
        if reason:
            return self._refuse(asked, AccessDenied(reason))
        if path in testing.PATHS:
            return await self._testing_page(asked)
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if path.removeprefix(self._context.context_path).startswith(BASES) and not is_preflight:
            response = await self._rest(asked)
        elif request.method == "OPTIONS":
            response = self._preflight(is_asked=is_preflight)
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
        self._add_cors_headers(request, response)
        return response

    async def _certificate(self) -> web.Response:
        """Return the certificate of notifications. It is public, because those who verify have no credentials."""
        certificate = self._context.certificate
        pem = None if certificate is None else await certificate()
        return _not_found() if pem is None else web.Response(body=pem, content_type="application/x-pem-file")

    async def _testing_page(self, asked: Asked) -> web.Response:
        """Return the answer of a page of testing.py, as plain JSON."""
        context, method, path = self._context, asked.request.method, asked.path
        try:
            caller = self._admit(asked)
            if not context.has_testing:
                raise AccessDenied(testing.CLOSED)
            invocation_key = invocation(*caller, path, asked.head.invocation_id, asked.body)
            status, answer = await testing.TestingPages(context).answer(
                method, path, asked.body, caller, invocation_key
            )
        except SqsError as error:
            status, answer = error.status, {"code": error.code, "message": error.message}
        except RuntimeStopped:
            status, answer = 503, {"code": "ServiceUnavailable", "message": STOPPING_TEXT}
        return web.Response(status=status, body=msgspec.json.encode(answer), content_type="application/json")

    def _preflight(self, *, is_asked: bool) -> web.Response:
        """Return what pages of other origins may send. ``_add_cors_headers`` decides which origins may."""
        if not is_asked:
            return _not_found()
        headers = {
            "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
            "Access-Control-Allow-Headers": CORS_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_S),
        }
        return web.Response(headers=headers)

    def _add_cors_headers(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Add the headers that let pages of listed origins read the answer."""
        origin, browsers = request.headers.get("Origin"), self._context.browsers
        if origin is not None and browsers is not None and browsers.is_foreign(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "x-amzn-RequestId, x-amzn-query-error"
            response.headers["Vary"] = "Origin"

    def _refuse(self, asked: Asked, error: SqsError) -> web.Response:
        """Return an error in the protocol of the request, as far as its head shows the protocol."""
        if (path := asked.path.removeprefix(self._context.context_path)).startswith(BASES):
            return rest.problem(RestAsked(asked.request.method, path, "", b""), error)
        protocol = JSON if _has_target(asked.request) else FORM
        request_id = self._request_id()
        service = guess(self._context.services, asked.credential, asked.query.encode() + b"&" + asked.body)
        return self._respond(exchange.encode_error(service, protocol, error, request_id), request_id)

    async def _post(self, asked: Asked) -> web.Response:
        protocol, query = asked.head.protocol, asked.query.encode()
        if protocol == OTHER:
            if _has_target(asked.request):
                protocol = JSON
            elif b"Action=" in query:
                protocol = FORM
            elif self._context.authenticator is None:
                return _not_found()
            else:
                return self._unknown(asked)
        form_or_body = asked.body
        if protocol != JSON and query:
            form_or_body = query + b"&" + asked.body if asked.body else query
        return await self._serve(asked, protocol, form_or_body)

    async def _serve(self, asked: Asked, protocol: int, form_or_body: bytes) -> web.Response:
        """Return the answer to an SQS or SNS request.

        form_or_body: the body; for a form, the parameters of the URL and the body.
        """
        request_id, began_s, head = self._request_id(), perf_counter(), asked.head
        if protocol == FORM and _wants_json(asked.request):
            protocol = FORM_FOR_JSON
        account, command, action = "", None, "" if head.operation is None else head.operation.name
        try:
            principal, account = self._admit_link(asked, protocol) or self._admit(asked)
            operation, command = exchange.decode(
                self._context.services, protocol, head.operation, form_or_body, asked.path, asked.credential
            )
            action = operation.name
            if not operation.read_only:
                self._check_method(asked, operation.name)
            if head.fence:
                add_fence(command, head.fence)
            self._make_room(asked, command_bytes(command, len(form_or_body)))
        except SqsError as error:
            self._context.count(request_id, action, account, command, error, error.status, began_s, head)
            service = guess(self._context.services, asked.credential, form_or_body)
            return self._respond(exchange.encode_error(service, protocol, error, request_id), request_id)
        path = "/" if protocol == JSON else asked.path
        invocation_key = invocation(principal, account, operation.name, head.invocation_id, form_or_body, path)
        call = Call(
            command,
            principal,
            account,
            self._endpoint(asked),
            invocation_key,
            asked.connection.origin,
            head.trace_header,
        )
        outcome = await self._submit(call, asked.request)
        answer = exchange.encode(self._context.services, protocol, operation, command, outcome, request_id)
        self._context.count(request_id, action, account, command, outcome, answer.status, began_s, head)
        self._audit(asked, action, command, principal, account, outcome)
        return self._respond(answer, request_id)

    def _audit(
        self, asked: Asked, action: str, command: Command, principal: str, account: str, outcome: Result | SqsError
    ) -> None:
        if action in audit.LOGGED and not isinstance(outcome, SqsError):
            transport = asked.request.transport
            peername = None if transport is None else transport.get_extra_info("peername")
            audit.tell(action, command, principal, account, peername)

    async def _peek(self, asked: Asked) -> web.Response:
        request_id = self._request_id()
        try:
            principal, account = self._admit(asked)
            _, command = exchange.decode((SQS,), JSON, PEEK, asked.body, "")
        except SqsError as error:
            return self._respond(exchange.encode_error(SQS, JSON, error, request_id), request_id)
        call = Call(command, principal, account, self._endpoint(asked), b"", asked.connection.origin)
        outcome = await self._submit(call, asked.request)
        return self._respond(exchange.encode((SQS,), JSON, PEEK, command, outcome, request_id), request_id)

    async def _rest(self, asked: Asked) -> web.StreamResponse:
        """Return the answer of the REST API. Each of its commands is submitted and counted like one of SQS."""
        context, request, head = self._context, asked.request, asked.head
        path = asked.path.removeprefix(context.context_path)
        rest_asked = RestAsked(request.method, path, asked.query, asked.body)
        try:
            principal, account = self._admit(asked)
            if rest_asked.changes:
                self._check_method(asked, "ReceiveMessage")
            self._make_room(asked, rest_bytes(len(asked.body)))

            async def submit(command: Command, name: str) -> Result | SqsError:
                began_s, action = perf_counter(), type(command).__name__
                if head.fence:
                    add_fence(command, head.fence)
                key = invocation(principal, account, action, name.encode(), b"")
                endpoint, origin = self._endpoint(asked), asked.connection.origin
                call = Call(command, principal, account, endpoint, key, origin, head.trace_header)
                outcome = await self._submit(call, request)
                if action in context.services[0].operations:
                    status = outcome.status if isinstance(outcome, SqsError) else 200
                    context.count(self._request_id(), action, account, command, outcome, status, began_s, head)
                    self._audit(asked, action, command, principal, account, outcome)
                return outcome

            if rest_asked.is_stream:
                stream = rest.Stream(rest_asked.stream(submit), context, request.remote or "")
                await stream.begin()
                return stream
            return await rest.answer(rest_asked, submit, context)
        except Exception as failure:
            return rest.problem(rest_asked, failure)

    async def _list_messages(self, asked: Asked) -> web.Response:
        """Return LocalStack's page of a queue's messages."""
        request_id, request, head = self._request_id(), asked.request, asked.head
        target = request.headers.get("X-Amz-Target", "")
        protocol = JSON if target else peeking.TREE if "json" in request.headers.get("Accept", "") else FORM
        try:
            principal, account = self._admit(asked)
            members, action = peeking.members_of(asked.query, head.protocol, asked.body)
            action = target.rpartition(".")[2] or action
            listing = peeking.Listing(asked.path, members, action)
            if listing.region:
                account = self._context.callers.in_region(account, listing.region)

            async def submit(command: Peek) -> Result | SqsError:
                call = Call(command, principal, account, self._endpoint(asked), b"", asked.connection.origin)
                return await self._submit(call, request)

            answer = await peeking.answer(protocol, listing, submit, request_id)
        except SqsError as error:
            answer = peeking.encode_error(protocol, error, request_id)
        return self._respond(answer, request_id)

    def _unknown(self, asked: Asked) -> web.Response:
        """Return 404 for a request that belongs to no API, or an error if the caller is not admitted."""
        try:
            self._admit(asked)
        except SqsError as error:
            return self._refuse(asked, error)
        request = asked.request
        is_root = request.method == "GET" and asked.path == f"{self._context.context_path}/"
        return self._root_page() if is_root and "text/html" in request.headers.get("Accept", "") else _not_found()

    def _root_page(self) -> web.Response:
        """Return a page for people who open this port in a browser, with a link to the operators' pages."""
        page_url = escape(self._context.page_url)
        where = (
            f'The pages for people are at <a href="{page_url}">{page_url}</a>'
            if page_url
            else "There are no pages for people, because admin.port is -1"
        )
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>elasticq</title><h1>elasticq</h1>'
            f"<p>This port is for clients of SQS and SNS. {where}.</p></html>\n"
        )
        return web.Response(text=body, content_type="text/html", headers=_PAGE_HEADERS)

    def _admit(self, asked: Asked) -> tuple[str, str]:
        """Return principal and owner (model/names.py) of the caller. Raise the SqsError that the client gets."""
        head, authenticator = asked.head, self._context.authenticator
        if authenticator is None:
            return self._context.callers.identify_request(head.lines, head.authorization)
        return authenticator.admit(head.lines, head.authorization, asked.body)

    def _admit_link(self, asked: Asked, protocol: int) -> tuple[str, str] | None:
        """Return an anonymous caller for a link of ``LINKS``, which subscribers cannot sign; None for other requests.

        The link itself is the credential: it contains a token or an ARN.
        """
        if protocol == JSON or asked.request.method != "GET" or asked.credential:
            return None
        is_link = asked.request.query.get("Action") in LINKS
        return self._context.callers.identify(b"") if is_link else None

    def _make_room(self, asked: Asked, held_bytes: int) -> None:
        """Count a large command's memory until ``slow_ended``. Raise ServiceUnavailable if the buffers are full."""
        if held_bytes > WAITING_FREE_BYTES:
            if not self._context.has_room(held_bytes):
                raise ServiceUnavailable(BUSY_TEXT)
            asked.connection.hold(held_bytes)

    def _check_method(self, asked: Asked, action: str) -> None:
        """Raise AccessDenied for an unsigned GET that changes something, if a web page could have sent it.

        Without an Authenticator any Authorization header is enough, because no page can make a browser send one.
        """
        browsers = self._context.browsers
        if browsers is None or asked.request.method != "GET" or action in LINKS:
            return
        head, authenticator = asked.head, self._context.authenticator
        if head.authorization or (authenticator is not None and authenticator.is_signed(head.lines, b"")):
            return
        reason = browsers.get_refusal(asked.request.headers.get, action)
        if reason:
            raise AccessDenied(reason)

    async def _submit(self, call: Call, request: web.BaseRequest) -> Result | SqsError:
        ticket = _Ticket(self._context, request.transport)
        try:
            self._context.submit(call, ticket)
            outcome = await ticket.future
        except RuntimeStopped:
            return ServiceUnavailable(STOPPING_TEXT)
        except asyncio.CancelledError:
            ticket.leave()
            raise
        if request.transport is None or request.transport.is_closing():
            ticket.return_messages(outcome)
        elif isinstance(outcome, ReceiveMessageResult) and self._context.is_full:
            ticket.return_messages(outcome)
            return ServiceUnavailable(BUSY_TEXT)
        return outcome

    def _endpoint(self, asked: Asked) -> str:
        """Return the base of queue URLs. For HTTP/1.0 without a Host, it is the address of the socket."""
        context, transport = self._context, asked.request.transport
        if asked.head.endpoint or context.public_url or transport is None:
            return asked.head.endpoint or context.public_url
        name, port = transport.get_extra_info("sockname")[:2]
        return f"{context.scheme}://{name}:{port}{context.context_path}"

    def _request_id(self) -> str:
        """Return a request id. Its number has a bit that the numbers of the hot path never reach."""
        return self._context.responses.request_id(self._context.slow_requests | 1 << 47)

    def _respond(self, answer: Answer, request_id: str) -> web.Response:
        headers = {"Content-Type": answer.content_type.decode(), "x-amzn-RequestId": request_id}
        if answer.query_error:
            headers["x-amzn-query-error"] = answer.query_error
        if answer.status == 503:
            headers |= RETRY_HEADERS
        if answer.stale_ms >= 0:
            headers["x-elasticq-stale"] = str(answer.stale_ms)
        return web.Response(status=answer.status, body=answer.body, headers=headers)


def _has_target(request: web.BaseRequest) -> bool:
    return "X-Amz-Target" in request.headers


def _wants_json(request: web.BaseRequest) -> bool:
    return any(wants_json(accept) for accept in request.headers.getall("Accept", ()))


class _Ticket:
    """The ticket of a call. A task of aiohttp awaits its outcome."""

    __slots__ = ("_context", "_transport", "future")

    def __init__(self, context: ServerContext, transport: asyncio.Transport | None) -> None:
        self._context = context
        self._transport = transport
        self.future: asyncio.Future[Result | SqsError] = context.loop.create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if self.future.done():
            self.return_messages(outcome)
        else:
            self.future.set_result(outcome)

    def abort(self) -> None:
        """Break the connection, and so the waiting task, for a fault of a test."""
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """End the wait because the client is gone. Messages that came at the same time return to their queue."""
        if self.future.done() and not self.future.cancelled():
            self.return_messages(self.future.result())
        else:
            self._context.runtime.cancel(self)

    def return_messages(self, outcome: Result | SqsError) -> None:
        if isinstance(outcome, ReceiveMessageResult):
            self._context.loop.call_soon(self._context.runtime.undelivered, outcome)


_PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


def _not_found() -> web.Response:
    return web.Response(status=404, body=UNKNOWN_OPERATION, content_type="text/xml")


def _health(context: ServerContext) -> web.Response:
    """Return that this process answers, with its durability if that is reduced.

    Clients recognise elasticq by the Server header.
    """
    return web.Response(text=context.health, headers={"Server": f"elasticq/{__version__}"})


def _ready(context: ServerContext) -> web.Response:
    status = context.runtime.status()
    if context.runtime.stopped or context.stopping:
        return web.Response(status=503, text="stopping")
    return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)


def _localstack_health(context: ServerContext) -> web.Response:
    """Return the page that programs poll while they wait for LocalStack to start."""
    state = "running" if context.runtime.status().ready and not context.runtime.stopped else "starting"
    return web.json_response({"services": {"sqs": state, "sns": state}, "edition": "elasticq", "version": __version__})


_PAGES = {"/health": _health, "/ready": _ready, "/_localstack/health": _localstack_health}
