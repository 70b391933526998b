"""What a client of elasticq may ask for besides SQS's actions."""

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
    """Reads messages without receiving them; nothing changes.

    from_sequence: the sequence to begin at; limit: 1 to 1,000 messages. Shown are only messages that were sent at
    sent_from_ms or later and before sent_until_ms, and that are in one of ``states`` (visible, inflight, delayed;
    in any of them where none is named).
    """

    queue_url: QueueUrl | None = None
    from_sequence: Annotated[int, MEMBERS["FromSequence"]] | None = None
    limit: Integer | None = None
    message_group_id: GroupId | None = None
    sent_from_ms: Annotated[int, MEMBERS["SentFromMs"]] | None = None
    sent_until_ms: Annotated[int, MEMBERS["SentUntilMs"]] | None = None
    states: Annotated[list[Annotated[str, MEMBERS["States.item"]]], MEMBERS["States"]] | None = None


class ElasticqChangePriority(Command):
    """Gives messages of a priority queue, wherever their delivery stands, another priority.

    message_ids: 1 to 1,000 MessageIds; next_token: of the answer to the call before, which did not find all of them.
    """

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    priority: Annotated[int, MEMBERS["Priority"]] | None = None
    next_token: NextToken | None = None


class ElasticqReschedule(Command):
    """Lets messages that nobody received yet, and that wait for their time, come at another one.

    message_ids, next_token: as in ElasticqChangePriority; deliver_at: ms of the epoch, at once where that is past.
    """

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    deliver_at: Annotated[int, MEMBERS["DeliverAt"]] | None = None
    next_token: NextToken | None = None


class ElasticqCancelScheduled(Command):
    """Deletes messages that nobody received yet, and that wait for their time."""

    queue_url: QueueUrl | None = None
    message_ids: MessageIds = field(default_factory=list)
    next_token: NextToken | None = None


ById = ElasticqChangePriority | ElasticqReschedule | ElasticqCancelScheduled
"""Commands that name messages by their MessageIds, and may need several calls to find them."""


class DeleteBySequence(FencedCommand):
    """Of REST: deletes the message, whoever has it; must_be_in_flight: only while it is."""

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    must_be_in_flight: bool = False


class HideBySequence(FencedCommand):
    """Of REST: hides a message in flight for so many seconds from now on, None for the queue's visibility timeout.

    receipt_handle: of the delivery that is meant, which is the message's; the newest one without it. metadata: kept
    with the message from now on.
    """

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    visibility_timeout: Integer | None = None
    receipt_handle: ReceiptHandle | None = None
    metadata: Metadata | None = None


class PrioritiseBySequence(FencedCommand):
    """Of REST: gives a message of a priority queue another priority."""

    queue_url: QueueUrl | None = None
    sequence: Annotated[int, MEMBERS["FromSequence"]] = 0
    priority: Annotated[int, MEMBERS["Priority"]] | None = None


BySequence = DeleteBySequence | HideBySequence | PrioritiseBySequence
"""Commands of REST that name a message by its sequence."""


class AdvanceClock(Command):
    """For tests: cluster time moves forward by ``advance_ms``."""

    advance_ms: int = 0


class DeleteAllQueues(Command):
    """For tests: deletes the queues of ``account`` in all regions, or of all accounts if it is None."""

    account: str | None = None
