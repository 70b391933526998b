"""The table of the REST API's routes: handler, parameters, and the types of request and answer."""

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
"""The base of doq's paths. Their answers differ where doq's README says so."""

_PAGE: Final = Meta(ge=1, le=PAGE_SIZE_MAX)
_VISIBILITY: Final = "how many seconds the messages stay in flight; default: the queue's VisibilityTimeout"
_PARTITION: Final = Parameter(
    "partition",
    "integer",
    "only messages of this partition, in a queue with partitions",
    Meta(ge=0, le=limits.PARTITIONS_MAX - 1),
)
_ACK: Final = Parameter(
    "ack", "boolean", "delete the messages at once: a lost answer is not repeated, so delivery is at most once"
)


class Route(NamedTuple):
    """One operation.

    takes: the alternative types of the request's body. answers: those of the answer; empty for 204 without a body.
    is_body_optional: whether an empty body means the defaults. changes: whether it is a GET that changes something.
    has_messages: whether the body contains messages, so that it may be long.
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
    Route("GET", "/queues", "list_queues", queues.list_, "Queues and how many messages they have.", (s.Queues,), (), (
        Parameter("prefix", "string", "only queues whose names have this prefix", MEMBERS["QueueNamePrefix"]),
        Parameter("limit", "integer", "how many at most", _PAGE),
        Parameter("next", "string", "the value of next in the last page", MEMBERS["NextToken"]),
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
        Parameter("visibility_s", "integer", _VISIBILITY, Meta(ge=0, le=limits.VISIBILITY_S_MAX)),
        _ACK,
        Parameter("wait_s", "integer", "how many seconds to wait for a message", Meta(ge=0, le=limits.WAIT_S_MAX)),
        Parameter(
            "lease", "string", "NAME/BATCH/PARTITION/CALL: receive under a lease", MEMBERS["ReceiveRequestAttemptId"]
        ),
        _PARTITION,
    ), changes=True),
    Route("GET", f"{_Q}/export", "export", messages.export, "Messages by their ids, without receiving them.",
        (s.Messages,), (), (
        Parameter("from", "string", "the first id", Meta(max_length=19)),
        Parameter("limit", "integer", "how many at most", _PAGE),
    )),
    Route("PUT", f"{_Q}/priority", "prioritise_many", messages.prioritise_many, "Give messages another priority.",
        (s.PrioritisedMany,), (s.NewPriorities,)),
    Route("GET", _M, "get", messages.get, "A message, without receiving it.", (s.Message,)),
    Route("DELETE", _M, "delete", messages.delete, "Delete a message, even while another consumer has it."),
    Route("POST", f"{_M}/ack", "ack", messages.ack, "Delete a message that was received.", (s.Done,), (s.Ack,),
        is_body_optional=True),
    Route("POST", f"{_M}/nack", "nack", messages.nack, "Return a message to its queue.", (s.Nacked,), (s.Nack,),
        is_body_optional=True),
    Route("POST", f"{_M}/touch", "touch", messages.touch, "Keep a message in flight for longer.", (s.Done,), (s.Touch,),
        is_body_optional=True),
    Route("PUT", f"{_M}/priority", "prioritise", messages.prioritise, "Give a message another priority.",
        (s.Prioritised,), (s.NewPriority,)),
    Route("POST", "/ids", "make_ids", messages.make_ids, "Ids for sends that may be repeated.", (s.Ids,),
        (s.NewIds,), is_body_optional=True),
    Route("POST", f"{_Q}/moves", "start_move", queues.start_move, "Move a dead-letter queue's messages back.",
        (s.Move,), (s.NewMove,), is_body_optional=True),
    Route("GET", f"{_Q}/moves", "show_moves", queues.show_moves, "The newest moves out of a queue.", (s.Moves,)),
    Route("DELETE", f"{_Q}/moves", "cancel_move", queues.cancel_move, "Cancel the running move.", (s.Move,)),
    Route("POST", f"{_Q}/leases", "change_lease", queues.change_lease, "Commit, renew or end leases.",
        (s.Status,), (s.LeaseChange,)),
    Route("GET", "/cluster/servers", "list_servers", queues.list_servers, "The members of the cluster.", (s.Servers,)),
)  # fmt: skip

STREAM: Final = re.compile(r"/queues/([^/]+)/stream")
"""The path of the event stream. The port answers it, because it does not end. It takes ``STREAM_QUERY``."""
STREAM_QUERY: Final = (
    Parameter("visibility_s", "integer", _VISIBILITY, Meta(ge=1, le=limits.VISIBILITY_S_MAX)),
    _ACK,
    _PARTITION,
)
PAGES: Final = ("/openapi.json", "/docs")
"""The OpenAPI document and a page that shows it. The port answers both."""


class UnknownPath(SenderError):
    """An error: no route has this path."""

    code, json_type = "UnknownPath", "UnknownPath"
    status = 404


class WrongMethod(SenderError):
    """An error: the path does not have this method. ``allowed``: the methods that it has."""

    code, json_type = "WrongMethod", "WrongMethod"
    status = 405

    def __init__(self, path: str, method: str, allowed: list[str]) -> None:
        super().__init__(f"{path} does not allow {method}.")
        self.allowed = allowed


def _named(parts: list[str], given: list[str]) -> dict[str, str] | None:
    """Return the values of the names in braces; None if ``given`` does not match ``parts``.

    Both are the parts of a path, and have the same length.
    """
    found = {}
    for part, text in zip(parts, given, strict=True):
        if part.startswith("{") and text:
            found[part[1:-1]] = text
        elif part != text:
            return None
    return found


_BY_PARTS: Final[dict[tuple[int, str], list[tuple[Route, list[str]]]]] = {}
"""Routes and the parts of their paths. The key is the number of parts and the last part, empty if it is in braces."""
for _route in ROUTES:
    _parts = _route.path.split("/")
    _last = "" if _parts[-1].startswith("{") else _parts[-1]
    _BY_PARTS.setdefault((len(_parts), _last), []).append((_route, _parts))


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Return the route of a path below BASE, and the values of its braces. Raise UnknownPath or WrongMethod."""
    allowed, given = [], path.split("/")
    for route, parts in (*_BY_PARTS.get((len(given), given[-1]), ()), *_BY_PARTS.get((len(given), ""), ())):
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
    """Return the values of the known parameters. Raise InvalidParameterValue for a wrong kind or an exceeded bound."""
    found: dict[str, Any] = {}
    for parameter in parameters:
        text = given.get(parameter.name)
        if text is not None:
            found[parameter.name] = _value(parameter, text)
    return found


