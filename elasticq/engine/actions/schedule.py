"""ElasticqReschedule and ElasticqCancelScheduled. They act on messages that wait for their time of delivery.

All other messages count as not found. After its first receive, only visibility timeouts apply to a message. Messages
are given by their MessageIds and searched as ElasticqChangePriority does.
"""

from elasticq.engine.actions.priority import answer_of, check_ids, look_for
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.schedule import checked_ms
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call
from elasticq.model.errors import MissingParameter, UnsupportedOperation
from elasticq.model.extensions import ById, ElasticqCancelScheduled, ElasticqReschedule
from elasticq.model.results import PrioritiesChangedResult


def reschedule(state: State, call: Call, command: ElasticqReschedule, context: ExecutionContext) -> Outcome:
    """Set the time of delivery of the messages found. Raise ContentsMissing."""
    queue = _queue(state, call, command)
    if command.deliver_at is None:
        raise MissingParameter("The request must contain the parameter DeliverAt.")
    now_ms = context.now_ms
    until_ms = checked_ms(command.deliver_at, now_ms, queue.rules.ahead_ms_max) or now_ms
    result, waiting = _found(state, queue, command, now_ms)
    return result, [m.VisibilityChanged(queue.id, part, [until_ms] * len(part)) for part in m.chunks(waiting)]


def cancel_scheduled(state: State, call: Call, command: ElasticqCancelScheduled, context: ExecutionContext) -> Outcome:
    """Remove the messages found. Raise ContentsMissing."""
    queue = _queue(state, call, command)
    result, waiting = _found(state, queue, command, context.now_ms)
    return result, [m.MessagesRemoved(queue.id, part) for part in m.chunks(waiting)]


def _queue(state: State, call: Call, command: ById) -> Queue:
    queue = named_queue(state, call, command.queue_url)
    if not queue.kind.delays_messages:
        raise UnsupportedOperation("Messages of FIFO queues have no individual time of delivery.")
    check_ids(command)
    return queue


def _found(state: State, queue: Queue, command: ById, now_ms: int) -> tuple[PrioritiesChangedResult, list[int]]:
    """Return the answer, and the sequences of the messages found that wait for their time of delivery."""
    found, next_token = look_for(state, queue, command)
    waiting = {name: sequence for name, sequence in found.items() if queue.order.is_delayed(sequence, now_ms)}
    return answer_of(command, waiting, next_token), sorted(waiting.values())
