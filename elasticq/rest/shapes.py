"""What requests and answers of the REST API hold; names and words are those of doq, and ours beside them."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from elasticq.model import limits
from elasticq.model.commands import DeduplicationId, GroupId, MessageBody, QueueName, QueueUrl, ReceiptHandle, Tags
from elasticq.model.extensions import MessageIds, Metadata
from elasticq.model.limits import MEMBERS

SETTINGS_MAX: Final = 4
"""Attributes that a queue's type and settings become. They count with those that a request names."""
OUR_ATTRIBUTES_MAX: Final = 2
"""Message attributes that a priority and a time become. They count with the metadata."""

Priority = Annotated[int, MEMBERS["Priority"]]
Seconds = Annotated[int, Meta(ge=0, le=limits.VISIBILITY_S_MAX)]
Type = Literal["standard", "fifo", "delayed", "fair"]
Attributes = Annotated[
    dict[Annotated[str, MEMBERS["Attributes.key"]], Annotated[str, MEMBERS["Attributes.value"]]],
    Meta(max_length=limits.ATTRIBUTES_MAX - SETTINGS_MAX),
]
NewMetadata = Annotated[
    dict[Annotated[str, MEMBERS["MessageAttributes.key"]], Annotated[str, MEMBERS["StringValue"]]],
    Meta(max_length=limits.MESSAGE_ATTRIBUTES_RELAXED_MAX - OUR_ATTRIBUTES_MAX),
]
Lease = Annotated[str, MEMBERS["ReceiveRequestAttemptId"]]


class Settings(Struct, omit_defaults=True):
    """doq's settings of a queue. max_unacked: messages in flight at once for each group, 0 for any number.

    ack_timeout: the visibility timeout in seconds.
    """

    strategy: Annotated[str, MEMBERS["Label"]] = ""
    max_unacked: Annotated[int, Meta(ge=0, le=limits.INTEGER_RANGE[1])] = 0
    ack_timeout: Seconds | None = None


class NewQueue(Struct):
    """attributes: as in CreateQueue, in AWS's names and ours."""

    name: QueueName
    type: Type = "delayed"
    settings: Settings = field(default_factory=Settings)
    attributes: Attributes = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)


class QueueChange(Struct):
    settings: Settings = field(default_factory=Settings)
    attributes: Attributes = field(default_factory=dict)


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

    content: MessageBody
    group: GroupId = ""
    priority: Priority | None = None
    metadata: NewMetadata = field(default_factory=dict)
    id: Annotated[str, Meta(max_length=limits.SEND_ID_CHARS_MAX)] = ""
    delay_s: Annotated[int, Meta(ge=0, le=limits.DELAY_S_MAX)] | None = None
    deliver_at: Annotated[int, Meta(ge=0, le=limits.LONG_RANGE[1])] | None = None
    deduplication_id: DeduplicationId = ""


class NewMessages(Struct):
    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=limits.PAGE_SIZE_MAX)]


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
    receipt: ReceiptHandle = ""


class Nack(Struct):
    """priority: the message's from now on; delay_s: how long it stays hidden.

    metadata: kept beside the message's own, and shown with it from now on.
    """

    priority: Priority | None = None
    metadata: Metadata = field(default_factory=dict)
    delay_s: Seconds = 0
    receipt: ReceiptHandle = ""


class Touch(Struct):
    """visibility_s: from now on; without it the queue's."""

    visibility_s: Seconds | None = None
    receipt: ReceiptHandle = ""


class NewPriority(Struct):
    priority: Priority


class NewPriorities(Struct):
    """ids: MessageIds."""

    ids: Annotated[MessageIds, Meta(min_length=1)]
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
    number: Annotated[int, Meta(ge=1, le=limits.PAGE_SIZE_MAX)] = 1


class Ids(Struct):
    ids: list[str]


class NewMove(Struct):
    """to: a queue's name; without it each message goes to where it came from. rate: messages a second at most."""

    to: QueueUrl = ""
    rate: Annotated[int, Meta(ge=1, le=limits.MOVE_TASK_RATE_MAX)] | None = None


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

    lease: Lease
    action: Literal["commit", "renew", "give_back"]
    visibility_s: Seconds = 30


class Problem(Struct):
    """An error, as application/problem+json. code: AWS's code of the error."""

    status: int
    title: str
    detail: str
    code: str
