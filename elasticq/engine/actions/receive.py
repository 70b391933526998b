"""ReceiveMessage. A receive that returns messages writes one small mutation; an empty one usually writes none."""

from typing import Final

from elasticq.engine import metadata, turns
from elasticq.engine.actions.batches import check_page_size
from elasticq.engine.consumer_groups import fence
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.deduplication import attempt_key, attempt_prolonged, attempt_recorded, attempted
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.leases import ENDED_AT_ONCE_MAX
from elasticq.engine.ordering.priority import PRIORITY
from elasticq.engine.redrive import dead_letters as redrive
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import check_range, check_token, stored_bytes
from elasticq.engine.stored.delivery_rows import Row
from elasticq.engine.stored.identity import next_delivery_number, sequence_number
from elasticq.engine.tally import OFTEN
from elasticq.model import limits
from elasticq.model.commands import Call, MessageAttributes, ReceiveMessage
from elasticq.model.errors import InvalidAttributeName, InvalidParameterValue, OverLimit, quoted
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult

SYSTEM_ATTRIBUTES: Final = (
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "AWSTraceHeader",
    "MessageGroupId",
    "MessageDeduplicationId",
    "SequenceNumber",
    "DeadLetterQueueSourceArn",
)


_BY_NAME_ALONE: Final = frozenset((metadata.KEPT, PRIORITY))
PARTITION: Final = "ElasticqPartition"
CHARACTER_BYTES_MAX: Final = 4
VISIBILITY_MS_MAX: Final = limits.VISIBILITY_S_MAX * 1_000
# Faster: compiled code finds names of its own module without a dict lookup.
_MessagesReceived: Final = m.MessagesReceived
_ReceivedMessage: Final = ReceivedMessage
_ReceiveMessageResult: Final = ReceiveMessageResult
_choose: Final = redrive.choose


