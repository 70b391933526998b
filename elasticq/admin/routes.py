"""The table of the API's routes: ``Api`` serves them, and the OpenAPI document describes them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from elasticq.admin import shapes as s
from elasticq.admin.attention.overview import Overview
from elasticq.admin.definitions import Definitions
from elasticq.admin.history import WINDOWS_S, Series
from elasticq.model.limits import MEMBERS

JSON: Final = ("application/json", "application/x-amz-json-1.0")
STREAM: Final = "text/event-stream"
LIVE_S: Final = 2
"""The seconds between two events of a stream."""
QUERY: Final = {
    "prefix": MEMBERS["QueueNamePrefix"],
    "queue": MEMBERS["QueueName"],
    "group": MEMBERS["MessageGroupId"],
}
"""The longest lengths of texts in a URL's query. Account and region have patterns instead (``calls.owner_of``)."""


class Parameter(NamedTuple):
    """A parameter of the path or the query, with its JSON Schema."""

    name: str
    schema: dict[str, Any]
    description: str
    is_required: bool = False
    place: str = "query"


class Answer(NamedTuple):
    """One possible answer of a route.

    shape: a struct, ``dict`` for any object of JSON, ``str`` for text, None without a body.
    """

    description: str
    shape: type[Any] | None = s.Refusal
    content_type: str = JSON[0]


class Route(NamedTuple):
    """A route with its answers.

    handler: the name of the method of ``Api``; errors: the answers other than 200, by status; body: the shape of the
    request's body, None without one; body_types: the content types that it may have.
    """

    method: str
    path: str
    handler: str
    summary: str
    answer: Answer
    query: tuple[Parameter, ...] = ()
    errors: Mapping[int, Answer] = MappingProxyType({})
    body: type[Any] | None = None
    body_types: tuple[str, ...] = JSON[:1]
    description: str = ""


def _text(name: str, description: str, *, is_required: bool = False) -> Parameter:
    return Parameter(name, {"type": "string", "maxLength": QUERY[name].max_length}, description, is_required)


_REFUSED: Final = Answer("The request was refused. The answer names the reason.")
_TOO_LONG: Final = Answer("The body is too long. The answer has no body.", None)
_NO_QUEUE: Final = Answer("There is no such queue.")
_OWNER: Final = (
    Parameter(
        "account",
        {"type": "string", "pattern": "^([0-9]{12})?$"},
        "12 digits. If it is missing or empty, node.account is used.",
    ),
    Parameter(
        "region",
        {"type": "string", "pattern": "^[a-z0-9-]{0,32}$"},
        "If it is missing or empty, node.region is used.",
    ),
)
_QUEUE: Final = (_text("queue", "The name of a queue.", is_required=True), *_OWNER)
_QUEUE_OR_ALL: Final = (_text("queue", "The name of a queue. Without it, all queues are counted together."), *_OWNER)

ROUTES: Final = (
    Route(
        "GET",
        "/api/attention",
        "attention",
        "Return the state of the whole cluster, and what needs attention in it.",
        Answer("The same at any member that reaches the master.", Overview),
        description="The process asks all members that it has links to. A member that does not answer within 0.7 s "
        "counts as silent. An answer is used again for a second.",
    ),
    Route(
        "GET",
        "/api/queues",
        "queues",
        "List the queues with their counts and rates.",
        Answer("The queues, sorted by name.", s.Queues),
        (_text("prefix", "Only queues whose names begin with this text."),),
        {400: _REFUSED},
    ),
    Route(
        "POST",
        "/api/actions/{action}",
        "action",
        "Execute an action of SQS or SNS, or Peek.",
        Answer("The answer in AWS JSON 1.0.", dict),
        (
            Parameter(
                "action",
                {"type": "string", "pattern": "^[A-Za-z]{1,64}$"},
                "The name of the action, such as SendMessage.",
                is_required=True,
                place="path",
            ),
            *_OWNER,
        ),
        {
            400: Answer("The error, with AWS's members.", s.Error),
            403: Answer("The port is read-only, or the action was denied as AWS denies it.", s.Error),
            404: Answer("There is no such action or thing.", s.Error),
            413: _TOO_LONG,
            415: Answer("The content type of the body is not one of JSON."),
            500: Answer("The command failed inside the server.", s.Error),
            503: Answer("There is no master, or the server is full. Try again.", s.Error),
        },
        dict,
        JSON,
        "The body and the answer are AWS JSON 1.0, for any account and region. SNS has no JSON: its actions use the "
        "names and shapes of AWS's SDKs. SNS's AddPermission and RemovePermission are called AddTopicPermission and "
        "RemoveTopicPermission here.",
    ),
    Route(
        "GET",
        "/api/history",
        "series",
        "Return the history of a queue or of all: how many messages it held, and the rates of those that moved.",
        Answer("The depths are those of this member. The rates of all members that answer are added up.", Series),
        (
            *_QUEUE_OR_ALL,
            Parameter(
                "window_s",
                {"type": "integer", "enum": list(WINDOWS_S), "default": 60},
                "The length of the period that ends now, in seconds.",
            ),
        ),
        {400: _REFUSED},
    ),
    Route(
        "GET",
        "/api/live",
        "live",
        "Stream counts and rates as server-sent events.",
        Answer(f"An event every {LIVE_S} seconds.", str, STREAM),
        _QUEUE_OR_ALL,
        {400: _REFUSED, 503: _REFUSED},
    ),
    Route(
        "GET",
        "/api/waiting",
        "waiting",
        "List the receives that wait for messages.",
        Answer("Those of the whole cluster. The master knows them, so without a master there are none.", s.Receives),
    ),
    Route(
        "GET",
        "/api/in-flight",
        "in_flight",
        "Return which messages of a queue are in flight, since when and until when.",
        Answer("The state that this member has at time_ms.", s.InFlight),
        _QUEUE,
        {400: _REFUSED, 404: _NO_QUEUE},
    ),
    Route(
        "GET",
        "/api/group-order",
        "group_order",
        "Return the order of the messages in each message group, and what blocks the group.",
        Answer("The state that this member has at time_ms.", s.GroupOrder),
        (
            *_QUEUE,
            _text("group", "Only groups whose ids contain this text. A group with exactly this id is always found."),
        ),
        {400: _REFUSED, 404: _NO_QUEUE},
    ),
    Route(
        "GET",
        "/api/tasks",
        "tasks",
        "List the work that is done in the background.",
        Answer("The tasks that this member knows. Only the master knows transfers and sweeps.", s.Tasks),
    ),
    Route(
        "GET",
        "/api/definitions",
        "export",
        "Download the definitions of all queues and topics, without messages.",
        Answer("The definitions.", Definitions),
        errors={503: _REFUSED},
    ),
    Route(
        "PUT",
        "/api/definitions",
        "load",
        "Create the queues, topics and subscriptions of a definitions file, and update those that exist.",
        Answer("The names of what was created and changed.", s.Loaded),
        errors={
            400: Answer("The request was refused. The answer names the reason, and what was done before."),
            403: _REFUSED,
            404: _REFUSED,
            413: _TOO_LONG,
            415: _REFUSED,
            503: _REFUSED,
        },
        body=Definitions,
    ),
    Route(
        "GET",
        "/cluster/events",
        "events",
        "List the latest events of the logs of all members, the newest first.",
        Answer("The events.", s.Events),
    ),
)
CLUSTER: Final = Route(
    "GET",
    "/cluster",
    "",
    "Return the cluster as this member sees it.",
    Answer("The members with their roles, terms and lag.", dict),
)
"""A route of the port that the document describes, too. ``app.py`` serves it."""
