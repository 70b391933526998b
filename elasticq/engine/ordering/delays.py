"""The due times of messages that were never received, in sixteen bytes each, and more for those due soon.

The sequences and the times are in parallel arrays, in chunks ordered by sequence. The next due message is found in two
steps. One heap holds the earliest far time of each chunk. When that time comes, the next few messages of the chunk
enter the other heap, one entry each. So only near messages have objects of their own, a small part of a chunk at most.

    far (arrays; a chunk's earliest one in ``_far``) ──> near (one heap entry each) ──due──> over (OVER bit set)
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from elasticq.engine.stored.delivery_rows import UNTOUCHED, Row

CHUNK_MAX: Final = 1_024
NEAR_AT_ONCE: Final = 64  # messages of a chunk that become near together, so that each costs a small part of a scan
NEVER: Final = 1 << 62
CHUNK_BYTES: Final = 160  # approximate size of a chunk without its arrays
ENTRY_BYTES: Final = 128  # approximate size of a heap entry: a tuple and two numbers
COUNTED_MAX: Final = 50_000  # messages that ``passed`` visits; the sweeper soon notices a longer backlog
OVER: Final = 1  # the lowest bit of a stored time; the bits above it hold the time
LATER_MAX: Final = 64  # places by which ``enter`` moves a message ahead; only a roll-back needs more
_STALE_MIN: Final = 64


class Chunk:
    """Up to 2,048 messages with neighbouring sequences.

    - first: A lower bound of the sequences.
    - sequences: The sequences in ascending order.
    - times: For each message the due time times two, plus OVER once it was noticed.
    - near_until_ms: Each waiting message due by this time has an entry in the near heap. No message that is over was
      due later.
    - far_ms: No other message is due before it. NEVER if there is none.
    """

    __slots__ = ("far_ms", "first", "near_until_ms", "sequences", "times")

    def __init__(self, first: int, near_until_ms: int, sequences: "array[int]", times: "array[int]") -> None:
        self.first = first
        self.sequences = sequences
        self.times = times
        self.near_until_ms = near_until_ms
        self.far_ms = NEVER

    def place(self, sequence: int) -> int:
        """Return the index of the message; -1 if it is not in the chunk."""
        sequences = self.sequences
        at = bisect_left(sequences, sequence)
        return at if at < len(sequences) and sequences[at] == sequence else -1


class Delays:
    """The delayed messages of one queue.

    - count: The number of all messages.
    - waiting: The number of messages that were not yet noticed to be due.
    - next_ms: No waiting message is due before it; it may be too early. NEVER if no message waits.
    """

    __slots__ = ("_chunks", "_entry_count", "_far", "_firsts", "_near", "_stale_max", "count", "next_ms", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting = 0
        self.next_ms = NEVER
        self._chunks: list[Chunk] = []
        self._firsts: list[int] = []  # lower bounds for bisect: last sequence before the chunk < bound <= its first
        self._near: list[tuple[int, int]] = []  # (time, sequence); stale if the arrays hold another time
        self._far: list[tuple[int, int, int, Chunk]] = []  # (far_ms, first, number, chunk); may be stale, too
        self._entry_count = 0  # gives each entry of ``_far`` a number, so tuples with equal times never compare chunks
        self._stale_max = _STALE_MIN

    # --- lookups ----------------------------------------------------------------

    def due_ms(self, sequence: int) -> int:
        """Return when the message is or was due; 0 if it is not in here."""
        return self._time_of(sequence) >> 1

    def is_over(self, sequence: int) -> bool:
        """Return whether the message is in here and was noticed to be due."""
        return bool(self._time_of(sequence) & OVER)

    def waits(self, sequence: int) -> bool:
        """Return whether the message is in here and was not yet noticed to be due."""
        time = self._time_of(sequence)
        return time != 0 and not time & OVER

    def items(self, above: int = -1) -> Iterator[tuple[int, int]]:
        """Yield (sequence, due time) of the messages above ``above``, by sequence. Nothing may change meanwhile."""
        for at in range(max(bisect_right(self._firsts, above) - 1, 0), len(self._chunks)):
            chunk = self._chunks[at]
            for sequence, time in zip(chunk.sequences, chunk.times, strict=True):
                if sequence > above:
                    yield sequence, time >> 1

    def size_bytes(self) -> int:
        """Return about how much memory the arrays, the chunks and the heaps use."""
        arrays = sum([chunk.sequences.__sizeof__() + chunk.times.__sizeof__() for chunk in self._chunks])
        return arrays + len(self._chunks) * CHUNK_BYTES + (len(self._near) + len(self._far)) * ENTRY_BYTES

    def _time_of(self, sequence: int) -> int:
        at = bisect_right(self._firsts, sequence) - 1
        if at < 0:
            return 0
        chunk = self._chunks[at]
        place = chunk.place(sequence)
        return chunk.times[place] if place >= 0 else 0

    # --- changes ----------------------------------------------------------------

    def add(self, sequence: int, due_ms: int) -> None:
        """Add a message that is not in here. It waits until it is noticed to be due."""
        chunks = self._chunks
        if not chunks or sequence > chunks[-1].sequences[-1]:
            chunk = self._newest(sequence)
            chunk.sequences.append(sequence)
            chunk.times.append(due_ms << 1)
        else:
            chunk = self._insert(sequence, due_ms)
        self.count += 1
        self.waiting += 1
        self._enter(chunk, sequence, due_ms)

    def add_all(self, sequences: list[int], due_ms: list[int]) -> None:
        """Add messages whose sequences are greater than all in here, as ``add`` does."""
        begin = 0
        while begin < len(sequences):
            chunk = self._newest(sequences[begin])
            end = begin + CHUNK_MAX - len(chunk.sequences)
            part = due_ms[begin:end]
            chunk.sequences.extend(sequences[begin:end])
            chunk.times.extend([each << 1 for each in part])
            self.count += len(part)
            self.waiting += len(part)
            soonest_ms = min(part)
            if soonest_ms > chunk.near_until_ms:
                self._enter(chunk, 0, soonest_ms)
            else:
                for sequence, each in zip(sequences[begin:end], part, strict=True):
                    self._enter(chunk, sequence, each)
            begin += len(part)

    def remove(self, sequence: int) -> bool:
        """Remove a message that is in here. Return whether it was still waiting."""
        at = bisect_right(self._firsts, sequence) - 1
        chunk = self._chunks[at]
        place = chunk.place(sequence)
        assert place >= 0, "a message is removed once"
        waited = not chunk.times[place] & OVER
        del chunk.sequences[place], chunk.times[place]
        self.count -= 1
        if waited:
            self.waiting -= 1
        if not chunk.sequences:
            chunk.far_ms = NEVER
            del self._chunks[at], self._firsts[at]
        if not self.waiting:
            self._forget_entries()
        return waited

    def take_due(self, now_ms: int, limit: int) -> list[tuple[int, int]]:
        """Mark messages that are due by ``now_ms`` as over, and return them as (due time, sequence), in order.

        At most ``limit`` messages are marked; later calls return the rest.
        """
        far, near = self._far, self._near
        found: list[tuple[int, int]] = []
        while len(found) < limit:
            soonest = near[0] if near else (NEVER, 0)
            if far and far[0][0] <= now_ms and far[0][:2] <= soonest:
                far_ms, _, _, chunk = heappop(far)
                if chunk.far_ms == far_ms:
                    self._bring_near(chunk, now_ms)
                continue
            if soonest[0] > now_ms:
                break
            entry = heappop(near)
            at = bisect_right(self._firsts, entry[1]) - 1
            chunk = self._chunks[max(at, 0)]
            place = chunk.place(entry[1])
            if place >= 0 and chunk.times[place] == entry[0] << 1:
                chunk.times[place] |= OVER
                found.append(entry)
        self.waiting -= len(found)
        if not self.waiting:
            self._forget_entries()
        else:
            self.next_ms = min(near[0][0] if near else NEVER, far[0][0] if far else NEVER)
        return found

    def passed(self, now_ms: int) -> int:
        """Return the number of waiting messages that are due. Only about COUNTED_MAX messages are visited."""
        if self.next_ms > now_ms:
            return 0
        until, found, visited = now_ms << 1, 0, 0
        for chunk in self._chunks:
            if chunk.far_ms > now_ms and not chunk.near_until_ms:
                continue  # none of its messages is due
            found += sum([time <= until and not time & OVER for time in chunk.times])
            visited += len(chunk.times)
            if visited >= COUNTED_MAX:
                break
        return found

    # --- chunks -----------------------------------------------------------------

    def _newest(self, sequence: int) -> Chunk:
        """Return the chunk for ``sequence``, which is larger than all others."""
        chunks = self._chunks
        if not chunks or len(chunks[-1].sequences) >= CHUNK_MAX:
            chunks.append(Chunk(sequence, 0, array("q"), array("q")))
            self._firsts.append(sequence)
        return chunks[-1]

    def _insert(self, sequence: int, due_ms: int) -> Chunk:
        """Insert a message that is not the last one at its place, and return its chunk."""
        firsts = self._firsts
        at = max(bisect_right(firsts, sequence) - 1, 0)
        chunk = self._chunks[at]
        if len(chunk.sequences) >= 2 * CHUNK_MAX:
            self._split(at)
            at = max(bisect_right(firsts, sequence) - 1, 0)
            chunk = self._chunks[at]
        place = bisect_left(chunk.sequences, sequence)
        assert place == len(chunk.sequences) or chunk.sequences[place] != sequence, "a message is added once"
        chunk.sequences.insert(place, sequence)
        chunk.times.insert(place, due_ms << 1)
        if sequence < firsts[at]:
            firsts[at] = chunk.first = sequence
            if chunk.far_ms != NEVER:
                self._enter_far(chunk)
        return chunk

    def _split(self, at: int) -> None:
        chunk = self._chunks[at]
        moved = chunk.sequences[CHUNK_MAX:]
        half = Chunk(moved[0], chunk.near_until_ms, moved, chunk.times[CHUNK_MAX:])
        del chunk.sequences[CHUNK_MAX:], chunk.times[CHUNK_MAX:]
        self._chunks.insert(at + 1, half)
        self._firsts.insert(at + 1, half.sequences[0])
        if chunk.far_ms != NEVER:  # maybe too early for one of the two
            half.far_ms = chunk.far_ms
            self._enter_far(half)

    # --- the heaps ----------------------------------------------------------------

    def _enter(self, chunk: Chunk, sequence: int, due_ms: int) -> None:
        """Enter the message into the near heap, or lower its chunk's ``far_ms`` if it is far."""
        if due_ms <= chunk.near_until_ms:
            heappush(self._near, (due_ms, sequence))
            if len(self._near) > self._stale_max:
                self._drop_stale()
        elif due_ms < chunk.far_ms:
            chunk.far_ms = due_ms
            self._enter_far(chunk)
        if due_ms < self.next_ms:
            self.next_ms = due_ms

    def _enter_far(self, chunk: Chunk) -> None:
        self._entry_count += 1
        heappush(self._far, (chunk.far_ms, chunk.first, self._entry_count, chunk))
        if len(self._far) > _STALE_MIN + 2 * len(self._chunks):
            self._far[:] = [
                (each.far_ms, each.first, at, each) for at, each in enumerate(self._chunks) if each.far_ms != NEVER
            ]
            self._entry_count = len(self._chunks)
            heapify(self._far)

    def _bring_near(self, chunk: Chunk, now_ms: int) -> None:
        """Enter the next NEAR_AT_ONCE far messages of the chunk into the near heap, and all more due by ``now_ms``."""
        near_until = chunk.near_until_ms << 1 | OVER
        far = sorted([time for time in chunk.times if time > near_until])
        if far:
            chunk.near_until_ms = max(far[min(NEAR_AT_ONCE, len(far)) - 1] >> 1, now_ms)
            until = chunk.near_until_ms << 1
            for sequence, time in zip(chunk.sequences, chunk.times, strict=True):
                if near_until < time <= until:
                    heappush(self._near, (time >> 1, sequence))
        behind = bisect_right(far, chunk.near_until_ms << 1)
        chunk.far_ms = far[behind] >> 1 if behind < len(far) else NEVER
        if chunk.far_ms != NEVER:
            self._enter_far(chunk)
        self._stale_max = max(self._stale_max, 2 * len(self._near))

    def _drop_stale(self) -> None:
        near = self._near
        near[:] = [(due_ms, sequence) for due_ms, sequence in set(near) if self._time_of(sequence) == due_ms << 1]
        heapify(near)
        self._stale_max = max(2 * len(near), _STALE_MIN)

    def _forget_entries(self) -> None:
        """Clear both heaps. No message waits, so all their entries are stale."""
        for _, _, _, chunk in self._far:
            chunk.far_ms = NEVER
        self._near, self._far = [], []
        self._stale_max = _STALE_MIN
        self.next_ms = NEVER


