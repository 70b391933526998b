"""Answers to retries: what the history stores of an answer, and how a retry gets the same answer again.

The history stores what a repeated answer needs and the command does not hold: pairs of numbers (sequences, delivery
numbers, ids) and the entries that failed.
"""

from collections.abc import Callable
from typing import Any, Final
from zlib import compress, decompress

import msgspec

from elasticq.engine.actions import priority, receive
from elasticq.engine.consumer_groups import actions as consumer_groups
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.kinds import kind_named
from elasticq.engine.redrive import move_actions as move_tasks
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import sequence_number
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.engine.topics import subscriptions
from elasticq.engine.topics.fan_out import sequence_number as publish_sequence
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import SqsError
from elasticq.model.group_results import GroupChangedResult
from elasticq.model.names import has_fifo_suffix, queue_url, topic_arn
from elasticq.model.results import (
    BatchError,
    BatchResult,
    ClockResult,
    EmptyResult,
    MoveTaskCancelledResult,
    MoveTaskStartedResult,
    QueueDeclaredResult,
    QueuesDeletedResult,
    QueueUrlResult,
    ReceiveMessageResult,
    Result,
    SendMessageBatchResult,
    SendMessageResult,
    SentEntry,
)
from elasticq.model.topic_results import (
    PublishBatchResult,
    PublishedEntry,
    PublishResult,
    SubscribeResult,
    TopicArnResult,
    TopicDone,
    TopicTagged,
)

Pairs = list[tuple[int, int]]
Facts = tuple[Pairs, list[BatchError]]
FORGOTTEN: Final = "The entry failed at the first attempt of this call."
"""The message of a failed entry in a repeated answer, if the first one was too long for the history."""
_PACKED_FROM_BYTES: Final = 512
_PACKED: Final = compress(b"")[:1]
_decoder: msgspec.msgpack.Decoder[Facts] = msgspec.msgpack.Decoder(Facts)


class First:
    """The first attempt of a call, as its retry sees it: the command, and the facts that the history stores."""

    __slots__ = ("call", "command", "context", "failures", "pairs", "queue_id", "sequence", "state")

    def __init__(self, state: State, call: c.Call, known: Recorded, context: ExecutionContext) -> None:
        self.state = state
        self.call = call
        self.command: Any = call.command
        self.context = context
        self.queue_id = known.queue_id
        self.sequence = known.sequence
        self.pairs: Pairs = []
        self.failures: list[BatchError] = []
        if detail := known.detail:
            self.pairs, self.failures = _decoder.decode(decompress(detail) if detail[:1] == _PACKED else detail)

    def succeeded(self) -> list[tuple[int, str]]:
        """Return the index and the id of each entry of the batch that did not fail."""
        failed = {failure.id for failure in self.failures}
        return [(at, entry.id or "") for at, entry in enumerate(self.command.entries) if entry.id not in failed]

    def ids_of(self, queue_id: int, sequence: int) -> tuple[str, str | None]:
        """Return MessageId and SequenceNumber of a sent message. Message and queue may be deleted."""
        has_number = kind_named((self.command.queue_url or "").rstrip("/")).has_sequence_numbers
        return self.state.identity.message_id(queue_id, sequence), sequence_number(sequence) if has_number else None


# --- what is stored --------------------------------------------------------------------


def _is_kept(result: Result, mutations: list[m.Mutation]) -> bool:
    """Return whether the call changed something, or succeeded with a result that holds no data."""
    return bool(mutations) or type(result) is EmptyResult or (type(result) is BatchResult and bool(result.successful))


def record(call: c.Call, result: Result, facts: Facts, now_ms: int) -> m.InvocationRecorded:
    """Return the row of a call in the history. Failures with too many bytes lose their messages."""
    if isinstance(result, PublishResult):
        return m.InvocationRecorded(call.invocation, now_ms, result.topic, result.number)
    pairs, failures = facts
    if failures and len(msgspec.msgpack.encode(failures)) > limits.INVOCATION_FAILURES_BYTES_MAX:
        failures = [BatchError(each.id, each.code, FORGOTTEN, each.sender_fault) for each in failures]
    detail = msgspec.msgpack.encode([pairs, failures])  # the first byte shows whether the row is compressed
    detail = (
        compress(detail, 1) if len(detail) > _PACKED_FROM_BYTES else detail
    )  # 1,000 messages need 2 kB instead of 20 kB
    # An advance of the clock is recorded with the new time. With the old one, a retry might find it forgotten.
    recorded_ms = result.time_ms if isinstance(result, ClockResult) else now_ms
    return m.InvocationRecorded(call.invocation, recorded_ms, 0, 0, detail)


