"""The execution of commands: the table of handlers, and the answers to an SDK's retries.

A call that changed something adds one row to the history of calls, in the same entry as its mutations. So does a call
that changed nothing and succeeded, such as a delete of a missing message. Otherwise a later retry might be refused. A
read, an empty receive and a refused call add no row. Their retries run again.
"""

from collections.abc import Callable
from typing import Any, Final

from elasticq.engine import access, retry_answers
from elasticq.engine.actions import (
    attributes,
    by_sequence,
    declare,
    delete,
    identity,
    leases,
    peek,
    permissions,
    priority,
    queues,
    schedule,
    send,
    tags,
    testing,
    visibility,
)
from elasticq.engine.consumer_groups import actions as consumer_groups
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.redrive import move_actions as move_tasks
from elasticq.engine.retry_answers import First, Retry
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.call_history import History
from elasticq.engine.stored.invocations import TOO_MANY
from elasticq.engine.topics import actions as topics
from elasticq.engine.topics import permissions as topic_permissions
from elasticq.engine.topics import publish, subscriptions
from elasticq.engine.topics import tags as topic_tags
from elasticq.model import commands as c
from elasticq.model import extensions
from elasticq.model import group_commands as g
from elasticq.model import topic_commands as t
from elasticq.model.errors import RequestThrottled
from elasticq.model.identity import GetCallerIdentity
from elasticq.model.results import Result, SendMessageResult


class Handler:
    """How the engine executes one command, and how it answers a retry of it.

    run: returns the result and the mutations, and raises the SqsError that the client gets.
    """

    def __init__(
        self, run: Callable[[State, c.Call, Any, ExecutionContext], Outcome], retry: Retry = retry_answers.DONE
    ) -> None:
        self.run = run
        self.retry = retry


HANDLERS: Final[dict[type[c.Command], Handler]] = {
    c.CreateQueue: Handler(queues.create_queue, retry_answers.QUEUE_CREATED),
    c.GetQueueUrl: Handler(queues.get_queue_url),
    c.ListQueues: Handler(queues.list_queues),
    GetCallerIdentity: Handler(identity.get_caller_identity),
    c.DeleteQueue: Handler(queues.delete_queue),
    c.PurgeQueue: Handler(queues.purge_queue),
    c.GetQueueAttributes: Handler(attributes.get_queue_attributes),
    c.SetQueueAttributes: Handler(attributes.set_queue_attributes),
    c.SendMessage: Handler(send.send_message, retry_answers.MESSAGE_SENT),
    c.SendMessageBatch: Handler(send.send_message_batch, retry_answers.BATCH_SENT),
    c.ReceiveMessage: Handler(leases.receive_message, retry_answers.RECEIVED),
    c.DeleteMessage: Handler(leases.delete_message),
    c.DeleteMessageBatch: Handler(delete.delete_message_batch, retry_answers.BATCH_DONE),
    c.ChangeMessageVisibility: Handler(leases.change_message_visibility),
    c.ChangeMessageVisibilityBatch: Handler(visibility.change_message_visibility_batch, retry_answers.BATCH_DONE),
    c.TagQueue: Handler(tags.tag_queue),
    c.UntagQueue: Handler(tags.untag_queue),
    c.ListQueueTags: Handler(tags.list_queue_tags),
    c.AddPermission: Handler(permissions.add_permission),
    c.RemovePermission: Handler(permissions.remove_permission),
    c.ListDeadLetterSourceQueues: Handler(queues.list_dead_letter_source_queues),
    c.StartMessageMoveTask: Handler(move_tasks.start_message_move_task, retry_answers.TASK_STARTED),
    c.CancelMessageMoveTask: Handler(move_tasks.cancel_message_move_task, retry_answers.TASK_CANCELLED),
    c.ListMessageMoveTasks: Handler(move_tasks.list_message_move_tasks),
    extensions.AdvanceClock: Handler(testing.advance_clock, retry_answers.CLOCK_ADVANCED),
    extensions.DeleteAllQueues: Handler(testing.delete_all_queues, retry_answers.QUEUES_DELETED),
    extensions.ElasticqCancelScheduled: Handler(schedule.cancel_scheduled, retry_answers.PRIORITIES_CHANGED),
    extensions.ElasticqChangePriority: Handler(priority.change_priority, retry_answers.PRIORITIES_CHANGED),
    extensions.ElasticqReschedule: Handler(schedule.reschedule, retry_answers.PRIORITIES_CHANGED),
    extensions.DeleteBySequence: Handler(by_sequence.delete_by_sequence),
    extensions.HideBySequence: Handler(by_sequence.hide_by_sequence),
    extensions.PrioritiseBySequence: Handler(by_sequence.prioritise_by_sequence),
    extensions.Peek: Handler(peek.peek),
    c.DeclareQueue: Handler(declare.declare_queue, retry_answers.QUEUE_DECLARED),
    g.ElasticqSetGroup: Handler(consumer_groups.set_group, retry_answers.GROUP_CHANGED),
    g.ElasticqDeleteGroup: Handler(consumer_groups.delete_group),
    g.ElasticqJoinGroup: Handler(consumer_groups.join_group, retry_answers.GROUP_JOINED),
    g.ElasticqHeartbeat: Handler(consumer_groups.heartbeat, retry_answers.RUN_AGAIN),
    g.ElasticqLeaveGroup: Handler(consumer_groups.leave_group),
    g.ElasticqMoveResource: Handler(consumer_groups.move_resource, retry_answers.GROUP_CHANGED),
    g.ElasticqDrainConsumer: Handler(consumer_groups.drain_consumer, retry_answers.GROUP_CHANGED),
    g.ElasticqDescribeGroups: Handler(consumer_groups.describe_groups),
    t.CreateTopic: Handler(topics.create_topic, retry_answers.TOPIC_CREATED),
    t.DeleteTopic: Handler(topics.delete_topic, retry_answers.TOPIC_DONE),
    t.ListTopics: Handler(topics.list_topics, retry_answers.TOPIC_DONE),
    t.GetTopicAttributes: Handler(topics.get_topic_attributes, retry_answers.TOPIC_DONE),
    t.SetTopicAttributes: Handler(topics.set_topic_attributes, retry_answers.TOPIC_DONE),
    t.Subscribe: Handler(subscriptions.subscribe, retry_answers.SUBSCRIBED),
    t.ConfirmSubscription: Handler(subscriptions.confirm_subscription, retry_answers.SUBSCRIBED),
    t.Unsubscribe: Handler(subscriptions.unsubscribe, retry_answers.TOPIC_DONE),
    t.ListSubscriptions: Handler(subscriptions.list_subscriptions, retry_answers.TOPIC_DONE),
    t.ListSubscriptionsByTopic: Handler(subscriptions.list_subscriptions_by_topic, retry_answers.TOPIC_DONE),
    t.GetSubscriptionAttributes: Handler(subscriptions.get_subscription_attributes, retry_answers.TOPIC_DONE),
    t.SetSubscriptionAttributes: Handler(subscriptions.set_subscription_attributes, retry_answers.TOPIC_DONE),
    t.Publish: Handler(publish.publish, retry_answers.PUBLISHED),
    t.PublishBatch: Handler(publish.publish_batch, retry_answers.BATCH_PUBLISHED),
    t.TagResource: Handler(topic_tags.tag_resource, retry_answers.TOPIC_TAGGED),
    t.UntagResource: Handler(topic_tags.untag_resource, retry_answers.TOPIC_TAGGED),
    t.ListTagsForResource: Handler(topic_tags.list_tags_for_resource, retry_answers.TOPIC_DONE),
    t.AddTopicPermission: Handler(topic_permissions.add_permission, retry_answers.TOPIC_DONE),
    t.RemoveTopicPermission: Handler(topic_permissions.remove_permission, retry_answers.TOPIC_DONE),
    t.GetDataProtectionPolicy: Handler(topics.get_data_protection_policy, retry_answers.TOPIC_DONE),
    t.PutDataProtectionPolicy: Handler(topics.put_data_protection_policy, retry_answers.TOPIC_DONE),
    t.NothingThere: Handler(topics.nothing_there, retry_answers.TOPIC_DONE),
}


