"""A dump: the mutations that turn an empty state into this one, for a new member.

A member that applies them has the same digest and gives the same answers as a follower that applied the log. All
contents must be in memory. A dump omits facts that can have no effect: the terms of old takeovers, and ids older than
their window.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from elasticq.engine import turns
from elasticq.engine.ordering.leases import Key, Lease
from elasticq.engine.ordering.priority import arrival_priority
from elasticq.engine.residency import content_bytes
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.delivery_rows import UNTOUCHED
from elasticq.model.limits import MUTATION_ROWS_MAX

CHUNK_ROWS = 4 * MUTATION_ROWS_MAX
CHUNK_BYTES = 4 * 1_048_576


def dump(state: State) -> Iterator[list[m.Mutation]]:
    """Yield the mutations that turn an empty state into this one, in chunks to be applied in order."""
    chunk: list[m.Mutation] = []
    rows = size_bytes = 0
    for mutation in _everything(state):
        chunk.append(mutation)
        rows += 1
        size_bytes += content_bytes(mutation) if type(mutation) is m.MessageStored else 0
        if rows >= CHUNK_ROWS or size_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, rows, size_bytes = [], 0, 0
    if chunk:
        yield chunk


def gone_queue(queue_id: int) -> list[m.Mutation]:
    """Return mutations that leave no queue, but make sure that its id is never used again."""
    return [m.QueueCreated(queue_id, "", "", {}, {}, 0), m.QueueDeleted(queue_id, 0), m.QueueReclaimed(queue_id)]


def _everything(state: State) -> Iterator[m.Mutation]:
    if state.cluster_id:
        yield m.ClusterFounded(state.cluster_id, state.mac_key, state.feature_level)
    if state.ahead_ms:
        yield m.ClockAdvanced(state.ahead_ms)
    yield from _takeovers(state)
    # Ids grow. So a deleted queue comes before the queue that has its name today, and does not take the name.
    queues = sorted([*state.queues.values(), *state.deleted_queues.values()], key=lambda queue: queue.id)
    if state.last_queue_id > max([queue.id for queue in queues], default=0):
        yield from gone_queue(state.last_queue_id)
    for queue in queues:
        yield from _queue(queue)
    yield from _invocations(state)
    yield from _sent_ids(state)
    for rows in state.tables.values():
        yield from rows.values()
    yield from state.groups.rows()
    for key, lease in state.leases.items():
        yield from _lease(key, lease)


def _lease(key: Key, lease: Lease) -> Iterator[m.LeaseCalled | m.LeaseSet]:
    yield from lease.calls.values()
    yield lease.as_set(key)


def _takeovers(state: State) -> Iterator[m.TookOver]:
    """Yield one TookOver per grace span. The newest has its real term; the others get smaller, invented terms."""
    term, spans = state.takeover_term, state.grace.spans or [(0, 0)]
    if term:
        for back, (from_ms, until_ms) in zip(range(len(spans) - 1, -1, -1), spans, strict=True):
            yield m.TookOver(term - back, "", from_ms, until_ms)


def _queue(queue: Queue) -> Iterator[m.Mutation]:
    yield m.QueueCreated(queue.id, queue.account, queue.name, queue.attributes, queue.tags, queue.created_ms)
    if queue.modified_ms != queue.created_ms:
        yield m.QueueAttributesSet(queue.id, queue.attributes, queue.modified_ms)
    newest = _newest(queue)
    is_newest_purged = queue.last_sequence < queue.watermark
    if is_newest_purged:
        yield from newest
    if queue.purged_ms is not None:
        yield m.QueuePurged(queue.id, queue.watermark, queue.purged_ms)
    yield from _messages(queue)
    if not is_newest_purged:
        yield from newest
    served = queue.order.served()
    for at in range(0, len(served), MUTATION_ROWS_MAX):
        names, numbers = zip(*served[at : at + MUTATION_ROWS_MAX], strict=True)
        yield m.GroupsServed(queue.id, list(names), list(numbers))
    yield from turns.kept(queue)
    if queue.deleted_ms is not None:
        yield m.QueueDeleted(queue.id, queue.deleted_ms)


def _newest(queue: Queue) -> list[m.Mutation]:
    """Return mutations that keep the newest sequence from being used again; none if its message still exists."""
    sequence = queue.last_sequence
    if not sequence or queue.row(sequence) is not None:
        return []
    return [m.MessageStored(queue.id, sequence, "", 0, ""), m.MessagesRemoved(queue.id, [sequence])]


def _messages(queue: Queue) -> Iterator[m.Mutation]:
    """Yield all messages by sequence, then the priorities and delivery states that changed since the send."""
    contents = queue.contents
    assert not queue.is_cold, "all contents are in memory"
    # The dict is nearly always in the order of sequences already, so sorting is cheap.
    for sequence in sorted(contents):
        yield contents[sequence]
    if queue.kind.has_priorities:
        yield from _priorities(queue)
    yield from _deliveries(queue)


def _priorities(queue: Queue) -> Iterator[m.PrioritiesSet]:
    """Yield the priorities that differ from those that the messages get on arrival."""
    order, default = queue.order, queue.default_priority
    other = [
        sequence
        for sequence, content in queue.contents.items()
        if order.priority(sequence) != arrival_priority(content, default)
    ]
    for sequences in m.chunks(other):
        yield m.PrioritiesSet(queue.id, sequences, [order.priority(sequence) for sequence in sequences])


def _deliveries(queue: Queue) -> Iterator[m.MessagesReceived]:
    contents = queue.contents
    touched = [
        (row.received_ms, row.visible_at_ms, sequence)
        for sequence, row in queue.rows.items()
        if row.delivery_number or row.received_ms or row.visible_at_ms != contents[sequence].visible_at_ms
    ]
    touched += [
        (0, due_ms, sequence)
        for sequence, due_ms in queue.order.delayed()
        if due_ms != contents[sequence].visible_at_ms
    ]
    for (received_ms, until_ms), group in groupby(sorted(touched), key=lambda item: item[:2]):
        for sequences in m.chunks([sequence for _, _, sequence in group]):
            rows = [queue.rows.get(sequence, UNTOUCHED) for sequence in sequences]  # all fields of delayed ones are 0
            yield m.MessagesReceived(
                queue.id,
                received_ms,
                until_ms,
                sequences,
                [row.delivery_number for row in rows],
                [row.receive_count for row in rows],
                [row.first_received_ms for row in rows],
            )


def _invocations(state: State) -> Iterable[m.InvocationRecorded]:
    """Yield the newest invocation of each key, ordered by time."""
    newest = sorted(state.invocations.rows(0), key=lambda item: item[1].recorded_ms)
    known = dict(newest)
    for key, row in sorted(known.items(), key=lambda item: item[1].recorded_ms):
        yield m.InvocationRecorded(key, row.recorded_ms, row.queue_id, row.sequence, row.detail)


def _sent_ids(state: State) -> Iterable[m.SentIdTaken]:
    """Yield all remembered deduplication ids. Their taken_ms is 0, so none expires while they are loaded."""
    for key, row in state.sent_ids.rows(0):
        yield m.SentIdTaken(key, 0, row.recorded_ms, row.queue_id, row.sequence)
