"""The one table of the REST API: each route with its handler, its parameters, what it takes and what it answers."""

import re
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue, RequestTooLarge, SenderError
from elasticq.model.limits import MEMBERS, PAGE_SIZE_MAX
from elasticq.rest import messages, queues
from elasticq.rest import shapes as s
from elasticq.rest.api import Handler, Parameter
from elasticq.wire.json import check_strings

BASE: Final = "/api/v1"
DOQ_BASE: Final = "/API/v1"
"""doq's own spelling, whose answers differ where its README says so."""

_PAGE: Final = Meta(ge=1, le=PAGE_SIZE_MAX)
_HIDDEN: Final = "how long they are hidden; the queue's without it"
_PARTITION: Final = Parameter(
    "partition",
    "integer",
    "only messages of this partition, in a queue that has some",
    Meta(ge=0, le=limits.PARTITIONS_MAX - 1),
)
_ACK: Final = Parameter(
    "ack", "boolean", "delete them at once: at most once, as an answer that is lost is not repeated"
)


class Route(NamedTuple):
    """One operation. takes: the body's type, alternatives as a tuple; answers likewise, empty: 204 without a body.

    is_body_optional: an empty body means the defaults; changes: a GET that does more than to read.
    has_messages: the body holds contents of messages, so that it may be long.
    """

    method: str
    path: str
    name: str
    handler: Handler
    summary: str
    answers: tuple[type[Struct], ...] = ()
    takes: tuple[type[Struct], ...] = ()
    query: tuple[Parameter, ...] = ()
    is_body_optional: bool = False
    changes: bool = False
    has_messages: bool = False


_Q: Final = "/queues/{queue}"
_M: Final = "/queues/{queue}/messages/{id}"

ROUTES: Final = (
    Route("GET", "/queues", "list_queues", queues.list_, "Queues and how much is in them.", (s.Queues,), (), (
        Parameter("prefix", "string", "only queues whose names begin so", MEMBERS["QueueNamePrefix"]),
        Parameter("limit", "integer", "how many at most", _PAGE),
        Parameter("next", "string", "what next said in the page before", MEMBERS["NextToken"]),
    )),
    Route("POST", "/queues", "create_queue", queues.create, "Create a queue.", (s.QueueMade,), (s.NewQueue,)),
    Route("GET", _Q, "show_queue", queues.show, "Attributes and counts of a queue.", (s.Queue,)),
    Route("PUT", _Q, "update_queue", queues.update, "Change settings of a queue.", (s.QueueMade,), (s.QueueChange,)),
    Route("DELETE", _Q, "delete_queue", queues.delete, "Delete a queue and its messages.", (s.Status,)),
    Route("POST", f"{_Q}/purge", "purge_queue", queues.purge, "Delete all messages of a queue.", (s.Status,)),
    Route("POST", f"{_Q}/messages", "send", messages.send, "Send a message, or many.", (s.Sent, s.SentMany),
        (s.NewMessage, s.NewMessages), has_messages=True),
    Route("GET", f"{_Q}/messages", "receive", messages.receive, "Receive messages.", (s.Messages, s.Message), (), (
        Parameter("max", "integer", "how many messages at most", _PAGE),
        Parameter("visibility_s", "integer", _HIDDEN, Meta(ge=0, le=limits.VISIBILITY_S_MAX)),
        _ACK,
        Parameter("wait_s", "integer", "how long to wait for one", Meta(ge=0, le=limits.WAIT_S_MAX)),
        Parameter(
            "lease", "string", "NAME/BATCH/PARTITION/CALL: receive under a lease", MEMBERS["ReceiveRequestAttemptId"]
        ),
        _PARTITION,
    ), changes=True),
    Route("GET", f"{_Q}/export", "export", messages.export, "Messages by their place, without receiving them.",
        (s.Messages,), (), (
        Parameter("from", "string", "the id to begin at", Meta(max_length=19)),
        Parameter("limit", "integer", "how many at most", _PAGE),
    )),
    Route("PUT", f"{_Q}/priority", "prioritise_many", messages.prioritise_many, "Give messages another priority.",
        (s.PrioritisedMany,), (s.NewPriorities,)),
    Route("GET", _M, "get", messages.get, "A message, without receiving it.", (s.Message,)),
    Route("DELETE", _M, "delete", messages.delete, "Delete a message, whoever has it."),
    Route("POST", f"{_M}/ack", "ack", messages.ack, "Delete a message that was received.", (s.Done,), (s.Ack,),
        is_body_optional=True),
    Route("POST", f"{_M}/nack", "nack", messages.nack, "Give a message back.", (s.Done,), (s.Nack,),
        is_body_optional=True),
    Route("POST", f"{_M}/touch", "touch", messages.touch, "Keep a message hidden for longer.", (s.Done,), (s.Touch,),
        is_body_optional=True),
    Route("PUT", f"{_M}/priority", "prioritise", messages.prioritise, "Give a message another priority.",
        (s.Prioritised,), (s.NewPriority,)),
    Route("POST", "/ids", "make_ids", messages.make_ids, "Ids for sends that may be made twice.", (s.Ids,),
        (s.NewIds,), is_body_optional=True),
    Route("POST", f"{_Q}/moves", "start_move", queues.start_move, "Move a dead-letter queue's messages back.",
        (s.Move,), (s.NewMove,), is_body_optional=True),
    Route("GET", f"{_Q}/moves", "show_moves", queues.show_moves, "The newest moves out of a queue.", (s.Moves,)),
    Route("DELETE", f"{_Q}/moves", "cancel_move", queues.cancel_move, "End the move that runs.", (s.Move,)),
    Route("POST", f"{_Q}/leases", "change_lease", queues.change_lease, "Commit, renew or give back leases.",
        (s.Status,), (s.LeaseChange,)),
)  # fmt: skip

