"""/api/v1 on the SQS port: takes requests of the REST API apart, has its handlers answer, and writes what they say."""

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web

from elasticq.http import exchange
from elasticq.http.responses import RETRY_HEADERS
from elasticq.model.errors import MessageNotInflight, QueueDoesNotExist, QueueNameExists, SqsError
from elasticq.model.limits import WAIT_S_MAX
from elasticq.rest import messages, openapi, routes
from elasticq.rest.api import Request, Submit
from elasticq.rest.shapes import Problem

if TYPE_CHECKING:
    from elasticq.http.context import ServerContext

BASES: Final = (f"{routes.BASE}/", f"{routes.DOQ_BASE}/")
_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_STATUS: Final[dict[type[SqsError], int]] = {QueueDoesNotExist: 404, QueueNameExists: 409, MessageNotInflight: 409}
"""Where SQS has 400 for what REST has another status for; doq's paths keep 400."""
STREAM_PAGE: Final = 10


class Asked:
    """What the REST API reads of one HTTP request."""

    __slots__ = ("body", "is_doq", "method", "path", "query")

    def __init__(self, method: str, path: str, query: str, body: bytes) -> None:
        self.is_doq = path.startswith(BASES[1])
        self.method = method
        self.path = path[len(routes.BASE) :].rstrip("/")
        self.query = dict(parse_qsl(query, keep_blank_values=True))
        self.body = body

    @property
    def changes(self) -> bool:
        """Whether it is a GET that receives messages."""
        if self.method != "GET" or self.path in ("/docs", "/openapi.json"):
            return False
        return self.is_stream or routes.find(self.method, self.path)[0].changes

    @property
    def is_stream(self) -> bool:
        return self.method == "GET" and routes.STREAM.fullmatch(self.path) is not None

    def stream(self, submit: Submit) -> Request:
        """A request for a stream, as ``Stream`` takes it. Raises the SqsError that the client gets."""
        found = routes.STREAM.fullmatch(self.path)
        assert found is not None
        return Request(submit, {"queue": unquote(found[1])}, routes.read_query(routes.STREAM_QUERY, self.query))


async def answer(asked: Asked, submit: Submit, context: "ServerContext") -> web.Response:
    """Answer what is no stream. Raises the SqsError that the client gets."""
    if asked.method == "GET" and asked.path == "/openapi.json":
        return _written(200, openapi.document())
    if asked.method == "GET" and asked.path == "/docs":
        return web.Response(text=openapi.page(), content_type="text/html", headers={"Content-Security-Policy": _CSP})
    route, path = routes.find(asked.method, asked.path)
    request = Request(
        submit,
        {name: unquote(value) for name, value in path.items()},
        routes.read_query(route.query, asked.query),
        routes.read_body(route, asked.body),
        now_ms=context.runtime.status().time_ms,
        entropy=os.urandom,
        is_doq=asked.is_doq,
    )
    result = await route.handler(request)
    return web.Response(status=204) if result is None else _written(200, result)


_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'"


def problem(asked: Asked, failure: Exception) -> web.Response:
    """Return the answer to a request that failed."""
    error = failure if isinstance(failure, SqsError) else exchange.internal_failure(failure)
    status = error.status if asked.is_doq else _STATUS.get(type(error), error.status)
    message = error.message.encode("utf-8", "replace").decode()
    response = _written(status, Problem(status, error.code, message, error.code), _PROBLEM)
    if isinstance(error, routes.WrongMethod):
        response.headers["Allow"] = ", ".join(error.allowed)
    if status == 503:
        response.headers.update(RETRY_HEADERS)
    return response


def _written(status: int, value: Any, content_type: str = _JSON) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=content_type)


class Stream(web.StreamResponse):
    """Messages as server-sent events, until the client leaves or the server stops."""

    def __init__(self, request: Request, context: "ServerContext") -> None:
        super().__init__(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        self._request = request
        self._context = context
        self._first: list[Any] | None = None

    async def begin(self) -> None:
        """Receive once without waiting, so that who may not gets an error. Raises the SqsError."""
        self._first = await messages.take(self._request, STREAM_PAGE, 0)

    async def run(self) -> None:
        """Write events; the response is prepared."""
        taken = self._first or []
        while not self._context.stopping:
            for message in taken:
                await self.write(b"id: %b\ndata: %b\n\n" % (message.id.encode(), msgspec.json.encode(message)))
            if not taken:
                await self.write(b": waiting\n\n")
            try:
                taken = await messages.take(self._request, STREAM_PAGE, WAIT_S_MAX)
            except SqsError as error:
                told = msgspec.json.encode(Problem(error.status, error.code, error.message, error.code))
                await self.write(b"event: error\ndata: %b\n\n" % told)
                return
            await asyncio.sleep(0)
