"""What REST does with a message that its sequence names, whoever has it: it is deleted, hidden or shown, or moved.

A consumer has no receipt handle there. So a delete or a change of visibility acts on the newest delivery, as if it
were asked for with its handle; a message that was never received can be deleted, too, unless it must be in flight.
"""

from elasticq.engine import metadata
from elasticq.engine.actions.delete import delete_message
from elasticq.engine.actions.priority import check_has_priorities
from elasticq.engine.actions.visibility import change_message_visibility
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call, ChangeMessageVisibility, DeleteMessage
from elasticq.model.errors import MessageNotInflight, MissingParameter, ResourceNotFound
from elasticq.model.extensions import BySequence, DeleteBySequence, HideBySequence, PrioritiseBySequence
from elasticq.model.results import EmptyResult


def _message(state: State, call: Call, command: BySequence, context: ExecutionContext) -> Queue:
    """The queue of the message. Raises ResourceNotFound where it is gone, and what a fence raises."""
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    if queue.row(command.sequence) is None:
        raise ResourceNotFound("The message does not exist, or was deleted.")
    return queue


def _handle(state: State, queue: Queue, sequence: int, context: ExecutionContext) -> str:
    """The handle of the delivery under which the message is in flight. Raises MessageNotInflight."""
    row = queue.row(sequence)
    if row is None or not queue.order.is_in_flight(sequence, context.now_ms):
        raise MessageNotInflight("The message is not in flight: nobody has received it, or its time is over.")
    return state.identity.receipt_handle(queue.id, sequence, row.delivery_number)


def delete_by_sequence(state: State, call: Call, command: DeleteBySequence, context: ExecutionContext) -> Outcome:
    queue = _message(state, call, command, context)
    if not command.must_be_in_flight:
        return EmptyResult(), [m.MessagesRemoved(queue.id, [command.sequence])]
    handle = _handle(state, queue, command.sequence, context)
    return delete_message(state, call, DeleteMessage(command.queue_url, handle), context)


def hide_by_sequence(state: State, call: Call, command: HideBySequence, context: ExecutionContext) -> Outcome:
    queue = _message(state, call, command, context)
    handle = command.receipt_handle or _handle(state, queue, command.sequence, context)
    seconds = queue.visibility_s if command.visibility_timeout is None else command.visibility_timeout
    hidden = ChangeMessageVisibility(command.queue_url, handle, seconds)
    result, mutations = change_message_visibility(state, call, hidden, context)
    hides = [each for each in mutations if isinstance(each, m.VisibilityChanged)]  # none: the handle is an older one
    if command.metadata and hides:
        mutations = [*mutations, *metadata.kept(state, queue, hides[0].sequences[0], command.metadata, context)]
    return result, mutations


def prioritise_by_sequence(
    state: State, call: Call, command: PrioritiseBySequence, context: ExecutionContext
) -> Outcome:
    queue = _message(state, call, command, context)
    check_has_priorities(queue)
    if command.priority is None:
        raise MissingParameter("The request must contain the parameter Priority.")
    return EmptyResult(), [m.PrioritiesSet(queue.id, [command.sequence], [command.priority])]
