"""GetQueueAttributes and SetQueueAttributes."""

from elasticq.engine.actions import queue_attributes
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.redrive import dead_letters as redrive
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.sweep import expired_counts
from elasticq.model.commands import Call, GetQueueAttributes, SetQueueAttributes
from elasticq.model.errors import InvalidAttributeName, MissingParameter, quoted
from elasticq.model.names import queue_arn
from elasticq.model.results import EmptyResult, QueueAttributesResult


def get_queue_attributes(state: State, call: Call, command: GetQueueAttributes, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    names = command.attribute_names
    for name in names:
        if name != "All" and name not in queue_attributes.NAMES:
            raise InvalidAttributeName(f"Unknown Attribute {quoted(name)}.")
    if not names:
        return QueueAttributesResult(), []
    everything = _all_attributes(queue, context)
    if "All" in names:
        return QueueAttributesResult(everything), []
    return QueueAttributesResult({name: everything[name] for name in names if name in everything}), []


def _all_attributes(queue: Queue, context: ExecutionContext) -> dict[str, str]:
    counts = queue.order.counts(context.now_ms)
    expired = expired_counts(queue, context.now_ms)
    return {
        "QueueArn": queue_arn(context.region, queue.account, queue.name),
        "ApproximateNumberOfMessages": str(counts.visible - expired.visible),
        "ApproximateNumberOfMessagesNotVisible": str(counts.in_flight - expired.in_flight),
        "ApproximateNumberOfMessagesDelayed": str(counts.delayed - expired.delayed),
        "CreatedTimestamp": str(queue.created_ms // 1_000),
        "LastModifiedTimestamp": str(queue.modified_ms // 1_000),
        **queue_attributes.shown(queue.attributes),
    }


def set_queue_attributes(state: State, call: Call, command: SetQueueAttributes, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    if not command.attributes:
        raise MissingParameter("The request must contain the parameter Attribute.Name.")
    change = queue_attributes.checked(command.attributes, queue.kind, context)
    if not change:
        return EmptyResult(), []
    redrive.check_target(state, queue.account, queue.name, queue.kind, change, context)
    queue_attributes.check_fixed(queue.attributes, change)
    attributes = queue_attributes.merged(queue.attributes, change)
    return EmptyResult(), [m.QueueAttributesSet(queue.id, attributes, context.now_ms)]
