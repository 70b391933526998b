"""Which deduplication ids standard queues with an ElasticqIdempotencyWindow have taken, and until when.

FIFO queues remember theirs among the invocations, for five minutes by entry
time. A window here is the queue's own, up to an hour, and what was promised at
a send holds: a row carries the time until which it counts. So these are rows
of another history, packed in the same way, whose generations are spans of that
time.
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
    """16 bytes. Of the watermark, too: a purge forgets all ids at once."""
    given = _QUEUE.pack(queue.id, queue.watermark) + deduplication_id.encode()
    return blake2b(given, digest_size=16).digest()


def first_sent(state: State, key: bytes, now_ms: int) -> int | None:
    """The sequence of the message that holds the id. Raises RequestThrottled where no more can be remembered."""
    return state.sent_ids.first_sent(key, now_ms, _TOO_MANY)


def taken(queue: Queue, key: bytes, sequence: int, context: ExecutionContext) -> m.SentIdTaken:
    return m.SentIdTaken(key, context.now_ms, context.now_ms + queue.rules.idempotency_ms, queue.id, sequence)


def put(history: Invocations, mutation: m.SentIdTaken) -> tuple[bool, Recorded | None]:
    """Whether it was written, and the row whose place it took: an id is free again when its time is over."""
    old = history.remove(mutation.key)
    if old is not None and old.recorded_ms >= mutation.until_ms:
        history.put(mutation.key, old, mutation.taken_ms)  # a log that is applied again
        return False, None
    row = Recorded(mutation.until_ms, mutation.queue_id, mutation.sequence, b"")
    return history.put(mutation.key, row, mutation.taken_ms), old


def take_back(history: Invocations, key: bytes, old: Recorded | None) -> None:
    """What ``put`` wrote was rolled back."""
    history.remove(key)
    if old is not None:
        history.put(key, old, 0)
