"""The rows on disk: committed mutations on their way into SQLite, and back. It runs no SQL itself, except to load.

The life of a message here: ``take`` puts it into ``stored``; ``begin`` freezes
all that is pending into the statements of one transaction and the message's
page enters the directory; what happens to it from then on are bits and row
changes of that page, which later batches write. A message that comes and goes
between two batches never meets the disk.

The directory is ahead of the disk by what is pending, so a batch that failed
is run again as it was before anything newer: statements are values and do not
change once they are made. Purged and deleted messages leave the directory at
once and the disk in bounded steps (``_reclaim``).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from struct import error as LayoutError
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct, field

from elasticq.engine.apply import as_invocation
from elasticq.engine.dump import gone_queue
from elasticq.engine.leases import Key, key_of
from elasticq.engine.mutations import (
    AttemptRecorded,
    ClockAdvanced,
    ClusterFounded,
    ClusterRenamed,
    GroupsRestored,
    GroupsServed,
    InvocationRecorded,
    LeaseCalled,
    LeaseForgotten,
    LeaseSet,
    MessagesReceived,
    MessagesRemoved,
    MessageStored,
    MoveTaskForgotten,
    MoveTaskSet,
    Mutation,
    QueueAttributesSet,
    QueueCreated,
    QueueDeleted,
    QueuePurged,
    QueueReclaimed,
    QueueRestored,
    QueueTagged,
    RangeRemoved,
    ReceiveReturned,
    RowsRestored,
    SentIdTaken,
    TookOver,
    UntouchedRestored,
    VisibilityChanged,
)
from elasticq.model.limits import INVOCATION_WINDOW_MS, MUTATION_ROWS_MAX
from elasticq.node.effects import Committed
from elasticq.replication.records import Base, Voter
from elasticq.storage.errors import Damaged
from elasticq.storage.pages import (
    MASK_BYTES,
    PAGE_SPAN_MAX,
    Delivery,
    Directory,
    Page,
    Update,
    contents_crc,
    cut,
    decode_contents,
    encode_groups,
    header_crc,
    living_groups,
    make_page,
    ranges,
    updated,
    weight,
)
from elasticq.storage.schema import FILE, PAGE_BYTES

TAKEOVERS_KEPT: Final = 64
RECLAIM_ROWS_MAX: Final = 1_000  # in one batch
VACUUM_PAGES: Final = 1_000  # given back to the file system after one batch
FREE_PAGES_KEPT: Final = 2_000  # 16 MB: new messages fill them, giving them back would only move pages about
FREE_SHARE_IDLE, FREE_SHARE_BUSY = 4, 2  # one in so many pages of the file may be free, with nothing to write and else
FETCH_BYTES_MAX: Final = 8 * 1_048_576  # at once
FETCH_PAGES_MAX: Final = 16  # of one query

NEVER: Final = 1 << 63
"""Above every sequence: what a deleted queue keeps begins here."""

_LEASE_ITSELF: Final = -1
"""Among the calls of a lease: its own row."""
_FIRST_CALL: Final = 0

_PRIME: Final = (1 << 31) - 1
_FACTORS: Final = (3, 5, 7, 11, 13, 17, 19)  # of a touched row's columns, in order

_PUT_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"
_PUT_TAKEOVER: Final = "INSERT OR REPLACE INTO takeovers VALUES (?, ?, ?)"
_PUT_TASK: Final = "INSERT OR REPLACE INTO move_tasks VALUES (?, ?, ?)"
_DROP_TASK: Final = "DELETE FROM move_tasks WHERE number = ?"
_PUT_LEASE: Final = "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)"
_DROP_LEASE: Final = "DELETE FROM leases WHERE queue_id = ? AND name = ? AND batch = ? AND partition = ? AND call >= ?"
_DROP_TAKEOVERS: Final = "DELETE FROM takeovers WHERE term < ?"
_PUT_QUEUE: Final = "INSERT OR REPLACE INTO queues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DROP_QUEUE: Final = "DELETE FROM queues WHERE id = ?"
_PUT_PAGE: Final = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_CONTENTS: Final = "INSERT INTO contents VALUES (?, ?, ?, ?)"
_PUT_GROUPS: Final = "INSERT INTO groups VALUES (?, ?, ?, ?)"
_PUT_TOUCHED: Final = "INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DROP_TOUCHED: Final = "DELETE FROM touched WHERE queue_id = ? AND sequence = ?"
_DROP_TOUCHED_OF_PAGE: Final = "DELETE FROM touched WHERE queue_id = ? AND sequence BETWEEN ? AND ?"
_DROP_PAGE: Final = "DELETE FROM pages WHERE queue_id = ? AND first = ?"
_DROP_CONTENTS: Final = "DELETE FROM contents WHERE queue_id = ? AND first = ?"
_DROP_GROUPS: Final = "DELETE FROM groups WHERE queue_id = ? AND first = ?"
_PUT_INVOCATIONS: Final = "INSERT INTO invocations VALUES (?, ?, ?, ?, ?)"
_DROP_INVOCATIONS: Final = "DELETE FROM invocations WHERE newest_ms <= ?"
_VACUUM: Final = f"PRAGMA incremental_vacuum({VACUUM_PAGES})"


def _moved(column: str, parameter: int, factor: int) -> str:
    return f"(?{parameter} % {_PRIME} - {column} % {_PRIME}) * {factor}"


# The checksum of a touched row is linear, so that SQL can carry it on over a row that nobody has read.
_CHANGE_VISIBILITY: Final = (
    f"UPDATE touched SET visible_at_ms = ?1, checksum = checksum + {_moved('visible_at_ms', 1, _FACTORS[2])} "
    "WHERE queue_id = ?2 AND sequence = ?3"
)
_RETURN: Final = (
    "UPDATE touched SET visible_at_ms = ?1, receive_count = ?2, first_received_ms = ?3, checksum = checksum + "
    f"{_moved('visible_at_ms', 1, _FACTORS[2])} + {_moved('receive_count', 2, _FACTORS[4])} + "
    f"{_moved('first_received_ms', 3, _FACTORS[5])} WHERE queue_id = ?5 AND sequence = ?6 AND hand_out = ?4"
)

# In the order in which a batch runs them.
_ORDER: Final = (
    _PUT_META,
    _PUT_TAKEOVER,
    _DROP_TAKEOVERS,
    _PUT_TASK,
    _DROP_TASK,
    _DROP_LEASE,
    _PUT_LEASE,
    _DROP_QUEUE,
    _PUT_QUEUE,
    _PUT_PAGE,
    _PUT_CONTENTS,
    _PUT_GROUPS,
    _PUT_TOUCHED,
    _DROP_TOUCHED,
    _DROP_PAGE,
    _DROP_CONTENTS,
    _DROP_GROUPS,
    _DROP_TOUCHED_OF_PAGE,
    _PUT_INVOCATIONS,
    _DROP_INVOCATIONS,
)

Statement = tuple[str, list[tuple[Any, ...]]]
_encode = msgspec.msgpack.Encoder().encode


class Batch(Struct):
    """One transaction: each statement for ``executemany``, in order, all or none.

    index: what is durable with it; after: statements for ``executescript`` (``execute`` would stop them after
    their first step) once it is committed, each a transaction of its own that may fail without harm.
    """

    index: int
    statements: list[Statement]
    after: list[str]


class _Applied(Struct, array_like=True):
    """Row "applied" of ``meta``: the newest batch, and how many rows the small tables hold since then.

    voters, last_queue_id: since format 3; the newest queue may be gone, its id is not given again.
    move_tasks: since format 4; leases: rows of their table, since format 5.
    ahead_ms: of the clock, 0 where nobody ever advanced it.
    """

    index: int
    term: int
    time_ms: int
    queues: int
    takeovers: int
    is_founded: bool
    voters: tuple[Voter, ...] | None = None
    last_queue_id: int = 0
    move_tasks: int = 0
    leases: int = 0
    ahead_ms: int = 0

    def base(self) -> Base:
        return Base(self.index, self.term, self.time_ms, self.voters)


class _LeaseRows(Struct):
    """row: the lease's own, 0 or 1; calls: its receives on the disk and on their way there."""

    row: int = 0
    calls: set[int] = field(default_factory=set)


