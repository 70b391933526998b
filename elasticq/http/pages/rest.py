"""The part of /api/v1 that aiohttp serves: event streams, and all requests that are not hot (rest_call.py)."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from elasticq.http.pages.rest_call import JSON_TYPE, PROBLEM_TYPE, Asked, refusal
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.limits import WAIT_S_MAX
from elasticq.rest import messages, openapi
from elasticq.rest.api import Request, Submit
from elasticq.rest.shapes import Problem

if TYPE_CHECKING:
    from elasticq.http.context import ServerContext

STREAM_PAGE: Final = 10


async def answer(asked: Asked, submit: Submit, context: "ServerContext") -> web.Response:
    """Return the answer to a request that is not a stream. Raise the SqsError that the client gets."""
    if asked.method == "GET" and asked.path == "/openapi.json":
        return _written(200, openapi.document())
    if asked.method == "GET" and asked.path == "/docs":
        return web.Response(text=openapi.page(), content_type="text/html", headers={"Content-Security-Policy": _CSP})
    route, request = asked.read(submit, context)
    result = await route.handler(request)
    return web.Response(status=204) if result is None else _written(200, result)


_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'"


def problem(asked: Asked, failure: Exception) -> web.Response:
    """Return the answer to a request that failed."""
    refused = refusal(failure, is_doq=asked.is_doq)
    return web.Response(status=refused.status, body=refused.body, content_type=PROBLEM_TYPE, headers=refused.headers)


def _written(status: int, value: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=JSON_TYPE)


class Stream(web.StreamResponse):
    """A stream of messages as server-sent events, until the client leaves or the server stops.

    Each message stays in flight for the time that the client asked for, at least a second. Each stream counts for
    its client's address from ``begin`` to ``end``.
    """

    def __init__(self, request: Request, context: "ServerContext", address: str) -> None:
        super().__init__(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        self._request = request
        self._context = context
        self._address = address
        self._first: list[Any] | None = None

    async def begin(self) -> None:
        """Receive once without waiting, so that a client without permission gets an error instead of a stream.

        Raise the SqsError that the client gets; the stream has ended then.
        """
        bound, streams = self._context.bounds.streams_per_address, self._context.streams
        if bound and streams[self._address] >= bound:
            raise ServiceUnavailable(
                f"Your address already has {bound} streams, the maximum (http.streams_per_address)."
            )
        streams[self._address] += 1
        try:
            self._request.query["visibility_s"] = await messages.hidden_s(self._request)
            self._first = await messages.take(self._request, STREAM_PAGE, 0)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Stop counting this stream. Called exactly once."""
        streams = self._context.streams
        streams[self._address] -= 1
        if not streams[self._address]:
            del streams[self._address]

    async def run(self) -> None:
        """Write events. The response must have been prepared."""
        taken = self._first or []
        while not self._context.stopping:
            for message in taken:
                await self.write(b"id: %b\ndata: %b\n\n" % (message.id.encode(), msgspec.json.encode(message)))
            if not taken:
                await self.write(b": waiting\n\n")
            try:
                taken = await messages.take(self._request, STREAM_PAGE, WAIT_S_MAX)
            except SqsError as error:
                problem = msgspec.json.encode(Problem(error.status, error.code, error.message, error.code))
                await self.write(b"event: error\ndata: %b\n\n" % problem)
                return
            await asyncio.sleep(0)
