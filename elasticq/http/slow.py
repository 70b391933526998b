"""Everything that is not hot, by aiohttp's web.Server: odd framing, Query by URL, health and readiness.

Only this module imports aiohttp, and it is imported on the first connection
that needs it. Requests of the SQS API give the same bytes here as on the hot
path: both go through exchange.py.
"""

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from elasticq.http import exchange
from elasticq.http.caller import invocation
from elasticq.http.exchange import Answer
from elasticq.http.head import FORM, JSON, OTHER, BadHead, content_protocol, host_endpoint
from elasticq.http.site import Site
from elasticq.model.commands import Call
from elasticq.model.errors import RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.limits import REQUEST_BYTES_MAX
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire.operations import BY_TARGET

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from elasticq.http.protocol import SqsProtocol

UNKNOWN_OPERATION = b"<UnknownOperationException/>"


class SlowPath:
    """The factory of aiohttp connections, and the handler of their requests."""

    __slots__ = ("_server", "_site")

    def __init__(self, site: Site) -> None:
        self._site = site
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # a long poll whose client left ends
            access_log=None,
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
        query = request.rel_url.raw_query_string
        if request.method == "POST":
            return await self._post(request, connection, query.encode())
        if request.method not in ("GET", "HEAD"):
            return _not_found()
        page = _PAGES.get(request.rel_url.raw_path)
        if page is not None:
            return page(self._site)
        if request.method == "GET" and "Action=" in query:
            return await self._serve(request, FORM, query.encode())
        return _not_found()

    async def _post(self, request: web.BaseRequest, connection: "SqsProtocol", query: bytes) -> web.StreamResponse:
        protocol = content_protocol(request.headers.get("Content-Type", "").encode())
        if protocol == OTHER:
            if "X-Amz-Target" in request.headers:
                protocol = JSON
            elif b"Action=" in query:
                protocol = FORM
            else:
                return _not_found()
        body = await self._read_body(request, connection)
        if body is None:
            error = RequestTooLarge(f"The request is longer than {REQUEST_BYTES_MAX} bytes.")
            request_id = self._request_id()
            response = self._respond(exchange.encode_error(protocol, error, request_id), request_id)
            response.force_close()
            return response
        if protocol == FORM and query:
            body = query + b"&" + body if body else query
        return await self._serve(request, protocol, body)

    async def _read_body(self, request: web.BaseRequest, connection: "SqsProtocol") -> bytes | None:
        """None: larger than any legal request. The deadline moves with what has come."""
        bounds, started_ms = self._site.bounds, self._site.clock()
        body = bytearray()
        connection.deadline_ms = started_ms + bounds.body_ms
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > REQUEST_BYTES_MAX:
                return None
            patience_ms = bounds.body_ms + len(body) * 1_000 // bounds.body_bytes_per_s
            connection.deadline_ms = started_ms + patience_ms
        connection.slow_began()
        return bytes(body)

    async def _serve(self, request: web.BaseRequest, protocol: int, body: bytes) -> web.StreamResponse:
        """One SQS request."""
        request_id = self._request_id()
        target = BY_TARGET.get(request.headers.get("X-Amz-Target", "").encode())
        try:
            endpoint = self._endpoint(request)
        except BadHead as error:
            return web.Response(status=400, text=str(error))
        try:
            operation, command = exchange.decode(protocol, target, body, request.rel_url.raw_path)
        except SqsError as error:
            return self._respond(exchange.encode_error(protocol, error, request_id), request_id)
        principal, account = self._site.callers.identify(request.headers.get("Authorization", "").encode())
        mark = invocation(principal, operation.name, request.headers.get("amz-sdk-invocation-id", "").encode(), body)
        outcome = await self._submit(Call(command, principal, account, endpoint, mark), request)
        return self._respond(exchange.encode(protocol, operation, command, outcome, request_id), request_id)

    async def _submit(self, call: Call, request: web.BaseRequest) -> Result | SqsError:
        ticket = _Ticket(self._site)
        try:
            self._site.runtime.submit(call, ticket)
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
            return f"http://{name}:{port}"
        return host_endpoint((host or "").encode())

    def _request_id(self) -> str:
        """Its numbers have a bit that the hot path's never reach."""
        return self._site.responses.request_id(self._site.slow_requests | 1 << 47)

    def _respond(self, answer: Answer, request_id: str) -> web.Response:
        headers = {"Content-Type": answer.content_type.decode(), "x-amzn-RequestId": request_id}
        if answer.query_error:
            headers["x-amzn-query-error"] = answer.query_error
        if answer.stale_ms >= 0:
            headers["x-elasticq-stale"] = str(answer.stale_ms)
        return web.Response(status=answer.status, body=answer.body, headers=headers)


class _Ticket:
    """A request that waits in a task of aiohttp."""

    __slots__ = ("_site", "future")

    def __init__(self, site: Site) -> None:
        self._site = site
        self.future: asyncio.Future[Result | SqsError] = site.loop.create_future()

    def release(self, outcome: Result | SqsError) -> None:
        if self.future.done():
            self.return_messages(outcome)
        else:
            self.future.set_result(outcome)

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
    """Alive: this process answers. Says so when its durability is not the full one."""
    return web.Response(text=site.health)


def _ready(site: Site) -> web.Response:
    status = site.runtime.status()
    if site.runtime.stopped or site.stopping:
        return web.Response(status=503, text="stopping")
    return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)


_PAGES = {"/health": _health, "/ready": _ready}