# --- messages that are due ---------------------------------------------------------------


def enter(known: OrderedDict[int, int], sequence: int, due_ms: int, rows: dict[int, Row]) -> bool:
    """Add a message that is available since ``due_ms`` to ``known``, which maps messages to such times.

    The order is that of ``sorted_again``, so it follows from the rows alone, and a start or a roll-back keeps it.
    Return False if the message belongs more than LATER_MAX places ahead of the end, where it was added. Then the caller
    must call ``sorted_again`` before it reads the order.
    """
    place = _place(sequence, due_ms, rows)
    later: list[int] = []
    is_near = True
    for other in reversed(known):
        other_ms = known[other]
        if other_ms < due_ms or _place(other, other_ms, rows) < place:
            break
        if len(later) == LATER_MAX:
            is_near = False
            break
        later.append(other)
    known[sequence] = due_ms
    if is_near:
        for other in reversed(later):
            known.move_to_end(other)
    return is_near


def sorted_again(known: OrderedDict[int, int], rows: dict[int, Row]) -> OrderedDict[int, int]:
    """Return ``known`` by the times since which the messages are available.

    A grace moves deadlines to the same end; these messages are ordered by their deadlines. Of messages with the same
    deadline, those with the fewest receives come first, so one that always fails does not precede them. Then the
    sequence decides.
    """
    return OrderedDict(sorted(known.items(), key=lambda item: _place(item[0], item[1], rows)))


def _place(sequence: int, due_ms: int, rows: dict[int, Row]) -> tuple[int, int, int, int]:
    row = rows.get(sequence, UNTOUCHED)
    return due_ms, row.visible_at_ms, row.receive_count, sequence