class _LeaseChange(Struct):
    """What a batch writes of one lease, after it dropped the rows of calls from ``dropped_from`` on (None: none)."""

    dropped_from: int | None = None
    rows: dict[int, LeaseCalled | LeaseSet] = field(default_factory=dict)


class _Pending(Struct):
    """What the next batch has to write, apart from the queues' own."""

    is_part: bool = False
    queues: dict[int, "_Queue"] = field(default_factory=dict)
    gone_queues: list[int] = field(default_factory=list)
    founded: ClusterFounded | None = None
    takeovers: list[TookOver] = field(default_factory=list)
    tasks: dict[int, MoveTaskSet | None] = field(default_factory=dict)
    leases: dict[Key, _LeaseChange] = field(default_factory=dict)
    invocations: dict[bytes, InvocationRecorded] = field(default_factory=dict)
    gone_invocations: list[bytes] = field(default_factory=list)
    sent_ids: dict[bytes, SentIdTaken] = field(default_factory=dict)
    messages: int = 0
    changes: int = 0
    bytes: int = 0


class _Queue:
    """row: as it is written; floor: nothing below it lives (the watermark, or NEVER once deleted).

    stored, touched: pending messages, and where delivery of these stands; stale: pages by their first
    sequence whose header or rows on disk are older; messages: how many live in all.
    """

    __slots__ = ("directory", "floor", "is_fifo", "last_sequence", "messages", "row", "stale", "stored", "touched")

    def __init__(self, row: QueueRestored) -> None:
        self.row = row
        self.is_fifo = row.attributes.get("FifoQueue") == "true"
        self.floor = row.watermark if row.deleted_ms is None else NEVER
        self.last_sequence = row.last_sequence
        self.messages = 0
        self.directory = Directory()
        self.stored: dict[int, MessageStored] = {}
        self.touched: dict[int, Delivery] = {}
        self.stale: dict[int, Page] = {}


