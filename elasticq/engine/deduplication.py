"""What FIFO queues remember for five minutes: deduplication ids, and ReceiveRequestAttemptIds.

Both stand among the invocations, whose window is the same by entry time: 36
packed bytes for each, in rows, dumps and digests already. A key is made of the
queue, of the watermark of its last purge (so that a purge forgets all at once,
and a roll-back of it forgets nothing), of the group if that is the queue's
scope, and of the id.
"""

from hashlib import blake2b
from struct import Struct as Layout

import msgspec
from msgspec import Struct

from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import TOO_MANY
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model.errors import InvalidParameterValue

_QUEUE = Layout(">QQB")
_ID, _ATTEMPT = 1, 2


def deduplication_key(queue: Queue, message: m.MessageStored) -> bytes:
    """16 bytes under which a message's id is taken; none where the queue's kind does not deduplicate all messages.

    The message may be stored elsewhere: then it is the key that a copy of it has in ``queue``.
    """
    if not queue.kind.deduplicates_all:
        return b""
    deduplication_id = message.deduplication_id or ""
    if queue.rules.has_ids_by_group:  # no id holds a space
        deduplication_id = f"{message.group_id or ''} {deduplication_id}"
    return blake2b(_QUEUE.pack(queue.id, queue.watermark, _ID) + deduplication_id.encode(), digest_size=16).digest()


def first_sent(state: State, key: bytes, now_ms: int) -> int | None:
    """The sequence of the message that was sent with this id in the last five minutes. Raises RequestThrottled."""
    return state.invocations.first_sent(key, now_ms, TOO_MANY)


class Attempt(Struct, array_like=True, gc=False):
    """What one ReceiveRequestAttemptId got: (sequence, delivery) of each, and until when they were hidden."""

    handles: list[tuple[int, int]]
    until_ms: int


_decoder = msgspec.msgpack.Decoder(Attempt)


def attempt_key(queue: Queue, attempt_id: str, partition: int | None = None) -> bytes:
    """The same id for another partition is another attempt, as it must not be answered with this one's messages."""
    if partition is not None:  # no id holds a space
        attempt_id = f"{attempt_id} {partition}"
    return blake2b(_QUEUE.pack(queue.id, queue.watermark, _ATTEMPT) + attempt_id.encode(), digest_size=16).digest()


def attempt_recorded(key: bytes, first_ms: int, received: m.MessagesReceived) -> m.AttemptRecorded:
    """first_ms: of the attempt's first receive."""
    handles = list(zip(received.sequences, received.delivery_numbers, strict=True))
    return m.AttemptRecorded(key, first_ms, msgspec.msgpack.encode(Attempt(handles, received.until_ms)))


def attempt_prolonged(queue: Queue, key: bytes, known: Recorded, until_ms: int) -> m.AttemptRecorded | None:
    """The attempt with another deadline of its messages; None if one was deleted or had its visibility changed."""
    attempt = _decoder.decode(known.detail)
    rows = [queue.rows.get(sequence) for sequence, _ in attempt.handles]
    if any(row is None or row.visible_at_ms != attempt.until_ms for row in rows):
        return None
    return m.AttemptRecorded(key, known.recorded_ms, msgspec.msgpack.encode(Attempt(attempt.handles, until_ms)))


def attempted(state: State, queue: Queue, key: bytes, attempt_id: str, now_ms: int) -> tuple[int, list[int]]:
    """When the attempt was first made, and the messages that it got and still holds.

    None if it got none, or their time-out has ended. Raises InvalidParameterValue once one of
    them was deleted or had its visibility changed.
    """
    known = state.invocations.get(key, now_ms)
    if known is None:
        return 0, []
    attempt = _decoder.decode(known.detail)
    held = []
    is_over = False
    for sequence, delivery_number in attempt.handles:
        row = queue.rows.get(sequence)
        if row is not None and row.delivery_number != delivery_number:
            is_over = True  # another receive has it: the time-out that they share has ended
        elif row is None or row.visible_at_ms != attempt.until_ms:
            raise InvalidParameterValue(
                f"Value {attempt_id} for parameter ReceiveRequestAttemptId is invalid. Reason: "
                "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
            )
        elif queue.order.is_in_flight(sequence, now_ms):
            held.append(sequence)
    return known.recorded_ms, [] if is_over else held
