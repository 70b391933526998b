"""The only writer of the state: it applies a mutation to the rows and to the indexes over them.

This module handles mutations of messages. Each other kind of object has a file in ``writers/``. That file also
declares how a mutation changes the rows of its small table on disk.

``apply`` reads no configuration, clock or hash order. Applying a mutation twice changes nothing more. Each write
adds a step to ``undo`` that reverts it. A master that loses its term runs these steps, newest first. ``apply`` serves
the master's proposals, log entries, the rows read at a start, and the chunks of a state transfer.
"""

from heapq import heappush
from typing import Final

from elasticq.engine.residency import drop, keep
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Row
from elasticq.engine.stored.tables import RowChange
from elasticq.engine.writers import (
    cluster,
    consumer_groups,
    history,
    leases,
    metadata,
    move_tasks,
    plain,
    queues,
    topics,
    turns,
)
from elasticq.engine.writers.contract import Declare, Step, Undo, Writer
from elasticq.engine.writers.history import forget_invocation


def apply(state: State, mutation: m.Mutation, undo: Undo | None = None) -> None:
    """Apply ``mutation`` to the state; if ``undo`` is given, add the steps to it that revert the mutation."""
    _WRITERS[type(mutation)](state, mutation, undo)


def row_changes(mutation: m.Mutation) -> list[RowChange]:
    """Return the changes that ``mutation`` makes to the small tables on disk. Its class must be in ROWS."""
    return ROWS[type(mutation)](mutation)


def apply_all(state: State, mutations: list[m.Mutation], undo: Undo) -> None:
    for mutation in mutations:
        _WRITERS[type(mutation)](state, mutation, undo)


# --- rows ------------------------------------------------------------------------


class _MessageUndo(Step):
    """A step that restores one message and its delivery state.

    row: the delivery state to restore; None removes the message, because it did not exist.
    content, group: the content (None if not in memory) and group of a message that was removed.
    """

    __slots__ = ("_content", "_group", "_last_sequence", "_queue", "_row", "_sequence", "_state")

    def __init__(
        self,
        state: State,
        queue: Queue,
        sequence: int,
        row: Row | None,
        content: m.MessageStored | None = None,
        group: str | None = None,
    ) -> None:
        self._state = state
        self._queue = queue
        self._sequence = sequence
        self._row = row
        self._content = content
        self._group = group
        self._last_sequence = queue.last_sequence

    def take_back(self) -> None:
        queue, sequence, row = self._queue, self._sequence, self._row
        queue.last_sequence = self._last_sequence
        old = queue.row(sequence)
        if old is not None:
            _put_row(self._state, queue, sequence, old, row, None)
        elif row is not None:
            if self._content is not None:
                keep(self._state, queue, sequence, self._content)
            queue.issued.add(sequence)
            if queue.keeps(row):
                queue.rows[sequence] = row
            if self._group is not None:
                queue.join(sequence, self._group)
            queue.order.insert(sequence, row)


def _put_row(state: State, queue: Queue, sequence: int, old: Row, row: Row | None, undo: Undo | None) -> None:
    """Replace the delivery state ``old`` of a message by ``row`` and update the order; None removes the message."""
    order = queue.order
    if row is not None:
        if undo is not None:
            undo.append(_MessageUndo(state, queue, sequence, old))
        if queue.keeps(row):
            queue.rows[sequence] = row
        elif queue.keeps(old):
            del queue.rows[sequence]
        order.replace(sequence, old, row)
        return
    if undo is not None:
        content, group = queue.contents.get(sequence), order.group_name(sequence)
        undo.append(_MessageUndo(state, queue, sequence, old, content, group))
        if queue.kind.has_priorities:  # undone first: the message must return with its priority
            undo.append((order.prioritise, sequence, order.priority(sequence)))
    if queue.keeps(old):
        del queue.rows[sequence]
    order.remove(sequence, old)
    drop(state, queue, sequence)


