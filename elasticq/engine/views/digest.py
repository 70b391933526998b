"""Hashes over the rows of a member, equal on all members at the same applied index.

``walk`` yields all rows in the same order on all members, and can begin at any position. A comparison of a large state
therefore has parts of bounded work (``digest_part``), each at its own log index.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.engine.ordering.leases import Lease
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.delivery_rows import Row
from elasticq.engine.stored.invocations import Invocations
from elasticq.engine.stored.mutations import MessageStored

PART_ROWS: Final = 2_000
PART_BYTES: Final = 1_048_576  # of encoded rows; the last row of a part may exceed it by the size of a log entry
_STEP: Final = 128  # so many sequences without a row cost about as much as a row
_BUCKETS: Final = 16  # so many empty buckets of a history cost about as much as a row

Read = Callable[[int, list[int]], list[MessageStored]]
Position = list[int | str]
"""A position in the walk: numbers and texts, from the section down to the key of a row.

It may come from another member, so this member need not have a row there."""
_Items = Iterator[tuple[Position, Sequence[object]]]
"""Positions in ascending order, each with its rows. A position without rows follows many places without rows."""
_Part = Callable[[Position], _Items]
"""A function that yields the items after a position."""

_encode = msgspec.msgpack.Encoder().encode


class Part(Struct):
    """The hash of a part of the rows.

    until: the position where it ends; [] after the last row. cost: the approximate number of rows visited.
    """

    digest: bytes
    until: Position
    cost: int


def state_digest(state: State, now_ms: int = 0, read: Read | None = None) -> bytes:
    """Return a hash of 16 bytes over all rows and contents, with the calls that are remembered at ``now_ms``.

    read(queue_id, sequences): returns contents from disk. Without it, all contents must be in memory.
    """
    hashed = blake2b(delivery_digest(state, now_ms), digest_size=16)
    for queues in (state.queues, state.deleted_queues):
        for queue_id in sorted(queues):
            hashed.update(_encode(_contents(queues[queue_id], read)))
    return hashed.digest()


def delivery_digest(state: State, now_ms: int) -> bytes:
    """Return a hash of 16 bytes over all rows, without contents. Contents on disk have checksums."""
    hashed = blake2b(digest_size=16)
    for _, rows in walk(state, now_ms, []):
        for row in rows:
            hashed.update(_encode(row))
    return hashed.digest()


def digest_part(state: State, now_ms: int, after: Position, until: Position | None = None) -> Part:
    """Hash the rows after ``after``, up to and including ``until``. until: [] for all rows; None: one part."""
    hashed = blake2b(digest_size=16)
    end = _rank(until or [])
    cost = size_bytes = 0
    for position, rows in walk(state, now_ms, after):
        if end and _rank(position) > end:
            break
        for row in rows:
            encoded = _encode(row)
            size_bytes += len(encoded)
            hashed.update(encoded)
        cost += max(len(rows), 1)
        if position == until:
            break
        if until is None and (cost >= PART_ROWS or size_bytes >= PART_BYTES):
            return Part(hashed.digest(), position, cost)
    return Part(hashed.digest(), until or [], cost)


def _rank(position: Position) -> list[tuple[bool, Any]]:
    """Return a key by which any two positions can be compared."""
    return [(isinstance(each, str), each) for each in position]


def walk(state: State, now_ms: int, after: Position) -> _Items:
    """Yield all rows after a position, without contents and without calls that are forgotten at ``now_ms``."""
    clients, members = state.invocations.tables
    sections: list[_Part] = [
        partial(_once, partial(_head, state)),
        partial(_queues, state, state.queues),
        partial(_queues, state, state.deleted_queues),
        partial(_unsorted, state.deleted_names, (str, str)),
        partial(_history, clients, now_ms),
        partial(_history, members, now_ms),
        partial(_history, state.sent_ids, now_ms),
        partial(_leases, state),
        partial(_chain, [partial(_table, rows) for rows in state.tables.values()]),
        partial(_assignments, state),
    ]
    return _chain(sections, after)


# --- positions -----------------------------------------------------------------------


def _chain(parts: Sequence[_Part], after: Position) -> _Items:
    """Yield the items of all parts in turn. The number of the part is put before each position."""
    begin = _number(after)
    for number in range(max(begin, 0), len(parts)):
        for position, rows in parts[number](after[1:] if number == begin else []):
            yield [number, *position], rows


def _once(row: Callable[[], object], after: Position) -> _Items:
    if not after:
        yield [0], [row()]


def _number(after: Position) -> int:
    """Return the first element of a position if it is a number, else -1."""
    return after[0] if after and isinstance(after[0], int) else -1


def _sorted_from(numbers: Iterable[int], after: Position) -> list[int]:
    """Return the sorted numbers from the first element of ``after`` on. Nearly sorted input makes it fast."""
    ordered = sorted(numbers)
    return ordered[bisect_left(ordered, _number(after)) :]


def _key(after: Position, types: tuple[type, ...]) -> Any:
    """Return a position as a row's key, or None if the types of its elements are not ``types``."""
    if [type(each) for each in after] != list(types):
        return None
    return tuple(after) if len(after) > 1 else after[0]


