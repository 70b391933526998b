"""One hash over all rows of a member: equal on every member at the same applied index."""

from hashlib import blake2b

import msgspec

from elasticq.engine.state import Queue, State


def _queue_rows(queue: Queue) -> list[object]:
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
        [(sequence, queue.rows[sequence]) for sequence in sorted(queue.rows)],
    ]


def state_digest(state: State, now_ms: int = 0) -> bytes:
    """16 bytes over queues, rows, names, identity and the GUID history that is live at ``now_ms``."""
    everything = [
        state.cluster_id,
        state.mac_key,
        state.feature_level,
        state.takeover_term,
        state.grace.spans,
        state.last_queue_id,
        [_queue_rows(state.queues[queue_id]) for queue_id in sorted(state.queues)],
        [_queue_rows(state.doomed[queue_id]) for queue_id in sorted(state.doomed)],
        sorted((key, queue.id) for key, queue in state.names.items()),
        sorted(state.deleted_names.items()),
        state.bytes_stored,
        state.invocations.rows(now_ms),
    ]
    return blake2b(msgspec.msgpack.encode(everything), digest_size=16).digest()