class Rows:
    """The row store of one member; the caller runs what it hands out."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._taken = Base()
        self._frozen_index = 0
        self.stored_index = 0
        self._pending = _Pending()
        self._batch: Batch | None = None
        self._is_under_way = False
        self._is_loading = False
        self._founded: ClusterFounded | None = None
        self._last_queue_id = 0
        self._last_number = 0  # of a row of invocations
        self._takeover_terms: list[int] = []
        self._tasks: dict[int, None] = {}  # numbers of move tasks
        self._ahead_ms = 0
        self._leases: dict[Key, _LeaseRows] = {}
        self._lease_rows = 0
        self._reclaim: list[tuple[int, list[Page]]] = []
        self._free_pages = 0
        self._file_pages = 0
        self._takers: dict[type, Callable[[Any], None]] = {
            ClusterFounded: self._cluster_founded,
            TookOver: self._took_over,
            QueueCreated: self._queue_created,
            QueueAttributesSet: self._queue_attributes_set,
            QueueDeleted: self._queue_deleted,
            QueueReclaimed: self._queue_reclaimed,
            QueuePurged: self._queue_purged,
            MessagesReceived: self._messages_received,
            VisibilityChanged: self._visibility_changed,
            MessagesRemoved: self._messages_removed,
            ReceiveReturned: self._receive_returned,
            InvocationRecorded: self._invocation_recorded,
            AttemptRecorded: self._attempt_recorded,
            SentIdTaken: self._sent_id_taken,
            GroupsServed: self._groups_served,
            RangeRemoved: self._range_removed,
            ClusterRenamed: self._cluster_renamed,
            QueueTagged: self._queue_tagged,
            MoveTaskSet: self._move_task_set,
            MoveTaskForgotten: self._move_task_forgotten,
            ClockAdvanced: self._clock_advanced,
            LeaseCalled: self._lease_called,
            LeaseSet: self._lease_set,
            LeaseForgotten: self._lease_forgotten,
        }

    # --- what is pending ------------------------------------------------------------

    @property
    def pending_index(self) -> int:
        """Of the newest entry taken."""
        return self._taken.index

    @property
    def pending_messages(self) -> int:
        """Messages, and changes to stored ones, that no batch holds yet."""
        return self._pending.messages + self._pending.changes

    @property
    def pending_bytes(self) -> int:
        """Weight of the messages that no batch holds yet."""
        return self._pending.bytes

    def take(self, committed: Committed) -> None:
        """The next committed entry; each once, in order."""
        assert committed.index > self._taken.index
        self._take(committed)

    def take_part(self, committed: Committed) -> None:
        """As ``take``, where parts of one state come under one index; a file is only good when it has all."""
        assert committed.index >= self._taken.index
        self._pending.is_part = True
        self._take(committed)

    def _take(self, committed: Committed) -> None:
        assert not self._is_loading
        voters = committed.voters if committed.voters is not None else self._taken.voters
        self._taken = Base(committed.index, committed.term, committed.time_ms, voters)
        pending = self._pending
        queue: _Queue | None = None
        queue_id = -1
        weights = count = 0
        for mutation in committed.mutations:
            if type(mutation) is not MessageStored:
                self._takers[type(mutation)](mutation)
                queue_id = -1
                continue
            # The hottest of all, written out.
            if mutation.queue_id != queue_id:
                queue_id = mutation.queue_id
                queue = self._queues.get(queue_id)
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
            if mutation.visible_at_ms:
                queue.touched[sequence] = (mutation.visible_at_ms, 0, 0, 0, 0)
            count += 1
            weights += len(mutation.body) if mutation.attributes is None else weight(mutation)
        pending.messages += count
        pending.bytes += weights

    def _cluster_founded(self, mutation: ClusterFounded) -> None:
        self._pending.founded = self._founded = mutation

    def _cluster_renamed(self, mutation: ClusterRenamed) -> None:
        assert self._founded is not None, "only a cluster has a name"
        known = self._founded
        self._cluster_founded(ClusterFounded(mutation.cluster_id, known.mac_key, known.feature_level))

    def _took_over(self, mutation: TookOver) -> None:
        if self._takeover_terms and mutation.term <= self._takeover_terms[-1]:
            return
        self._pending.takeovers.append(mutation)
        self._takeover_terms = [*self._takeover_terms, mutation.term][-TAKEOVERS_KEPT:]

    def _invocation_recorded(self, mutation: InvocationRecorded) -> None:
        known = self._pending.invocations.setdefault(mutation.invocation, mutation)
        if known.recorded_ms + INVOCATION_WINDOW_MS <= mutation.recorded_ms:  # a deduplication id is free again
            self._pending.invocations[mutation.invocation] = mutation

    def _sent_id_taken(self, mutation: SentIdTaken) -> None:
        known = self._pending.sent_ids.setdefault(mutation.key, mutation)
        if known.until_ms < mutation.until_ms:
            self._pending.sent_ids[mutation.key] = mutation

    def _attempt_recorded(self, mutation: AttemptRecorded) -> None:
        self._forget_invocation(mutation.attempt)
        if mutation.detail:
            self._pending.invocations[mutation.attempt] = as_invocation(mutation)

    def _groups_served(self, mutation: GroupsServed) -> None:
        """Which group waits longest is forgotten with memory: then the one with the oldest message does."""

    def _move_task_set(self, mutation: MoveTaskSet) -> None:
        self._pending.tasks[mutation.number] = mutation
        self._tasks[mutation.number] = None

    def _move_task_forgotten(self, mutation: MoveTaskForgotten) -> None:
        self._pending.tasks[mutation.number] = None
        self._tasks.pop(mutation.number, None)

    def _clock_advanced(self, mutation: ClockAdvanced) -> None:
        self._ahead_ms = max(self._ahead_ms, mutation.ahead_ms)

    # --- leases -------------------------------------------------------------------------

    def _lease_change(self, key: Key) -> tuple[_LeaseRows, _LeaseChange]:
        self._pending.changes += 1
        known = self._leases.setdefault(key, _LeaseRows())
        return known, self._pending.leases.setdefault(key, _LeaseChange())

    def _lease_called(self, mutation: LeaseCalled) -> None:
        known, change = self._lease_change(key_of(mutation))
        self._lease_rows += mutation.call not in known.calls
        known.calls.add(mutation.call)
        change.rows[mutation.call] = mutation

    def _lease_set(self, mutation: LeaseSet) -> None:
        """One that ended has no calls any more."""
        known, change = self._lease_change(key_of(mutation))
        if mutation.ended_ms:
            self._lease_rows -= len(known.calls)
            known.calls.clear()
            change.dropped_from, change.rows = _FIRST_CALL, {}
        self._lease_rows += 1 - known.row
        known.row = 1
        change.rows[_LEASE_ITSELF] = mutation

    def _lease_forgotten(self, mutation: LeaseForgotten) -> None:
        key = key_of(mutation)
        if key in self._leases:
            known, change = self._lease_change(key)
            self._lease_rows -= known.row + len(known.calls)
            del self._leases[key]
            change.dropped_from, change.rows = _LEASE_ITSELF, {}

    # --- queues -------------------------------------------------------------------------

    def _open_queue(self, queue_id: int) -> _Queue | None:
        """A queue that is not deleted; its row will be written."""
        queue = self._queues.get(queue_id)
        if queue is None or queue.row.deleted_ms is not None:
            return None
        self._pending.queues[queue_id] = queue
        return queue

    def _queue_created(self, mutation: QueueCreated) -> None:
        if mutation.queue_id in self._queues:
            return
        self._last_queue_id = max(self._last_queue_id, mutation.queue_id)
        created_ms = mutation.created_ms
        row = QueueRestored(
            queue_id=mutation.queue_id,
            account=mutation.account,
            name=mutation.name,
            attributes=mutation.attributes,
            tags=mutation.tags,
            created_ms=created_ms,
            modified_ms=created_ms,
            deleted_ms=None,
            purged_ms=None,
            watermark=0,
            last_sequence=0,
        )
        self._queues[row.queue_id] = self._pending.queues[row.queue_id] = _Queue(row)

    def _queue_attributes_set(self, mutation: QueueAttributesSet) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None:
            queue.row.attributes = mutation.attributes
            queue.row.modified_ms = mutation.modified_ms

    def _queue_tagged(self, mutation: QueueTagged) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None:
            queue.row.tags = mutation.tags

    def _queue_purged(self, mutation: QueuePurged) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None and mutation.watermark > queue.row.watermark:
            queue.row.watermark = mutation.watermark
            queue.row.purged_ms = mutation.purged_ms
            self._raise_floor(queue, mutation.watermark)

    def _queue_deleted(self, mutation: QueueDeleted) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None:
            queue.row.deleted_ms = mutation.deleted_ms
            self._raise_floor(queue, NEVER)

    def _queue_reclaimed(self, mutation: QueueReclaimed) -> None:
        queue = self._queues.get(mutation.queue_id)
        if queue is not None and queue.row.deleted_ms is not None:
            del self._queues[mutation.queue_id]
            self._pending.queues.pop(mutation.queue_id, None)
            if queue.stale:  # dead pages that no batch has dropped yet
                self._reclaim.append((mutation.queue_id, list(queue.stale.values())))
            self._pending.gone_queues.append(mutation.queue_id)

    def _raise_floor(self, queue: _Queue, floor: int) -> None:
        queue.floor = floor
        self._remove_pending(queue, 0, floor - 1)
        pages = queue.directory.take_below(floor)
        for page in pages:
            queue.stale.pop(page.first, None)
            queue.messages -= page.live.bit_count()
        if pages:
            self._reclaim.append((queue.row.queue_id, pages[::-1]))
        for page in queue.directory.between(0, floor - 1):  # at most one, across the floor
            self._remove_from_page(queue, page, page.mask_between(0, floor - 1))

    # --- messages -------------------------------------------------------------------------

    def _living(self, queue: _Queue, sequence: int) -> Page | None:
        """The page in which the message lives."""
        page = queue.directory.find(sequence)
        return page if page is not None and page.live >> sequence - page.first & 1 else None

    def _messages_received(self, mutation: MessagesReceived) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        until_ms, received_ms = mutation.until_ms, mutation.received_ms
        for sequence, hand_out, count, first_ms in zip(
            mutation.sequences, mutation.hand_outs, mutation.receive_counts, mutation.first_received_ms, strict=True
        ):
            self._touch(queue, sequence, (until_ms, hand_out, count, first_ms, received_ms))

    def _touch(self, queue: _Queue, sequence: int, delivery: Delivery) -> None:
        if sequence in queue.stored:
            queue.touched[sequence] = delivery
        elif (page := self._living(queue, sequence)) is not None:
            page.touch(sequence, delivery)
            self._note_stale(queue, page, 1)

    def _visibility_changed(self, mutation: VisibilityChanged) -> None:
        queue = self._open_queue(mutation.queue_id)
        if queue is not None:
            for sequence, until_ms in zip(mutation.sequences, mutation.until_ms, strict=True):
                self._update(queue, sequence, (until_ms,))

    def _receive_returned(self, mutation: ReceiveReturned) -> None:
        if mutation.invocation:
            self._forget_invocation(mutation.invocation)
        queue = self._open_queue(mutation.queue_id)
        if queue is None:
            return
        for sequence, hand_out, count, first_ms in zip(
            mutation.sequences, mutation.hand_outs, mutation.receive_counts, mutation.first_received_ms, strict=True
        ):
            self._update(queue, sequence, (mutation.visible_at_ms, count, first_ms, hand_out))

    def _forget_invocation(self, invocation: bytes) -> None:
        if self._pending.invocations.pop(invocation, None) is None:
            self._pending.gone_invocations.append(invocation)

    def _update(self, queue: _Queue, sequence: int, update: Update) -> None:
        untouched: Delivery = (0, 0, 0, 0, 0)
        if sequence in queue.stored:
            before = queue.touched.get(sequence, untouched)
            after = updated(before, update)
            if after is not before:
                queue.touched[sequence] = after
            return
        page = self._living(queue, sequence)
        if page is None:
            return
        if not page.untouched >> sequence - page.first & 1:
            page.update(sequence, update)
        elif (after := updated(untouched, update)) is not untouched:
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

    def _remove_pending(self, queue: _Queue, first: int, last: int) -> None:
        stored = queue.stored
        if not stored or next(iter(stored)) > last:  # they stand in the order of their sequences
            return
        if last - first < len(stored):
            gone = [sequence for sequence in range(first, last + 1) if sequence in stored]
        else:
            gone = [sequence for sequence in stored if first <= sequence <= last]
        for sequence in gone:
            self._remove_stored(queue, sequence)

    def _remove_stored(self, queue: _Queue, sequence: int) -> None:
        """It never meets the disk."""
        self._pending.messages -= 1
        self._pending.bytes -= weight(queue.stored.pop(sequence))
        queue.touched.pop(sequence, None)

    def _remove_from_page(self, queue: _Queue, page: Page, mask: int) -> None:
        count = page.remove(mask)
        if not count:
            return
        queue.messages -= count
        self._note_stale(queue, page, count)
        if not page.live:
            queue.directory.discard(page)

    def _note_stale(self, queue: _Queue, page: Page, changes: int) -> None:
        queue.stale[page.first] = page
        self._pending.changes += changes

    # --- batches --------------------------------------------------------------------------

    def begin(self) -> Batch | None:
        """Freeze what is pending; None if there is nothing to do. Ends with ``done`` or ``failed``."""
        assert not self._is_under_way, "one batch at a time"
        assert not self._is_loading
        if self._batch is None:
            has_work = self._taken.index > self._frozen_index or bool(self._reclaim) or self._pending.is_part
            if not has_work and self._free_pages <= self._free_kept(FREE_SHARE_IDLE):
                return None
            self._batch = self._freeze(is_idle=not has_work)
        self._is_under_way = True
        return self._batch

    def done(self) -> int:
        """The batch that was begun is durable: the index that it brought the disk to."""
        assert self._is_under_way
        assert self._batch is not None
        index = self._batch.index
        self._is_under_way, self._batch = False, None
        self.stored_index = index
        return index

    def failed(self) -> None:
        """The batch that was begun left no trace: the next ``begin`` returns it again."""
        assert self._is_under_way
        self._is_under_way = False

    def _freeze(self, *, is_idle: bool) -> Batch:
        pending, self._pending = self._pending, _Pending()
        self._frozen_index = self._taken.index
        rows: dict[str, list[tuple[Any, ...]]] = {sql: [] for sql in _ORDER}
        updates: list[Statement] = []
        for queue in pending.queues.values():
            self._freeze_queue(queue, rows, updates)
        rows[_DROP_QUEUE] = [(queue_id,) for queue_id in pending.gone_queues]
        self._freeze_cluster(pending, rows)
        self._freeze_invocations(pending, rows)
        self._reclaim_some(rows)
        statements = [(sql, parameters) for sql, parameters in rows.items() if parameters]
        return Batch(self._taken.index, statements + updates, self._vacuum(is_idle=is_idle))

    def _freeze_cluster(self, pending: _Pending, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        taken = self._taken
        terms = self._takeover_terms
        if pending.founded is not None:
            rows[_PUT_META].append(_checked("cluster", _encode(pending.founded)))
        for mutation in pending.takeovers:
            rows[_PUT_TAKEOVER].append(_checked(mutation.term, _encode(mutation)))
        if pending.takeovers:
            rows[_DROP_TAKEOVERS].append((terms[0],))
        for number, task in pending.tasks.items():
            if task is None:
                rows[_DROP_TASK].append((number,))
            else:
                rows[_PUT_TASK].append(_checked(number, _encode(task)))
        for key, change in pending.leases.items():
            if change.dropped_from is not None:
                rows[_DROP_LEASE].append((*key, change.dropped_from))
            for call, row in change.rows.items():
                rows[_PUT_LEASE].append(_lease_row(key, call, _encode(row)))
        applied = _Applied(
            taken.index,
            taken.term,
            taken.time_ms,
            len(self._queues),
            len(terms),
            self._founded is not None,
            taken.voters,
            self._last_queue_id,
            len(self._tasks),
            self._lease_rows,
            self._ahead_ms,
        )
        rows[_PUT_META].append(_checked("applied", _encode(applied)))

    def _freeze_invocations(self, pending: _Pending, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        taken = self._taken
        if pending.invocations or pending.gone_invocations:
            recorded = list(pending.invocations.values())
            rows[_PUT_INVOCATIONS].append(self._history_row(taken.time_ms, pending.gone_invocations, recorded))
        if pending.sent_ids:  # a row of their own: it stays until the last of them is free
            until_ms = max(mutation.until_ms for mutation in pending.sent_ids.values())
            newest_ms = until_ms - INVOCATION_WINDOW_MS
            rows[_PUT_INVOCATIONS].append(self._history_row(newest_ms, [], list(pending.sent_ids.values())))
        rows[_DROP_INVOCATIONS].append((taken.time_ms - INVOCATION_WINDOW_MS,))

    def _history_row(
        self, newest_ms: int, gone: list[bytes], mutations: Sequence[InvocationRecorded | SentIdTaken]
    ) -> tuple[Any, ...]:
        """It goes an INVOCATION_WINDOW_MS after ``newest_ms``."""
        removed, recorded = _encode(gone), _encode(mutations)
        number = self._last_number = max(self._taken.index, self._last_number + 1)
        return number, newest_ms, removed, recorded, crc32(recorded, crc32(removed, number & 0xFFFFFFFF))

    def _freeze_queue(self, queue: _Queue, rows: dict[str, list[tuple[Any, ...]]], updates: list[Statement]) -> None:
        for page in queue.stale.values():
            self._freeze_page(queue.row.queue_id, page, rows, updates)
        queue.stale = {}
        if queue.stored:
            self._freeze_stored(queue, rows)
        queue.row.last_sequence = queue.last_sequence
        rows[_PUT_QUEUE].append(_queue_row(queue.row, queue.messages))

    def _freeze_stored(self, queue: _Queue, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        queue_id = queue.row.queue_id
        for run in cut(list(queue.stored.values())):
            page, contents = make_page(run, queue.touched)
            queue.directory.add(page)
            rows[_PUT_PAGE].append(page.header(queue_id))
            rows[_PUT_CONTENTS].append((queue_id, page.first, contents, contents_crc(queue_id, page.first, contents)))
            groups = encode_groups(run, is_fifo=queue.is_fifo)
            page.has_groups = bool(groups)
            if groups:
                rows[_PUT_GROUPS].append((queue_id, page.first, groups, contents_crc(queue_id, page.first, groups)))
            filled = min(self._free_pages, page.disk_pages)
            self._free_pages -= filled
            self._file_pages += page.disk_pages - filled
        rows[_PUT_TOUCHED] += [_touched_row(queue_id, *item) for item in queue.touched.items()]
        queue.messages += len(queue.stored)
        queue.stored, queue.touched = {}, {}

    def _freeze_page(
        self, queue_id: int, page: Page, rows: dict[str, list[tuple[Any, ...]]], updates: list[Statement]
    ) -> None:
        changes, page.changes = page.changes, None
        if not page.live:
            self._drop_page(queue_id, page, rows)
            return
        if page.is_stale:
            rows[_PUT_PAGE].append(page.header(queue_id))
            page.is_stale = False
        for sequence, change in (changes or {}).items():
            if change is None:
                rows[_DROP_TOUCHED].append((queue_id, sequence))
            elif isinstance(change, tuple):
                rows[_PUT_TOUCHED].append(_touched_row(queue_id, sequence, change))
            else:
                _add_updates(updates, queue_id, sequence, change)

    def _drop_page(self, queue_id: int, page: Page, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        rows[_DROP_PAGE].append((queue_id, page.first))
        rows[_DROP_CONTENTS].append((queue_id, page.first))
        if page.has_groups:
            rows[_DROP_GROUPS].append((queue_id, page.first))
        rows[_DROP_TOUCHED_OF_PAGE].append((queue_id, page.first, page.last))
        self._free_pages += page.disk_pages

    def _reclaim_some(self, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        budget = RECLAIM_ROWS_MAX
        while self._reclaim and budget > 0:
            queue_id, pages = self._reclaim[-1]
            while pages and budget > 0:
                page = pages.pop()
                budget -= page.rows_on_disk_max()
                self._drop_page(queue_id, page, rows)
            if not pages:
                self._reclaim.pop()

    def _vacuum(self, *, is_idle: bool) -> list[str]:
        """Cutting the file's end moves what lives there, so that a queue being drained is left alone for long."""
        if self._free_pages <= self._free_kept(FREE_SHARE_IDLE if is_idle else FREE_SHARE_BUSY):
            return []
        self._free_pages -= VACUUM_PAGES
        self._file_pages -= VACUUM_PAGES
        return [_VACUUM]

    def _free_kept(self, share: int) -> int:
        return max(FREE_PAGES_KEPT, self._file_pages // share)

    # --- contents ---------------------------------------------------------------------------

    def fetch(self, queue_id: int, sequences: list[int]) -> list[tuple[str, tuple[int, ...]]]:
        """Queries for the pages in which ``sequences`` live; their rows are for ``decode``.

        Where the messages are large only the first ones come: who still lacks some asks again.
        """
        queue = self._queues.get(queue_id)
        if queue is None:
            return []
        wanted: dict[int, None] = {}
        room_bytes = FETCH_BYTES_MAX
        for sequence in sequences:
            page = self._living(queue, sequence)
            if page is not None and page.first not in wanted:
                if room_bytes <= 0:
                    break
                wanted[page.first] = None
                room_bytes -= page.disk_pages * PAGE_BYTES
        firsts = list(wanted)
        return [_fetch(queue_id, firsts[at : at + FETCH_PAGES_MAX]) for at in range(0, len(firsts), FETCH_PAGES_MAX)]

    def decode(self, rows: Iterable[tuple[Any, ...]]) -> list[MessageStored]:
        """What lives of the pages that were read. Raises Damaged."""
        messages: list[MessageStored] = []
        for row in rows:
            with _damage_found("contents"):
                queue_id, first, contents, crc = row
                if contents_crc(queue_id, first, contents) != crc:
                    raise _damaged(f"contents of queue {queue_id} from {first}: bad crc")
                queue = self._queues.get(queue_id)
                page = queue.directory.page_at(first) if queue is not None else None
                if page is None:
                    continue  # it went while it was being read
                messages += _only_living(page, decode_contents(contents))
        return messages

    # --- load ---------------------------------------------------------------------------------

    def load(self, connection: sqlite3.Connection) -> tuple[Base, Iterator[Mutation]]:
        """What is on the disk, through a connection that ``schema.prepare`` made ready; once, before all else.

        The iterator is lazy: it must be used up before anything is taken, and the
        connection stay open until then. Both raise Damaged.
        """
        assert not self._queues
        assert self._taken == Base()
        with _damage_found("meta"):
            applied = _read_applied(connection)
            self._free_pages = connection.execute("PRAGMA freelist_count").fetchone()[0]
            self._file_pages = connection.execute("PRAGMA page_count").fetchone()[0]
            self._last_number = connection.execute("SELECT coalesce(max(number), 0) FROM invocations").fetchone()[0]
        self._taken = applied.base()
        self._frozen_index = self.stored_index = applied.index
        self._is_loading = True
        return self._taken, self._restored(connection, applied)

    def _restored(self, connection: sqlite3.Connection, applied: _Applied) -> Iterator[Mutation]:
        with _damage_found("rows"):
            yield from self._restored_cluster(connection, applied)
            rows = _read_queues(connection, applied.queues)
            _check_contents(connection)
            newest = max([row.queue_id for row, _ in rows], default=0)
            if applied.last_queue_id > newest:
                yield from gone_queue(applied.last_queue_id)
            self._last_queue_id = max(newest, applied.last_queue_id)
            yield from self._restored_queues(connection, rows)
            yield from _restored_invocations(connection, applied.time_ms - INVOCATION_WINDOW_MS)
        self._is_loading = False

    def _restored_cluster(self, connection: sqlite3.Connection, applied: _Applied) -> Iterator[Mutation]:
        if applied.is_founded:
            found = connection.execute("SELECT name, value, crc FROM meta WHERE name = 'cluster'").fetchone()
            self._founded = msgspec.msgpack.decode(_value(found, "cluster"), type=ClusterFounded)
            yield self._founded
        if applied.ahead_ms:
            self._ahead_ms = applied.ahead_ms
            yield ClockAdvanced(applied.ahead_ms)
        takeovers = connection.execute("SELECT term, value, crc FROM takeovers ORDER BY term").fetchall()
        if len(takeovers) != applied.takeovers:
            raise _damaged(f"{applied.takeovers} takeovers expected, {len(takeovers)} found")
        for row in takeovers:
            self._takeover_terms.append(row[0])
            yield msgspec.msgpack.decode(_value(row, "takeover"), type=TookOver)
        tasks = connection.execute("SELECT number, value, crc FROM move_tasks ORDER BY number").fetchall()
        if len(tasks) != applied.move_tasks:
            raise _damaged(f"{applied.move_tasks} move tasks expected, {len(tasks)} found")
        for row in tasks:
            self._tasks[row[0]] = None
            yield msgspec.msgpack.decode(_value(row, "move task"), type=MoveTaskSet)
        yield from self._restored_leases(connection, applied.leases)

    def _restored_leases(self, connection: sqlite3.Connection, count: int) -> Iterator[Mutation]:
        """The calls of each before the lease itself; those that ended in the order in which they did."""
        rows = connection.execute("SELECT * FROM leases").fetchall()
        if len(rows) != count:
            raise _damaged(f"{count} rows of leases expected, {len(rows)} found")
        self._lease_rows = count
        found: list[LeaseSet] = []
        for row in rows:
            key, call, value, crc = row[:4], row[4], row[5], row[6]
            if _lease_row(key, call, value)[6] != crc:
                raise _damaged(f"lease {key}: bad crc")
            known = self._leases.setdefault(key, _LeaseRows())
            if call == _LEASE_ITSELF:
                known.row = 1
                found.append(msgspec.msgpack.decode(value, type=LeaseSet))
            else:
                known.calls.add(call)
                yield msgspec.msgpack.decode(value, type=LeaseCalled)
        yield from sorted(found, key=lambda lease: lease.ended_ms)

    def _restored_queues(
        self, connection: sqlite3.Connection, rows: list[tuple[QueueRestored, int]]
    ) -> Iterator[Mutation]:
        pages = _ByQueue(
            connection.execute(
                "SELECT queue_id, first, last, last_sent_ms, disk_pages, untouched, live, crc FROM pages "
                "ORDER BY queue_id, first"
            )
        )
        touched = _ByQueue(connection.execute("SELECT * FROM touched ORDER BY queue_id, sequence"))
        groups = _ByQueue(connection.execute("SELECT * FROM groups ORDER BY queue_id, first"))
        for row, messages in rows:
            queue = self._queues[row.queue_id] = _Queue(row)
            self._skip_reclaimed(pages, row.queue_id)
            for _ in touched.below(row.queue_id):
                pass  # of a reclaimed queue: they go with its pages
            yield row
            yield from self._restored_pages(queue, pages, groups)
            if queue.messages != messages:
                raise _damaged(f"queue {row.queue_id}: {messages} messages expected, {queue.messages} found")
            yield from self._restored_touched(queue, touched)
        self._skip_reclaimed(pages, NEVER)

    def _skip_reclaimed(self, pages: "_ByQueue", queue_id: int) -> None:
        for row in pages.below(queue_id):
            self._reclaim.append((row[0], [_page(row)]))

    def _restored_pages(self, queue: _Queue, pages: "_ByQueue", groups: "_ByQueue") -> Iterator[Mutation]:
        queue_id = queue.row.queue_id
        gone: list[Page] = []
        for row in pages.of(queue_id):
            page = _page(row)
            if page.last < queue.floor:
                gone.append(page)
                continue
            if page.first <= queue.directory.last:
                raise _damaged(f"pages of queue {queue_id}: out of order at {page.first}")
            queue.directory.add(page)
            queue.messages += page.live.bit_count()
            firsts, lasts = ranges(page.untouched, page.first)
            yield UntouchedRestored(queue_id, page.first, page.last, firsts, lasts, page.last_sent_ms)
            restored = _restored_groups(page, groups.at(queue_id, page.first))
            page.has_groups = restored is not None
            if queue.is_fifo and (restored is None or len(restored.sequences) < page.live.bit_count()):
                raise _damaged(f"groups of page {page.first} of queue {queue_id}: missing")
            if restored is not None and restored.sequences:
                yield restored
        if gone:
            self._reclaim.append((queue_id, gone[::-1]))

    def _restored_touched(self, queue: _Queue, touched: "_ByQueue") -> Iterator[Mutation]:
        queue_id, directory = queue.row.queue_id, queue.directory
        expected = sum([page.live.bit_count() - page.untouched.bit_count() for page in directory.pages])
        rows = (row for row in touched.of(queue_id) if row[1] >= queue.floor)
        while part := list(islice(rows, MUTATION_ROWS_MAX)):
            for row in part:
                if row[7] != _checksum(row):
                    raise _damaged(f"touched message {row[1]} of queue {queue_id}: bad checksum")
                page = self._living(queue, row[1])
                if page is None or page.untouched >> row[1] - page.first & 1:
                    raise _damaged(f"touched message {row[1]} of queue {queue_id}: not expected")
            expected -= len(part)
            columns = [list(column) for column in zip(*part, strict=True)]
            yield RowsRestored(queue_id, *columns[1:7])
        if expected:
            raise _damaged(f"queue {queue_id}: {expected} touched messages missing")


# --- rows as they are written ------------------------------------------------------------


def _checked(key: Any, value: bytes) -> tuple[Any, bytes, int]:
    return key, value, crc32(value, crc32(str(key).encode()))


def _lease_row(key: Key, call: int, value: bytes) -> tuple[Any, ...]:
    return *key, call, value, crc32(value, crc32(repr((key, call)).encode()))


def _queue_row(row: QueueRestored, messages: int) -> tuple[Any, ...]:
    values = (
        row.queue_id,
        row.account,
        row.name,
        _encode(row.attributes),
        _encode(row.tags),
        row.created_ms,
        row.modified_ms,
        row.deleted_ms,
        row.purged_ms,
        row.watermark,
        row.last_sequence,
        messages,
    )
    return (*values, crc32(_encode(values)))


def _checksum(row: tuple[int, ...]) -> int:
    return sum([value % _PRIME * factor for value, factor in zip(row, _FACTORS, strict=False)])


def _touched_row(queue_id: int, sequence: int, delivery: Delivery) -> tuple[int, ...]:
    row = (queue_id, sequence, *delivery)
    return (*row, _checksum(row))


def _add_updates(statements: list[Statement], queue_id: int, sequence: int, updates: list[Update]) -> None:
    """Those of one message stay in their order; neighbours of the same kind share a statement."""
    for update in updates:
        sql = _CHANGE_VISIBILITY if len(update) == 1 else _RETURN
        if not statements or statements[-1][0] != sql:
            statements.append((sql, []))
        statements[-1][1].append((*update, queue_id, sequence))


def _fetch(queue_id: int, firsts: list[int]) -> tuple[str, tuple[int, ...]]:
    """Two texts only, so that SQLite keeps them prepared: an IN list is filled up with its last member."""
    places = 1 if len(firsts) == 1 else FETCH_PAGES_MAX
    marks = ", ".join("?" * places)
    sql = f"SELECT queue_id, first, contents, crc FROM contents WHERE queue_id = ? AND first IN ({marks})"
    return sql, (queue_id, *firsts, *[firsts[-1]] * (places - len(firsts)))


def _only_living(page: Page, messages: list[MessageStored]) -> list[MessageStored]:
    if page.live.bit_count() == len(messages):
        return messages
    first, live = page.first, page.live
    return [message for message in messages if live >> message.sequence - first & 1]


# --- rows as they are read -------------------------------------------------------------------


class _ByQueue:
    """Rows in the order of their queue ids, handed out queue by queue."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self._next: tuple[Any, ...] | None = next(cursor, None)

    def below(self, queue_id: int) -> Iterator[tuple[Any, ...]]:
        """What is left of queues before ``queue_id``."""
        while (row := self._next) is not None and row[0] < queue_id:
            self._next = next(self._cursor, None)
            yield row

    def of(self, queue_id: int) -> Iterator[tuple[Any, ...]]:
        return self.below(queue_id + 1)

    def at(self, queue_id: int, first: int) -> tuple[Any, ...] | None:
        """The row of the page that begins there, if there is one; those before it are passed over."""
        while (row := self._next) is not None and row[:2] <= (queue_id, first):
            self._next = next(self._cursor, None)
            if row[:2] == (queue_id, first):
                return row
        return None


def _damaged(reason: str) -> Damaged:
    return Damaged(FILE, 0, reason)


# SQLite could not work, which says nothing about the bytes.
_NOT_DAMAGE: Final = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
    )
)


@contextmanager
def _damage_found(where: str) -> Iterator[None]:
    """What reading trips over when a value has changed its type, length or meaning is damage."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF in _NOT_DAMAGE:
            raise
        raise _damaged(f"{where}: {error}") from error
    except (LayoutError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _damaged(f"{where}: a value is not what was written: {error}") from error


def _value(row: tuple[Any, ...] | None, what: str) -> bytes:
    if row is None or _checked(row[0], row[1]) != row:
        raise _damaged(f"{what}: missing or bad crc")
    value: bytes = row[1]
    return value


def read_base(connection: sqlite3.Connection) -> Base:
    """Up to where the rows hold everything. Raises Damaged."""
    with _damage_found("meta"):
        return _read_applied(connection).base()


def read_contents(connection: sqlite3.Connection, rows: Rows) -> Iterator[list[MessageStored]]:
    """Every message of ``rows``, which were loaded through the same connection, a page at a time. Raises Damaged."""
    with _damage_found("contents"):
        for row in connection.execute("SELECT queue_id, first, contents, crc FROM contents ORDER BY queue_id, first"):
            yield rows.decode([row])


def _read_applied(connection: sqlite3.Connection) -> _Applied:
    row = connection.execute("SELECT name, value, crc FROM meta WHERE name = 'applied'").fetchone()
    if row is not None:
        return msgspec.msgpack.decode(_value(row, "applied index"), type=_Applied)
    for table in ("meta", "queues", "pages", "contents", "touched"):
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise _damaged("the applied index is missing")
    return _Applied(0, 0, 0, 0, 0, False)


def _read_queues(connection: sqlite3.Connection, expected: int) -> list[tuple[QueueRestored, int]]:
    rows = [_queue(row) for row in connection.execute("SELECT * FROM queues ORDER BY id")]
    if len(rows) != expected:
        raise _damaged(f"{expected} queues expected, {len(rows)} found")
    return rows


def _queue(row: tuple[Any, ...]) -> tuple[QueueRestored, int]:
    if crc32(_encode(row[:-1])) != row[-1]:
        raise _damaged(f"queue {row[0]}: bad crc")
    queue_id, account, name, attributes, tags, *numbers, messages, _ = row
    texts = (msgspec.msgpack.decode(attributes, type=dict[str, str]), msgspec.msgpack.decode(tags, type=dict[str, str]))
    return QueueRestored(queue_id, account, name, *texts, *numbers), messages


def _page(row: tuple[Any, ...]) -> Page:
    *values, crc = row
    if header_crc(*values) != crc:
        raise _damaged(f"page {row[1]} of queue {row[0]}: bad crc")
    _, first, last, last_sent_ms, disk_pages, untouched, live = values
    assert first <= last < first + PAGE_SPAN_MAX
    assert len(untouched) == len(live) == MASK_BYTES
    living = int.from_bytes(live, "little")
    never = living if live == untouched else int.from_bytes(untouched, "little")
    return Page(first, last, last_sent_ms, never, living, disk_pages)


def _restored_groups(page: Page, row: tuple[Any, ...] | None) -> GroupsRestored | None:
    """``row``: the page's, None if no message of it has a group."""
    if row is None:
        return None
    queue_id, first, packed, crc = row
    if contents_crc(queue_id, first, packed) != crc:
        raise _damaged(f"groups of page {first} of queue {queue_id}: bad crc")
    return GroupsRestored(queue_id, *living_groups(page, packed))


def _check_contents(connection: sqlite3.Connection) -> None:
    """Each page has its contents; they are counted, not read."""
    pages, contents = connection.execute(
        "SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM contents)"
    ).fetchone()
    if pages != contents:
        raise _damaged(f"{pages} pages, but contents of {contents}")


def _restored_invocations(connection: sqlite3.Connection, after_ms: int) -> Iterator[InvocationRecorded | SentIdTaken]:
    """Those newer than ``after_ms``, oldest first, without the ones that a later batch took back.

    Of deduplication ids those that are taken still, as if at no time: none is dropped while they come.
    """
    decode_keys = msgspec.msgpack.Decoder(list[bytes]).decode
    decode_rows = msgspec.msgpack.Decoder(list[InvocationRecorded | SentIdTaken]).decode
    removed: dict[bytes, int] = {}
    for number, keys in connection.execute("SELECT number, removed FROM invocations ORDER BY number"):
        removed.update(dict.fromkeys(decode_keys(keys), number))
    for number, keys, rows, crc in connection.execute(
        "SELECT number, removed, rows, crc FROM invocations ORDER BY number"
    ):
        if crc32(rows, crc32(keys, number & 0xFFFFFFFF)) != crc:
            raise _damaged(f"invocations of batch {number}: bad crc")
        for row in decode_rows(rows):
            if isinstance(row, SentIdTaken):
                if row.until_ms > after_ms + INVOCATION_WINDOW_MS:
                    row.taken_ms = 0
                    yield row
            elif row.recorded_ms > after_ms and removed.get(row.invocation, 0) <= number:
                yield row
