"""The invocation log: which SDK calls were already executed, and their answers.

A row holds the call's digest of 16 bytes, and the queue, sequence and time of the message that it sent. It takes 30
bytes. The first two bytes of the digest are not stored, because they are the number of its bucket. Rows are in
generations, which are spans of entry time. Each generation numbers its queues, so rows hold short numbers.

Buckets are in pages. All pages without rows are one shared object, so a history with few rows takes a few KiB.

A bucket is one ``bytes`` object. It starts with its rows, newest first. Then come the third bytes of their digests,
newest last, which one ``bytes.find`` searches. Adding a row creates a new bucket. A generation is deleted as a whole,
at the same entry time on every member. If there are no calls, the sweeper writes a row of its own to set that time.
Source: BlazingMQ's invocation log (300 s window). A dict of objects costs 227 bytes for each row.
"""

from array import array
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Final

from elasticq.engine.stored.mutations import InvocationRecorded
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model.errors import RequestThrottled
from elasticq.model.limits import INVOCATION_DETAILS_BYTES_MAX, INVOCATION_WINDOW_MS, INVOCATIONS_MAX

GENERATION_MS = 100_000
BUCKETS = 65_536  # most are empty under light load, so most misses read no bucket
PAGE_BUCKETS: Final = 64
_NO_ROWS: Final[list[bytes | None]] = [None] * PAGE_BUCKETS
"""The page of all buckets without rows. ``put`` replaces it in a generation before it writes."""
KEY_BYTES = 16
_REST_FROM = 3  # the bytes of a key before it are the number of the bucket, and a byte at the bucket's end
_ROW = Layout(">13sIQI")  # rest of the key, number of the queue, sequence, time within the generation in ms
_ROW_BYTES = _ROW.size
NOTHING: Final = b"\x92\x90\x90"
"""The detail of a call with an empty answer, such as nearly all deletes. It is not stored for each of them."""
_DETAIL_BYTES = 256  # overhead of a detail: its key, and its entry in the dict


SWEPT: Final = bytes(KEY_BYTES)
"""The key of the sweeper's row. No call has it."""
TOO_MANY: Final = "Too many calls in the last 300 seconds; try again later."


