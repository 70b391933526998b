"""What requests and answers of the REST API hold; names and words are those of doq, and ours beside them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from elasticq.model.limits import LONG_RANGE

Priority = Annotated[int, Meta(ge=LONG_RANGE[0], le=LONG_RANGE[1])]
Seconds = Annotated[int, Meta(ge=0, le=43_200)]
Type = Literal["standard", "fifo", "delayed", "fair"]
MESSAGES_MAX = 1_000


class Settings(Struct, omit_defaults=True):
    """doq's settings of a queue. max_unacked: messages in flight at once for each group, 0 for any number.

    ack_timeout: the visibility timeout in seconds.
    """

    strategy: str = ""
    max_unacked: Annotated[int, Meta(ge=0, le=2_147_483_647)] = 0
    ack_timeout: Seconds | None = None


class NewQueue(Struct):
    """attributes: as in CreateQueue, in AWS's names and ours."""

    name: str
    type: Type = "delayed"
    settings: Settings = field(default_factory=Settings)
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


class QueueChange(Struct):
    settings: Settings = field(default_factory=Settings)
    attributes: dict[str, str] = field(default_factory=dict)


class Queue(Struct):
    """ready: visible messages; unacked: those in flight; total: all, the delayed ones among them."""

    name: str
    type: Type
    settings: Settings
    ready: int
    unacked: int
    delayed: int
    total: int
    attributes: dict[str, str]


class QueueMade(Struct):
    status: Literal["CREATED", "UPDATED"]
    name: str
    type: Type
    settings: Settings
    url: str


class Queues(Struct):
    """next: where the next page begins; empty on the last one."""

    queues: list[Queue]
    next: str = ""


class Status(Struct):
    status: str


class NewMessage(Struct):
    """A message to be sent.

    id: a text of the sender's; a second send with it within five minutes is the first one. metadata: message
    attributes of type String. deliver_at: milliseconds since the epoch. deduplication_id: as in SendMessage.
    """

    content: str
    group: str = ""
    priority: Priority | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    id: Annotated[str, Meta(max_length=128)] = ""
    delay_s: Annotated[int, Meta(ge=0, le=900)] | None = None
    deliver_at: Annotated[int, Meta(ge=0, le=LONG_RANGE[1])] | None = None
    deduplication_id: str = ""


class NewMessages(Struct):
    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=MESSAGES_MAX)]


class Sent(Struct):
    """id: the message in paths of this API; message_id: in SQS's."""

    status: Literal["ENQUEUED"]
    id: str
    message_id: str
    group: str
    priority: int
    content: str
    metadata: dict[str, str]


class Failed(Struct):
    """A message of many that was refused; ``at``: its place among them."""

    at: int
    code: str
    detail: str


class SentMany(Struct):
    messages: list[Sent]
    failed: list[Failed]


class Message(Struct):
    """A message. receipt: of this delivery, for an ack that counts only while it is the newest; empty without one."""

    status: Literal["DEQUEUED", "GOT"]
    id: str
    message_id: str
    group: str
    priority: int
    content: str
    metadata: dict[str, str]
    state: Literal["visible", "inflight", "delayed"]
    receive_count: int
    sent_ms: int
    receipt: str = ""


class Messages(Struct):
    """next: the id at which the next page of an export begins; empty at the end, and for what was received."""

    messages: list[Message]
    next: str = ""


class Ack(Struct):
    receipt: str = ""


class Nack(Struct):
    """priority: the message's from now on; delay_s: how long it stays hidden.

    metadata: kept beside the message's own, and shown with it from now on.
    """

    priority: Priority | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    delay_s: Seconds = 0
    receipt: str = ""


class Touch(Struct):
    """visibility_s: from now on; without it the queue's."""

    visibility_s: Seconds | None = None
    receipt: str = ""


class NewPriority(Struct):
    priority: Priority


class NewPriorities(Struct):
    """ids: MessageIds."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=1_000)]
    priority: Priority


class Done(Struct):
    status: Literal["ACKNOWLEDGED", "UNACKNOWLEDGED", "TOUCHED"]
    id: str
    metadata: dict[str, str] = field(default_factory=dict)


class Prioritised(Struct):
    status: Literal["UPDATED"]
    id: str
    priority: int


class PrioritisedMany(Struct):
    status: Literal["UPDATED"]
    changed: list[str]
    not_found: list[str]


class NewIds(Struct):
    number: Annotated[int, Meta(ge=1, le=1_000)] = 1


class Ids(Struct):
    ids: list[str]


class NewMove(Struct):
    """to: a queue's name; without it each message goes to where it came from. rate: messages a second at most."""

    to: str = ""
    rate: Annotated[int, Meta(ge=1, le=500)] | None = None


class Move(Struct, omit_defaults=True):
    status: str
    handle: str = ""
    moved: int = 0
    to_move: int = 0
    reason: str = ""


class Moves(Struct):
    moves: list[Move]


class LeaseChange(Struct):
    """lease: NAME/BATCH/ or NAME/BATCH/PARTITION; visibility_s: of a renewal."""

    lease: str
    action: Literal["commit", "renew", "give_back"]
    visibility_s: Seconds = 30


class Problem(Struct):
    """An error, as application/problem+json. code: AWS's code of the error."""

    status: int
    title: str
    detail: str
    code: str
