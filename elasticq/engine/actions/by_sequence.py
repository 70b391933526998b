"""The REST actions on a message given by its sequence: delete, change of visibility, and change of priority.

These calls need no receipt handle. A delete or a change of visibility acts on the newest delivery, as if the call had
its handle. A message that was never received can be deleted as well, unless the call requires that it is in flight.
"""

from elasticq.engine import metadata
from elasticq.engine.actions.delete import delete_message
from elasticq.engine.actions.priority import check_has_priorities
from elasticq.engine.actions.visibility import change_message_visibility
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.ordering.schedule import checked_ms
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call, ChangeMessageVisibility, DeleteMessage
from elasticq.model.errors import MessageNotInflight, MissingParameter, ResourceNotFound
from elasticq.model.extensions import BySequence, DeleteBySequence, HideBySequence, PrioritiseBySequence
from elasticq.model.results import EmptyResult


def _queue_of_message(state: State, call: Call, command: BySequence, context: ExecutionContext) -> Queue:
    """Return the queue of the message. Raise ResourceNotFound if the message is gone, or what the fence raises."""
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    if queue.row(command.sequence) is None:
        raise ResourceNotFound("The message does not exist, or was deleted.")
    return queue


def _handle(state: State, queue: Queue, sequence: int, context: ExecutionContext) -> str:
    """Return the receipt handle of the newest delivery. Raise MessageNotInflight if the message is not in flight."""
    row = queue.row(sequence)
    if row is None or not queue.order.is_in_flight(sequence, context.now_ms):
        raise MessageNotInflight("The message is not in flight: not received, or its visibility timeout has ended.")
    return state.identity.receipt_handle(queue.id, sequence, row.delivery_number)


def delete_by_sequence(state: State, call: Call, command: DeleteBySequence, context: ExecutionContext) -> Outcome:
    queue = _queue_of_message(state, call, command, context)
    if not command.must_be_in_flight:
        return EmptyResult(), [m.MessagesRemoved(queue.id, [command.sequence])]
    handle = _handle(state, queue, command.sequence, context)
    return delete_message(state, call, DeleteMessage(command.queue_url, handle), context)


def hide_by_sequence(state: State, call: Call, command: HideBySequence, context: ExecutionContext) -> Outcome:
    queue = _queue_of_message(state, call, command, context)
    handle = command.receipt_handle or _handle(state, queue, command.sequence, context)
    seconds = queue.visibility_s if command.visibility_timeout is None else command.visibility_timeout
    until_ms = None
    if command.deliver_at is not None:
        seconds, until_ms = 0, checked_ms(command.deliver_at, context.now_ms, queue.rules.ahead_ms_max)
    hidden = ChangeMessageVisibility(command.queue_url, handle, seconds)
    result, mutations = change_message_visibility(state, call, hidden, context)
    # ``hides`` is empty if the handle is of an older delivery.
    hides = [each for each in mutations if isinstance(each, m.VisibilityChanged)]
    if hides and until_ms:
        hides[0].until_ms = [until_ms]
    if command.metadata and hides:
        mutations = [*mutations, *metadata.kept(state, queue, hides[0].sequences[0], command.metadata, context)]
    return result, mutations


def prioritise_by_sequence(
    state: State, call: Call, command: PrioritiseBySequence, context: ExecutionContext
) -> Outcome:
    queue = _queue_of_message(state, call, command, context)
    check_has_priorities(queue)
    if command.priority is None:
        raise MissingParameter("The request must contain the parameter Priority.")
    return EmptyResult(), [m.PrioritiesSet(queue.id, [command.sequence], [command.priority])]
