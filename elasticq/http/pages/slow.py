"""The slow path: aiohttp's web.Server answers requests that are not hot, and this module chooses the page of each.

These are odd framing, Query by URL, health and readiness, and all other pages. This module and the pages import
aiohttp, so it is imported at the first connection that needs it. A request arrives here complete, after the same
reader has checked it as for the hot path. aiohttp sees only its head; the rest comes with ``Asked``. Requests of the
SQS API get the same bytes here as on the hot path, because both use exchange.py.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from elasticq.http.connection.head import FORM
from elasticq.http.context import Connection, ServerContext
from elasticq.http.pages import (
    aiohttp_log,
    api_calls,
    certificate,
    cors,
    health,
    methods,
    peeking,
    rest,
    testing,
    unknown,
)
from elasticq.http.pages.answers import refuse
from elasticq.http.pages.asked import Asked
from elasticq.http.pages.rest_call import BASES
from elasticq.model.errors import AccessDenied
from elasticq.model.limits import HEAD_BYTES_MAX
from elasticq.wire.headers import NOT_FOR_POSTS, NOTIFICATION_TYPE

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

NEVER_S: Final = 100_000_000
"""aiohttp must not end idle connections. The sweep of the server context does, which also knows hot requests."""


class SlowPath:
    """The aiohttp server: it makes protocols for connections, and answers their requests."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # ends a long poll whose client left
            access_log=None,
            logger=aiohttp_log.LOGGER,
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
                connection.hold(2 * len(response.body))  # aiohttp and the transport each keep a copy
            await response.prepare(request)
            if isinstance(response, rest.Stream):
                await response.run()
            await response.write_eof()  # before slow_ended(), which lets the next request start
            keeps_open = bool(response.keep_alive)
        finally:
            if isinstance(response, rest.Stream):
                response.end()
            connection.slow_ended(keeps_open=keeps_open)
        return response

    async def _route(self, asked: Asked) -> web.StreamResponse:
        context, request, path = self._context, asked.request, asked.path
        below = path.removeprefix(context.context_path)
        response: web.StreamResponse
        if NOTIFICATION_TYPE in request.headers:
            return refuse(context, asked, AccessDenied(NOT_FOR_POSTS))
        page = health.PAGES.get(below)
        if page is not None and request.method in ("GET", "HEAD"):
            return page(context)
        if certificate.PATH.fullmatch(below) and request.method == "GET":
            return await certificate.answer(context)
        reason = context.refusal(request.headers.get)
        if reason:
            return refuse(context, asked, AccessDenied(reason))
        wrong = None if below.startswith(BASES) else methods.refusal(path, below, request.method)
        if wrong is not None:
            return wrong
        if path in testing.METHODS:
            return await testing.serve(context, asked)
        if below.startswith(BASES) and not cors.is_preflight(request):
            response = await rest.serve(context, asked)
        elif request.method == "OPTIONS":
            response = cors.answer_options(request)
        elif path == peeking.PEEK_PATH and request.method == "POST":
            response = await peeking.serve_peek(context, asked)
        elif path.startswith(peeking.LIST_PATH) and request.method in ("GET", "POST"):
            response = await peeking.serve_listing(context, asked)
        elif request.method == "POST":
            response = await api_calls.post(context, asked)
        elif request.method == "GET" and "Action=" in asked.query:
            response = await api_calls.serve(context, asked, FORM, asked.query.encode())
        else:
            return unknown.answer(context, asked)
        cors.add_headers(context, request, response)
        return response