class _Generation:
    def __init__(self) -> None:
        self.pages = [_NO_ROWS] * (BUCKETS // PAGE_BUCKETS)
        self.used = array("H")  # the numbers of the buckets that are not None, to read all rows
        self.queue_ids: list[int] = []
        self.queue_numbers: dict[int, int] = {}
        self.details: dict[bytes, bytes] = {}
        self.details_bytes = 0
        self.count = 0

    def holds(self, key: bytes) -> bool:
        bucket_number = _bucket(key)
        bucket = self.pages[bucket_number // PAGE_BUCKETS][bucket_number % PAGE_BUCKETS]
        return bucket is not None and _find(bucket, key) >= 0

    def number_of(self, queue_id: int) -> int:
        """Return the number of the queue in rows. Assign one if it has none."""
        number = self.queue_numbers.get(queue_id)
        if number is None:
            number = self.queue_numbers[queue_id] = len(self.queue_ids)
            self.queue_ids.append(queue_id)
        return number

    def detail(self, key: bytes, queue_id: int) -> bytes:
        """Return the detail of an existing row."""
        return self.details.get(key, b"" if queue_id else NOTHING)


def _bucket(key: bytes) -> int:
    return key[0] | key[1] << 8


def _find(bucket: bytes, key: bytes) -> int:
    """Return the offset of the key's row; -1 if it is not in the bucket."""
    count = len(bucket) // (_ROW_BYTES + 1)
    marks_at = count * _ROW_BYTES
    at = bucket.find(key[2], marks_at)
    while at >= 0:
        row_at = marks_at - (at - marks_at + 1) * _ROW_BYTES
        if bucket.startswith(key[_REST_FROM:], row_at):
            return row_at
        at = bucket.find(key[2], at + 1)
    return -1


def _without(bucket: bytes, row_at: int) -> bytes:
    """Return the bucket without the row at this offset and without its byte at the end."""
    mark_at = len(bucket) - 1 - row_at // _ROW_BYTES
    return bucket[:row_at] + bucket[row_at + _ROW_BYTES : mark_at] + bucket[mark_at + 1 :]


class Invocations:
    """The rows of the last INVOCATION_WINDOW_MS by entry time. With a window of 0, the rows until their own time."""

    def __init__(self, window_ms: int = INVOCATION_WINDOW_MS, generation_ms: int = GENERATION_MS) -> None:
        self._window_ms = window_ms
        self._generation_ms = generation_ms
        self._newest_ms = 0
        self._generations: dict[int, _Generation] = {}
        self.count = 0
        self.details_bytes = 0

    def is_full(self, now_ms: int, besides: int = 0) -> bool:
        """Return whether no more ids can be recorded. Then senders must wait, because ids are never deleted early.

        ``besides`` is the number of rows of another table with the same limit.
        """
        if self.count + besides >= INVOCATIONS_MAX:
            self.forget(now_ms)
        return self.count + besides >= INVOCATIONS_MAX

    def are_details_full(self, now_ms: int, besides_bytes: int = 0) -> bool:
        """Return whether no more answers of calls with more than one message can be recorded."""
        if self.details_bytes + besides_bytes >= INVOCATION_DETAILS_BYTES_MAX:
            self.forget(now_ms)
        return self.details_bytes + besides_bytes >= INVOCATION_DETAILS_BYTES_MAX

    def is_any_over(self, now_ms: int) -> bool:
        """Return whether ``forget`` would release memory. A generation with only the sweeper's own row does
        not count.
        """
        return any(
            self._is_over(number, now_ms) and (generation.count > 1 or not generation.holds(SWEPT))
            for number, generation in self._generations.items()
        )

    def forget(self, now_ms: int) -> None:
        """Delete the generations that are over at the time ``now_ms`` of an entry."""
        self._newest_ms = max(self._newest_ms, now_ms)
        self._evict()

    def get(self, key: bytes, now_ms: int) -> Recorded | None:
        """Return the row of ``key`` if it is younger than the window, else None."""
        bucket_number = key[0] | key[1] << 8
        page, place = bucket_number // PAGE_BUCKETS, bucket_number % PAGE_BUCKETS
        for number, generation in self._generations.items():
            bucket = generation.pages[page][place]
            if bucket is not None and (at := _find(bucket, key)) >= 0:
                _, queue_number, sequence, offset_ms = _ROW.unpack_from(bucket, at)
                recorded_ms = number * self._generation_ms + offset_ms
                if recorded_ms + self._window_ms > now_ms:
                    queue_id = generation.queue_ids[queue_number]
                    return Recorded(recorded_ms, queue_id, sequence, generation.detail(key, queue_id))
        return None

    def first_sent(self, key: bytes, now_ms: int, too_many: str) -> int | None:
        """Return the sequence of the message that has the id; None if the id is new.

        Raise RequestThrottled if the id is new and the table is full.
        """
        known = self.get(key, now_ms)
        if known is not None:
            return known.sequence
        if self.is_full(now_ms):
            raise RequestThrottled(too_many)
        return None

    def put(self, key: bytes, row: Recorded | InvocationRecorded, now_ms: int | None = None) -> bool:
        """Add a row. Return False if nothing was written: the row exists, or is older than the window (a replayed log).

        ``now_ms`` is the time of the entry if it differs from that of the row.
        """
        recorded_ms = row.recorded_ms
        entry_ms = recorded_ms if now_ms is None else now_ms
        if entry_ms > self._newest_ms:
            self._newest_ms = entry_ms
        number = recorded_ms // self._generation_ms
        generation = self._generations.get(number)
        if generation is None:
            self._evict()
            if self._is_over(number, self._newest_ms):
                return False
            generation = self._generations[number] = _Generation()
        bucket_number = key[0] | key[1] << 8
        place = bucket_number % PAGE_BUCKETS
        page = generation.pages[bucket_number // PAGE_BUCKETS]
        bucket = page[place]
        if bucket is None:
            if page is _NO_ROWS:
                page = generation.pages[bucket_number // PAGE_BUCKETS] = [None] * PAGE_BUCKETS
            bucket = b""
            generation.used.append(bucket_number)
        elif _find(bucket, key) >= 0:
            return False
        queue_id, detail = row.queue_id, row.detail
        offset_ms = recorded_ms - number * self._generation_ms
        packed = _ROW.pack(key[_REST_FROM:], generation.number_of(queue_id), row.sequence, offset_ms)
        page[place] = packed + bucket + key[2:_REST_FROM]
        if detail and (queue_id or detail != NOTHING):
            generation.details[key] = detail
            self._weigh(generation, len(detail) + _DETAIL_BYTES)
        generation.count += 1
        self.count += 1
        return True

    def remove(self, key: bytes) -> Recorded | None:
        """Remove and return the newest row of ``key``: its entry was rolled back, or its receive was undone."""
        bucket_number = _bucket(key)
        for number in sorted(self._generations, reverse=True):
            generation = self._generations[number]
            page = generation.pages[bucket_number // PAGE_BUCKETS]
            bucket = page[bucket_number % PAGE_BUCKETS]
            at = _find(bucket, key) if bucket is not None else -1
            if bucket is not None and at >= 0:
                _, queue_number, sequence, offset_ms = _ROW.unpack_from(bucket, at)
                queue_id = generation.queue_ids[queue_number]
                page[bucket_number % PAGE_BUCKETS] = _without(bucket, at)
                generation.count -= 1
                self.count -= 1
                detail = generation.detail(key, queue_id)
                if generation.details.pop(key, None) is not None:
                    self._weigh(generation, -len(detail) - _DETAIL_BYTES)
                return Recorded(number * self._generation_ms + offset_ms, queue_id, sequence, detail)
        return None

    def _is_over(self, number: int, now_ms: int) -> bool:
        """Return whether every row of the generation is older than the window."""
        return (number + 1) * self._generation_ms + self._window_ms <= now_ms

    def _evict(self) -> None:
        for number in [number for number in self._generations if self._is_over(number, self._newest_ms)]:
            self._drop(number)

    def _drop(self, number: int) -> None:
        generation = self._generations.pop(number)
        self.count -= generation.count
        self.details_bytes -= generation.details_bytes

    def _weigh(self, generation: _Generation, by_bytes: int) -> None:
        generation.details_bytes += by_bytes
        self.details_bytes += by_bytes

    def rows(self, now_ms: int) -> list[tuple[bytes, Recorded]]:
        """Return all rows younger than their window at ``now_ms``, sorted by key: for snapshots."""
        used = {bucket_number for generation in self._generations.values() for bucket_number in generation.used}
        found = [row for bucket_number in used for row in self.bucket(bucket_number, now_ms)]
        return sorted(found, key=lambda item: item[0])

    def buckets_above(self, bucket_number: int, few: int) -> Iterable[int]:
        """Return the numbers of buckets, in order: of all that may have rows, or of all if ``few`` rows do not."""
        generations = self._generations.values()
        if sum([len(generation.used) for generation in generations]) > few:
            return range(bucket_number + 1, BUCKETS)
        used = {number for generation in generations for number in generation.used if number > bucket_number}
        return sorted(used)

    def bucket(self, bucket_number: int, now_ms: int) -> list[tuple[bytes, Recorded]]:
        """Return the rows of a bucket that are live at ``now_ms``, of all generations, sorted by key and time."""
        found = []
        for number, generation in self._generations.items():
            bucket = generation.pages[bucket_number // PAGE_BUCKETS][bucket_number % PAGE_BUCKETS]
            if bucket is None:
                continue
            begin = bytes((bucket_number & 0xFF, bucket_number >> 8))
            for place in range(len(bucket) // (_ROW_BYTES + 1)):
                rest, queue_number, sequence, offset_ms = _ROW.unpack_from(bucket, place * _ROW_BYTES)
                recorded_ms = number * self._generation_ms + offset_ms
                if recorded_ms + self._window_ms > now_ms:
                    key = begin + bucket[len(bucket) - 1 - place : len(bucket) - place] + rest
                    queue_id = generation.queue_ids[queue_number]
                    found.append((key, Recorded(recorded_ms, queue_id, sequence, generation.detail(key, queue_id))))
        if len(found) > 1:
            found.sort(key=lambda row: (row[0], row[1].recorded_ms))
        return found
