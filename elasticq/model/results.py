"""What an executed command answers; the wire room writes it out and adds the MD5s.

MD5 digests are not in here: they follow from the command (sends) or from the
message returned (receives), and the wire computes them when it writes. A list,
map or text that has a default here is left out of an answer when it is empty.
"""

from msgspec import Struct, field

from elasticq.model.commands import MessageAttributes


class Result(Struct, gc=False):
    """Base of all results."""


class EmptyResult(Result):
    """The action answers nothing but success."""


class QueueUrlResult(Result):
    """CreateQueue and GetQueueUrl."""

    queue_url: str


class QueueDeclaredResult(Result):
    """DeclareQueue; ``differing``: names of the attributes that have another value in a queue that existed before."""

    differing: list[str] = field(default_factory=list)
    is_new: bool = False


class ListQueuesResult(Result):
    queue_urls: list[str] = field(default_factory=list)
    next_token: str | None = None


class QueueAttributesResult(Result):
    attributes: dict[str, str] = field(default_factory=dict)


class SendMessageResult(Result):
    """``sequence``: the message's place in its queue, for who asks further by that; SQS's answers do not show it."""

    message_id: str
    sequence_number: str | None = None  # FIFO only
    sequence: int = 0


class BatchError(Struct, gc=False):
    """BatchResultErrorEntry."""

    id: str
    code: str
    message: str
    sender_fault: bool = True


class SentEntry(Struct, gc=False):
    """SendMessageBatchResultEntry; ``position`` is the entry's index in the command.

    ``sequence``: the sequence of the stored message in a queue with an idempotency window, where it may be a message
    that was sent before with the same id; 0 in other queues.
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
    """DeleteMessageBatch and ChangeMessageVisibilityBatch: ids that succeeded, entries that failed."""

    successful: list[str] = field(default_factory=list)
    failed: list[BatchError] = field(default_factory=list)


class ReceivedMessage(Struct, gc=False):
    """One received message; ``attributes`` (the system's) and ``message_attributes`` are those that were asked for."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: dict[str, str] | None = None
    message_attributes: MessageAttributes | None = None


class ReceiveMessageResult(Result):
    """The messages, and what is needed to take the receive back when they cannot be delivered.

    ``invocation``: that of the call; it is forgotten too when the receive is taken back.
    ``attempt``: how often the same messages were answered before to a retry of the call; 0 at the first time.
    ``request_attempt``: the key of the call's ReceiveRequestAttemptId, and when the messages were received.
    ``leased``: the messages belong to a lease, whose id gets them again, so that they are never taken back. The lease
    of an answer without messages is sealed.
    """

    messages: list[ReceivedMessage] = field(default_factory=list)
    invocation: bytes = b""
    attempt: int = 0
    request_attempt: tuple[bytes, int] | None = None
    leased: bool = False


class QueueTagsResult(Result):
    """ListQueueTags."""

    tags: dict[str, str] = field(default_factory=dict)


class DeadLetterSourcesResult(Result):
    """ListDeadLetterSourceQueues; JSON writes its list as ``queueUrls``, in lower case."""

    queue_urls: list[str]
    next_token: str | None = None


class MoveTaskStartedResult(Result):
    task_handle: str


class MoveTaskCancelledResult(Result):
    """``moved``: ApproximateNumberOfMessagesMoved so far."""

    moved: int


class MoveTask(Struct, rename="pascal", omit_defaults=True, gc=False):
    """ListMessageMoveTasksResultEntry; a member that is not told is None. StartedTimestamp is in ms since the epoch."""

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
    """ListMessageMoveTasks, newest first."""

    results: list[MoveTask]


class ClockResult(Result):
    """AdvanceClock; ``time_ms``: the cluster time after the advance."""

    time_ms: int


class QueuesDeletedResult(Result):
    """DeleteAllQueues: how many queues were deleted, and whether some are left for the next call."""

    count: int
    is_more: bool


class PeekedMessage(Struct, gc=False):
    """A message as it is stored; ``state``: visible, inflight or delayed; ``attributes``: all that the system has.

    priority: that of the moment, in a priority queue; deliver_at_ms: when the delay of a delayed message is over,
    where that does not follow from the queue; partition: the one that it is of, in a queue that has some.
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
    """A page of messages; ``next_sequence``: where the next page begins, None after the newest message."""

    messages: list[PeekedMessage] = field(default_factory=list)
    next_sequence: int | None = None


class PrioritiesChangedResult(Result):
    """The MessageIds that have the priority or the time now, or were cancelled, and those that were not found.

    next_token: where to go on looking for those that were not found; None once all of the queue was looked at.
    """

    changed: list[str]
    not_found: list[str]
    next_token: str | None = None


class StaleResult(Result):
    """A read answered by a member without a master: ``age_ms`` since it heard one."""

    result: Result
    age_ms: int