_SENT: Final = SendMessageResult
_STORED: Final = m.MessageStored


def execute(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
    """Return the result of a call and the mutations to apply. Raise the SqsError that the client gets.

    The function does not change the state. A retry gets the answer of the first attempt.
    """
    command = call.command
    if call.origin is not None:
        access.check(state, call, context)
    handler = HANDLERS[type(command)]
    invocation, history = call.invocation, state.invocations
    if not invocation:
        return handler.run(state, call, command, context)
    known = history.get(invocation, context.now_ms)
    if known is not None:
        return handler.retry.repeat(First(state, call, known, context))
    if handler.retry.is_send:
        _check_history(history, handler.retry, context.now_ms)
    result, mutations = handler.run(state, call, command, context)
    if type(result) is _SENT and mutations and isinstance(stored := mutations[0], _STORED):
        mutations.append(m.InvocationRecorded(invocation, context.now_ms, stored.queue_id, stored.sequence))
    elif isinstance(result, Result) and handler.retry.is_kept(result, mutations):
        recorded = retry_answers.record(call, result, handler.retry.facts(command, result, mutations), context.now_ms)
        if not recorded.detail or not history.are_details_full(context.now_ms):
            mutations.append(recorded)
    return result, mutations


def _check_history(history: History, retry: Retry, now_ms: int) -> None:
    """Raise RequestThrottled for a send or publish that the history cannot record."""
    if history.is_full(now_ms) or (retry.has_facts and history.are_details_full(now_ms)):
        raise RequestThrottled(TOO_MANY)


def seal_or_answer(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
    """Return the answer of a leased receive at the end of its wait, and the mutations to apply.

    Raise SqsError, or ContentsMissing if contents are on disk only.
    """
    if call.origin is not None:
        access.check(state, call, context)
    return leases.seal_or_answer_lease(state, call, context)