def _no_facts(_command: c.Command, _result: Result, _mutations: list[m.Mutation]) -> Facts:
    """Return no facts, because the answer follows from the command."""
    return [], []


def _facts_of_batch_sent(_: c.Command, result: SendMessageBatchResult, mutations: list[m.Mutation]) -> Facts:
    """Return the queue id and the sequence of each accepted entry."""
    stored = [x for x in mutations if isinstance(x, m.MessageStored)]
    del stored[len(result.successful) :]  # the others are copies in other queues
    if result.successful[0].sequence_number is not None:  # FIFO: a duplicate has no MessageStored
        numbers = [int(entry.sequence_number or 0) for entry in result.successful]
        return [(stored[0].queue_id, number) for number in numbers], result.failed
    if result.successful[0].sequence:  # a standard queue with an idempotency window has duplicates, too
        return [(stored[0].queue_id, entry.sequence) for entry in result.successful], result.failed
    return [(s.queue_id, s.sequence) for s in stored], result.failed


def _facts_of_received(_: c.Command, _result: ReceiveMessageResult, mutations: list[m.Mutation]) -> Facts:
    """Return the sequence and the delivery number of each message."""
    received = mutations[0]
    assert isinstance(received, m.MessagesReceived)
    return list(zip(received.sequences, received.delivery_numbers, strict=True)), []


def _facts_of_task(_: c.Command, _result: MoveTaskStartedResult, mutations: list[m.Mutation]) -> Facts:
    """Return the number of the move task."""
    task = mutations[0]
    assert isinstance(task, m.MoveTaskSet)
    return [(0, task.number)], []


# --- repeated answers -------------------------------------------------------------------


def _received(first: First) -> Outcome:
    """Return the messages of the first answer that are still in flight under it; none if the queue is gone.

    Raise ContentsMissing if contents are on disk only. Raise the errors of a consumer group's fence.
    """
    state, call, command, context = first.state, first.call, first.command, first.context
    if command.elasticq_group is not None:
        fence.check(state, call, named_queue(state, call, command.queue_url), command, context.now_ms)
    try:
        return receive.received_again(state, call, command, context, first.pairs)
    except SqsError:
        return ReceiveMessageResult(), []


def _queue_created(first: First) -> Outcome:
    return QueueUrlResult(queue_url(first.call.endpoint, first.call.account, first.command.queue_name or "")), []


def _topic_created(first: First) -> Outcome:
    return TopicArnResult(topic_arn(first.context.region, first.call.account, first.command.name or "")), []


def _batch_sent(first: First) -> Outcome:
    pairs = zip(first.succeeded(), first.pairs, strict=True)
    sent = [SentEntry(name, at, *first.ids_of(*pair)) for (at, name), pair in pairs]
    return SendMessageBatchResult(sent, first.failures), []


def _task_started(first: First) -> Outcome:
    task = first.state.move_tasks.get(first.pairs[0][1])
    return MoveTaskStartedResult(move_tasks.handle_of(task) if task is not None else ""), []


def _subscribed(first: First) -> Outcome:
    is_shown, number = first.pairs[0]
    arn = f"{first.command.topic_arn}:{first.state.identity.subscription_key(number)}"
    return SubscribeResult(arn if is_shown else subscriptions.PENDING, number, bool(is_shown)), []


def _published(first: First) -> Outcome:
    has_number = has_fifo_suffix(first.command.topic_arn or first.command.target_arn or "")
    message_id = first.state.identity.message_id(first.queue_id, first.sequence)
    number = publish_sequence(first.sequence) if has_number else None
    return PublishResult(message_id, number, first.queue_id, first.sequence), []


