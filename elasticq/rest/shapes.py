"""The JSON objects in requests and answers of the REST API. Most names are those of doq."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from elasticq.model import limits
from elasticq.model.commands import DeduplicationId, GroupId, MessageBody, QueueName, QueueUrl, ReceiptHandle, Tags
from elasticq.model.extensions import MessageIds, Metadata
from elasticq.model.limits import MEMBERS

SETTINGS_MAX: Final = 4
"""How many attributes a queue's type and settings become. They count together with those in the request."""
OUR_ATTRIBUTES_MAX: Final = 2
"""How many message attributes a priority and a time become. They count together with the metadata."""

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
    """The settings of a queue, as in doq.

    strategy: the fairness of a fair queue. max_unacked: the maximum number of messages in flight per group, 0 for no
    maximum. ack_timeout: the visibility timeout in seconds.
    """

    strategy: Annotated[str, MEMBERS["Label"]] = ""
    max_unacked: Annotated[int, Meta(ge=0, le=limits.INTEGER_RANGE[1])] = 0
    ack_timeout: Seconds | None = None


class NewQueue(Struct):
    """A queue to create. attributes: those of CreateQueue, including elasticq's own."""

    name: QueueName
    type: Type = "delayed"
    settings: Settings = field(default_factory=Settings)
    attributes: Attributes = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)


class QueueChange(Struct):
    settings: Settings = field(default_factory=Settings)
    attributes: Attributes = field(default_factory=dict)


class Queue(Struct):
    """A queue and its number of messages.

    ready: visible messages. unacked: messages in flight. delayed: delayed messages. total: all of these.
    """

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
    """A page of queues. next: the token of the next page; empty on the last page."""

    queues: list[Queue]
    next: str = ""


class Status(Struct):
    status: str


class NewMessage(Struct):
    """A message to send.

    id: an id that the sender chooses. A second send with the same id within five minutes has no effect and gets the
    answer of the first one. metadata: message attributes of type String. delay_s: in seconds. deliver_at: in
    milliseconds since the epoch. deduplication_id: as in SendMessage.
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
    """A sent message. id: its id in paths of this API. message_id: its MessageId in SQS."""

    status: Literal["ENQUEUED"]
    id: str
    message_id: str
    group: str
    priority: int
    content: str
    metadata: dict[str, str]


class Failed(Struct):
    """A refused message of a send of many messages. at: its index in the request."""

    at: int
    code: str
    detail: str


class SentMany(Struct):
    messages: list[Sent]
    failed: list[Failed]


class Message(Struct):
    """A message.

    receipt: the receipt handle of this delivery. An ack with it is valid only while this is the newest delivery. Empty
    for a message that was not received.
    """

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
    """A list of messages. next: the first id of an export's next page; empty at the end, and after a receive."""

    messages: list[Message]
    next: str = ""


class Ack(Struct):
    receipt: ReceiptHandle = ""


class Nack(Struct):
    """The return of a message to its queue.

    priority: the new priority of the message. delay_s: how many seconds it stays invisible. metadata: added to the
    metadata of the message.
    """

    priority: Priority | None = None
    metadata: Metadata = field(default_factory=dict)
    delay_s: Seconds = 0
    receipt: ReceiptHandle = ""


class Touch(Struct):
    """A new visibility timeout. visibility_s: in seconds from now; by default that of the queue."""

    visibility_s: Seconds | None = None
    receipt: ReceiptHandle = ""


class NewPriority(Struct):
    priority: Priority


class NewPriorities(Struct):
    """A new priority for several messages. ids: their MessageIds."""

    ids: Annotated[MessageIds, Meta(min_length=1)]
    priority: Priority


class Done(Struct):
    status: Literal["ACKNOWLEDGED", "TOUCHED"]
    id: str
    metadata: dict[str, str] = field(default_factory=dict)


class Nacked(Struct):
    """A message that returned to its queue. priority: the one in the request, 0 if it has none."""

    status: Literal["UNACKNOWLEDGED"]
    id: str
    priority: int
    metadata: dict[str, str]


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
    """A move of messages out of a dead-letter queue.

    to: the name of the target queue; by default each message returns to the queue that it came from. rate: the maximum
    number of messages per second.
    """

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
    """A change of leases.

    lease: NAME/BATCH/ or NAME/BATCH/PARTITION. visibility_s: the new visibility timeout in seconds, for renew.
    """

    lease: Lease
    action: Literal["commit", "renew", "give_back"]
    visibility_s: Seconds = 30


class Fault(Struct):
    message: str


class Problem(Struct, omit_defaults=True):
    """An error, as application/problem+json. code: the error's code in SQS. errors: only for doq's paths."""

    status: int
    title: str
    detail: str
    code: str
    errors: list[Fault] = field(default_factory=list)


class Server(Struct):
    """A member of the cluster, as in doq.

    id: its name. addr, leader_addr: the URL at which this member, or the master, serves SQS; empty if it is unknown.
    suffrage: whether it votes.
    """

    id: str
    addr: str
    leader_addr: str
    is_leader: bool
    suffrage: Literal["Voter", "Nonvoter"]


class Servers(Struct):
    servers: list[Server]
