"""The execution of a slow request's commands: memory, request id, submission, and the return of unread messages."""

import asyncio

from aiohttp import web

from elasticq.http.admission import audit
from elasticq.http.context import BUSY_TEXT, STOPPING_TEXT, WAITING_FREE_BYTES, ServerContext
from elasticq.http.pages.asked import Asked
from elasticq.model.commands import Call, Command
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.runtime.runtime import RuntimeStopped


def request_id(context: ServerContext) -> str:
    """Return a request id. Its number has a bit that the numbers of the hot path never reach."""
    return context.responses.request_id(context.slow_requests | 1 << 47)


def endpoint(context: ServerContext, asked: Asked) -> str:
    """Return the base of queue URLs. For HTTP/1.0 without a Host, it is the address of the socket."""
    transport = asked.request.transport
    if asked.head.endpoint or context.public_url or transport is None:
        return asked.head.endpoint or context.public_url
    name, port = transport.get_extra_info("sockname")[:2]
    return f"{context.scheme}://{name}:{port}{context.context_path}"


def make_room(context: ServerContext, asked: Asked, held_bytes: int) -> None:
    """Count a large command's memory until ``slow_ended``. Raise ServiceUnavailable if the buffers are full."""
    if held_bytes > WAITING_FREE_BYTES:
        if not context.has_room(held_bytes):
            raise ServiceUnavailable(BUSY_TEXT)
        asked.connection.hold(held_bytes)


async def submit(context: ServerContext, call: Call, request: web.BaseRequest) -> Result | SqsError:
    """Return the outcome of a call. If the client is gone, return the messages of a receive to their queue."""
    ticket = _Ticket(context, request.transport)
    try:
        context.submit(call, ticket)
        outcome = await ticket.future
    except RuntimeStopped:
        return ServiceUnavailable(STOPPING_TEXT)
    except asyncio.CancelledError:
        ticket.leave()
        raise
    if request.transport is None or request.transport.is_closing():
        ticket.return_messages(outcome)
    elif isinstance(outcome, ReceiveMessageResult) and context.is_full:
        ticket.return_messages(outcome)
        return ServiceUnavailable(BUSY_TEXT)
    return outcome


def log_deletion(
    asked: Asked, action: str, command: Command, principal: str, account: str, outcome: Result | SqsError
) -> None:
    """Write a successful action of ``audit.LOGGED`` to the audit log."""
    if action in audit.LOGGED and not isinstance(outcome, SqsError):
        transport = asked.request.transport
        peername = None if transport is None else transport.get_extra_info("peername")
        audit.tell(action, command, principal, account, peername)


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
