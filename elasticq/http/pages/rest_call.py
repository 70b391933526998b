"""Requests of /api/v1 and their answers. ``RestCall`` serves the frequent requests without aiohttp.

The handlers of the ``rest`` package are coroutines that await only commands. So a hot request needs no task:
``RestCall`` runs the handler up to a command, submits it, and continues with the node's reply. If the node answers at
once, all of this happens in one turn of the loop. All other requests go to aiohttp (rest.py) and get the same answers.
"""

import os
from collections.abc import Coroutine, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from elasticq.http.admission.caller import invocation
from elasticq.http.connection import exchange
from elasticq.http.connection.facts import Head
from elasticq.http.connection.responses import RETRY_HEADERS
from elasticq.http.context import BUSY_TEXT, STOPPING_TEXT, rest_bytes
from elasticq.model.commands import Call, Command, Origin, ReceiveMessage
from elasticq.model.errors import (
    MessageNotInflight,
    QueueDoesNotExist,
    QueueNameExists,
    ServiceUnavailable,
    SqsError,
)
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.settings import NodeStatus
from elasticq.rest import routes
from elasticq.rest.api import Answer, Request, Submit
from elasticq.rest.shapes import Fault, NewMessages, Problem, Server
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire.fence import add_fence

if TYPE_CHECKING:
    from elasticq.http.context import ServerContext

BASES: Final = (f"{routes.BASE}/", f"{routes.DOQ_BASE}/")
JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
_STATUS: Final[dict[type[SqsError], int]] = {QueueDoesNotExist: 404, QueueNameExists: 409, MessageNotInflight: 409}
"""The statuses of REST for errors that have status 400 in SQS. The paths of doq keep 400."""


class Asked:
    """The parts of one HTTP request that the REST API reads."""

    def __init__(self, method: str, path: str, query: str, body: bytes) -> None:
        self.is_doq = path.startswith(BASES[1])
        self.method = method
        self.path = path[len(routes.BASE) :].rstrip("/")
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        self.body = body

    @property
    def changes(self) -> bool:
        """Return whether this is a GET that receives messages."""
        if self.method != "GET" or self.path in ("/docs", "/openapi.json"):
            return False
        return self.is_stream or routes.find(self.method, self.path)[0].changes

    @property
    def is_stream(self) -> bool:
        return self.method == "GET" and routes.STREAM.fullmatch(self.path) is not None

    def stream(self, submit: Submit) -> Request:
        """Return the request for a ``Stream``. Raise the SqsError that the client gets."""
        found = routes.STREAM.fullmatch(self.path)
        assert found is not None
        return Request(submit, {"queue": unquote(found[1])}, routes.read_query(routes.STREAM_QUERY, self.query))

    def read(self, submit: Submit, context: "ServerContext") -> tuple[routes.Route, Request]:
        """Return the route, and the request for its handler. Raise the SqsError that the client gets."""
        route, path = routes.find(self.method, self.path)
        request = Request(
            submit,
            {name: unquote(value) for name, value in path.items()} if "%" in self.path else path,
            routes.read_query(route.query, self.query) if self.query else {},
            routes.read_body(route, self.body),
            clock=context.runtime.time_ms,
            entropy=os.urandom,
            is_doq=self.is_doq,
            servers=lambda: _servers(context.runtime.status()),
        )
        return route, request


def _servers(status: NodeStatus) -> list[Server]:
    master = next((each for each in status.members if each.id == status.master), None)
    leader = master.http if master is not None else ""
    return [
        Server(each.name, each.http, leader, each is master, "Voter" if each.voter else "Nonvoter")
        for each in status.members
    ]


class Refusal(NamedTuple):
    """The answer to a request that failed. headers: in addition to those of every answer."""

    status: int
    body: bytes
    headers: dict[str, str]


def refusal(failure: Exception, *, is_doq: bool) -> Refusal:
    error = failure if isinstance(failure, SqsError) else exchange.internal_failure(failure)
    status = error.status if is_doq else _STATUS.get(type(error), error.status)
    message = error.message.encode("utf-8", "replace").decode()
    headers = {"Allow": ", ".join(error.allowed)} if isinstance(error, routes.WrongMethod) else {}
    if status == 503:
        headers |= RETRY_HEADERS
    errors = [Fault(message)] if is_doq else []
    return Refusal(status, msgspec.json.encode(Problem(status, error.code, message, error.code, errors)), headers)


class Connection(Protocol):
    """A connection, as a RestCall uses it."""

    address: str
    origin: Origin | None

    @property
    def is_gone(self) -> bool:
        """Return whether the client is gone, so that nobody can read an answer."""

    def admit(self, head: Head, body: bytes) -> tuple[str, str]:
        """Return principal and owner of the caller. Raise the SqsError that the client gets."""

    def make_room(self, held_bytes: int) -> None:
        """Count a large command's memory until it is answered. Raise ServiceUnavailable if the buffers are full."""

    def rest_ended(
        self, head: Head, status: int, content_type: str, body: bytes, headers: dict[str, str] | None
    ) -> None:
        """Write the answer, and go on with the connection's next request. headers: None for a plain 200."""

    def abort(self) -> None:
        """Break the connection at once."""


