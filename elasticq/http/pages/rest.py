"""The part of /api/v1 that aiohttp serves: event streams, and all requests that are not hot (rest_call.py)."""

import asyncio
from time import perf_counter
from typing import Any, Final

import msgspec
from aiohttp import web

from elasticq.http.admission.caller import invocation
from elasticq.http.context import ServerContext, rest_bytes
from elasticq.http.pages import access, execution
from elasticq.http.pages.asked import Asked
from elasticq.http.pages.rest_call import JSON_TYPE, PROBLEM_TYPE, refusal
from elasticq.http.pages.rest_call import Asked as RestAsked
from elasticq.model.commands import Call, Command
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.limits import WAIT_S_MAX
from elasticq.model.results import Result
from elasticq.rest import messages, openapi
from elasticq.rest.api import Request, Submit
from elasticq.rest.shapes import Problem
from elasticq.wire.fence import add_fence

STREAM_PAGE: Final = 10


async def serve(context: ServerContext, asked: Asked) -> web.StreamResponse:
    """Return the answer of the REST API. Each of its commands is submitted and counted like one of SQS."""
    request, head = asked.request, asked.head
    rest_asked = RestAsked(request.method, asked.path.removeprefix(context.context_path), asked.query, asked.body)
    try:
        principal, account = access.admit(context, asked)
        if rest_asked.changes:
            access.check_method(context, asked, "ReceiveMessage")
        execution.make_room(context, asked, rest_bytes(len(asked.body)))

        async def submit(command: Command, name: str) -> Result | SqsError:
            began_s, action = perf_counter(), type(command).__name__
            if head.fence:
                add_fence(command, head.fence)
            key = invocation(principal, account, action, name.encode(), b"")
            endpoint, origin = execution.endpoint(context, asked), asked.connection.origin
            call = Call(command, principal, account, endpoint, key, origin, head.trace_header)
            outcome = await execution.submit(context, call, request)
            if action in context.services[0].operations:
                status = outcome.status if isinstance(outcome, SqsError) else 200
                number = execution.request_id(context)
                context.count(number, action, account, command, outcome, status, began_s, head)
                execution.log_deletion(asked, action, command, principal, account, outcome)
            return outcome

        if rest_asked.is_stream:
            stream = Stream(rest_asked.stream(submit), context, request.remote or "")
            await stream.begin()
            return stream
        return await answer(rest_asked, submit, context)
    except Exception as failure:
        return problem(rest_asked, failure)


async def answer(asked: RestAsked, submit: Submit, context: ServerContext) -> web.Response:
    """Return the answer to a request that is not a stream. Raise the SqsError that the client gets."""
    if asked.method == "GET" and asked.path == "/openapi.json":
        return _written(200, openapi.document())
    if asked.method == "GET" and asked.path == "/docs":
        return web.Response(text=openapi.page(), content_type="text/html", headers={"Content-Security-Policy": _CSP})
    route, request = asked.read(submit, context)
    result = await route.handler(request)
    return web.Response(status=204) if result is None else _written(200, result)


_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'"


def problem(asked: RestAsked, failure: Exception) -> web.Response:
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

    def __init__(self, request: Request, context: ServerContext, address: str) -> None:
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
                body = msgspec.json.encode(Problem(error.status, error.code, error.message, error.code))
                await self.write(b"event: error\ndata: %b\n\n" % body)
                return
            await asyncio.sleep(0)