def _message_stored(state: State, mutation: m.MessageStored, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    sequence = mutation.sequence
    if queue is None or sequence < queue.watermark:
        return
    if sequence <= queue.last_sequence and queue.row(sequence) is not None:
        if sequence not in queue.contents:  # a transfer sends all rows first, then contents: see storage/memory.py
            keep(state, queue, sequence, mutation)
        return
    if undo is not None:
        undo.append(_MessageUndo(state, queue, sequence, None))
    keep(state, queue, sequence, mutation)
    queue.issued.add(sequence)
    queue.ages.note(sequence, mutation.sent_ms)
    if mutation.dead_letter is not None and not queue.kind.renews_dead_letters:
        heappush(queue.messages.late, (mutation.sent_ms, sequence))
    row = UNTOUCHED
    visible_at_ms = mutation.visible_at_ms
    if visible_at_ms:
        row = Row(visible_at_ms)
        if queue.keeps(row):
            queue.rows[sequence] = row
    group = mutation.group_id
    if group is not None and not queue.kind.needs_group:
        queue.join(sequence, group)
    queue.order.insert(sequence, row)
    if sequence > queue.last_sequence:
        queue.last_sequence = sequence


def _messages_received(state: State, mutation: m.MessagesReceived, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    until_ms, received_ms = mutation.until_ms, mutation.received_ms
    for sequence, delivery_number, count, first_ms in zip(
        mutation.sequences, mutation.delivery_numbers, mutation.receive_counts, mutation.first_received_ms, strict=True
    ):
        old = queue.row(sequence)
        if old is not None:
            row = Row(until_ms, delivery_number, count, first_ms, received_ms)
            _put_row(state, queue, sequence, old, row, undo)


def _visibility_changed(state: State, mutation: m.VisibilityChanged, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    for sequence, until_ms in zip(mutation.sequences, mutation.until_ms, strict=True):
        old = queue.row(sequence)
        if old is not None:
            row = Row(until_ms, old.delivery_number, old.receive_count, old.first_received_ms, old.received_ms)
            _put_row(state, queue, sequence, old, row, undo)


def _priorities_set(state: State, mutation: m.PrioritiesSet, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is None or not queue.kind.has_priorities:
        return
    order = queue.order
    for sequence, priority in zip(mutation.sequences, mutation.priorities, strict=True):
        if queue.row(sequence) is not None:
            if undo is not None:
                undo.append((order.prioritise, sequence, order.priority(sequence)))
            order.prioritise(sequence, priority)


def _messages_removed(state: State, mutation: m.MessagesRemoved, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for sequence in mutation.sequences:
            old = queue.row(sequence)
            if old is not None:
                _put_row(state, queue, sequence, old, None, undo)


def _range_removed(state: State, mutation: m.RangeRemoved, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for sequence in queue.issued.between(mutation.first, mutation.last):
            old = queue.row(sequence)
            if old is not None:
                _put_row(state, queue, sequence, old, None, undo)


def _receive_returned(state: State, mutation: m.ReceiveReturned, undo: Undo | None) -> None:
    if mutation.invocation:
        forget_invocation(state, mutation.invocation, undo)
    queue = state.queues.get(mutation.queue_id)
    if queue is None:
        return
    for sequence, delivery_number, count, first_ms in zip(
        mutation.sequences, mutation.delivery_numbers, mutation.receive_counts, mutation.first_received_ms, strict=True
    ):
        old = queue.rows.get(sequence)
        if old is not None and old.delivery_number == delivery_number:
            row = Row(mutation.visible_at_ms, delivery_number, count, first_ms, old.received_ms)
            _put_row(state, queue, sequence, old, row, undo)


# --- rows on disk ------------------------------------------------------------------


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


def _priorities_restored(state: State, mutation: m.PrioritiesRestored, undo: Undo | None) -> None:
    order = state.queues[mutation.queue_id].order
    for sequence, priority in zip(mutation.sequences, mutation.priorities, strict=True):
        order.prioritise(sequence, priority)


def _groups_served(state: State, mutation: m.GroupsServed, undo: Undo | None) -> None:
    queue = state.queues.get(mutation.queue_id)
    if queue is not None:
        for name, number in zip(mutation.names, mutation.numbers, strict=True):
            queue.order.note_served(name, number)


def _groups_served_rows(mutation: m.GroupsServed) -> list[RowChange]:
    """Return no changes, because the turns of groups are not persisted.

    After a restart the group with the oldest message is next.
    """
    return []


def _rows_restored(state: State, mutation: m.RowsRestored, undo: Undo | None) -> None:
    queue = state.queues[mutation.queue_id]
    for sequence, *columns in zip(
        mutation.sequences,
        mutation.visible_at_ms,
        mutation.delivery_numbers,
        mutation.receive_counts,
        mutation.first_received_ms,
        mutation.received_ms,
        strict=True,
    ):
        row = Row(*columns)
        if queue.keeps(row):
            queue.rows[sequence] = row
        queue.order.insert(sequence, row)


def _delays_restored(state: State, mutation: m.DelaysRestored, undo: Undo | None) -> None:
    state.queues[mutation.queue_id].order.insert_delayed(mutation.sequences, mutation.visible_at_ms)


def _plain(state: State, mutation: m.Mutation, undo: Undo | None) -> None:
    plain.write(state, row_changes(mutation), undo)


ROWS: Final[dict[type, Declare]] = {
    **cluster.ROWS,
    **queues.ROWS,
    **move_tasks.ROWS,
    **leases.ROWS,
    **topics.ROWS,
    **consumer_groups.ROWS,
    **turns.ROWS,
    **metadata.ROWS,
    m.GroupsServed: _groups_served_rows,
}
"""The function that declares the row changes, for each class of mutation that changes small tables.

The storage has its own code for messages and for histories.
"""

_WRITERS: Final[dict[type, Writer]] = {
    **dict.fromkeys(ROWS, _plain),  # for mutations without a writer of their own
    **cluster.WRITERS,
    **queues.WRITERS,
    **history.WRITERS,
    **move_tasks.WRITERS,
    **leases.WRITERS,
    **topics.WRITERS,
    **consumer_groups.WRITERS,
    **turns.WRITERS,
    m.MessageStored: _message_stored,
    m.MessagesReceived: _messages_received,
    m.VisibilityChanged: _visibility_changed,
    m.MessagesRemoved: _messages_removed,
    m.ReceiveReturned: _receive_returned,
    m.RangeRemoved: _range_removed,
    m.UntouchedRestored: _untouched_restored,
    m.GroupsRestored: _groups_restored,
    m.GroupsServed: _groups_served,
    m.PrioritiesSet: _priorities_set,
    m.PrioritiesRestored: _priorities_restored,
    m.RowsRestored: _rows_restored,
    m.DelaysRestored: _delays_restored,
}