STREAM: Final = re.compile(r"/queues/([^/]+)/stream")
"""Answered by the port itself, as it never ends: events of messages. It takes ``STREAM_QUERY``."""
STREAM_QUERY: Final = (
    Parameter("visibility_s", "integer", _HIDDEN, Meta(ge=1, le=limits.VISIBILITY_S_MAX)),
    _ACK,
    _PARTITION,
)
PAGES: Final = ("/openapi.json", "/docs")
"""Answered by the port itself: the document of this API, and a page that shows it."""


class UnknownPath(SenderError):
    """No route has this path."""

    code, json_type = "UnknownPath", "UnknownPath"
    status = 404


class WrongMethod(SenderError):
    """The path has no such method; ``allowed``: those that it has."""

    code, json_type = "WrongMethod", "WrongMethod"
    status = 405

    def __init__(self, path: str, method: str, allowed: list[str]) -> None:
        super().__init__(f"{path} does not take {method}.")
        self.allowed = allowed


def _named(parts: list[str], given: list[str]) -> dict[str, str] | None:
    """What ``given`` has at the places of the names in braces; None where it is another path than ``parts``.

    Both have the same length.
    """
    found = {}
    for part, text in zip(parts, given, strict=True):
        if part.startswith("{") and text:
            found[part[1:-1]] = text
        elif part != text:
            return None
    return found


_ALIKE: Final[dict[tuple[int, str], list[tuple[Route, list[str]]]]] = {}
"""Routes with their parts, by how many these are and by the last one, empty where that stands in braces."""
for _route in ROUTES:
    _parts = _route.path.split("/")
    _last = "" if _parts[-1].startswith("{") else _parts[-1]
    _ALIKE.setdefault((len(_parts), _last), []).append((_route, _parts))


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a path below BASE, and what stands in its braces. Raises UnknownPath, WrongMethod."""
    allowed, given = [], path.split("/")
    for route, parts in (*_ALIKE.get((len(given), given[-1]), ()), *_ALIKE.get((len(given), ""), ())):
        named = _named(parts, given)
        if named is not None:
            if route.method == method:
                return route, named
            allowed.append(route.method)
    if path in PAGES or STREAM.fullmatch(path):
        allowed.append("GET")
    if allowed:
        raise WrongMethod(path, method, allowed)
    raise UnknownPath(f"There is no {path}: see {BASE}/docs.")


def read_query(parameters: tuple[Parameter, ...], given: dict[str, str]) -> dict[str, Any]:
    """The known ones of the given parameters, by their kinds. Raises InvalidParameterValue."""
    found: dict[str, Any] = {}
    for parameter in parameters:
        text = given.get(parameter.name)
        if text is not None:
            found[parameter.name] = _value(parameter, text)
    return found


def _value(parameter: Parameter, text: str) -> str | int | bool:
    if parameter.kind == "boolean":
        if text not in ("true", "false"):
            raise InvalidParameterValue(f"{parameter.name} is true or false.")
        return text == "true"
    bound = parameter.bound
    if parameter.kind == "integer":
        is_number = text.isascii() and text.isdigit() and len(text) <= 10
        if not is_number or not bound.ge <= int(text) <= bound.le:  # type: ignore[operator]
            raise InvalidParameterValue(f"{parameter.name} is an integer between {bound.ge} and {bound.le}.")
        return int(text)
    if len(text) > bound.max_length:  # type: ignore[operator]
        raise InvalidParameterValue(f"{parameter.name} has {bound.max_length} characters at most.")
    return text


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE: Final = {kind: msgspec.json.Decoder(kind).decode for route in ROUTES for kind in route.takes}


def read_body(route: Route, body: bytes) -> Struct | None:
    """The body as what the route takes; one of two kinds is told by its member ``messages``.

    Raises InvalidParameterValue; RequestTooLarge or SerializationError for more than the route can need.
    """
    if not route.takes:
        return None
    if not body and route.is_body_optional:
        return route.takes[0]()
    if len(body) > limits.SMALL_REQUEST_BYTES_MAX:
        if not route.has_messages:
            raise RequestTooLarge(f"{route.name} takes {limits.SMALL_REQUEST_BYTES_MAX} bytes at most.")
        check_strings(body)
    try:
        at = 0
        if len(route.takes) > 1 and (b"messages" in body or b"\\u" in body):  # else none of its members has that name
            at = "messages" in _members(body)
        return _DECODE[route.takes[at]](body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParameterValue(f"The body is not what {route.name} takes: {error}") from error
