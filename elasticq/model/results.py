"""The results of executed commands. The ``wire`` package encodes them as answers.

Results have no MD5 digests. ``wire`` computes these for sends from the command,
and for receives from the message. An answer leaves out an empty list, map or
text if it has a default here.
"""

from msgspec import Struct, field

from elasticq.model.commands import MessageAttributes


class Result(Struct, gc=False):
    """Base of all results."""


class EmptyResult(Result):
    """The result of an action that answers only success."""


class QueueUrlResult(Result):
    """The result of CreateQueue and GetQueueUrl."""

    queue_url: str


class QueueDeclaredResult(Result):
    """The result of DeclareQueue. ``differing``: names of attributes whose values differ in the existing queue."""

    differing: list[str] = field(default_factory=list)
    is_new: bool = False


class ListQueuesResult(Result):
    queue_urls: list[str] = field(default_factory=list)
    next_token: str | None = None


class QueueAttributesResult(Result):
    attributes: dict[str, str] = field(default_factory=dict)


class SendMessageResult(Result):
    """The result of SendMessage. ``sequence``: the message's place in its queue, which only REST shows."""

    message_id: str
    sequence_number: str | None = None  # FIFO only
    sequence: int = 0


class BatchError(Struct, gc=False):
    """A failed entry of a batch (BatchResultErrorEntry)."""

    id: str
    code: str
    message: str
    sender_fault: bool = True


class SentEntry(Struct, gc=False):
    """A sent entry of a batch (SendMessageBatchResultEntry). ``position``: the index of the entry in the command.

    sequence: the sequence of the stored message, in a queue with an idempotency window. This may be an earlier message
    with the same id. In other queues it is 0.
    """

    id: str
    position: int
    message_id: str
    sequence_number: str | None = None
    sequence: int = 0


class SendMessageBatchResult(Result):
    successful: list[SentEntry] = field(default_factory=list)
    failed: list[BatchError] = field(default_factory=list)


class BatchResult(Result):
    """The result of DeleteMessageBatch and ChangeMessageVisibilityBatch: ids that succeeded, entries that failed."""

    successful: list[str] = field(default_factory=list)
    failed: list[BatchError] = field(default_factory=list)


class ReceivedMessage(Struct, gc=False):
    """A received message, with the system attributes and the message attributes that the call asked for."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: dict[str, str] | None = None
    message_attributes: MessageAttributes | None = None


class ReceiveMessageResult(Result):
    """The result of a receive: the messages, and the facts to undo the receive if the messages cannot be delivered.

    invocation: the invocation id of the call. Undoing the receive also forgets this id.
    attempt: how often the same messages were already answered to an attempt of this call; 0 for the first time.
    request_attempt: the key of the call's ReceiveRequestAttemptId, and the time of the receive.
    leased: whether the messages belong to a lease. A repeat with the lease's id gets them again, so the receive is
        never undone. If there are no messages, the lease is sealed.
    """

    messages: list[ReceivedMessage] = field(default_factory=list)
    invocation: bytes = b""
    attempt: int = 0
    request_attempt: tuple[bytes, int] | None = None
    leased: bool = False


class QueueTagsResult(Result):
    """The result of ListQueueTags."""

    tags: dict[str, str] = field(default_factory=dict)


class DeadLetterSourcesResult(Result):
    """The result of ListDeadLetterSourceQueues. The name of its list in JSON is ``queueUrls``."""

    queue_urls: list[str]
    next_token: str | None = None


class MoveTaskStartedResult(Result):
    task_handle: str


class MoveTaskCancelledResult(Result):
    """The result of CancelMessageMoveTask. ``moved``: ApproximateNumberOfMessagesMoved so far."""

    moved: int


class MoveTask(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A move task (ListMessageMoveTasksResultEntry). Members that are not shown are None. Timestamps are in ms."""

    task_handle: str | None = None
    status: str | None = None
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_moved: int | None = None
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None
    started_timestamp: int | None = None


class MoveTasksResult(Result):
    """The result of ListMessageMoveTasks: the newest task first."""

    results: list[MoveTask]


class ClockResult(Result):
    """The result of AdvanceClock. ``time_ms``: the cluster time after it."""

    time_ms: int


class QueuesDeletedResult(Result):
    """The result of DeleteAllQueues: how many queues were deleted, and whether some are left for the next call."""

    count: int
    is_more: bool


class PeekedMessage(Struct, gc=False):
    """A stored message. ``state``: visible, inflight or delayed. ``attributes``: all system attributes.

    priority: the current priority, in a priority queue. deliver_at_ms: when the message's own delay ends; None
    without such a delay. partition: the partition of the message, in a queue with partitions.
    """

    message_id: str
    body: str
    sequence: int
    state: str
    attributes: dict[str, str]
    message_attributes: MessageAttributes | None = None
    priority: int | None = None
    deliver_at_ms: int | None = None
    partition: int | None = None


class PeekResult(Result):
    """A page of messages.

    next_sequence: the start of the next page, None after the newest message. last_sequence: the newest sequence that
    the queue has used, 0 without one.
    """

    messages: list[PeekedMessage] = field(default_factory=list)
    next_sequence: int | None = None
    last_sequence: int = 0


class PrioritiesChangedResult(Result):
    """The result of the commands of ``extensions.ById``.

    changed: MessageIds whose messages have the new priority or time, or were cancelled.
    not_found: the other MessageIds. next_token: the token of the call that searches on for them; None after the end
    of the queue.
    """

    changed: list[str]
    not_found: list[str]
    next_token: str | None = None


class StaleResult(Result):
    """The result of a read at a member that has no master.

    age_ms: the time since the member last heard from a master.
    """

    result: Result
    age_ms: int
