"""SendMessage and SendMessageBatch.

A FIFO queue remembers a deduplication id for five minutes, a standard queue for its idempotency window. A send with a
remembered id stores nothing and gets the answer of the first send.
"""

from typing import Final

from elasticq.engine import idempotency_window
from elasticq.engine.actions.batches import batch_entries_max, check_entries, failed
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.deduplication import deduplication_key, first_sent
from elasticq.engine.idempotency_window import sent_id_key, taken
from elasticq.engine.redrive.forwards import Copies, route
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import contents
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence, sequence_number
from elasticq.model import limits
from elasticq.model.commands import Call, Command, SendMessage, SendMessageBatch, SendMessageBatchEntry
from elasticq.model.errors import BatchRequestTooLong, MissingParameter, SqsError
from elasticq.model.results import SendMessageBatchResult, SendMessageResult, SentEntry

_MessageStored: Final = m.MessageStored  # faster: compiled code finds a global of its own module without a dict lookup
_SendMessageResult: Final = SendMessageResult
_SentEntry: Final = SentEntry


def send_message(state: State, call: Call, command: SendMessage, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    if queue.is_forwarding:
        return _send_on(state, queue, call, command, context)
    return _send(state, queue, call, command, context)


def _send(state: State, queue: Queue, call: Call, command: SendMessage, context: ExecutionContext) -> Outcome:
    sequence = next_sequence(queue.last_sequence, context.term)
    stored = _Sender(queue, call, context, in_batch=False).stored(command, sequence)
    if stored.deduplication_id is None:
        return _SendMessageResult(state.identity.message_id(queue.id, sequence), None, sequence), [stored]
    key = _key(queue, stored, stored.deduplication_id)
    first = _first_sent(state, queue, key, context)
    mutations: list[m.Mutation] = []
    if first is None:
        first = sequence
        mutations = [stored, _taken(queue, key, first, context)]
    message_id = state.identity.message_id(queue.id, first)
    number = sequence_number(first) if queue.kind.has_sequence_numbers else None
    return SendMessageResult(message_id, number, first), mutations


def _key(queue: Queue, stored: m.MessageStored, deduplication_id: str) -> bytes:
    return deduplication_key(queue, stored) or sent_id_key(queue, deduplication_id)


def _first_sent(state: State, queue: Queue, key: bytes, context: ExecutionContext) -> int | None:
    """Return the sequence of the message that was sent with the id before, or None.

    Raise RequestThrottled if there is no such message and no more ids can be remembered.
    """
    look = first_sent if queue.kind.deduplicates_all else idempotency_window.first_sent
    return look(state, key, context.now_ms)


def _taken(queue: Queue, key: bytes, sequence: int, context: ExecutionContext) -> m.Mutation:
    """Return the mutation that remembers a deduplication id."""
    if queue.kind.deduplicates_all:
        return m.InvocationRecorded(key, context.now_ms, queue.id, sequence)
    return taken(queue, key, sequence, context)


def _send_on(state: State, queue: Queue, call: Call, command: SendMessage, context: ExecutionContext) -> Outcome:
    """Return the outcome of a send to a queue with copyTo or moveTo."""
    queue, targets = route(state, queue)
    result, mutations = _send(state, queue, call, command, context)
    return result, mutations + _copies(state, targets, mutations, [command.delay_seconds], context)


def _copies(
    state: State,
    targets: list[Queue],
    mutations: list[m.Mutation],
    delays_s: list[int | None],
    context: ExecutionContext,
) -> list[m.Mutation]:
    """Return the mutations that store copies, in ``targets``, of the messages stored by ``mutations``.

    delays_s: the DelaySeconds of each message, or None. Raise an SqsError if the copies do not fit into one entry.
    """
    copies = Copies(state, targets, context)
    stored = [each for each in mutations if isinstance(each, m.MessageStored)]
    size_bytes = sum(map(contents.stored_bytes, stored))
    if size_bytes * (1 + len(targets)) > limits.FORWARDED_BYTES_MAX:
        raise contents.too_long(limits.FORWARDED_BYTES_MAX // (1 + len(targets)), in_batch=len(delays_s) > 1)
    for each, delay_s in zip(stored, delays_s, strict=False):
        copies.add(each, delay_s)
    return copies.mutations


class _Sender:
    """The values that are the same for all messages of one call, read once."""

    __slots__ = (
        "_allowed",
        "_delay_s",
        "_in_batch",
        "_message_bytes_max",
        "_needs_group",
        "_now_ms",
        "_principal",
        "_queue_id",
        "_rules",
        "_trace_header",
    )

    def __init__(self, queue: Queue, call: Call, context: ExecutionContext, *, in_batch: bool) -> None:
        allowed = context.limits
        self._allowed = allowed
        self._delay_s = queue.delay_s
        self._in_batch = in_batch
        self._message_bytes_max: int = allowed.body_bytes if allowed.is_relaxed else queue.message_bytes_max
        self._needs_group = queue.kind.needs_group
        self._now_ms = context.now_ms
        self._principal = call.principal
        self._queue_id = queue.id
        self._rules = queue.rules
        self._trace_header = call.trace_header

    def stored(self, entry: SendMessage | SendMessageBatchEntry, sequence: int) -> m.MessageStored:
        """Return the mutation that stores the entry. Raise the SqsError of AWS if the entry is invalid."""
        if self._needs_group and entry.message_group_id is None:
            raise MissingParameter(contents.NO_GROUP)
        attributes, system_attributes = entry.message_attributes, entry.message_system_attributes
        body = entry.message_body or ""
        # The size comes first, because checking each character of 8 MiB takes long.
        if contents.message_bytes(body, attributes) > self._message_bytes_max:
            raise contents.too_long(self._message_bytes_max, in_batch=self._in_batch)
        contents.check_body(body, self._allowed)
        if attributes:
            contents.check_attributes(attributes, self._allowed)
        stored = _MessageStored(self._queue_id, sequence, body, self._now_ms, self._principal)
        if attributes:
            stored.attributes = attributes
        if system_attributes:
            stored.trace_header = contents.trace_header(system_attributes)
        elif self._trace_header:
            stored.trace_header = self._trace_header
        self._rules.complete(stored, entry, self._delay_s, self._now_ms)
        return stored


def send_message_batch(state: State, call: Call, command: SendMessageBatch, context: ExecutionContext) -> Outcome:
    """Store all valid entries of the batch in one log entry. The answer lists the others as failed."""
    queue = named_queue(state, call, command.queue_url)
    entries_max = batch_entries_max(context, command.elasticq_page_size)
    ids = check_entries(command.entries, "SendMessageBatchRequestEntry", entries_max)
    _check_total(command, context.limits)
    if not queue.is_forwarding:
        return _send_batch(state, queue, call, command, ids, context)
    queue, targets = route(state, queue)
    result, mutations = _send_batch(state, queue, call, command, ids, context)
    assert isinstance(result, SendMessageBatchResult)
    # A duplicate stored nothing: its sequence is not among the stored ones. Results without a sequence come from queues
    # without deduplication, or from FIFO queues, where messages have no own delay.
    stored = {each.sequence: None for each in mutations if isinstance(each, m.MessageStored)}
    delays_s = [
        command.entries[sent.position].delay_seconds
        for sent in result.successful
        if not sent.sequence or stored.pop(sent.sequence, sent) is None
    ]
    return result, mutations + _copies(state, targets, mutations, delays_s, context)


def check_size(command: Command, allowed: limits.Limits) -> None:
    """Raise InvalidParameterValue or BatchRequestTooLong if a send is longer than any queue allows."""
    if isinstance(command, SendMessageBatch):
        _check_total(command, allowed)
        return
    size_bytes = 0
    if isinstance(command, SendMessage):
        size_bytes = contents.message_bytes(command.message_body or "", command.message_attributes)
    if size_bytes > allowed.body_bytes:
        raise contents.too_long(allowed.body_bytes, in_batch=False)


def _check_total(command: SendMessageBatch, allowed: limits.Limits) -> None:
    """Raise BatchRequestTooLong if the entries together are too long."""
    total_bytes = 0
    for entry in command.entries:
        total_bytes += contents.message_bytes(entry.message_body or "", entry.message_attributes)
    if total_bytes > allowed.body_bytes:
        raise BatchRequestTooLong(
            f"Batch requests cannot be longer than {allowed.body_bytes} bytes. You have sent {total_bytes} bytes."
        )


def _send_batch(
    state: State, queue: Queue, call: Call, command: SendMessageBatch, ids: list[str], context: ExecutionContext
) -> Outcome:
    """Return the outcome of a batch in one queue. An entry may be a duplicate of an earlier entry of the batch."""
    queue.rules.check_batch(command.entries)
    result = SendMessageBatchResult()
    messages: list[m.Mutation] = []
    keys: dict[bytes, int] = {}
    sender = _Sender(queue, call, context, in_batch=True)
    sequence = next_sequence(queue.last_sequence, context.term)
    for position, (name, entry) in enumerate(zip(ids, command.entries, strict=True)):
        try:
            stored = sender.stored(entry, sequence)
        except SqsError as error:
            result.failed.append(failed(name, error))
            continue
        key, first = b"", None
        if stored.deduplication_id is not None:
            key = _key(queue, stored, stored.deduplication_id)
            first = keys.get(key) or _first_sent(state, queue, key, context)
        if first is None:
            first = sequence
            messages.append(stored)
            sequence += 1
            if key:
                keys[key] = first
        sent = _SentEntry(name, position, state.identity.message_id(queue.id, first))
        if queue.kind.has_sequence_numbers:
            sent.sequence_number = sequence_number(first)
        elif queue.rules.idempotency_ms:
            sent.sequence = first
        result.successful.append(sent)
    return result, messages + [_taken(queue, key, first, context) for key, first in keys.items()]
