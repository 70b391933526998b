"""DeleteMessage and DeleteMessageBatch.

FIFO queues have strict handles: they refuse a handle whose visibility timeout has ended.
"""

from collections.abc import Callable
from typing import Final

from elasticq.engine.actions.batches import batch_entries_max, check_entries, failed
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call, DeleteMessage, DeleteMessageBatch
from elasticq.model.errors import InvalidParameterValue, MissingParameter, ReceiptHandleIsInvalid, SqsError, quoted
from elasticq.model.results import BatchResult, EmptyResult

# Faster: compiled code finds names of its own module without a dict lookup.
_EmptyResult: Final = EmptyResult
_MessagesRemoved: Final = m.MessagesRemoved


def read_receipt(state: State, queue: Queue, handle: str | None) -> tuple[int, int]:
    """Return the sequence and delivery number in a receipt handle of this queue.

    Raise MissingParameter or ReceiptHandleIsInvalid.
    """
    if not handle:
        raise MissingParameter("The request must contain the parameter ReceiptHandle.")
    receipt = state.identity.read_handle(handle)
    if receipt.queue_id != queue.id:
        raise ReceiptHandleIsInvalid(f'The input receipt handle "{quoted(handle)}" is not a valid receipt handle.')
    return receipt.sequence, receipt.delivery_number


def has_expired(handle: str | None) -> SqsError:
    """Return the error for a strict handle of a message that is not in flight under this handle."""
    return InvalidParameterValue(
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
    )


def _has_expired_in_batch(handle: str | None) -> SqsError:
    """Return the same error with the text of DeleteMessageBatch."""
    return ReceiptHandleIsInvalid("The receipt handle has expired")


def _deletable(
    state: State, queue: Queue, handle: str | None, context: ExecutionContext, expired: Callable[[str | None], SqsError]
) -> int | None:
    """Return the sequence to remove; None if the call succeeds without a change.

    The call changes nothing if the message is gone. It also changes nothing if the handle is of an earlier delivery
    while the message is in flight, because its later consumer may be processing it.
    Raise ``expired`` if handles are strict and an existing message is not in flight under this handle.
    """
    sequence, delivery_number = read_receipt(state, queue, handle)
    row = queue.row(sequence)
    if row is None:
        return None
    order, is_newest = queue.order, row.delivery_number == delivery_number
    if queue.kind.has_strict_handles:
        if not (order.is_in_flight(sequence, context.now_ms) and is_newest):
            raise expired(handle)
        return sequence
    return sequence if is_newest or not order.is_in_flight(sequence, context.now_ms) else None


def delete_message(state: State, call: Call, command: DeleteMessage, context: ExecutionContext) -> Outcome:
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    queue.order.advance(context.now_ms)  # before the delete, so the order of due messages does not depend on it
    sequence = _deletable(state, queue, command.receipt_handle, context, has_expired)
    return _EmptyResult(), [] if sequence is None else [_MessagesRemoved(queue.id, [sequence])]


def delete_message_batch(state: State, call: Call, command: DeleteMessageBatch, context: ExecutionContext) -> Outcome:
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    entries_max = batch_entries_max(context, command.elasticq_page_size)
    ids = check_entries(command.entries, "DeleteMessageBatchRequestEntry", entries_max)
    result = BatchResult()
    sequences: dict[int, None] = {}
    queue.order.advance(context.now_ms)
    for name, entry in zip(ids, command.entries, strict=True):
        try:
            sequence = _deletable(state, queue, entry.receipt_handle, context, _has_expired_in_batch)
        except SqsError as error:
            result.failed.append(failed(name, error))
            continue
        result.successful.append(name)
        if sequence is not None:
            sequences[sequence] = None
    return result, [m.MessagesRemoved(queue.id, list(sequences))] if sequences else []
