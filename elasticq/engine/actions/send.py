"""SendMessage and SendMessageBatch on standard queues."""

from elasticq.engine import contents
from elasticq.engine import mutations as m
from elasticq.engine.batches import check_entries, failed
from elasticq.engine.identity import next_sequence
from elasticq.engine.state import Queue, State
from elasticq.engine.turn import Outcome, Turn, named_queue
from elasticq.model import limits
from elasticq.model.commands import Call, SendMessage, SendMessageBatch, SendMessageBatchEntry
from elasticq.model.errors import BatchRequestTooLong, SqsError
from elasticq.model.results import SendMessageBatchResult, SendMessageResult, SentEntry


def send_message(state: State, call: Call, command: SendMessage, turn: Turn) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    sequence = next_sequence(queue.last_sequence, turn.term)
    stored = _stored(queue, call, command, sequence, turn, in_batch=False)
    return SendMessageResult(state.identity.message_id(queue.id, sequence)), [stored]


def _stored(
    queue: Queue,
    call: Call,
    entry: SendMessage | SendMessageBatchEntry,
    sequence: int,
    turn: Turn,
    *,
    in_batch: bool,
) -> m.MessageStored:
    """The entry as a mutation, or the SqsError that AWS gives."""
    body = contents.check_body(entry.message_body)
    attributes = entry.message_attributes
    if attributes:
        contents.check_attributes(attributes)
    if contents.message_bytes(body, attributes) > queue.message_bytes_max:
        raise contents.too_long(queue.message_bytes_max, in_batch=in_batch)
    delay_s = queue.delay_s if entry.delay_seconds is None else contents.check_delay(entry.delay_seconds)
    if entry.message_deduplication_id is not None:
        raise contents.no_deduplication(entry.message_deduplication_id)
    stored = m.MessageStored(queue.id, sequence, body, turn.now_ms, call.principal)
    if delay_s:
        stored.visible_at_ms = turn.now_ms + delay_s * 1_000
    if attributes:
        stored.attributes = attributes
    if entry.message_system_attributes:
        stored.trace_header = contents.trace_header(entry.message_system_attributes)
    if entry.message_group_id is not None:
        stored.group_id = contents.check_group_id(entry.message_group_id)
    return stored


def send_message_batch(state: State, call: Call, command: SendMessageBatch, turn: Turn) -> Outcome:
    """All entries that pass are stored in one log entry; the others are answered as failed."""
    queue = named_queue(state, call, command.queue_url)
    ids = check_entries(command.entries, "SendMessageBatchRequestEntry")
    total_bytes = sum(contents.message_bytes(x.message_body or "", x.message_attributes) for x in command.entries)
    if total_bytes > limits.BODY_BYTES_MAX:
        raise BatchRequestTooLong(
            f"Batch requests cannot be longer than {limits.BODY_BYTES_MAX} bytes. You have sent {total_bytes} bytes."
        )
    result = SendMessageBatchResult()
    mutations: list[m.Mutation] = []
    sequence = next_sequence(queue.last_sequence, turn.term)
    for position, (name, entry) in enumerate(zip(ids, command.entries, strict=True)):
        try:
            mutations.append(_stored(queue, call, entry, sequence, turn, in_batch=True))
        except SqsError as error:
            result.failed.append(failed(name, error))
            continue
        result.successful.append(SentEntry(name, position, state.identity.message_id(queue.id, sequence)))
        sequence += 1
    return result, mutations