def _ascending(keys: list[Any], after: Any) -> Iterator[Any]:
    """Yield the keys above ``after`` (None: all) in ascending order. Sort only about PART_ROWS keys at a time."""
    step = len(keys) // PART_ROWS + 1
    sample = sorted([key for key in keys[::step] if after is None or key > after])
    for until in [*sample[:: max(PART_ROWS // step, 1)][1:], None]:
        yield from sorted([key for key in keys if (after is None or after < key) and (until is None or key <= until)])
        after = until


def _unsorted(rows: dict[Any, Any], types: tuple[type, ...], after: Position) -> _Items:
    for key in _ascending([*rows], _key(after, types)):
        yield [*key] if len(types) > 1 else [key], [(key, rows[key])]


# --- queues --------------------------------------------------------------------------


def _head(state: State) -> list[object]:
    return [
        state.cluster_id,
        state.mac_key,
        state.feature_level,
        state.takeover_term,
        state.ahead_ms,
        state.grace.spans,
        state.last_queue_id,
        len(state.names),
        len(state.groups.assignments),
    ]


def _queues(state: State, queues: dict[int, Queue], after: Position) -> _Items:
    for queue_id in _sorted_from(queues, after):
        queue = queues[queue_id]
        parts: list[_Part] = [partial(_once, partial(_queue, state, queue))]
        if queue.count or queue.turns:
            parts += partial(_untouched, queue), partial(_delayed, queue), partial(_touched, queue)
            parts.append(partial(_unsorted, queue.turns, (str,)))
        for position, rows in _chain(parts, after[1:] if queue_id == _number(after) else []):
            yield [queue_id, *position], rows


def _queue(state: State, queue: Queue) -> list[object]:
    return [
        queue.id,
        queue.account,
        queue.name,
        state.names.get((queue.account, queue.name)) is queue,
        sorted(queue.attributes.items()),
        sorted(queue.tags.items()),
        queue.created_ms,
        queue.modified_ms,
        queue.deleted_ms,
        queue.purged_ms,
        queue.watermark,
        queue.last_sequence,
        len(queue.rows),
    ]


def _untouched(queue: Queue, after: Position) -> _Items:
    """Yield the ranges (first, last) of untouched messages; with priorities, each message and its priority."""
    priority = queue.order.priority
    for first, last in queue.order.untouched_pairs(_number(after)):
        if queue.kind.has_priorities:
            for sequence in range(first, last + 1):
                yield [sequence], [(sequence, priority(sequence))]
        else:
            yield [last], [(first, last)]


def _delayed(queue: Queue, after: Position) -> _Items:
    for sequence, due_ms in queue.order.delayed(_number(after)):
        yield [sequence], [_message(queue, sequence, Row(due_ms))]


def _touched(queue: Queue, after: Position) -> _Items:
    """Yield the rows of touched messages by sequence. It tries every issued sequence, because rows are unsorted."""
    rows = queue.rows
    if not rows:
        return
    for first, last in queue.issued.pairs_above(_number(after)):
        for begin in range(first, last + 1, _STEP):
            end = min(begin + _STEP - 1, last)
            sequence = -1
            for sequence in filter(rows.__contains__, range(begin, end + 1)):
                yield [sequence], [_message(queue, sequence, rows[sequence])]
            if sequence < 0:
                yield [end], []


def _message(queue: Queue, sequence: int, row: Row) -> tuple[int, ...]:
    numbers = row.visible_at_ms, row.delivery_number, row.receive_count, row.first_received_ms, row.received_ms
    if queue.kind.has_priorities:
        return (sequence, *numbers, queue.order.priority(sequence))
    return (sequence, *numbers)


def _contents(queue: Queue, read: Read | None) -> list[MessageStored]:
    """Return the contents of all messages by sequence, from memory or from disk."""
    cold = [sequence for sequence in queue.issued if sequence not in queue.contents and queue.row(sequence) is not None]
    contents = dict(queue.contents)
    if cold:
        assert read is not None, "some contents are on disk only"
        found = {content.sequence: content for content in read(queue.id, cold)}
        contents.update((sequence, found[sequence]) for sequence in cold)
    return [contents[sequence] for sequence in sorted(contents)]


# --- tables --------------------------------------------------------------------------


def _history(history: Invocations, now_ms: int, after: Position) -> _Items:
    for bucket in history.buckets_above(_number(after), PART_ROWS):
        rows = history.bucket(bucket, now_ms)
        if rows or not bucket % _BUCKETS:
            yield [bucket], rows


def _leases(state: State, after: Position) -> _Items:
    leases = state.leases
    after_key = _key(after[:4], (int, str, int, int))
    if after_key is not None and (lease := leases.get(after_key)) is not None:
        for call in _calls(lease, after[4:]):  # the rest of the lease in which the previous part ended
            yield [*after_key, *call[0]], call[1]
    for key in _ascending([*leases.living, *leases.ended], after_key):
        lease = leases.get(key)
        assert lease is not None
        yield [*key], [(key, lease.opened_ms, lease.deadline_ms, lease.state, lease.ended_ms, lease.messages)]
        for position, rows in _calls(lease, []):
            yield [*key, *position], rows


def _calls(lease: Lease, after: Position) -> _Items:
    for number in _sorted_from(lease.calls, after):
        if number > _number(after):
            call = lease.calls[number]
            yield [number], [(number, call.sequences, call.delivery_numbers)]


def _table(rows: dict[Any, Any], after: Position) -> _Items:
    """Yield the rows of a plain table after a position. The table is sorted by key."""
    keys = list(rows)
    if after and keys:
        types = tuple(map(type, keys[0])) if isinstance(keys[0], tuple) else (type(keys[0]),)
        after_key = _key(after, types)
        keys = keys[bisect_right(keys, after_key) :] if after_key is not None else keys
    for key in keys:
        yield [*key] if isinstance(key, tuple) else [key], [(key, rows[key])]


def _assignments(state: State, after: Position) -> _Items:
    groups = state.groups.by_number | state.groups.orphans
    for number in _sorted_from(groups, after):
        assigned = groups[number].by_resource
        after_key = _key(after[1:], (str, int)) if number == _number(after) else None
        for resource in _ascending([*assigned], after_key):
            yield [number, *resource], [assigned[resource]]