class Asked:
    """The parameters of a ReceiveMessage, with defaults.

    Raise InvalidParameterValue or InvalidAttributeName if they are invalid.
    limit: the maximum number of messages. partition: receive only from this partition; None: from the whole queue.
    """

    __slots__ = ("attribute_names", "limit", "partition", "system_names", "visibility_s", "wait_s")

    def __init__(self, queue: Queue, command: ReceiveMessage, allowed: limits.Limits) -> None:
        limit, wait_s, visibility_s = (
            command.max_number_of_messages,
            command.wait_time_seconds,
            command.visibility_timeout,
        )
        if limit is not None and not 1 <= limit <= allowed.messages:
            words = f"Must be between 1 and {allowed.messages}, if provided"
            check_range(limit, 1, allowed.messages, "MaxNumberOfMessages", words)
        if wait_s is not None and not 0 <= wait_s <= allowed.wait_s:
            words = f"Must be >= 0 and <= {allowed.wait_s}, if provided"
            check_range(wait_s, 0, allowed.wait_s, "WaitTimeSeconds", words)
        if visibility_s is not None and not 0 <= visibility_s <= limits.VISIBILITY_S_MAX:
            check_range(visibility_s, 0, 43_200, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided")
        self.limit = 1 if limit is None else min(limit, allowed.messages_max)
        if command.elasticq_page_size is not None:
            self.limit = check_page_size(command.elasticq_page_size)
        self.partition = command.elasticq_partition
        if self.partition is not None:
            check_partition(queue, self.partition)
        self.wait_s = queue.wait_s if wait_s is None else wait_s
        self.visibility_s = queue.visibility_s if visibility_s is None else visibility_s
        self.system_names = _system_names(command)
        self.attribute_names = command.message_attribute_names


def check_partition(queue: Queue, partition: int) -> None:
    """Raise InvalidParameterValue unless the queue has this partition. Partitions are numbered from 0."""
    count = queue.partitions
    if not count:
        raise InvalidParameterValue(
            f"Value {partition} for parameter {PARTITION} is invalid. "
            "Reason: The request includes a parameter that is not valid for this queue type."
        )
    check_range(partition, 0, count - 1, PARTITION, f"Must be between 0 and {count - 1}, if provided")


def _system_names(command: ReceiveMessage) -> frozenset[str]:
    """Return the union of AttributeNames and MessageSystemAttributeNames, with ``All`` expanded.

    Raise InvalidAttributeName for an unknown name.
    """
    old, new = command.attribute_names, command.message_system_attribute_names
    if not old and not new:
        return frozenset()
    names = frozenset(old or ()) | frozenset(new or ())
    if "All" in names:
        return frozenset(SYSTEM_ATTRIBUTES) | (names & _BY_NAME_ALONE)
    for name in (*(old or ()), *(new or ())):
        if name not in SYSTEM_ATTRIBUTES and name not in _BY_NAME_ALONE:
            raise InvalidAttributeName(f"Unknown Attribute {quoted(name)}.")
    return names


def receive_message(state: State, call: Call, command: ReceiveMessage, context: ExecutionContext) -> Outcome:
    """Receive messages. Raise ContentsMissing if the content of the next message is on disk only."""
    queue = fence.queue_of(state, call, command.queue_url, command, context)
    asked = Asked(queue, command, context.limits)
    now_ms = context.now_ms
    context.tally.fetched[queue.id] = now_ms
    key = _attempt_key(queue, command)
    if key:
        first_ms, held = attempted(state, queue, key, command.receive_request_attempt_id or "", now_ms)
        if held:
            return _attempt_repeated(state, queue, call, asked, held, m.AttemptRecorded(key, first_ms, b""), now_ms)
    chosen, dead = _choose(state, queue, asked.limit, now_ms, asked.partition)
    over = state.leases.expirations(queue.id, state.grace, now_ms)
    if len(over) == ENDED_AT_ONCE_MAX:
        # All expired leases must be recorded before messages are handed out. The node executes the call again.
        return ReceiveMessageResult(), [*over]
    moved = redrive.move_to_dead_letters(state, queue, dead, context) if dead else []
    moved += over
    if not chosen:
        return ReceiveMessageResult(), moved
    room = limits.IN_FLIGHT_MAX - queue.order.in_flight(now_ms)
    if room < len(chosen):
        if room <= 0 and asked.wait_s == 0 and queue.kind.refuses_when_full:
            raise OverLimit(
                "Too many messages have been received without being deleted. "
                "Please delete your received messages or let them timeout before receiving more."
            )
        chosen = chosen[: max(room, 0)]
        if not chosen:
            return ReceiveMessageResult(), moved
    chosen = fitting(queue, asked, chosen)
    received, messages = deliver(state, queue, asked, chosen, now_ms + asked.visibility_s * 1_000, context)
    result = _ReceiveMessageResult(messages, call.invocation)
    if key:
        result.request_attempt = (key, now_ms)
        moved.append(attempt_recorded(key, now_ms, received))
    return result, [received, *turns.taken(queue, chosen), *moved]


def fitting(queue: Queue, asked: Asked, chosen: list[int]) -> list[int]:
    """Return the leading messages of ``chosen`` that fit into an answer, at least one.

    An answer must fit into one frame between members.
    """
    if len(chosen) == 1 or CHARACTER_BYTES_MAX * queue.messages.bytes <= limits.ANSWER_BYTES_MAX:
        return chosen
    room_bytes = limits.FORWARDED_BYTES_MAX if asked.limit <= limits.RECEIVE_MESSAGES_MAX else limits.ANSWER_BYTES_MAX
    for at, sequence in enumerate(chosen):
        room_bytes -= stored_bytes(queue.contents[sequence])
        if room_bytes < 0:
            return chosen[: max(at, 1)]
    return chosen


def deliver(
    state: State, queue: Queue, asked: Asked, chosen: list[int], until_ms: int, context: ExecutionContext
) -> tuple[m.MessagesReceived, list[ReceivedMessage]]:
    """Return the mutation that hands out the messages ``chosen`` until ``until_ms``, and the messages for the answer.

    Each gets a new delivery number. Their contents must be in memory.
    """
    now_ms = context.now_ms
    queue_id, rows, contents, first_number = queue.id, queue.rows, queue.contents, next_delivery_number(0, context.term)
    numbers: list[int] = []
    counts: list[int] = []
    first_times_ms: list[int] = []
    messages = []
    for sequence in chosen:
        old = rows.get(sequence)
        number, count, first_ms = first_number, 1, now_ms
        if old is not None:
            number = next_delivery_number(old.delivery_number, context.term)
            count = old.receive_count + 1
            first_ms = old.first_received_ms or now_ms
            if count >= OFTEN:
                context.tally.received_often(queue_id, sequence)
        numbers.append(number)
        counts.append(count)
        first_times_ms.append(first_ms)
        content = contents[sequence]
        message = _handed_out(state, queue_id, sequence, content, number)
        messages.append(message)
        if asked.system_names or asked.attribute_names:
            _add_attributes(state, queue, message, content, count, first_ms, asked)
    return _MessagesReceived(queue_id, now_ms, until_ms, chosen, numbers, counts, first_times_ms), messages


def _attempt_key(queue: Queue, command: ReceiveMessage) -> bytes:
    """Return the key of the call's ReceiveRequestAttemptId; empty if there is none.

    A kind that does not remember attempts ignores the id: old Spring versions send it to standard queues.
    Raise InvalidParameterValue for a malformed id.
    """
    attempt_id = command.receive_request_attempt_id
    if attempt_id is None or not queue.kind.remembers_attempts:
        return b""
    return attempt_key(queue, check_token(attempt_id, "ReceiveRequestAttemptId"), command.elasticq_partition)


def _attempt_repeated(
    state: State,
    queue: Queue,
    call: Call,
    asked: Asked,
    held: list[int],
    first: m.AttemptRecorded,
    now_ms: int,
) -> Outcome:
    """Repeat the answer of an attempt: the messages that it still holds, with the same handles.

    Their visibility timeout starts again.
    held: sequences of these messages. first: key and time of the attempt's first receive; its five minutes start there.
    """
    missing = [sequence for sequence in held if sequence not in queue.contents]
    if missing:
        raise ContentsMissing(missing)
    rows = [queue.rows[sequence] for sequence in held]
    received = m.MessagesReceived(
        queue.id,
        max(now_ms, first.recorded_ms + 1),  # must differ from the first receive: see ``returned``
        now_ms + asked.visibility_s * 1_000,
        held,
        [row.delivery_number for row in rows],
        [row.receive_count for row in rows],
        [row.first_received_ms for row in rows],
    )
    messages = [message_again(state, queue, sequence, asked) for sequence in held]
    result = ReceiveMessageResult(messages, call.invocation, request_attempt=(first.attempt, first.recorded_ms))
    return result, [received, attempt_recorded(first.attempt, first.recorded_ms, received)]


def message_again(state: State, queue: Queue, sequence: int, asked: Asked) -> ReceivedMessage:
    """Return a message in flight for a repeated answer, with the same receipt handle."""
    content, row = queue.contents[sequence], queue.rows[sequence]
    message = _handed_out(state, queue.id, sequence, content, row.delivery_number)
    _add_attributes(state, queue, message, content, row.receive_count, row.first_received_ms, asked)
    return message


def _handed_out(
    state: State, queue_id: int, sequence: int, content: m.MessageStored, delivery_number: int
) -> ReceivedMessage:
    identity, origin = state.identity, content.origin
    return _ReceivedMessage(
        identity.message_id(queue_id, sequence) if origin is None else identity.message_id(*origin),
        identity.receipt_handle(queue_id, sequence, delivery_number),
        content.body,
    )


def _add_attributes(
    state: State,
    queue: Queue,
    message: ReceivedMessage,
    content: m.MessageStored,
    count: int,
    first_received_ms: int,
    asked: Asked,
) -> None:
    if asked.system_names:
        message.attributes = system_attributes(queue, content, count, first_received_ms, asked.system_names)
        if metadata.KEPT in asked.system_names:
            message.attributes |= metadata.shown(state, queue, content.sequence)
        if PRIORITY in asked.system_names and queue.kind.has_priorities:
            message.attributes[PRIORITY] = str(queue.order.priority(content.sequence))
    if asked.attribute_names and content.attributes:
        message.message_attributes = _filtered(content.attributes, asked.attribute_names)


def system_attributes(
    queue: Queue, content: m.MessageStored, count: int, first_received_ms: int, names: frozenset[str]
) -> dict[str, str]:
    """Return those system attributes in ``names`` that the message has.

    count: how often this queue handed it out. ApproximateReceiveCount adds the receives in the source of a dead letter.
    """
    dead_letter = content.dead_letter
    if dead_letter is not None:
        count += dead_letter.receive_count
    everything = {
        "SenderId": content.sender_id,
        "SentTimestamp": str(content.sent_ms),
        "ApproximateReceiveCount": str(count),
        "ApproximateFirstReceiveTimestamp": str(first_received_ms),
    }
    if content.trace_header is not None:
        everything["AWSTraceHeader"] = content.trace_header
    if content.group_id is not None:
        everything["MessageGroupId"] = content.group_id
    if queue.kind.has_sequence_numbers:
        everything["SequenceNumber"] = sequence_number(content.sequence)
    if content.deduplication_id is not None:
        everything["MessageDeduplicationId"] = content.deduplication_id
    if dead_letter is not None:
        everything["DeadLetterQueueSourceArn"] = dead_letter.source_arn
    return {name: value for name, value in everything.items() if name in names}


def _filtered(attributes: MessageAttributes, names: list[str]) -> MessageAttributes | None:
    """Return the requested message attributes; None if there are none.

    A request contains ``All``, ``.*``, exact names, or prefixes such as ``foo.*`` or ``foo*``.
    """
    if "All" in names or ".*" in names:
        return attributes
    exact = frozenset(names)
    prefixes = tuple(name.removesuffix("*").removesuffix(".") for name in names if name.endswith("*"))
    chosen = {
        name: value for name, value in attributes.items() if name in exact or (prefixes and name.startswith(prefixes))
    }
    return chosen or None


def received_again(
    state: State, call: Call, command: ReceiveMessage, context: ExecutionContext, handles: list[tuple[int, int]]
) -> tuple[ReceiveMessageResult, list[m.Mutation]]:
    """Return the answer to a retry of a receive: the messages that are still in flight under the same handles.

    handles: sequence and delivery number of each message in the first answer.
    The visibility timeout starts again, because the client gets the messages only at this time. In a FIFO queue, the
    answer is empty once another receive has one of the messages: the others would overtake it. This can happen
    because the grace of a later takeover may extend the deadline of some messages only.
    Raise ContentsMissing if the content of a message is on disk only.
    """
    queue = named_queue(state, call, command.queue_url)
    asked = Asked(queue, command, context.limits)
    held = []
    for sequence, delivery_number in handles:
        row = queue.rows.get(sequence)
        is_newest = row is not None and row.delivery_number == delivery_number
        if row is not None and not is_newest and queue.kind.blocks_groups:
            return ReceiveMessageResult([], call.invocation), []
        if is_newest and queue.order.is_in_flight(sequence, context.now_ms):
            held.append(sequence)
    missing = [sequence for sequence in held if sequence not in queue.contents]
    if missing:
        raise ContentsMissing(missing)
    messages = [message_again(state, queue, sequence, asked) for sequence in held]
    result = ReceiveMessageResult(messages, call.invocation)
    if not held:
        return result, []
    until_ms = context.now_ms + asked.visibility_s * 1_000
    prolonged = _prolonged(queue, held, until_ms)
    key = _attempt_key(queue, command)
    if key:
        known = state.invocations.get(key, context.now_ms)
        result.request_attempt = (key, known.recorded_ms if known is not None else 0)
        if known is not None and prolonged:
            recorded = attempt_prolonged(queue, key, known, until_ms)
            prolonged = [*prolonged, recorded] if recorded is not None else []
    return result, prolonged


def _prolonged(queue: Queue, held: list[int], until_ms: int) -> list[m.Mutation]:
    """Return the mutation that extends to ``until_ms`` the deadlines before it; none if nothing changes.

    A message whose deadline would be more than twelve hours after its receive is left out.
    """
    sooner = [
        sequence
        for sequence in held
        if queue.rows[sequence].visible_at_ms < until_ms <= queue.rows[sequence].received_ms + VISIBILITY_MS_MAX
    ]
    return [m.VisibilityChanged(queue.id, sooner, [until_ms] * len(sooner))] if sooner else []


def returned(state: State, result: ReceiveMessageResult, now_ms: int) -> list[m.Mutation]:
    """Return the mutations that undo a receive whose answer did not reach the client.

    They make the messages visible, restore their receive counts, and forget the invocation id of the call.
    """
    undone: dict[int, m.ReceiveReturned] = {}
    attempt = result.request_attempt
    if result.leased:
        return []
    for message in result.messages:
        receipt = state.identity.read_handle(message.receipt_handle)
        queue = state.queues.get(receipt.queue_id)
        row = queue.rows.get(receipt.sequence) if queue is not None else None
        if row is None or not is_out(row, receipt.delivery_number, now_ms):
            continue
        if attempt is not None and row.received_ms != attempt[1]:
            continue  # a later call with the same ReceiveRequestAttemptId has the same handle and may be in use
        back = undone.get(receipt.queue_id)
        if back is None:
            # It must differ from received_ms: see ``is_out``.
            visible_at_ms = now_ms if row.received_ms != now_ms else now_ms - 1
            back = m.ReceiveReturned(receipt.queue_id, [], [], [], [], visible_at_ms, result.invocation)
            undone[receipt.queue_id] = back
        back.sequences.append(receipt.sequence)
        back.delivery_numbers.append(receipt.delivery_number)
        back.receive_counts.append(row.receive_count - 1)
        back.first_received_ms.append(row.first_received_ms if row.receive_count > 1 else 0)
    forgotten: list[m.Mutation] = [m.AttemptRecorded(attempt[0], now_ms, b"")] if undone and attempt else []
    return [*undone.values(), *forgotten]


def is_out(row: Row, delivery_number: int, now_ms: int) -> bool:
    """Return whether ``returned`` may undo a delivery: it is the newest one, in flight, and was not undone before.

    A receive with a visibility timeout of 0 counts as in flight. Its row has visible_at_ms equal to received_ms, and
    ``returned`` always sets a different visible_at_ms.
    """
    return row.delivery_number == delivery_number and (
        row.visible_at_ms > now_ms or row.visible_at_ms == row.received_ms
    )


def wait_s(state: State, call: Call, command: ReceiveMessage) -> int:
    """Return how long an empty receive may wait, in seconds: the WaitTimeSeconds of the call, else of the queue."""
    if command.wait_time_seconds is not None:
        return command.wait_time_seconds
    return named_queue(state, call, command.queue_url).wait_s
