"""The effects of mutations on queues: attributes, tags and names, and purges of all messages."""

from typing import Final

from elasticq.engine.state import Messages, Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import LAST_QUEUE_ID, Change, Drop, Put, Raise, RowChange
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _queue_of(state: State, mutation: m.QueueCreated | m.QueueRestored) -> Queue:
    x = mutation
    turns = state.turns.setdefault(x.queue_id, {})  # a start restores turns before queues
    return Queue(x.queue_id, x.account, x.name, x.created_ms, state.grace, x.attributes, turns)


def _any_queue(state: State, queue_id: int) -> Queue | None:
    return state.queues.get(queue_id) or state.deleted_queues.get(queue_id)


def _queue_restored(state: State, mutation: m.QueueRestored, undo: Undo | None) -> None:
    queue = _queue_of(state, mutation)
    queue.modified_ms = mutation.modified_ms
    queue.tags = mutation.tags
    queue.purged_ms = mutation.purged_ms
    queue.watermark = mutation.watermark
    queue.last_sequence = mutation.last_sequence
    state.last_queue_id = max(state.last_queue_id, queue.id)
    queue.deleted_ms = mutation.deleted_ms
    if mutation.deleted_ms is None:
        state.queues[queue.id] = queue
        state.names[(queue.account, queue.name)] = queue
    else:
        state.deleted_queues[queue.id] = queue
        state.deleted_names[(queue.account, queue.name)] = mutation.deleted_ms


def _queue_created(state: State, mutation: m.QueueCreated, undo: Undo | None) -> None:
    if _any_queue(state, mutation.queue_id) is not None:
        return
    queue = _queue_of(state, mutation)
    queue.tags = mutation.tags
    if undo is not None:
        undo.append((_undo_create, state, queue, state.last_queue_id))
    state.queues[queue.id] = queue
    holder = state.names.get((queue.account, queue.name))
    if holder is None or holder.id < queue.id:  # replaying a log must not give the name to an older queue
        state.names[(queue.account, queue.name)] = queue
    state.last_queue_id = max(state.last_queue_id, queue.id)


def _queue_created_rows(mutation: m.QueueCreated) -> list[RowChange]:
    row = m.QueueRestored(
        queue_id=mutation.queue_id,
        account=mutation.account,
        name=mutation.name,
        attributes=mutation.attributes,
        tags=mutation.tags,
        created_ms=mutation.created_ms,
        modified_ms=mutation.created_ms,
        deleted_ms=None,
        purged_ms=None,
        watermark=0,
        last_sequence=0,
    )
    return [Raise(LAST_QUEUE_ID, mutation.queue_id), Put(m.QUEUES, mutation.queue_id, row)]


def _undo_create(state: State, queue: Queue, last_queue_id: int) -> None:
    del state.queues[queue.id]
    state.turns.pop(queue.id, None)
    if state.names.get((queue.account, queue.name)) is queue:
        del state.names[(queue.account, queue.name)]
    state.last_queue_id = last_queue_id