def _value(parameter: Parameter, text: str) -> str | int | bool:
    if parameter.kind == "boolean":
        if text not in ("true", "false"):
            raise InvalidParameterValue(f"{parameter.name} must be true or false.")
        return text == "true"
    bound = parameter.bound
    if parameter.kind == "integer":
        is_number = text.isascii() and text.isdigit() and len(text) <= 10
        if not is_number or not bound.ge <= int(text) <= bound.le:  # type: ignore[operator]
            raise InvalidParameterValue(f"{parameter.name} must be an integer between {bound.ge} and {bound.le}.")
        return int(text)
    if len(text) > bound.max_length:  # type: ignore[operator]
        raise InvalidParameterValue(f"{parameter.name} must have at most {bound.max_length} characters.")
    return text


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE: Final = {kind: msgspec.json.Decoder(kind).decode for route in ROUTES for kind in route.takes}


def read_body(route: Route, body: bytes) -> Struct | None:
    """Return the body as an object of the route's type. Of two types, the one with ``messages`` is the second.

    Raise InvalidParameterValue for a body of another form. Raise RequestTooLarge or SerializationError for more bytes
    or strings than the route can need.
    """
    if not route.takes:
        return None
    if not body and route.is_body_optional:
        return route.takes[0]()
    if len(body) > limits.SMALL_REQUEST_BYTES_MAX:
        if not route.has_messages:
            raise RequestTooLarge(f"The body of {route.name} must have at most {limits.SMALL_REQUEST_BYTES_MAX} bytes.")
        check_strings(body)
    try:
        at = 0
        if len(route.takes) > 1 and (b"messages" in body or b"\\u" in body):  # otherwise no member has that name
            at = "messages" in _members(body)
        return _DECODE[route.takes[at]](body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParameterValue(f"The body is not valid for {route.name}: {error}") from error
