"""The commands that elasticq has in addition to those of SQS."""

from typing import Annotated

from msgspec import Meta, field

from elasticq.model.commands import (
    Command,
    FencedCommand,
    GroupId,
    Integer,
    NextToken,
    QueueUrl,
    ReceiptHandle,
)
from elasticq.model.limits import MEMBERS, METADATA_BYTES_MAX

MessageIds = Annotated[list[Annotated[str, MEMBERS["MessageIds.item"]]], MEMBERS["MessageIds"]]


Metadata = Annotated[
    dict[
        Annotated[str, MEMBERS["MessageAttributes.key"]],
        Annotated[str, Meta(max_length=METADATA_BYTES_MAX)],
    ],
    MEMBERS["MessageAttributes"],
]


class Peek(Command):
    """A read of messages that does not receive them and changes nothing.

    from_sequence: the first sequence. limit: 1 to 1,000 messages. sent_from_ms, sent_until_ms: only messages that were
    sent at the first time or later, and before the second one. states: only messages in one of these states (visible,
    inflight, delayed); by default in any state.
    """

    queue_url: QueueUrl | None = None
    from_sequence: Annotated[int, MEMBERS["FromSequence"]] | None = None
    limit: Integer | None = None
    message_group_id: GroupId | None = None
    sent_from_ms: Annotated[int, MEMBERS["SentFromMs"]] | None = None
    sent_until_ms: Annotated[int, MEMBERS["SentUntilMs"]] | None = None
    states: Annotated[list[Annotated[str, MEMBERS["States.item"]]], MEMBERS["States"]] | None = None


class ElasticqChangePriority(Command):
    """A new priority for messages of a priority queue, in any state of their delivery.

    message_ids: 1 to 1,000 MessageIds. next_token: that of the last answer, if it had not found all messages.
    """

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    priority: Annotated[int, MEMBERS["Priority"]] | None = None
    next_token: NextToken | None = None


class ElasticqReschedule(Command):
    """A new delivery time for scheduled messages that have not been received.

    message_ids, next_token: as in ElasticqChangePriority. deliver_at: milliseconds since the epoch. A time in the past
    means at once.
    """

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    deliver_at: Annotated[int, MEMBERS["DeliverAt"]] | None = None
    next_token: NextToken | None = None


class ElasticqCancelScheduled(Command):
    """The deletion of scheduled messages that have not been received."""

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    next_token: NextToken | None = None


ById = ElasticqChangePriority | ElasticqReschedule | ElasticqCancelScheduled
"""The commands that name messages by their MessageIds. They may need several calls to find all messages."""


class DeleteBySequence(FencedCommand):
    """The deletion of a message by REST, in any state. must_be_in_flight: only while it is in flight."""

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    must_be_in_flight: bool = False


class HideBySequence(FencedCommand):
    """A new visibility timeout by REST, for a message in flight.

    visibility_timeout: in seconds from now; None for that of the queue. receipt_handle: the delivery to change; None
    for the newest one. metadata: added to the message's metadata. deliver_at: when the message becomes visible, in
    milliseconds since the epoch; it may be later than a visibility timeout allows.
    """

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    visibility_timeout: Integer | None = None
    receipt_handle: ReceiptHandle | None = None
    metadata: Metadata | None = None
    deliver_at: Annotated[int, MEMBERS["DeliverAt"]] | None = None


class PrioritiseBySequence(FencedCommand):
    """A new priority by REST, for a message of a priority queue."""

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    priority: Annotated[int, MEMBERS["Priority"]] | None = None


BySequence = DeleteBySequence | HideBySequence | PrioritiseBySequence
"""The commands of REST, which name a message by its sequence."""


class AdvanceClock(Command):
    """A command for tests: cluster time moves forward by ``advance_ms``."""

    advance_ms: int = 0


class DeleteAllQueues(Command):
    """A command for tests: it deletes the queues of ``account`` in all regions, or of all accounts if it is None."""

    account: str | None = None
