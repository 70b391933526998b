"""The ids that FIFO queues remember for five minutes: deduplication ids and ReceiveRequestAttemptIds.

Both are stored as invocations, because these are kept equally long by entry time. One takes 36 bytes. Rows, dumps and
digests already contain invocations.

A key is a hash of the queue, the watermark of its last purge, the id, and the group if deduplication is per group.
Because of the watermark, a purge forgets all ids at once, and rolling the purge back restores them.
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
    """Return the key (16 bytes) of a message's deduplication id in ``queue``.

    It is empty if the queue's kind does not deduplicate all messages. The message may be in another queue: then this
    is the key that its copy in ``queue`` would have.
    """
    if not queue.kind.deduplicates_all:
        return b""
    deduplication_id = message.deduplication_id or ""
    if queue.rules.has_ids_by_group:  # ids contain no space, so the text is unambiguous
        deduplication_id = f"{message.group_id or ''} {deduplication_id}"
    return blake2b(_QUEUE.pack(queue.id, queue.watermark, _ID) + deduplication_id.encode(), digest_size=16).digest()


def first_sent(state: State, key: bytes, now_ms: int) -> int | None:
    """Return the sequence of the message that was sent with this id in the last five minutes, or None.

    Raise RequestThrottled if there is no such message and no more ids can be remembered.
    """
    return state.invocations.first_sent(key, now_ms, TOO_MANY)


class Attempt(Struct, array_like=True, gc=False):
    """The messages that a receive with a ReceiveRequestAttemptId returned.

    handles: sequence and delivery number of each message.
    until_ms: the visibility deadline that the receive gave them.
    """

    handles: list[tuple[int, int]]
    until_ms: int


_decoder = msgspec.msgpack.Decoder(Attempt)


def attempt_key(queue: Queue, attempt_id: str, partition: int | None = None) -> bytes:
    """Return the key (16 bytes) of a ReceiveRequestAttemptId.

    The same id for another partition is another attempt, because it must not return messages of this partition.
    """
    if partition is not None:  # ids contain no space, so the text is unambiguous
        attempt_id = f"{attempt_id} {partition}"
    return blake2b(_QUEUE.pack(queue.id, queue.watermark, _ATTEMPT) + attempt_id.encode(), digest_size=16).digest()


def attempt_recorded(key: bytes, first_ms: int, received: m.MessagesReceived) -> m.AttemptRecorded:
    """Return the mutation that records an attempt and the messages that it received.

    first_ms: the time of the attempt's first receive.
    """
    handles = list(zip(received.sequences, received.delivery_numbers, strict=True))
    return m.AttemptRecorded(key, first_ms, msgspec.msgpack.encode(Attempt(handles, received.until_ms)))


def attempt_prolonged(queue: Queue, key: bytes, known: Recorded, until_ms: int) -> m.AttemptRecorded | None:
    """Return the mutation that records a new visibility deadline of the attempt's messages.

    Return None if one of them was deleted or had its visibility changed since the attempt.
    """
    attempt = _decoder.decode(known.detail)
    rows = [queue.rows.get(sequence) for sequence, _ in attempt.handles]
    if any(row is None or row.visible_at_ms != attempt.until_ms for row in rows):
        return None
    return m.AttemptRecorded(key, known.recorded_ms, msgspec.msgpack.encode(Attempt(attempt.handles, until_ms)))


def attempted(state: State, queue: Queue, key: bytes, attempt_id: str, now_ms: int) -> tuple[int, list[int]]:
    """Return the time of the attempt's first receive, and the sequences of the messages that it still holds.

    The time is 0 if the attempt is unknown. There are no messages if their visibility timeout has ended. Raise
    InvalidParameterValue if one of them was deleted or had its visibility changed.
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
            is_over = True  # another receive got it, so the visibility timeout of the attempt has ended
        elif row is None or row.visible_at_ms != attempt.until_ms:
            raise InvalidParameterValue(
                f"Value {attempt_id} for parameter ReceiveRequestAttemptId is invalid. Reason: "
                "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
            )
        elif queue.order.is_in_flight(sequence, now_ms):
            held.append(sequence)
    return known.recorded_ms, [] if is_over else held