class _Ask:
    """The awaitable of a handler: a command, and the name of the call in the log of invocations."""

    def __init__(self, command: Command, name: str) -> None:
        self.command = command
        self.name = name

    def __await__(self) -> Generator["_Ask", Result | SqsError, Result | SqsError]:
        return (yield self)


class RestCall:
    """A request that is served without aiohttp. It is the ticket of each of its commands."""

    @property
    def address(self) -> str:
        """Return the client's IP address."""
        return self._connection.address

    def __init__(self, connection: Connection, context: "ServerContext", head: Head, body: bytes) -> None:
        path, _, query = head.path.partition("?")
        method = "GET" if head.text.startswith(b"GET") else "POST"
        self._asked = Asked(method, path.removeprefix(context.context_path), query, body)
        self._connection = connection
        self._context = context
        self._head = head
        self._principal = self._account = ""
        self._handler: Coroutine[_Ask, Result | SqsError, Answer] | None = None
        self._command: Command | None = None
        self._name = ""
        self._began_s = 0.0
        self._is_submitting = False

    @property
    def is_receiving(self) -> bool:
        return isinstance(self._command, ReceiveMessage)

    def begin(self) -> bool:
        """Answer the request, or submit its first command. Return False, and do nothing, if aiohttp must answer."""
        asked, connection = self._asked, self._connection
        if asked.method == "GET" and not self._may_get():
            return False
        try:
            self._principal, self._account = connection.admit(self._head, asked.body)
            connection.make_room(rest_bytes(len(asked.body)))
            route, request = asked.read(_Ask, self._context)
        except Exception as failure:
            self._refuse(failure)
            return True
        if isinstance(request.body, NewMessages):  # these need tasks, which send several batches at once
            return False
        self._handler = route.handler(request)  # type: ignore[assignment]
        self._go(None)
        return True

    def _may_get(self) -> bool:
        """Return whether this GET, which receives messages, cannot have been sent by a web page of another origin.

        aiohttp answers all others.
        """
        head, browsers = self._head, self._context.browsers
        if "X-Amz-" in head.path:
            return False
        if browsers is None or head.authorization:
            return True
        lines = (line.partition(b":") for line in head.lines[1:])
        headers = {name.lower().decode(): value.strip().decode("latin-1") for name, _, value in lines}
        return not browsers.get_refusal(lambda name: headers.get(name.lower()), "ReceiveMessage")

    def _go(self, outcome: Result | SqsError | None) -> None:
        """Run the handler until it awaits its next command or ends."""
        assert self._handler is not None
        try:
            ask = self._handler.send(outcome)  # type: ignore[arg-type]
        except StopIteration as end:
            self._connection.rest_ended(self._head, 200, JSON_TYPE, msgspec.json.encode(end.value), None)
        except Exception as failure:
            self._refuse(failure)
            failure.__traceback__ = None  # else its frames keep the call and this error for ever, as Reply has no gc
        else:
            self._command, self._name = ask.command, ask.name
            if outcome is None:
                self._submit()
            else:  # in a later callback: the runtime is inside a release
                self._context.loop.call_soon(self._submit)

    def _submit(self) -> None:
        command, head = self._command, self._head
        assert command is not None
        if self._connection.is_gone:
            return
        if head.fence:
            try:
                add_fence(command, head.fence)
            except SqsError as failure:
                self._refuse(failure)
                return
        self._began_s = perf_counter()
        action = type(command).__name__
        key = invocation(self._principal, self._account, action, self._name.encode(), b"")
        origin = self._connection.origin
        call = Call(command, self._principal, self._account, head.endpoint, key, origin, head.trace_header)
        self._is_submitting = True
        try:
            self._context.submit(call, self)
        except RuntimeStopped:
            self.release(ServiceUnavailable(STOPPING_TEXT))
        self._is_submitting = False

    def release(self, outcome: Result | SqsError) -> None:
        """Go on with the node's reply. If nobody can read it, return the messages of a receive to their queue."""
        context, command = self._context, self._command
        is_gone = not self._is_submitting and self._connection.is_gone
        if isinstance(outcome, ReceiveMessageResult) and (is_gone or context.is_full):
            context.loop.call_soon(context.runtime.undelivered, outcome)
            outcome = ServiceUnavailable(BUSY_TEXT)
        action = type(command).__name__
        if action in context.services[0].operations:
            self._count(action, outcome)
        if not is_gone:
            self._go(outcome)

    def _count(self, action: str, outcome: Result | SqsError) -> None:
        context, command = self._context, self._command
        assert command is not None
        status = outcome.status if isinstance(outcome, SqsError) else 200
        context.hot_requests += 1
        request_id = context.responses.request_id(context.hot_requests)
        context.count(request_id, action, self._account, command, outcome, status, self._began_s, self._head)

    def _refuse(self, failure: Exception) -> None:
        refused = refusal(failure, is_doq=self._asked.is_doq)
        self._connection.rest_ended(self._head, refused.status, PROBLEM_TYPE, refused.body, refused.headers)

    def abort(self) -> None:
        """Break the connection, for a fault of a test."""
        self._connection.abort()
