"""The shapes of the API's answers, and the bounds of their lists."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from elasticq.admin.source import Event, Waiting
from elasticq.engine.views import in_flight as views
from elasticq.engine.views import message_group_order as groups
from elasticq.node.reports import background

WAITING_SHOWN_MAX: Final = 1_000
IN_FLIGHT_SHOWN_MAX: Final = 100
GROUPS_SHOWN_MAX: Final = 50
GROUP_MESSAGES_SHOWN_MAX: Final = 10
TASKS_SHOWN_MAX: Final = 100
"""Tasks of one kind."""

TimeMs = Annotated[int, Meta(description="Cluster time of the answer, in ms since the epoch, like all times here.")]


class QueueRow(Struct, gc=False):
    """A queue in a list. Rates are messages a second over the last minute, through all members that answer.

    kind: standard, FIFO or priority. dead_letter_queue: the name of the queue that gets its dead letters, empty without
    one; dead_letters: how many messages are there. is_dead_letter_queue: it gets those of another queue.
    consumers: how many receives wait.
    """

    name: str
    account: str
    region: str
    url: str
    kind: str
    visible: int
    in_flight: int
    delayed: int
    oldest_age_ms: int | None
    dead_letter_queue: str
    dead_letters: int
    is_dead_letter_queue: bool
    consumers: int
    sent_per_s: float
    received_per_s: float
    deleted_per_s: float


class Queues(Struct):
    """All queues that were asked for."""

    queues: list[QueueRow]


class Receives(Struct):
    """The receives that wait for messages."""

    waiting: list[Waiting]


class InFlight(views.InFlight, kw_only=True):
    """The messages of a queue that are in flight."""

    time_ms: TimeMs


class GroupOrder(groups.GroupOrder, kw_only=True):
    """The order of the messages in the groups of a queue."""

    time_ms: TimeMs


class Tasks(Struct):
    """The work that is done in the background."""

    time_ms: TimeMs
    tasks: Annotated[list[background.Task], Meta(description=f"At most {TASKS_SHOWN_MAX} of a kind.")]


class Loaded(Struct):
    """The names of the queues and topics that a load of definitions created or changed."""

    made: list[str]
    changed: list[str]
    topics_made: list[str]
    topics_changed: list[str]


class Events(Struct):
    """Events, the newest first."""

    events: list[Event]


class Error(Struct):
    """An error as AWS writes it."""

    type: str = field(name="__type")
    message: str


class Refusal(Struct):
    """The reason why a request was refused."""

    error: str


_KINDS: Final = {
    background.MOVE: "a message move task",
    background.DELIVERY: "a publish that is delivered in steps",
    background.REMOVAL: "subscriptions of deleted topics are removed",
    background.RECLAIM: "memory of purged messages is released",
    background.SWEEP: "expired messages are removed, and more are left than one step removes",
    background.TRANSFER: "another member fetches the state",
    background.FETCH: "this member fetches the state",
}
_LOOKED_AT_MAX: Final = f"{views.LOOKED_AT_MAX:,}"
_VISIBLE_AGAIN: Final = "When the message becomes visible again"

MEMBERS: Final[dict[str, dict[str, Any] | str]] = {
    "InFlight.in_flight": "How many messages are in flight.",
    "InFlight.looked_at": f"How many of them the other members describe: at most {_LOOKED_AT_MAX}, those whose "
    "visibility timeout was set longest ago.",
    "InFlight.oldest_ms": "When the message was received that has been in flight for longest.",
    "InFlight.next_ms": "When the first of them becomes visible again.",
    "InFlight.messages": f"At most {IN_FLIGHT_SHOWN_MAX}, the one that has been in flight for longest first.",
    "InFlightMessage.group": "Its MessageGroupId.",
    "InFlightMessage.received_ms": "When it was received last.",
    "InFlightMessage.until_ms": f"{_VISIBLE_AGAIN}, unless a client deletes it or changes its visibility before.",
    "GroupOrder.is_strict": "Whether messages of a group wait for those before them, as in a FIFO queue.",
    "GroupOrder.count": "How many groups have messages.",
    "GroupOrder.looked_at": f"How many of them were searched: at most {groups.GROUPS_LOOKED_AT_MAX:,}.",
    "GroupOrder.groups": f"At most {GROUPS_SHOWN_MAX}. The group with exactly the wanted id comes first.",
    "GroupPlace.group": "The MessageGroupId.",
    "GroupPlace.count": "The number of its messages.",
    "GroupPlace.in_flight": "The number of its messages in flight. Null in a FIFO queue.",
    "GroupPlace.blocked_by": "The sequence of the message that the others wait for, if it is among the first "
    f"{groups.BLOCKER_LOOKED_AT_MAX}. Null in a standard queue.",
    "GroupPlace.blocked_until_ms": "When that message becomes visible again, or its delay ends.",
    "GroupPlace.held": {
        "description": "Why other groups of a standard queue are served first. noisy: the group has many messages in "
        "flight. full: it has as many in flight as the queue allows, and gets no more.",
        "enum": ["", groups.NOISY, groups.FULL],
    },
    "GroupPlace.messages": f"The first {GROUP_MESSAGES_SHOWN_MAX}, in the order of their delivery.",
    "GroupMessage.state": {
        "description": "waits: it is behind a message of its group that is in flight or delayed.",
        "enum": ["visible", "inflight", "delayed", groups.WAITS],
    },
    "GroupMessage.until_ms": f"{_VISIBLE_AGAIN}, or its delay ends. Null in other states.",
    "Task.kind": {
        "description": "; ".join(f"{kind}: {meaning}" for kind, meaning in _KINDS.items()) + ".",
        "enum": list(_KINDS),
    },
    "Task.owner": "The owner of the queue or topic.",
    "Task.name": "The name of the queue, topic or member.",
    "Task.to": "The ARN of the queue that a move fills. Empty if each message returns to the queue that it came from.",
    "Task.done": "The number of messages that a move has moved.",
    "Task.left": "How much is left: messages of a move, subscriptions of a delivery or removal, messages and rows of a "
    "reclaim, entries of a transfer.",
    "Task.rate": "At most so many messages a second are moved. 0: no limit.",
    "Task.since_ms": "When it began.",
}
"""What the OpenAPI document adds to the members of structs that other packages define, by ``Struct.member``."""
