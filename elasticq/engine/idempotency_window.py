"""The deduplication ids that standard queues with an ElasticqIdempotencyWindow remember.

FIFO queues remember their ids as invocations, for five minutes. Here each queue sets its own window, up to an hour. A
later change of the window does not change ids that were already sent, so each row contains the time at which it ends.
Therefore these rows have a history of their own. It packs rows as the invocation log does, and groups them by end time.
"""

from hashlib import blake2b
from struct import Struct as Layout
from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import Invocations
from elasticq.engine.stored.recorded_call import Recorded

_QUEUE: Final = Layout(">QQ")
_TOO_MANY: Final = "Too many deduplication ids are remembered; try again later."


def sent_id_key(queue: Queue, deduplication_id: str) -> bytes:
    """Return the key (16 bytes) of a deduplication id.

    It depends on the watermark of the queue, so a purge forgets all ids at once.
    """
    given = _QUEUE.pack(queue.id, queue.watermark) + deduplication_id.encode()
    return blake2b(given, digest_size=16).digest()


def first_sent(state: State, key: bytes, now_ms: int) -> int | None:
    """Return the sequence of the message that was sent with this id within the window, or None.

    Raise RequestThrottled if there is no such message and no more ids can be remembered.
    """
    return state.sent_ids.first_sent(key, now_ms, _TOO_MANY)


def taken(queue: Queue, key: bytes, sequence: int, context: ExecutionContext) -> m.SentIdTaken:
    return m.SentIdTaken(key, context.now_ms, context.now_ms + queue.rules.idempotency_ms, queue.id, sequence)


def put(history: Invocations, mutation: m.SentIdTaken) -> tuple[bool, Recorded | None]:
    """Write the row of a taken id. Return whether it was written, and the expired row of this id that it replaced."""
    old = history.remove(mutation.key)
    if old is not None and old.recorded_ms >= mutation.until_ms:
        history.put(mutation.key, old, mutation.taken_ms)  # the log is being applied again
        return False, None
    row = Recorded(mutation.until_ms, mutation.queue_id, mutation.sequence, b"")
    return history.put(mutation.key, row, mutation.taken_ms), old


def take_back(history: Invocations, key: bytes, old: Recorded | None) -> None:
    """Undo ``put``: remove its row and restore the row ``old`` that it replaced."""
    history.remove(key)
    if old is not None:
        history.put(key, old, 0)
