"""ChangeMessageVisibility and its batch."""

from elasticq.engine.actions.batches import batch_entries_max, check_entries, failed
from elasticq.engine.actions.delete import has_expired, read_receipt
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import check_range
from elasticq.model import limits
from elasticq.model.commands import Call, ChangeMessageVisibility, ChangeMessageVisibilityBatch
from elasticq.model.errors import InvalidParameterValue, MissingParameter, SqsError
from elasticq.model.results import BatchResult, EmptyResult


def _change(
    state: State, queue: Queue, handle: str | None, visibility_timeout_s: int | None, context: ExecutionContext
) -> tuple[int, int] | None:
    """Return the sequence and its new deadline in ms; None if the call succeeds without a change.

    The call changes nothing if the message is not in flight. With strict handles it then raises InvalidParameterValue.
    As on AWS, the handle of an earlier delivery works as well. But in queues with living leases it changes nothing,
    because only a lease may change the visibility of its messages.
    """
    if visibility_timeout_s is None:
        raise MissingParameter("The request must contain the parameter VisibilityTimeout.")
    check_range(
        visibility_timeout_s,
        0,
        limits.VISIBILITY_S_MAX,
        "VisibilityTimeout",
        "Must be between 0 and 43200, if provided",
    )
    sequence, delivery_number = read_receipt(state, queue, handle)
    row = queue.row(sequence)
    if row is None:
        raise InvalidParameterValue(
            f"Value {handle} for parameter ReceiptHandle is invalid. "
            "Reason: Message does not exist or is not available for visibility timeout change."
        )
    is_in_flight = queue.order.is_in_flight(sequence, context.now_ms)
    if queue.kind.has_strict_handles and (row.delivery_number != delivery_number or not is_in_flight):
        raise has_expired(handle)
    if not is_in_flight or (row.delivery_number != delivery_number and state.leases.has_living(queue.id)):
        return None
    until_ms = context.now_ms + visibility_timeout_s * 1_000
    if until_ms > row.received_ms + limits.VISIBILITY_S_MAX * 1_000:
        raise InvalidParameterValue(
            f"Value {visibility_timeout_s} for parameter VisibilityTimeout is invalid. "
            "Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        )
    if queue.kind.remembers_attempts and until_ms == row.visible_at_ms:
        until_ms -= 1  # so a retry with the ReceiveRequestAttemptId finds a changed visibility
    return sequence, until_ms


def change_message_visibility(
    state: State, call: Call, command: ChangeMessageVisibility, context: ExecutionContext
) -> Outcome:
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    change = _change(state, queue, command.receipt_handle, command.visibility_timeout, context)
    return EmptyResult(), [] if change is None else [m.VisibilityChanged(queue.id, [change[0]], [change[1]])]


def change_message_visibility_batch(
    state: State, call: Call, command: ChangeMessageVisibilityBatch, context: ExecutionContext
) -> Outcome:
    """Change the visibility of several messages in one mutation. If two entries name a message, the later one wins."""
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    entries_max = batch_entries_max(context, command.elasticq_page_size)
    ids = check_entries(command.entries, "ChangeMessageVisibilityBatchRequestEntry", entries_max)
    result = BatchResult()
    until_ms: dict[int, int] = {}
    for name, entry in zip(ids, command.entries, strict=True):
        try:
            change = _change(state, queue, entry.receipt_handle, entry.visibility_timeout, context)
        except SqsError as error:
            result.failed.append(failed(name, error))
            continue
        result.successful.append(name)
        if change is not None:
            until_ms[change[0]] = change[1]
    if not until_ms:
        return result, []
    return result, [m.VisibilityChanged(queue.id, list(until_ms), list(until_ms.values()))]