def _queue_attributes_set(state: State, mutation: m.QueueAttributesSet, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    if undo is not None:
        undo.append((_reset_attributes, state, queue, queue.attributes, queue.modified_ms))
    _reset_attributes(state, queue, mutation.attributes, mutation.modified_ms)


def _queue_attributes_set_rows(mutation: m.QueueAttributesSet) -> list[RowChange]:
    fields = {"attributes": mutation.attributes, "modified_ms": mutation.modified_ms}
    return [Change(m.QUEUES, mutation.queue_id, fields)]


def _reset_attributes(state: State, queue: Queue, attributes: dict[str, str], modified_ms: int) -> None:
    queue.set_attributes(attributes)
    queue.modified_ms = modified_ms
    if state.names.get((queue.account, queue.name)) is queue:
        state.sources.put((queue.account, queue.name), queue.redrive)


def _queue_tagged(state: State, mutation: m.QueueTagged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    if undo is not None:
        undo.append((setattr, queue, "tags", queue.tags))
    queue.tags = mutation.tags


def _queue_tagged_rows(mutation: m.QueueTagged) -> list[RowChange]:
    return [Change(m.QUEUES, mutation.queue_id, {"tags": mutation.tags})]


def _queue_deleted(state: State, mutation: m.QueueDeleted, undo: Undo | None) -> None:
    queue = state.queues.pop(mutation.queue_id, None)
    if queue is None:
        return
    key = (queue.account, queue.name)
    if undo is not None:
        undo.append((_undo_delete, state, queue, queue.messages, state.deleted_names.get(key)))
    queue.deleted_ms = mutation.deleted_ms
    state.deleted_queues[queue.id] = queue
    _discard_messages(state, queue)
    if state.names.get(key) is queue:
        del state.names[key]
    state.deleted_names[key] = mutation.deleted_ms


def _queue_deleted_rows(mutation: m.QueueDeleted) -> list[RowChange]:
    return [Change(m.QUEUES, mutation.queue_id, {"deleted_ms": mutation.deleted_ms})]


def _undo_delete(state: State, queue: Queue, messages: Messages, deleted_before_ms: int | None) -> None:
    key = (queue.account, queue.name)
    del state.deleted_queues[queue.id]
    queue.deleted_ms = None
    _restore_messages(state, queue, messages)
    state.queues[queue.id] = queue
    state.names[key] = queue
    if deleted_before_ms is None:
        del state.deleted_names[key]
    else:
        state.deleted_names[key] = deleted_before_ms


def _queue_reclaimed(state: State, mutation: m.QueueReclaimed, undo: Undo | None) -> None:
    queue = state.deleted_queues.pop(mutation.queue_id, None)
    if queue is None:
        return
    key = (queue.account, queue.name)
    deleted_ms = state.deleted_names.get(key)
    state.turns.pop(queue.id, None)
    if undo is not None:
        undo.append((_undo_reclaim, state, queue, deleted_ms))
    if deleted_ms == queue.deleted_ms:
        state.deleted_names.pop(key, None)


def _queue_reclaimed_rows(mutation: m.QueueReclaimed) -> list[RowChange]:
    return [Drop(m.QUEUES, mutation.queue_id)]


def _undo_reclaim(state: State, queue: Queue, deleted_ms: int | None) -> None:
    state.deleted_queues[queue.id] = queue
    state.turns[queue.id] = queue.turns
    if deleted_ms is not None:
        state.deleted_names[(queue.account, queue.name)] = deleted_ms


def _queue_purged(state: State, mutation: m.QueuePurged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None or mutation.watermark <= queue.watermark:
        return
    if undo is not None:
        undo.append((_undo_purge, state, queue, queue.messages, queue.watermark, queue.purged_ms))
    _discard_messages(state, queue)
    queue.watermark = mutation.watermark
    queue.purged_ms = mutation.purged_ms


def _queue_purged_rows(mutation: m.QueuePurged) -> list[RowChange]:
    fields = {"watermark": mutation.watermark, "purged_ms": mutation.purged_ms}
    return [Change(m.QUEUES, mutation.queue_id, fields, grows="watermark")]


def _undo_purge(state: State, queue: Queue, messages: Messages, watermark: int, purged_ms: int | None) -> None:
    _restore_messages(state, queue, messages)
    queue.watermark = watermark
    queue.purged_ms = purged_ms


def _discard_messages(state: State, queue: Queue) -> None:
    """Remove all messages at once. ``sweep.reclaim`` releases their memory in steps."""
    state.trash.append((state.index, queue.messages))
    state.contents_bytes -= queue.messages.bytes
    queue.hold(Messages(state.grace, queue.kind, queue.partitions))


def _restore_messages(state: State, queue: Queue, messages: Messages) -> None:
    """Undo the newest ``_discard_messages``."""
    _, newest = state.trash.pop()
    assert newest is messages, "roll-back goes newest first"
    state.contents_bytes += messages.bytes
    queue.hold(messages)


WRITERS: Final[dict[type, Writer]] = {
    m.QueueRestored: _queue_restored,
    m.QueueCreated: _queue_created,
    m.QueueAttributesSet: _queue_attributes_set,
    m.QueueTagged: _queue_tagged,
    m.QueueDeleted: _queue_deleted,
    m.QueueReclaimed: _queue_reclaimed,
    m.QueuePurged: _queue_purged,
}

ROWS: Final[dict[type, Declare]] = {
    m.QueueCreated: _queue_created_rows,
    m.QueueAttributesSet: _queue_attributes_set_rows,
    m.QueueTagged: _queue_tagged_rows,
    m.QueueDeleted: _queue_deleted_rows,
    m.QueueReclaimed: _queue_reclaimed_rows,
    m.QueuePurged: _queue_purged_rows,
}