def _batch_published(first: First) -> Outcome:
    has_number, identity = has_fifo_suffix(first.command.topic_arn or ""), first.state.identity
    published = [
        PublishedEntry(
            entry.id or "",
            identity.message_id(topic, number),
            publish_sequence(number) if has_number else None,
            number,
        )
        for entry, (topic, number) in zip(first.command.publish_batch_request_entries, first.pairs, strict=True)
    ]
    return PublishBatchResult(published), []


# --- by action ------------------------------------------------------------------------------


class Retry:
    """The rule by which retries of one command are answered.

    repeat: returns the answer of the first attempt again, and the mutations to apply.
    facts: returns what the history stores, so that ``repeat`` can do it.
    is_kept: returns whether the history gets a row for a call. Without a row, a retry runs again.
    is_send: a retry that runs again would store a second message, so a full history refuses the call.
    has_facts: whether a row has facts of its own.
    """

    __slots__ = ("facts", "has_facts", "is_kept", "is_send", "repeat")

    def __init__(
        self,
        repeat: Callable[[First], Outcome],
        facts: Callable[[Any, Any, list[m.Mutation]], Facts] = _no_facts,
        is_kept: Callable[[Any, list[m.Mutation]], bool] = _is_kept,
        *,
        is_send: bool = False,
    ) -> None:
        self.repeat = repeat
        self.facts = facts
        self.is_kept = is_kept
        self.is_send = is_send
        self.has_facts = facts is not _no_facts


DONE: Final = Retry(lambda _: (EmptyResult(), []))
RUN_AGAIN: Final = Retry(lambda _: (EmptyResult(), []), is_kept=lambda _result, _mutations: False)
QUEUE_CREATED: Final = Retry(_queue_created)
QUEUE_DECLARED: Final = Retry(lambda _: (QueueDeclaredResult(), []))
QUEUES_DELETED: Final = Retry(lambda _: (QueuesDeletedResult(0, is_more=True), []))  # the caller asks again
CLOCK_ADVANCED: Final = Retry(lambda first: (ClockResult(first.context.now_ms), []))
MESSAGE_SENT: Final = Retry(
    lambda first: (SendMessageResult(*first.ids_of(first.queue_id, first.sequence), sequence=first.sequence), []),
    is_send=True,
)
BATCH_SENT: Final = Retry(_batch_sent, _facts_of_batch_sent, is_send=True)
BATCH_DONE: Final = Retry(
    lambda first: (BatchResult([name for _, name in first.succeeded()], first.failures), []),
    lambda _command, result, _mutations: ([], result.failed),
)
RECEIVED: Final = Retry(  # a lease stores its own answers
    _received,
    _facts_of_received,
    lambda result, mutations: bool(mutations) and bool(result.messages) and not result.leased,
)
TASK_STARTED: Final = Retry(_task_started, _facts_of_task)
TASK_CANCELLED: Final = Retry(
    lambda first: (MoveTaskCancelledResult(first.pairs[0][1]), []),
    lambda _command, result, _mutations: ([(0, result.moved)], []),
)
PRIORITIES_CHANGED: Final = Retry(
    lambda first: (priority.result_of(first.command, first.pairs), []),
    lambda command, result, _mutations: (priority.places_of(command, result), []),
)
GROUP_JOINED: Final = Retry(
    lambda first: (consumer_groups.joined_view(first.state, first.call, first.pairs[0][1]), []),
    lambda _command, result, _mutations: ([(0, int(result.consumer_id, 16))], []),
)
GROUP_CHANGED: Final = Retry(
    lambda first: (GroupChangedResult(first.command.group_name or "", first.pairs[0][1]), []),
    lambda _command, result, _mutations: ([(0, result.generation)], []),
)
TOPIC_DONE: Final = Retry(lambda _: (TopicDone(), []))
TOPIC_TAGGED: Final = Retry(lambda _: (TopicTagged(), []))
TOPIC_CREATED: Final = Retry(_topic_created)
SUBSCRIBED: Final = Retry(
    _subscribed, lambda _command, result, _mutations: ([(int(result.is_shown), result.number)], [])
)
PUBLISHED: Final = Retry(_published, is_send=True)
BATCH_PUBLISHED: Final = Retry(
    _batch_published,
    lambda _command, result, _mutations: ([(result.topic, each.number) for each in result.successful], []),
    is_send=True,
)
