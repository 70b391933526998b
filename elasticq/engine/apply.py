"""The only writer of state: a mutation changes rows and, with them, the indexes.

``apply`` reads no configuration, clock or hash order, and applied twice it
changes nothing more. Every write leaves in ``undo`` how to take it back; a
master that loses its term runs those, newest first. Serves own proposals, log
entries, rows at start and transfer chunks alike.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any

from elasticq.engine import idempotency
from elasticq.engine import mutations as m
from elasticq.engine.identity import Identity
from elasticq.engine.invocations import SWEPT
from elasticq.engine.leases import Key, Lease, key_of
from elasticq.engine.residency import drop, keep
from elasticq.engine.rows import UNTOUCHED, Row
from elasticq.engine.state import Messages, Queue, State

Undo = list[tuple[Callable[..., object], *tuple[Any, ...]]]


def apply(state: State, mutation: m.Mutation, undo: Undo | None = None) -> None:
    """Write ``mutation``; with ``undo`` also note how to take it back."""
    _WRITERS[type(mutation)](state, mutation, undo)


def apply_all(state: State, mutations: list[m.Mutation], undo: Undo) -> None:
    for mutation in mutations:
        _WRITERS[type(mutation)](state, mutation, undo)


def roll_back(undo: Undo) -> None:
    """Take back what was noted, newest first."""
    while undo:
        function, *arguments = undo.pop()
        function(*arguments)


# --- rows ------------------------------------------------------------------------


def _put_row(state: State, queue: Queue, sequence: int, row: Row | None, undo: Undo | None) -> None:
    """Replace where delivery of ``sequence`` stands (None: the message is gone) and its index."""
    old = queue.row(sequence)
    assert old is not None, "only what is there is replaced"
    order = queue.order
    if undo is not None:
        content = queue.contents.get(sequence) if row is None else None
        group = order.group_name(sequence) if row is None else None
        undo.append((_put_back, state, queue, sequence, old, content, group, queue.last_sequence))
    if row is not UNTOUCHED and row is not None:
        queue.rows[sequence] = row
    elif old is not UNTOUCHED:
        del queue.rows[sequence]
    if row is not None:
        order.replace(sequence, old, row)
    else:
        order.remove(sequence, old)
        drop(state, queue, sequence)


def _put_back(
    state: State,
    queue: Queue,
    sequence: int,
    row: Row | None,
    content: m.MessageStored | None,
    group: str | None,
    last_sequence: int,
) -> None:
    """As it was before; ``group``: of a message that was removed."""
    queue.last_sequence = last_sequence
    if queue.row(sequence) is not None:
        _put_row(state, queue, sequence, row, None)
    elif row is not None:
        if content is not None:
            keep(state, queue, content)
        queue.issued.add(sequence)
        if row is not UNTOUCHED:
            queue.rows[sequence] = row
        if group is not None:
            queue.join(sequence, group)
        queue.order.insert(sequence, row)


def _message_stored(state: State, mutation: m.MessageStored, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    sequence = mutation.sequence
    if queue is None or sequence < queue.watermark:
        return
    if sequence <= queue.last_sequence and queue.row(sequence) is not None:
        if sequence not in queue.contents:  # rows of another member, then all its contents: see storage/memory.py
            keep(state, queue, mutation)
        return
    if undo is not None:
        undo.append((_put_back, state, queue, sequence, None, None, None, queue.last_sequence))
    keep(state, queue, mutation)
    queue.issued.add(sequence)
    queue.ages.note(sequence, mutation.sent_ms)
    if mutation.dead_letter is not None and not queue.kind.renews_dead_letters:
        heappush(queue.messages.late, (mutation.sent_ms, sequence))
    row = UNTOUCHED
    if mutation.visible_at_ms:
        row = queue.rows[sequence] = Row(mutation.visible_at_ms)
    if mutation.group_id is not None and not queue.kind.needs_group:
        queue.join(sequence, mutation.group_id)
    queue.order.insert(sequence, row)
    if sequence > queue.last_sequence:
        queue.last_sequence = sequence


def _messages_received(state: State, mutation: m.MessagesReceived, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    for sequence, hand_out, count, first_ms in zip(
        mutation.sequences, mutation.hand_outs, mutation.receive_counts, mutation.first_received_ms, strict=True
    ):
        if queue.row(sequence) is not None:
            row = Row(mutation.until_ms, hand_out, count, first_ms, mutation.received_ms)
            _put_row(state, queue, sequence, row, undo)


def _visibility_changed(state: State, mutation: m.VisibilityChanged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    for sequence, until_ms in zip(mutation.sequences, mutation.until_ms, strict=True):
        old = queue.row(sequence)
        if old is not None:
            row = Row(until_ms, old.hand_out, old.receive_count, old.first_received_ms, old.received_ms)
            _put_row(state, queue, sequence, row, undo)


def _messages_removed(state: State, mutation: m.MessagesRemoved, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for sequence in mutation.sequences:
            if queue.row(sequence) is not None:
                _put_row(state, queue, sequence, None, undo)


def _range_removed(state: State, mutation: m.RangeRemoved, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for sequence in queue.issued.between(mutation.first, mutation.last):
            if queue.row(sequence) is not None:
                _put_row(state, queue, sequence, None, undo)


def _receive_returned(state: State, mutation: m.ReceiveReturned, undo: Undo | None) -> None:
    if mutation.invocation:
        _forget_invocation(state, mutation.invocation, undo)
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    for sequence, hand_out, count, first_ms in zip(
        mutation.sequences, mutation.hand_outs, mutation.receive_counts, mutation.first_received_ms, strict=True
    ):
        old = queue.rows.get(sequence)
        if old is not None and old.hand_out == hand_out:
            row = Row(mutation.visible_at_ms, hand_out, count, first_ms, old.received_ms)
            _put_row(state, queue, sequence, row, undo)


def _queue_of(state: State, mutation: m.QueueCreated | m.QueueRestored) -> Queue:
    x = mutation
    return Queue(x.queue_id, x.account, x.name, x.created_ms, state.grace, x.attributes)


def _any_queue(state: State, queue_id: int) -> Queue | None:
    return state.queues.get(queue_id) or state.doomed.get(queue_id)


# --- rows on disk ------------------------------------------------------------------


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
        state.doomed[queue.id] = queue
        state.deleted_names[(queue.account, queue.name)] = mutation.deleted_ms


def _untouched_restored(state: State, mutation: m.UntouchedRestored, undo: Undo | None) -> None:
    queue = state.queues[mutation.queue_id]
    queue.issued.add_range(mutation.first, mutation.last)
    queue.ages.note(mutation.last, mutation.last_sent_ms)
    for first, last in zip(mutation.firsts, mutation.lasts, strict=True):
        queue.order.insert_untouched(first, last)


def _groups_restored(state: State, mutation: m.GroupsRestored, undo: Undo | None) -> None:
    queue = state.queues[mutation.queue_id]
    for sequence, at in zip(mutation.sequences, mutation.groups, strict=True):
        queue.join(sequence, mutation.names[at])


def _groups_served(state: State, mutation: m.GroupsServed, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for name, received_ms in zip(mutation.names, mutation.received_ms, strict=True):
            queue.order.note_served(name, received_ms)


def _rows_restored(state: State, mutation: m.RowsRestored, undo: Undo | None) -> None:
    queue = state.queues[mutation.queue_id]
    for sequence, *columns in zip(
        mutation.sequences,
        mutation.visible_at_ms,
        mutation.hand_outs,
        mutation.receive_counts,
        mutation.first_received_ms,
        mutation.received_ms,
        strict=True,
    ):
        row = queue.rows[sequence] = Row(*columns)
        queue.order.insert(sequence, row)


# --- queues ------------------------------------------------------------------------


def _queue_created(state: State, mutation: m.QueueCreated, undo: Undo | None) -> None:
    if _any_queue(state, mutation.queue_id) is not None:
        return
    queue = _queue_of(state, mutation)
    queue.tags = mutation.tags
    if undo is not None:
        undo.append((_uncreate, state, queue, state.last_queue_id))
    state.queues[queue.id] = queue
    holder = state.names.get((queue.account, queue.name))
    if holder is None or holder.id < queue.id:  # a log applied again must not give the name to an older queue
        state.names[(queue.account, queue.name)] = queue
    state.last_queue_id = max(state.last_queue_id, queue.id)


def _uncreate(state: State, queue: Queue, last_queue_id: int) -> None:
    del state.queues[queue.id]
    if state.names.get((queue.account, queue.name)) is queue:
        del state.names[(queue.account, queue.name)]
    state.last_queue_id = last_queue_id


def _queue_attributes_set(state: State, mutation: m.QueueAttributesSet, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    if undo is not None:
        undo.append((_reset_attributes, queue, queue.attributes, queue.modified_ms))
    _reset_attributes(queue, mutation.attributes, mutation.modified_ms)


def _reset_attributes(queue: Queue, attributes: dict[str, str], modified_ms: int) -> None:
    queue.set_attributes(attributes)
    queue.modified_ms = modified_ms


def _queue_deleted(state: State, mutation: m.QueueDeleted, undo: Undo | None) -> None:
    queue = state.queues.pop(mutation.queue_id, None)
    if queue is None:
        return
    key = (queue.account, queue.name)
    if undo is not None:
        undo.append((_undelete, state, queue, queue.messages, state.deleted_names.get(key)))
    queue.deleted_ms = mutation.deleted_ms
    state.doomed[queue.id] = queue
    _throw_away(state, queue)
    if state.names.get(key) is queue:
        del state.names[key]
    state.deleted_names[key] = mutation.deleted_ms


def _undelete(state: State, queue: Queue, messages: Messages, deleted_before_ms: int | None) -> None:
    key = (queue.account, queue.name)
    del state.doomed[queue.id]
    queue.deleted_ms = None
    _fetch_back(state, queue, messages)
    state.queues[queue.id] = queue
    state.names[key] = queue
    if deleted_before_ms is None:
        del state.deleted_names[key]
    else:
        state.deleted_names[key] = deleted_before_ms


def _queue_reclaimed(state: State, mutation: m.QueueReclaimed, undo: Undo | None) -> None:
    queue = state.doomed.pop(mutation.queue_id, None)
    if queue is None:
        return
    key = (queue.account, queue.name)
    deleted_ms = state.deleted_names.get(key)
    if undo is not None:
        undo.append((_unreclaim, state, queue, deleted_ms))
    if deleted_ms == queue.deleted_ms:
        state.deleted_names.pop(key, None)


def _unreclaim(state: State, queue: Queue, deleted_ms: int | None) -> None:
    state.doomed[queue.id] = queue
    if deleted_ms is not None:
        state.deleted_names[(queue.account, queue.name)] = deleted_ms


def _queue_purged(state: State, mutation: m.QueuePurged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None or mutation.watermark <= queue.watermark:
        return
    if undo is not None:
        undo.append((_unpurge, state, queue, queue.messages, queue.watermark, queue.purged_ms))
    _throw_away(state, queue)
    queue.watermark = mutation.watermark
    queue.purged_ms = mutation.purged_ms


def _unpurge(state: State, queue: Queue, messages: Messages, watermark: int, purged_ms: int | None) -> None:
    _fetch_back(state, queue, messages)
    queue.watermark = watermark
    queue.purged_ms = purged_ms


def _throw_away(state: State, queue: Queue) -> None:
    """All messages are gone at once; the memory they take is given back in steps (sweep.reclaim)."""
    state.trash.append((state.index, queue.messages))
    state.contents_bytes -= queue.messages.bytes
    queue.hold(Messages(state.grace, queue.kind))


def _fetch_back(state: State, queue: Queue, messages: Messages) -> None:
    """The newest throwing away is undone."""
    _, newest = state.trash.pop()
    assert newest is messages, "roll-back goes newest first"
    state.contents_bytes += messages.bytes
    queue.hold(messages)


# --- tags and tasks ---------------------------------------------------------------


def _queue_tagged(state: State, mutation: m.QueueTagged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    if undo is not None:
        undo.append((setattr, queue, "tags", queue.tags))
    queue.tags = mutation.tags


def _move_task_set(state: State, mutation: m.MoveTaskSet, undo: Undo | None) -> None:
    _put_task(state, mutation.number, mutation, undo)


def _move_task_forgotten(state: State, mutation: m.MoveTaskForgotten, undo: Undo | None) -> None:
    _put_task(state, mutation.number, None, undo)


def _put_task(state: State, number: int, task: m.MoveTaskSet | None, undo: Undo | None) -> None:
    """Tasks stand in the order of their numbers, also when an old one comes back by a roll-back."""
    old = state.move_tasks.pop(number, None)
    if undo is not None:
        undo.append((_put_task, state, number, old, None))
    state.moving.pop(number, None)
    if task is not None:
        state.move_tasks[number] = task
        if task.status in m.MOVING:
            state.moving[number] = task
    for tasks in (state.move_tasks, state.moving):
        numbers = list(tasks)
        if numbers != sorted(numbers):
            ordered = sorted(tasks.items())
            tasks.clear()
            tasks.update(ordered)


# --- leases -------------------------------------------------------------------------


def _lease_called(state: State, mutation: m.LeaseCalled, undo: Undo | None) -> None:
    key = key_of(mutation)
    lease = state.leases.get(key)
    if lease is None:
        lease = Lease(mutation.opened_ms, mutation.deadline_ms)
        if undo is not None:
            undo.append((state.leases.remove, key))
        state.leases.put(key, lease)
    elif lease.ended_ms or mutation.call in lease.calls:
        return
    if undo is not None:
        undo.append((_uncall, lease, mutation.call, lease.state))
    lease.calls[mutation.call] = mutation
    lease.messages += len(mutation.sequences)
    if not mutation.sequences:
        lease.state = m.LEASE_SEALED


def _uncall(lease: Lease, call: int, state: str) -> None:
    lease.messages -= len(lease.calls.pop(call).sequences)
    lease.state = state


def _lease_set(state: State, mutation: m.LeaseSet, undo: Undo | None) -> None:
    """Another object in the place of the old one, which a roll-back puts there again.

    What calls a living lease has is theirs to say; nothing that is over begins anew (a log applied again).
    """
    key = key_of(mutation)
    old = state.leases.get(key)
    if old is not None and old.ended_ms and not mutation.ended_ms:
        return
    lease = Lease(mutation.opened_ms, mutation.deadline_ms)
    lease.state, lease.ended_ms, lease.messages = mutation.state, mutation.ended_ms, mutation.messages
    if old is not None and not mutation.ended_ms:
        lease.state, lease.messages, lease.calls = old.state, old.messages, old.calls
    if undo is not None:
        undo.append((_put_lease, state, key, old))
    state.leases.put(key, lease)


def _lease_forgotten(state: State, mutation: m.LeaseForgotten, undo: Undo | None) -> None:
    key = key_of(mutation)
    old = state.leases.get(key)
    if old is not None:
        if undo is not None:
            undo.append((_put_lease, state, key, old))
        state.leases.remove(key)


def _put_lease(state: State, key: Key, lease: Lease | None) -> None:
    if lease is None:
        state.leases.remove(key)
    else:
        state.leases.put(key, lease)


# --- cluster ------------------------------------------------------------------------


def _cluster_founded(state: State, mutation: m.ClusterFounded, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_found, state, state.cluster_id, state.mac_key, state.feature_level))
    _found(state, mutation.cluster_id, mutation.mac_key, mutation.feature_level)


def _cluster_renamed(state: State, mutation: m.ClusterRenamed, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_found, state, state.cluster_id, state.mac_key, state.feature_level))
    _found(state, mutation.cluster_id, state.mac_key, state.feature_level)


def _found(state: State, cluster_id: str, mac_key: bytes, feature_level: int) -> None:
    state.cluster_id, state.mac_key, state.feature_level = cluster_id, mac_key, feature_level
    state.identity = Identity(mac_key)


GRACE_SPANS_MAX = 64  # a span matters while a deadline can lie in it: 12 h; older ones go first


def _took_over(state: State, mutation: m.TookOver, undo: Undo | None) -> None:
    span = (mutation.grace_from_ms, mutation.grace_until_ms)
    if mutation.term <= state.takeover_term:
        return
    if undo is not None:
        undo.append((_untake, state, state.takeover_term, list(state.grace.spans)))
    state.takeover_term = mutation.term
    if span[0] < span[1]:
        # Older than any deadline that can still be ahead: spans end by entry time, the same everywhere.
        state.grace.spans = [known for known in state.grace.spans if known[1] > span[0] - 43_200_000]
        state.grace.spans = [*state.grace.spans, span][-GRACE_SPANS_MAX:]
        for queue in (*state.queues.values(), *state.doomed.values()):
            queue.order.hide_again(span[0])


def _untake(state: State, term: int, spans: list[tuple[int, int]]) -> None:
    state.takeover_term = term
    state.grace.spans = spans
    for queue in (*state.queues.values(), *state.doomed.values()):
        queue.order.forget_grace()


def _clock_advanced(state: State, mutation: m.ClockAdvanced, undo: Undo | None) -> None:
    if mutation.ahead_ms > state.ahead_ms:
        if undo is not None:
            undo.append((setattr, state, "ahead_ms", state.ahead_ms))
        state.ahead_ms = mutation.ahead_ms


def _invocation_recorded(state: State, mutation: m.InvocationRecorded, undo: Undo | None) -> None:
    if mutation.invocation == SWEPT:
        state.invocations.forget(mutation.recorded_ms)
        state.sent_ids.forget(mutation.recorded_ms)
    is_new = state.invocations.put(mutation.invocation, mutation)
    if is_new and undo is not None:
        undo.append((state.invocations.remove, mutation.invocation))


def _sent_id_taken(state: State, mutation: m.SentIdTaken, undo: Undo | None) -> None:
    is_new, old = idempotency.put(state.sent_ids, mutation)
    if is_new and undo is not None:
        undo.append((idempotency.take_back, state.sent_ids, mutation.key, old))


def _attempt_recorded(state: State, mutation: m.AttemptRecorded, undo: Undo | None) -> None:
    known = state.invocations.get(mutation.attempt, mutation.recorded_ms)
    if known is not None and known.recorded_ms >= mutation.recorded_ms and known.detail == mutation.detail:
        return
    _forget_invocation(state, mutation.attempt, undo)
    if mutation.detail:
        _invocation_recorded(state, as_invocation(mutation), undo)


def as_invocation(mutation: m.AttemptRecorded) -> m.InvocationRecorded:
    """Attempts stand among the invocations."""
    return m.InvocationRecorded(mutation.attempt, mutation.recorded_ms, 0, 0, mutation.detail)


def _forget_invocation(state: State, key: bytes, undo: Undo | None) -> None:
    row = state.invocations.remove(key)
    if row is not None and undo is not None:
        undo.append((state.invocations.put, key, row))


_WRITERS: dict[type, Callable[[State, Any, Undo | None], None]] = {
    m.ClusterFounded: _cluster_founded,
    m.TookOver: _took_over,
    m.QueueCreated: _queue_created,
    m.QueueAttributesSet: _queue_attributes_set,
    m.QueueDeleted: _queue_deleted,
    m.QueueReclaimed: _queue_reclaimed,
    m.QueuePurged: _queue_purged,
    m.MessageStored: _message_stored,
    m.MessagesReceived: _messages_received,
    m.VisibilityChanged: _visibility_changed,
    m.MessagesRemoved: _messages_removed,
    m.ReceiveReturned: _receive_returned,
    m.InvocationRecorded: _invocation_recorded,
    m.AttemptRecorded: _attempt_recorded,
    m.SentIdTaken: _sent_id_taken,
    m.RangeRemoved: _range_removed,
    m.ClusterRenamed: _cluster_renamed,
    m.ClockAdvanced: _clock_advanced,
    m.QueueTagged: _queue_tagged,
    m.MoveTaskSet: _move_task_set,
    m.MoveTaskForgotten: _move_task_forgotten,
    m.LeaseCalled: _lease_called,
    m.LeaseSet: _lease_set,
    m.LeaseForgotten: _lease_forgotten,
    m.QueueRestored: _queue_restored,
    m.UntouchedRestored: _untouched_restored,
    m.GroupsRestored: _groups_restored,
    m.GroupsServed: _groups_served,
    m.RowsRestored: _rows_restored,
}
