"""The history of clients: what they did and saw, one event per operation, as JSON lines.

An operation is one SDK call with all its attempts (one invocation id). ``invoke_us`` is when its first attempt was
sent. ``complete_us`` is when its answer came (None: never). Both are true time in us of one clock that all clients
share.

``outcome`` is ``ok``, ``fail`` (it certainly had no effect) or ``unknown`` (it may have had its effect, or may have it
later).

Bodies are unique per message, because checkers recognise messages by them. Only sends with one deduplication id, which
are one message, may share theirs.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct, field

Outcome = Literal["ok", "fail", "unknown"]


class Operation(Struct, tag_field="kind", kw_only=True):
    """The fields of all operations."""

    client: str
    queue: str
    invoke_us: int
    complete_us: int | None = None
    outcome: Outcome = "unknown"
    guid: str = ""


class CreateQueue(Operation, tag="create_queue"):
    """The facts about a queue that is FIFO, or has priorities or dead letters. Other queues need no such event.

    dead_letter_queue, receives_max: target and limit of its RedrivePolicy, "" and 0 without one.
    has_priorities: it delivers the lowest priority first.
    default_priority: the priority of messages without one.
    partitions: how many it has; 0: none.
    """

    is_fifo: bool = False
    is_deduplicated_by_group: bool = False
    dead_letter_queue: str = ""
    receives_max: int = 0
    has_priorities: bool = False
    default_priority: int = 0
    partitions: int = 0


class SentMessage(Struct, omit_defaults=True):
    """One message of a send.

    message_ids, sequence_numbers: all that any answer gave to it (more than one is a finding).
    deduplication_id: the explicit one, or the one derived from the content.
    priority: the one that the send names.
    """

    body: str
    message_ids: list[str] = field(default_factory=list)
    group: str = ""
    deduplication_id: str = ""
    sequence_numbers: list[str] = field(default_factory=list)
    priority: int | None = None


class Send(Operation, tag="send"):
    """A SendMessage (one message) or SendMessageBatch. is_scheduled: its messages name the time of their delivery."""

    messages: list[SentMessage]
    is_scheduled: bool = False


class HandedOut(Struct, omit_defaults=True):
    """One message in the answer of a receive. Attributes that were not requested are empty.

    is_dead_letter: it has a DeadLetterQueueSourceArn.
    """

    message_id: str
    receipt_handle: str
    body: str
    group: str = ""
    sequence_number: str = ""
    receive_count: int = 0
    is_dead_letter: bool = False


class Receive(Operation, tag="receive"):
    """A ReceiveMessage.

    visibility_ms: the timeout that applied to this receive; under a lease the lease's.
    attempt_id: its ReceiveRequestAttemptId.
    attempted_us: when the answered retry was made; 0 if that is unknown or there was none.
    lease: NAME/BATCH/PARTITION of a receive under a lease.
    is_expired: it was answered LeaseExpired.
    partition: the partition that it asked for; None: any.
    """

    visibility_ms: int
    messages: list[HandedOut] = field(default_factory=list)
    attempt_id: str = ""
    lease: str = ""
    is_expired: bool = False
    attempted_us: int = 0
    partition: int | None = None


class Delete(Operation, tag="delete"):
    """A delete of one message. ``message_id`` is that of the delivery with the receipt handle.

    Without a handle the message was cancelled before any client received it.
    """

    message_id: str
    receipt_handle: str


class ChangeVisibility(Operation, tag="change_visibility"):
    message_id: str
    receipt_handle: str
    visibility_ms: int


class ChangePriority(Operation, tag="change_priority"):
    """An ElasticqChangePriority. ``changed`` holds the MessageIds that the answer reported as found."""

    message_ids: list[str]
    priority: int
    changed: list[str] = field(default_factory=list)


class LeaseChange(Operation, tag="lease_change"):
    """A DeleteMessage or ChangeMessageVisibility of whole leases.

    lease: NAME/BATCH/ (all of the batch) or NAME/BATCH/PARTITION.
    messages: all that its client received under them.
    """

    lease: str
    action: Literal["commit", "renew", "give_back"]
    visibility_ms: int = 0
    messages: list[HandedOut] = field(default_factory=list)
    is_expired: bool = False


class StartMove(Operation, tag="start_move"):
    """A StartMessageMoveTask out of ``queue``. Without a destination each message goes to its own source."""

    destination: str = ""


class Advance(Operation, tag="advance"):
    """An advance of cluster time, for all queues (``queue`` is empty)."""

    advance_ms: int


Event = CreateQueue | Send | Receive | Delete | ChangeVisibility | ChangePriority | LeaseChange | StartMove | Advance

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def dump_lines(events: Iterable[Event]) -> bytes:
    """Return one JSON line for each event."""
    return b"".join(_encoder.encode(event) + b"\n" for event in events)


def load_lines(lines: Iterable[bytes]) -> Iterator[Event]:
    """Return the events of the lines, without empty lines. Raise msgspec.DecodeError for a line that is not an
    event."""
    return (_decoder.decode(line) for line in lines if line.strip())
