"""The row store: it turns committed mutations into statements for SQLite, and rows into mutations.

It runs SQL only to load. A message takes these steps: ``take`` puts it into ``stored``. ``begin`` makes the statements
of one transaction of all that is pending, and adds the message's page to the directory. Later changes of the message
are bits and row changes of that page, which later batches write. A message that is sent and deleted between two
batches is never written.

The directory is ahead of the disk by the pending changes. So a failed batch must be repeated, unchanged, before any
newer one. Purged and deleted messages leave the directory at once, and the disk in bounded steps (``Tables.reclaim``).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from elasticq.engine.apply import ROWS, row_changes
from elasticq.engine.stored.mutations import (
    QUEUES,
    AttemptRecorded,
    InvocationRecorded,
    MessagesReceived,
    MessagesRemoved,
    MessageStored,
    Mutation,
    PrioritiesSet,
    QueueRestored,
    RangeRemoved,
    ReceiveReturned,
    SentIdTaken,
    VisibilityChanged,
)
from elasticq.engine.stored.tables import Change, Drop, Put, Raise, changed
from elasticq.node.outputs import Committed
from elasticq.replication.records import Base
from elasticq.storage.rows.batches import Batch, Pending, PendingBatch, has_much_free
from elasticq.storage.rows.pages import Delivery, Page, Update, sequences_of, updated, weight
from elasticq.storage.rows.reading import Restore, all_contents, living_contents
from elasticq.storage.rows.schema import PAGE_BYTES
from elasticq.storage.rows.statements import FETCH_PAGES_MAX, fetches
from elasticq.storage.rows.tables import NEVER, Queue, Tables, floor_of

FETCH_BYTES_MAX: Final = 8 * 1_048_576  # about how much one fetch reads


class Rows:
    """The row store of one member. The caller runs the statements that it returns."""

    def __init__(self) -> None:
        self._tables = Tables()
        self._taken = Base()
        self._frozen_index = 0
        self.stored_index = 0
        self._pending = Pending()
        self._batch: Batch | None = None
        self._is_under_way = False
        self._is_loading = False
        self._takers: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys(ROWS, self._take_declared),
            MessagesReceived: self._messages_received,
            VisibilityChanged: self._visibility_changed,
            MessagesRemoved: self._messages_removed,
            ReceiveReturned: self._receive_returned,
            RangeRemoved: self._range_removed,
            PrioritiesSet: self._priorities_set,
            InvocationRecorded: self._tables.invocations.take_invocation,
            AttemptRecorded: self._tables.invocations.take_attempt,
            SentIdTaken: self._tables.invocations.take_sent_id,
        }

    # --- what is pending ------------------------------------------------------------

    @property
    def pending_index(self) -> int:
        """Return the index of the newest entry that was taken."""
        return self._taken.index

    @property
    def pending_messages(self) -> int:
        """Return the number of messages, and of changes to stored ones, that are in no batch yet."""
        return self._pending.messages + self._pending.changes

    @property
    def pending_bytes(self) -> int:
        """Return about how many bytes the messages have that are in no batch yet."""
        return self._pending.bytes

    def take(self, committed: Committed) -> None:
        """Take the next committed entry. Each must be taken once, in order."""
        assert committed.index > self._taken.index
        self._take(committed)

    def take_part(self, committed: Committed) -> None:
        """Take one part of a state, as ``take`` does. All parts have the same index.

        The caller must not use the file before all parts are written.
        """
        assert committed.index >= self._taken.index
        self._pending.is_part = True
        self._take(committed)

    def _take(self, committed: Committed) -> None:
        assert not self._is_loading
        voters = committed.voters if committed.voters is not None else self._taken.voters
        self._taken = Base(committed.index, committed.term, committed.time_ms, voters)
        pending = self._pending
        queue: Queue | None = None
        queue_id = -1
        weights = count = 0
        for mutation in committed.mutations:
            if type(mutation) is not MessageStored:
                self._takers[type(mutation)](mutation)
                queue_id = -1
                continue
            # The most frequent mutation is handled here, without a call.
            if mutation.queue_id != queue_id:
                queue_id = mutation.queue_id
                queue = self._tables.queues.get(queue_id)
                if queue is not None:
                    pending.queues[queue_id] = queue
            if queue is None:
                continue
            sequence = mutation.sequence
            assert sequence > queue.last_sequence, "sequences of a queue grow"
            queue.last_sequence = sequence
            if sequence < queue.floor:
                continue
            queue.stored[sequence] = mutation
            count += 1
            weights += len(mutation.body) if mutation.attributes is None else weight(mutation)
        pending.messages += count
        pending.bytes += weights

    # --- what is declared (engine/stored/tables.py) ------------------------------------------------

    def _take_declared(self, mutation: Mutation) -> None:
        tables = self._tables
        for change in row_changes(mutation):
            if isinstance(change, Raise):
                tables.numbers[change.number] = max(tables.numbers[change.number], change.to)
            elif change.table is QUEUES:
                self._take_queue(change)
            else:
                tables.small[change.table.name].take(change)
                self._pending.changes += 1

    def _take_queue(self, change: Put | Drop | Change) -> None:
        """Take a change of a queue's row.

        A put of a known queue, a change of a deleted one and a drop of a living one do nothing.
        """
        queue_id = change.key
        queue = self._tables.queues.get(queue_id)
        if isinstance(change, Put):
            if queue is None:
                assert isinstance(change.row, QueueRestored)
                self._tables.queues[queue_id] = self._pending.queues[queue_id] = Queue(change.row)
        elif isinstance(change, Drop):
            if queue is not None and queue.row.deleted_ms is not None:
                self._reclaim(queue_id, queue)
        elif queue is not None and queue.row.deleted_ms is None:
            self._pending.queues[queue_id] = queue
            queue.set_row(changed(queue.row, change))
            if floor_of(queue.row) > queue.floor:
                self._raise_floor(queue, floor_of(queue.row))

    def _reclaim(self, queue_id: int, queue: Queue) -> None:
        del self._tables.queues[queue_id]
        self._pending.queues.pop(queue_id, None)
        if queue.stale:  # pages without living messages that no batch has deleted yet
            self._tables.reclaim.append((queue_id, list(queue.stale.values())))
        self._pending.gone_queues.append(queue_id)

    def _raise_floor(self, queue: Queue, floor: int) -> None:
        queue.floor = floor
        self._remove_pending(queue, 0, floor - 1)
        pages = queue.directory.take_below(floor)
        for page in pages:
            queue.stale.pop(page.first, None)
            queue.messages -= page.live.bit_count()
        if pages:
            self._tables.reclaim.append((queue.row.queue_id, pages[::-1]))
        for page in queue.directory.between(0, floor - 1):  # at most one page, which contains the floor
            self._remove_from_page(queue, page, page.mask_between(0, floor - 1))

    # --- messages -------------------------------------------------------------------------

    def _open_queue(self, queue_id: int) -> Queue | None:
        """Return a queue that is not deleted, and mark its row for the next batch; None if there is no such queue."""
        queue = self._tables.queues.get(queue_id)
        if queue is None or queue.row.deleted_ms is not None:
            return None
        self._pending.queues[queue_id] = queue
        return queue

    def _messages_received(self, mutation: MessagesReceived) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        until_ms, received_ms = mutation.until_ms, mutation.received_ms
        for sequence, delivery_number, count, first_ms in zip(
            mutation.sequences,
            mutation.delivery_numbers,
            mutation.receive_counts,
            mutation.first_received_ms,
            strict=True,
        ):
            delivery = (until_ms, delivery_number, count, first_ms, received_ms)
            if sequence in queue.stored:
                queue.touched[sequence] = delivery
            elif (page := queue.living(sequence)) is not None:
                page.touch(sequence, delivery)
                self._note_stale(queue, page, 1)

    def _visibility_changed(self, mutation: VisibilityChanged) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None:
            for sequence, until_ms in zip(mutation.sequences, mutation.until_ms, strict=True):
                self._update(queue, sequence, (until_ms,))

    def _priorities_set(self, mutation: PrioritiesSet) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is None or not queue.has_priorities:
            return
        for sequence, priority in zip(mutation.sequences, mutation.priorities, strict=True):
            if sequence in queue.stored:
                queue.priorities[sequence] = priority
            elif (page := queue.living(sequence)) is not None:
                page.prioritise(sequence, priority)
                self._note_stale(queue, page, 1)

    def _receive_returned(self, mutation: ReceiveReturned) -> None:
        if mutation.invocation:
            self._tables.invocations.forget(mutation.invocation)
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        for sequence, delivery_number, count, first_ms in zip(
            mutation.sequences,
            mutation.delivery_numbers,
            mutation.receive_counts,
            mutation.first_received_ms,
            strict=True,
        ):
            self._update(queue, sequence, (mutation.visible_at_ms, count, first_ms, delivery_number))

    def _update(self, queue: Queue, sequence: int, update: Update) -> None:
        untouched: Delivery = (0, 0, 0, 0, 0)
        if sequence in queue.stored:
            before = queue.touched.get(sequence, untouched)
            after = updated(before, update)
            if after != before:
                queue.touched[sequence] = after
            return
        page = queue.living(sequence)
        if page is None:
            return
        if not page.untouched >> sequence - page.first & 1:
            page.update(sequence, update)
        elif (after := updated(untouched, update)) != untouched:
            page.touch(sequence, after)
        self._note_stale(queue, page, 1)

    def _messages_removed(self, mutation: MessagesRemoved) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        stored = queue.stored
        for sequence in mutation.sequences:
            if sequence in stored:
                self._remove_stored(queue, sequence)
            elif (page := queue.directory.find(sequence)) is not None:
                self._remove_from_page(queue, page, 1 << sequence - page.first)

    def _range_removed(self, mutation: RangeRemoved) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        first, last = mutation.first, mutation.last
        self._remove_pending(queue, first, last)
        for page in queue.directory.between(first, last):
            self._remove_from_page(queue, page, page.mask_between(first, last))

    def _remove_pending(self, queue: Queue, first: int, last: int) -> None:
        stored = queue.stored
        if not stored or next(iter(stored)) > last:  # sequences in ``stored`` grow
            return
        if last - first < len(stored):
            gone = [sequence for sequence in range(first, last + 1) if sequence in stored]
        else:
            gone = [sequence for sequence in stored if first <= sequence <= last]
        for sequence in gone:
            self._remove_stored(queue, sequence)

    def _remove_stored(self, queue: Queue, sequence: int) -> None:
        """Remove a pending message, so it is never written."""
        self._pending.messages -= 1
        self._pending.bytes -= weight(queue.stored.pop(sequence))
        queue.touched.pop(sequence, None)

    def _remove_from_page(self, queue: Queue, page: Page, mask: int) -> None:
        count = page.remove(mask)
        if not count:
            return
        queue.messages -= count
        self._note_stale(queue, page, count)
        if not page.live:
            queue.directory.discard(page)

    def _note_stale(self, queue: Queue, page: Page, changes: int) -> None:
        queue.stale[page.first] = page
        self._pending.changes += changes

    # --- batches --------------------------------------------------------------------------

    def begin(self) -> Batch | None:
        """Return the next batch: the one that failed, or one of all that is pending; None if there is nothing to do.

        The caller must call ``done`` or ``failed`` next.
        """
        assert not self._is_under_way, "one batch at a time"
        assert not self._is_loading
        if self._batch is None:
            has_work = self._taken.index > self._frozen_index or bool(self._tables.reclaim) or self._pending.is_part
            if not has_work and not has_much_free(self._tables, is_idle=True):
                return None
            self._batch = self._freeze(is_idle=not has_work)
        self._is_under_way = True
        return self._batch

    def done(self) -> int:
        """Mark the batch as durable; return the index up to which the rows are complete."""
        assert self._is_under_way
        assert self._batch is not None
        index = self._batch.index
        self._is_under_way, self._batch = False, None
        self.stored_index = index
        return index

    def failed(self) -> None:
        """Mark the batch as rolled back: the next ``begin`` returns it again."""
        assert self._is_under_way
        self._is_under_way = False

    def _freeze(self, *, is_idle: bool) -> Batch:
        pending, self._pending = self._pending, Pending()
        self._frozen_index = self._taken.index
        return PendingBatch(self._tables, self._taken).batch(pending, is_idle=is_idle)

    # --- contents ---------------------------------------------------------------------------

    @property
    def has_holes(self) -> bool:
        """Return whether these rows were salvaged and lack something that other members may have."""
        return self._tables.has_holes

    def accept_holes(self) -> None:
        """Make the loss of what is missing final, because there is no other member that has it."""
        self._tables.has_holes = False

    @property
    def is_loading(self) -> bool:
        """Return whether the iterator of ``load`` is not at its end. Until then nothing can be taken or written."""
        return self._is_loading

    def fetch(self, queue_id: int, sequences: list[int]) -> list[tuple[str, tuple[int, ...]]]:
        """Return queries for the contents of these messages. The caller passes the rows to ``decode``.

        If messages are large, only the first pages are included. The caller must then fetch again for the rest.
        """
        return fetches(queue_id, self.pages_of(queue_id, sequences))

    def living_in(self, queue_id: int, first: int) -> list[int]:
        """Return the living sequences of the page that begins at ``first``; empty if the disk does not have it yet.

        The directory has a page from the begin of its batch on, which may wait for space.
        """
        if self._batch is not None and self._batch.holds(queue_id, first):
            return []
        queue = self._tables.queues.get(queue_id)
        page = queue.directory.page_at(first) if queue is not None else None
        if page is None:
            return []
        return sequences_of(page.live, page.first)

    def name_of(self, queue_id: int) -> str:
        queue = self._tables.queues.get(queue_id)
        return queue.row.name if queue is not None else str(queue_id)

    @property
    def queue_ids(self) -> list[int]:
        return list(self._tables.queues)

    def pages_behind(self, queue_id: int, first: int) -> list[int]:
        """Return the first sequences of the pages after the one at ``first``, as many as one query takes."""
        queue = self._tables.queues.get(queue_id)
        pages = [] if queue is None else queue.directory.between(first + 1, NEVER)[: FETCH_PAGES_MAX + 1]
        return [page.first for page in pages if page.first > first][:FETCH_PAGES_MAX]

    def pages_of(self, queue_id: int, sequences: list[int]) -> list[int]:
        """Return the first sequences of the pages that hold ``sequences``, as many as one fetch reads."""
        queue = self._tables.queues.get(queue_id)
        if queue is None:
            return []
        wanted: dict[int, None] = {}
        room_bytes = FETCH_BYTES_MAX
        for sequence in sequences:
            page = queue.living(sequence)
            if page is not None and page.first not in wanted:
                if room_bytes <= 0:
                    break
                wanted[page.first] = None
                room_bytes -= page.disk_pages * PAGE_BYTES
        return list(wanted)

    def decode(self, rows: Iterable[tuple[Any, ...]]) -> list[MessageStored]:
        """Return the living messages in these rows of contents. Raise Damaged if one is damaged."""
        return living_contents(self._tables, rows)

    def read_contents(self, connection: sqlite3.Connection) -> Iterator[list[MessageStored]]:
        """Yield every message, one list for each page. ``connection`` must be the one that loaded the rows.

        Raise Damaged if contents are damaged.
        """
        return all_contents(connection, self._tables)

    # --- load ---------------------------------------------------------------------------------

    def load(self, connection: sqlite3.Connection) -> tuple[Base, Iterator[Mutation]]:
        """Return the base of the rows, and the mutations that restore the state. This must be the first call.

        ``connection`` was prepared by schema.prepare. It must stay open until the iterator ends, and nothing may be
        taken before. The call and the iterator raise Damaged if rows are damaged.
        """
        assert not self._tables.queues
        assert self._taken == Base()
        restore = Restore(connection, self._tables)
        self._taken = restore.base
        self._frozen_index = self.stored_index = restore.base.index
        self._is_loading = True
        return restore.base, self._restored(restore)

    def _restored(self, restore: Restore) -> Iterator[Mutation]:
        yield from restore.mutations()
        self._is_loading = False
