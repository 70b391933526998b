"""One hash over all rows of a member: equal on every member at the same applied index."""

from collections.abc import Callable
from hashlib import blake2b
from operator import itemgetter

import msgspec

from elasticq.engine.ordering.leases import Lease
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.delivery_rows import Row
from elasticq.engine.stored.mutations import MessageStored

Read = Callable[[int, list[int]], list[MessageStored]]


def _contents(queue: Queue, read: Read | None) -> list[MessageStored]:
    """The contents of all messages in the order of their sequences, from memory or from disk."""
    cold = [sequence for sequence in queue.issued if sequence not in queue.contents and queue.row(sequence) is not None]
    contents = dict(queue.contents)
    if cold:
        assert read is not None, "some contents are on disk only"
        found = {content.sequence: content for content in read(queue.id, cold)}
        contents.update((sequence, found[sequence]) for sequence in cold)
    return [contents[sequence] for sequence in sorted(contents)]


def _queue_rows(queue: Queue, read: Read | None) -> list[object]:
    return [*_delivery_rows(queue), _contents(queue, read)]


def _delivery_rows(queue: Queue) -> list[object]:
    rows = _rows(queue)
    if queue.kind.has_priorities:
        living = [sequence for sequence in queue.issued if queue.row(sequence) is not None]
        rows.append([(sequence, queue.order.priority(sequence)) for sequence in living])
    if queue.turns:
        rows.append([(path, *map(str, queue.turns[path])) for path in sorted(queue.turns)])
    return rows


def _rows(queue: Queue) -> list[object]:
    return [
        queue.id,
        queue.account,
        queue.name,
        sorted(queue.attributes.items()),
        sorted(queue.tags.items()),
        queue.created_ms,
        queue.modified_ms,
        queue.deleted_ms,
        queue.purged_ms,
        queue.watermark,
        queue.last_sequence,
        _sorted_rows(queue),
        queue.order.untouched_pairs(),
    ]


def _sorted_rows(queue: Queue) -> list[tuple[int, dict[str, int]]]:
    delayed = [(sequence, Row(due_ms)) for sequence, due_ms in queue.order.delayed()]
    rows = [(sequence, _members(row)) for sequence, row in (*queue.rows.items(), *delayed)]
    return sorted(rows, key=itemgetter(0))


def _members(row: Row) -> dict[str, int]:
    return {
        "visible_at_ms": row.visible_at_ms,
        "delivery_number": row.delivery_number,
        "receive_count": row.receive_count,
        "first_received_ms": row.first_received_ms,
        "received_ms": row.received_ms,
    }


def _lease_row(lease: Lease) -> list[object]:
    calls = [(call, lease.calls[call].sequences, lease.calls[call].delivery_numbers) for call in sorted(lease.calls)]
    return [lease.opened_ms, lease.deadline_ms, lease.state, lease.ended_ms, lease.messages, calls]


def state_digest(state: State, now_ms: int = 0, read: Read | None = None) -> bytes:
    """16 bytes over queues, messages, names, identity and the invocation log that is live at ``now_ms``.

    read(queue_id, sequences): the contents that are not in memory.
    """
    return _digest(state, now_ms, lambda queue: _queue_rows(queue, read))


def delivery_digest(state: State, now_ms: int) -> bytes:
    """16 bytes over everything but what was sent: contents may be on disk, where each page has its checksum."""
    return _digest(state, now_ms, _delivery_rows)


def _digest(state: State, now_ms: int, rows: Callable[[Queue], list[object]]) -> bytes:
    everything = [
        state.cluster_id,
        state.mac_key,
        state.feature_level,
        state.takeover_term,
        state.ahead_ms,
        state.grace.spans,
        state.last_queue_id,
        [rows(state.queues[queue_id]) for queue_id in sorted(state.queues)],
        [rows(state.deleted_queues[queue_id]) for queue_id in sorted(state.deleted_queues)],
        sorted((key, queue.id) for key, queue in state.names.items()),
        sorted(state.deleted_names.items()),
        state.invocations.rows(now_ms),
        list(state.move_tasks.values()),
        [(key, *_lease_row(lease)) for key, lease in sorted(state.leases.items(), key=lambda item: item[0])],
    ]
    if sent_ids := state.sent_ids.rows(now_ms):
        everything.append(sent_ids)
    # Members of a version that does not know a table yet have the same digest as long as it is empty.
    everything += [
        (name, list(rows.items())) for name, rows in state.tables.items() if rows and rows is not state.move_tasks
    ]
    if assignments := state.groups.rows():
        everything.append(assignments)
    return blake2b(msgspec.msgpack.encode(everything), digest_size=16).digest()
