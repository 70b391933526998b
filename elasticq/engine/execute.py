"""Command + state -> result + mutations: the table of handlers, and what an SDK's retry gets.

A call that changed something leaves one row in the invocation log, in the same
entry as its mutations. So does one that changed nothing and was told that all is well, as a delete of what is gone:
later it might be refused. A read, an empty receive and a refused call leave none and run again.
"""

from collections.abc import Callable
from typing import Any, Final
from zlib import compress, decompress

import msgspec

from elasticq.engine import access
from elasticq.engine.actions import (
    attributes,
    by_sequence,
    declare,
    delete,
    leases,
    peek,
    permissions,
    priority,
    queues,
    receive,
    schedule,
    send,
    tags,
    testing,
    visibility,
)
from elasticq.engine.consumer_groups import actions as consumer_groups
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.kinds import kind_named
from elasticq.engine.redrive import list_sources as dead_letters
from elasticq.engine.redrive import move_actions as move_tasks
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import sequence_number
from elasticq.engine.stored.invocations import TOO_MANY
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.engine.topics import actions as topics
from elasticq.engine.topics import permissions as topic_permissions
from elasticq.engine.topics import publish, subscriptions
from elasticq.engine.topics import tags as topic_tags
from elasticq.engine.topics.fan_out import sequence_number as publish_sequence
from elasticq.model import commands as c
from elasticq.model import extensions, limits
from elasticq.model import group_commands as g
from elasticq.model import topic_commands as t
from elasticq.model.errors import RequestThrottled, SqsError
from elasticq.model.group_results import GroupChangedResult, GroupJoinedResult, GroupViewResult
from elasticq.model.names import has_fifo_suffix, queue_url, topic_arn
from elasticq.model.results import (
    BatchError,
    BatchResult,
    ClockResult,
    EmptyResult,
    MoveTaskCancelledResult,
    MoveTaskStartedResult,
    PrioritiesChangedResult,
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

HANDLERS: Final[dict[type[c.Command], Callable[[State, c.Call, Any, ExecutionContext], Outcome]]] = {
    c.CreateQueue: queues.create_queue,
    c.GetQueueUrl: queues.get_queue_url,
    c.ListQueues: queues.list_queues,
    c.DeleteQueue: queues.delete_queue,
    c.PurgeQueue: queues.purge_queue,
    c.GetQueueAttributes: attributes.get_queue_attributes,
    c.SetQueueAttributes: attributes.set_queue_attributes,
    c.SendMessage: send.send_message,
    c.SendMessageBatch: send.send_message_batch,
    c.ReceiveMessage: leases.receive_message,
    c.DeleteMessage: leases.delete_message,
    c.DeleteMessageBatch: delete.delete_message_batch,
    c.ChangeMessageVisibility: leases.change_message_visibility,
    c.ChangeMessageVisibilityBatch: visibility.change_message_visibility_batch,
    c.TagQueue: tags.tag_queue,
    c.UntagQueue: tags.untag_queue,
    c.ListQueueTags: tags.list_queue_tags,
    c.AddPermission: permissions.add_permission,
    c.RemovePermission: permissions.remove_permission,
    c.ListDeadLetterSourceQueues: dead_letters.list_dead_letter_source_queues,
    c.StartMessageMoveTask: move_tasks.start_message_move_task,
    c.CancelMessageMoveTask: move_tasks.cancel_message_move_task,
    c.ListMessageMoveTasks: move_tasks.list_message_move_tasks,
    extensions.AdvanceClock: testing.advance_clock,
    extensions.DeleteAllQueues: testing.delete_all_queues,
    extensions.ElasticqCancelScheduled: schedule.cancel_scheduled,
    extensions.ElasticqChangePriority: priority.change_priority,
    extensions.ElasticqReschedule: schedule.reschedule,
    extensions.DeleteBySequence: by_sequence.delete_by_sequence,
    extensions.HideBySequence: by_sequence.hide_by_sequence,
    extensions.PrioritiseBySequence: by_sequence.prioritise_by_sequence,
    extensions.Peek: peek.peek,
    c.DeclareQueue: declare.declare_queue,
    g.ElasticqSetGroup: consumer_groups.set_group,
    g.ElasticqDeleteGroup: consumer_groups.delete_group,
    g.ElasticqJoinGroup: consumer_groups.join_group,
    g.ElasticqHeartbeat: consumer_groups.heartbeat,
    g.ElasticqLeaveGroup: consumer_groups.leave_group,
    g.ElasticqMoveResource: consumer_groups.move_resource,
    g.ElasticqDrainConsumer: consumer_groups.drain_consumer,
    g.ElasticqDescribeGroups: consumer_groups.describe_groups,
    t.CreateTopic: topics.create_topic,
    t.DeleteTopic: topics.delete_topic,
    t.ListTopics: topics.list_topics,
    t.GetTopicAttributes: topics.get_topic_attributes,
    t.SetTopicAttributes: topics.set_topic_attributes,
    t.Subscribe: subscriptions.subscribe,
    t.ConfirmSubscription: subscriptions.confirm_subscription,
    t.Unsubscribe: subscriptions.unsubscribe,
    t.ListSubscriptions: subscriptions.list_subscriptions,
    t.ListSubscriptionsByTopic: subscriptions.list_subscriptions_by_topic,
    t.GetSubscriptionAttributes: subscriptions.get_subscription_attributes,
    t.SetSubscriptionAttributes: subscriptions.set_subscription_attributes,
    t.Publish: publish.publish,
    t.PublishBatch: publish.publish_batch,
    t.TagResource: topic_tags.tag_resource,
    t.UntagResource: topic_tags.untag_resource,
    t.ListTagsForResource: topic_tags.list_tags_for_resource,
    t.AddTopicPermission: topic_permissions.add_permission,
    t.RemoveTopicPermission: topic_permissions.remove_permission,
    t.GetDataProtectionPolicy: topics.get_data_protection_policy,
    t.PutDataProtectionPolicy: topics.put_data_protection_policy,
    t.NothingThere: topics.nothing_there,
}


_SENT: Final = SendMessageResult
_STORED: Final = m.MessageStored


def execute(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
    """The result and what to apply. Raises the SqsError that the client gets; state is not touched."""
    command = call.command
    if call.origin is not None:
        access.check(state, call, context)
    invocation, history = call.invocation, state.invocations
    if not invocation:
        return HANDLERS[type(command)](state, call, command, context)
    known = history.get(invocation, context.now_ms)
    if known is not None:
        if isinstance(command, c.ReceiveMessage):
            return _received_again(state, call, command, known, context)
        return _repeated(state, call, known, context), []
    _check_room(state, command, context)
    result, mutations = HANDLERS[type(command)](state, call, command, context)
    if type(result) is _SENT and mutations and isinstance(stored := mutations[0], _STORED):
        mutations.append(m.InvocationRecorded(invocation, context.now_ms, stored.queue_id, stored.sequence))
    elif isinstance(result, Result) and _is_kept(result, mutations):
        recorded = _recorded(call, result, mutations, context)
        if not recorded.detail or not history.are_details_full(context.now_ms):
            mutations.append(recorded)
    return result, mutations


def _check_room(state: State, command: c.Command, context: ExecutionContext) -> None:
    """Refuse a send that could not be remembered: sent again, it would be two messages. Raises RequestThrottled.

    Any other call may run twice.
    """
    if isinstance(command, (c.SendMessage, c.SendMessageBatch, t.Publish, t.PublishBatch)) and (
        state.invocations.is_full(context.now_ms)
        or (
            isinstance(command, (c.SendMessageBatch, t.PublishBatch))
            and state.invocations.are_details_full(context.now_ms)
        )
    ):
        raise RequestThrottled(TOO_MANY)


def seal_or_answer(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
    """What a leased receive is answered that found nothing and waits no longer. Raises SqsError, ContentsMissing."""
    if call.origin is not None:
        access.check(state, call, context)
    return leases.seal_or_answer_lease(state, call, context)


def _is_kept(result: Result, mutations: list[m.Mutation]) -> bool:
    """Whether a retry of the call gets the same answer; else it runs again.

    A receive that handed out nothing, or one that its lease remembers, runs again, and so does a heartbeat. Commands
    that may change something, and tell no more than success, have results of their own.
    """
    if mutations:
        if type(result) is ReceiveMessageResult:
            return bool(result.messages) and not result.leased
        return type(result) is not GroupViewResult
    return type(result) is EmptyResult or (type(result) is BatchResult and bool(result.successful))


# --- invocation log ------------------------------------------------------------------


def _recorded(
    call: c.Call, result: Result, mutations: list[m.Mutation], context: ExecutionContext
) -> m.InvocationRecorded:
    """The row of a call that was not one message sent."""
    if isinstance(result, PublishResult):
        return m.InvocationRecorded(call.invocation, context.now_ms, result.topic, result.number)
    detail = _detail(call.command, result, mutations)
    recorded_ms = result.time_ms if isinstance(result, ClockResult) else context.now_ms  # its retry comes after it
    return m.InvocationRecorded(call.invocation, recorded_ms, 0, 0, detail)


def _detail(command: c.Command, result: Result, mutations: list[m.Mutation]) -> bytes:
    """The outcome, packed. Many or long failures lose their messages, which repeat what was sent."""
    pairs, failures = _outcome(command, result, mutations)
    if failures and len(msgspec.msgpack.encode(failures)) > limits.INVOCATION_FAILURES_BYTES_MAX:
        failures = [BatchError(each.id, each.code, FORGOTTEN, each.sender_fault) for each in failures]
    return _packed(msgspec.msgpack.encode([pairs, failures]))


FORGOTTEN: Final = "The entry failed at the first attempt of this call."


def _outcome(
    command: c.Command, result: Result, mutations: list[m.Mutation]
) -> tuple[list[tuple[int, int]], list[BatchError]]:
    """What a repeated answer needs and the command does not say: sequences, handles, entries that failed."""
    match result:
        case SendMessageBatchResult():
            stored = [x for x in mutations if isinstance(x, m.MessageStored)]
            del stored[len(result.successful) :]  # copies for other queues
            if result.successful[0].sequence_number is not None:  # duplicates stored nothing
                numbers = [int(entry.sequence_number or 0) for entry in result.successful]
                return [(stored[0].queue_id, number) for number in numbers], result.failed
            if result.successful[0].sequence:  # of a queue with an idempotency window: duplicates there, too
                return [(stored[0].queue_id, entry.sequence) for entry in result.successful], result.failed
            return [(s.queue_id, s.sequence) for s in stored], result.failed
        case BatchResult():
            return [], result.failed
        case ReceiveMessageResult():
            received = mutations[0]
            assert isinstance(received, m.MessagesReceived)
            return list(zip(received.sequences, received.delivery_numbers, strict=True)), []
        case MoveTaskStartedResult():
            task = mutations[0]
            assert isinstance(task, m.MoveTaskSet)
            return [(0, task.number)], []
        case MoveTaskCancelledResult():
            return [(0, result.moved)], []
        case PublishBatchResult():
            return [(result.topic, each.number) for each in result.successful], []
        case SubscribeResult():
            return [(int(result.is_shown), result.number)], []
        case GroupJoinedResult():
            return [(0, int(result.consumer_id, 16))], []
        case GroupChangedResult():
            return [(0, result.generation)], []
        case PrioritiesChangedResult():
            assert isinstance(command, extensions.ById)
            return priority.places_of(command, result), []
        case _:
            return [], []


def _packed(detail: bytes) -> bytes:
    """Compressed if that pays: the numbers of a page of 1,000 messages take 2 kB instead of 20.

    What is not compressed begins with msgpack's byte for an array, and so can be told.
    """
    return compress(detail, 1) if len(detail) > _PACKED_FROM_BYTES else detail


def _unpacked(detail: bytes) -> bytes:
    return decompress(detail) if detail[:1] == _PACKED else detail


_PACKED_FROM_BYTES: Final = 512
_PACKED: Final = compress(b"")[:1]

_decoder: msgspec.msgpack.Decoder[tuple[list[tuple[int, int]], list[BatchError]]] = msgspec.msgpack.Decoder(
    tuple[list[tuple[int, int]], list[BatchError]]
)


def _ids_of(state: State, queue_url: str | None, queue_id: int, sequence: int) -> tuple[str, str | None]:
    """MessageId and SequenceNumber of a message that may be gone, with its queue."""
    has_number = kind_named((queue_url or "").rstrip("/")).has_sequence_numbers
    return state.identity.message_id(queue_id, sequence), sequence_number(sequence) if has_number else None


def _received_again(
    state: State, call: c.Call, command: c.ReceiveMessage, known: Recorded, context: ExecutionContext
) -> Outcome:
    """The messages of the first attempt's answer again. Raises ContentsMissing, and what a fence raises."""
    if command.elasticq_group is not None:
        fence.check(state, call, named_queue(state, call, command.queue_url), command, context.now_ms)
    pairs, _ = _decoder.decode(_unpacked(known.detail))
    try:
        return receive.received_again(state, call, command, context, pairs)
    except SqsError:
        return ReceiveMessageResult(), []  # the queue went meanwhile


def _repeated(state: State, call: c.Call, known: Recorded, context: ExecutionContext) -> Result:
    """The first attempt's answer again, made from its row and the command."""
    command = call.command
    if isinstance(command, c.SendMessage):
        return SendMessageResult(
            *_ids_of(state, command.queue_url, known.queue_id, known.sequence), sequence=known.sequence
        )
    if isinstance(command, t.Publish):
        number = known.sequence
        has_number = has_fifo_suffix(command.topic_arn or command.target_arn or "")
        message_id = state.identity.message_id(known.queue_id, number)
        return PublishResult(message_id, publish_sequence(number) if has_number else None, known.queue_id, number)
    pairs, failures = _decoder.decode(_unpacked(known.detail))
    if isinstance(command, t.TopicCommand):
        return _topic_repeated(state, call, command, pairs, context)
    match command:
        case c.SendMessageBatch():
            failed_ids = {failure.id for failure in failures}
            accepted = [(at, entry.id or "") for at, entry in enumerate(command.entries) if entry.id not in failed_ids]
            sent = [
                SentEntry(name, at, *_ids_of(state, command.queue_url, *pair))
                for (at, name), pair in zip(accepted, pairs, strict=True)
            ]
            return SendMessageBatchResult(sent, failures)
        case c.DeleteMessageBatch() | c.ChangeMessageVisibilityBatch():
            failed_ids = {failure.id for failure in failures}
            return BatchResult([x.id or "" for x in command.entries if x.id not in failed_ids], failures)
        case c.StartMessageMoveTask():
            task = state.move_tasks.get(pairs[0][1])
            return MoveTaskStartedResult(move_tasks.handle_of(task) if task is not None else "")
        case c.CancelMessageMoveTask():
            return MoveTaskCancelledResult(pairs[0][1])
        case (
            extensions.ElasticqChangePriority() | extensions.ElasticqReschedule() | extensions.ElasticqCancelScheduled()
        ):
            return priority.result_of(command, pairs)
        case g.ElasticqJoinGroup():
            return consumer_groups.joined_view(state, call, pairs[0][1])
        case g.ElasticqSetGroup() | g.ElasticqMoveResource() | g.ElasticqDrainConsumer():
            return GroupChangedResult(command.group_name or "", pairs[0][1])
        case extensions.AdvanceClock():
            return ClockResult(context.now_ms)
        case extensions.DeleteAllQueues():
            return QueuesDeletedResult(0, is_more=True)  # the caller asks again
        case c.DeclareQueue():
            return QueueDeclaredResult()
        case c.CreateQueue():
            return QueueUrlResult(queue_url(call.endpoint, call.account, command.queue_name or ""))
        case _:
            return EmptyResult()


def _topic_repeated(
    state: State, call: c.Call, command: t.TopicCommand, pairs: list[tuple[int, int]], context: ExecutionContext
) -> Result:
    match command:
        case t.PublishBatch():
            has_number = has_fifo_suffix(command.topic_arn or "")
            entries = zip(command.publish_batch_request_entries, pairs, strict=True)
            sent = [
                PublishedEntry(
                    entry.id or "",
                    state.identity.message_id(topic, number),
                    publish_sequence(number) if has_number else None,
                    number,
                )
                for entry, (topic, number) in entries
            ]
            return PublishBatchResult(sent)
        case t.CreateTopic():
            return TopicArnResult(topic_arn(context.region, call.account, command.name or ""))
        case t.Subscribe() | t.ConfirmSubscription():
            is_shown, number = pairs[0]
            arn = f"{command.topic_arn}:{state.identity.subscription_key(number)}"
            return SubscribeResult(arn if is_shown else subscriptions.PENDING, number, bool(is_shown))
        case t.TagResource() | t.UntagResource():
            return TopicTagged()
        case _:
            return TopicDone()
