"""The reading of rows from the disk, with their checksums: the state at a start, and contents fetched later."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from struct import error as LayoutError
from typing import Any, Final
from zlib import crc32

import msgspec

from elasticq.engine.stored.mutations import (
    ClockAdvanced,
    DelaysRestored,
    GroupsRestored,
    InvocationRecorded,
    MessageStored,
    Mutation,
    PrioritiesRestored,
    QueueRestored,
    RowsRestored,
    SentIdTaken,
    UntouchedRestored,
)
from elasticq.engine.stored.tables import AHEAD_MS, LAST_QUEUE_ID
from elasticq.engine.views.dump import gone_queue
from elasticq.model.limits import INVOCATION_WINDOW_MS, MUTATION_ROWS_MAX
from elasticq.replication.records import Base
from elasticq.storage.errors import Damaged
from elasticq.storage.rows.pages import (
    MASK_BYTES,
    PAGE_SPAN_MAX,
    Page,
    contents_crc,
    decode_contents,
    header_crc,
    living_delays,
    living_groups,
    living_priorities,
    ranges,
)
from elasticq.storage.rows.schema import FILE
from elasticq.storage.rows.statements import (
    APPLIED,
    AS_MOVED,
    DELAYS,
    Applied,
    checked,
    checksum,
    encode,
    priorities_row,
)
from elasticq.storage.rows.tables import NEVER, Queue, Tables


class _ByQueue:
    """A reader of rows that are sorted by queue id. It reads them queue by queue, each once."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self._next: tuple[Any, ...] | None = next(cursor, None)

    def below(self, queue_id: int) -> Iterator[tuple[Any, ...]]:
        """Yield the unread rows of queues with ids below ``queue_id``."""
        while (row := self._next) is not None and row[0] < queue_id:
            self._next = next(self._cursor, None)
            yield row

    def of(self, queue_id: int) -> Iterator[tuple[Any, ...]]:
        return self.below(queue_id + 1)

    def at(self, queue_id: int, first: int) -> tuple[Any, ...] | None:
        """Return the row of the page that begins at ``first``, or None. Rows before it are skipped."""
        while (row := self._next) is not None and row[:2] <= (queue_id, first):
            self._next = next(self._cursor, None)
            if row[:2] == (queue_id, first):
                return row
        return None


class Restore:
    """One load of the rows. It fills ``tables`` while the caller reads ``mutations``, which restore the state."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        with damage_found("meta"):
            self._applied = _read_applied(connection)
            tables.has_holes = self._applied.has_holes
            tables.free_pages = connection.execute("PRAGMA freelist_count").fetchone()[0]
            tables.file_pages = connection.execute("PRAGMA page_count").fetchone()[0]
            last_number = connection.execute("SELECT coalesce(max(number), 0) FROM invocations").fetchone()[0]
            tables.invocations.last_number = last_number
        self.base = self._applied.base()

    def mutations(self) -> Iterator[Mutation]:
        applied = self._applied
        with damage_found("rows"):
            yield from self._small()
            rows = _read_queues(self._connection, applied.queues)
            _check_contents(self._connection)
            self._tables.delay_pages = _count_delays(self._connection, applied.counts.get(DELAYS, 0))
            newest = max([row.queue_id for row, _ in rows], default=0)
            if applied.last_queue_id > newest:
                yield from gone_queue(applied.last_queue_id)
            self._tables.numbers[LAST_QUEUE_ID] = max(newest, applied.last_queue_id)
            self._tables.numbers[AHEAD_MS] = applied.ahead_ms
            yield from self._queues(rows)
            yield from _invocations(self._connection, applied.time_ms - INVOCATION_WINDOW_MS)

    def _small(self) -> Iterator[Mutation]:
        for name, small in self._tables.small.items():
            yield from small.read(self._connection, self._applied.counts.get(name, 0))
        if self._applied.ahead_ms:
            yield ClockAdvanced(self._applied.ahead_ms)

    def _queues(self, rows: list[tuple[QueueRestored, int]]) -> Iterator[Mutation]:
        connection = self._connection
        pages = _ByQueue(
            connection.execute(
                "SELECT queue_id, first, last, last_sent_ms, disk_pages, untouched, live, crc FROM pages "
                "ORDER BY queue_id, first"
            )
        )
        delays = _ByQueue(connection.execute("SELECT * FROM delays ORDER BY queue_id, first"))
        touched = _ByQueue(connection.execute("SELECT * FROM touched ORDER BY queue_id, sequence"))
        groups = _ByQueue(connection.execute("SELECT * FROM groups ORDER BY queue_id, first"))
        priorities = _ByQueue(connection.execute("SELECT * FROM priorities ORDER BY queue_id, first, part"))
        for row, messages in rows:
            queue = self._tables.queues[row.queue_id] = Queue(row)
            self._skip_reclaimed(pages, row.queue_id, delays)
            for _ in touched.below(row.queue_id):
                pass  # rows of a deleted queue, which are deleted with its pages
            yield row
            yield from self._pages(queue, pages, groups, priorities, delays)
            if queue.messages != messages:
                raise _damaged(f"queue {row.queue_id}: {messages} messages expected, {queue.messages} found")
            yield from _touched(queue, touched)
        self._skip_reclaimed(pages, NEVER, delays)

    def _skip_reclaimed(self, pages: _ByQueue, queue_id: int, delays: _ByQueue) -> None:
        for row in pages.below(queue_id):
            page = read_page(row)
            page.has_delays = delays.at(row[0], page.first) is not None
            self._tables.reclaim.append((row[0], [page]))

    def _pages(
        self, queue: Queue, pages: _ByQueue, groups: _ByQueue, priorities: _ByQueue, delays: _ByQueue
    ) -> Iterator[Mutation]:
        queue_id = queue.row.queue_id
        gone: list[Page] = []
        for row in pages.of(queue_id):
            page = read_page(row)
            delay_row = delays.at(queue_id, page.first)
            page.has_delays = delay_row is not None
            if page.last < queue.floor:
                gone.append(page)
                continue
            if page.first <= queue.directory.last:
                raise _damaged(f"pages of queue {queue_id}: out of order at {page.first}")
            queue.directory.add(page)
            queue.messages += page.live.bit_count()
            delayed = _delays(page, delay_row)
            firsts, lasts = ranges(page.untouched & ~delayed[0], page.first)
            yield UntouchedRestored(queue_id, page.first, page.last, firsts, lasts, page.last_sent_ms)
            if delayed[1]:
                yield DelaysRestored(queue_id, delayed[1], delayed[2])
            restored = _groups(page, groups.at(queue_id, page.first))
            page.has_groups = restored is not None
            if queue.needs_groups and (restored is None or len(restored.sequences) < page.live.bit_count()):
                raise _damaged(f"groups of page {page.first} of queue {queue_id}: missing")
            if restored is not None and restored.sequences:
                yield restored
            page.has_priorities = queue.has_priorities
            if queue.has_priorities:
                known = _priorities(page, queue_id, priorities)
                yield PrioritiesRestored(queue_id, list(known), list(known.values()))
        if gone:
            self._tables.reclaim.append((queue_id, gone[::-1]))


def read_base(connection: sqlite3.Connection) -> Base:
    """Return the base up to which the rows are complete. Raise Damaged if it cannot be read."""
    with damage_found("meta"):
        return _read_applied(connection).base()


def all_contents(connection: sqlite3.Connection, tables: Tables) -> Iterator[list[MessageStored]]:
    """Yield every living message, one list for each page. ``connection`` must be the one that filled ``tables``.

    Raise Damaged if contents are damaged.
    """
    with damage_found("contents"):
        for row in connection.execute("SELECT queue_id, first, contents, crc FROM contents ORDER BY queue_id, first"):
            yield living_contents(tables, [row])


def living_contents(tables: Tables, rows: Iterable[tuple[Any, ...]]) -> list[MessageStored]:
    """Return the living messages in these rows of ``contents``. Raise Damaged if one is damaged."""
    messages: list[MessageStored] = []
    for row in rows:
        with damage_found("contents"):
            queue_id, first, contents, crc = row
            if contents_crc(queue_id, first, contents) != crc:
                raise _damaged(f"contents of queue {queue_id} from {first}: bad crc")
            queue = tables.queues.get(queue_id)
            page = queue.directory.page_at(first) if queue is not None else None
            if page is None:
                continue  # the page was removed during the read
            messages += _only_living(page, decode_contents(contents))
    return messages


# --- a table each ---


def _read_applied(connection: sqlite3.Connection) -> Applied:
    row = connection.execute("SELECT name, value, crc FROM meta WHERE name = ?", (APPLIED,)).fetchone()
    if row is not None:
        if checked(row[0], row[1]) != row:
            raise _damaged("the applied index: bad crc")
        return msgspec.msgpack.decode(row[1], type=Applied)
    for table in ("meta", "queues", "pages", "contents", "touched"):
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise _damaged("the applied index is missing")
    return Applied(0, 0, 0)


def _read_queues(connection: sqlite3.Connection, expected: int) -> list[tuple[QueueRestored, int]]:
    rows = [read_queue(row) for row in connection.execute("SELECT * FROM queues ORDER BY id")]
    if len(rows) != expected:
        raise _damaged(f"{expected} queues expected, {len(rows)} found")
    return rows


def read_queue(row: tuple[Any, ...]) -> tuple[QueueRestored, int]:
    if crc32(encode(row[:-1])) != row[-1]:
        raise _damaged(f"queue {row[0]}: bad crc")
    queue_id, account, name, attributes, tags, *numbers, messages, _ = row
    texts = (msgspec.msgpack.decode(attributes, type=dict[str, str]), msgspec.msgpack.decode(tags, type=dict[str, str]))
    return QueueRestored(queue_id, account, name, *texts, *numbers), messages


def read_page(row: tuple[Any, ...]) -> Page:
    *values, crc = row
    if header_crc(*values) != crc:
        raise _damaged(f"page {row[1]} of queue {row[0]}: bad crc")
    _, first, last, last_sent_ms, disk_pages, untouched, live = values
    assert first <= last < first + PAGE_SPAN_MAX
    assert len(untouched) == len(live) == MASK_BYTES
    living = int.from_bytes(live, "little")
    never = living if live == untouched else int.from_bytes(untouched, "little")
    return Page(first, last, last_sent_ms, never, living, disk_pages)


def _groups(page: Page, row: tuple[Any, ...] | None) -> GroupsRestored | None:
    """Return the groups of a page; ``row``: its row in ``groups``, None if no message has a group."""
    if row is None:
        return None
    queue_id, first, packed, crc = row
    if contents_crc(queue_id, first, packed) != crc:
        raise _damaged(f"groups of page {first} of queue {queue_id}: bad crc")
    return GroupsRestored(queue_id, *living_groups(page, packed))


def _delays(page: Page, row: tuple[Any, ...] | None) -> tuple[int, list[int], list[int]]:
    """Return the delays of a page as ``living_delays`` does; ``row``: its row in ``delays``, None if it has none."""
    if row is None:
        return 0, [], []
    queue_id, first, packed, crc = row
    if contents_crc(queue_id, first, packed) != crc:
        raise _damaged(f"delays of page {first} of queue {queue_id}: bad crc")
    return living_delays(page, packed)


def _priorities(page: Page, queue_id: int, rows: _ByQueue) -> dict[int, int]:
    """Return the priorities of all living messages of a page, by sequence; put the changed ones into ``page.moved``."""
    known: dict[int, int] = {}
    while (row := rows.at(queue_id, page.first)) is not None:
        if priorities_row(*row[:-1]) != row:
            raise _damaged(f"priorities of page {page.first} of queue {queue_id}: bad crc")
        part = living_priorities(page, row[3])
        if row[2] == AS_MOVED:
            page.moved = part
        known.update(part)
    if len(known) < page.live.bit_count():
        raise _damaged(f"priorities of page {page.first} of queue {queue_id}: missing")
    return known


def _check_contents(connection: sqlite3.Connection) -> None:
    """Raise Damaged if the numbers of pages and of contents differ. The contents are not read."""
    pages, contents = connection.execute(
        "SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM contents)"
    ).fetchone()
    if pages != contents:
        raise _damaged(f"{pages} pages, but contents of {contents}")


def _count_delays(connection: sqlite3.Connection, expected: int) -> int:
    """Return how many pages have delays. Raise Damaged if rows are missing, as messages would be visible too soon."""
    (found,) = connection.execute("SELECT count(*) FROM delays").fetchone()
    if found != expected:
        raise _damaged(f"{expected} pages with delays expected, {found} found")
    return expected


def _invocations(connection: sqlite3.Connection, after_ms: int) -> Iterator[InvocationRecorded | SentIdTaken]:
    """Yield the invocations newer than ``after_ms``, oldest first, without those that a later batch removed.

    Deduplication ids that are still taken are yielded with time 0, so none of them expires during the load.
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


def _touched(queue: Queue, touched: _ByQueue) -> Iterator[Mutation]:
    queue_id, directory = queue.row.queue_id, queue.directory
    expected = sum([page.live.bit_count() - page.untouched.bit_count() for page in directory.pages])
    rows = (row for row in touched.of(queue_id) if row[1] >= queue.floor)
    while part := list(islice(rows, MUTATION_ROWS_MAX)):
        for row in part:
            if row[7] != checksum(row):
                raise _damaged(f"touched message {row[1]} of queue {queue_id}: bad checksum")
            page = queue.living(row[1])
            if page is None or page.untouched >> row[1] - page.first & 1:
                raise _damaged(f"touched message {row[1]} of queue {queue_id}: not expected")
        expected -= len(part)
        columns = [list(column) for column in zip(*part, strict=True)]
        yield RowsRestored(queue_id, *columns[1:7])
    if expected:
        raise _damaged(f"queue {queue_id}: {expected} touched messages missing")


def _only_living(page: Page, messages: list[MessageStored]) -> list[MessageStored]:
    if page.live.bit_count() == len(messages):
        return messages
    first, live = page.first, page.live
    return [message for message in messages if live >> message.sequence - first & 1]


# --- damage ---


def _damaged(reason: str) -> Damaged:
    return Damaged(FILE, 0, reason)


# With these errors SQLite could not work. They do not mean that bytes are damaged.
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
def damage_found(where: str) -> Iterator[None]:
    """Raise Damaged instead of the errors that damaged rows cause, at any step of reading them.

    where: what is read, for the text of the error.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF in _NOT_DAMAGE and code != sqlite3.SQLITE_IOERR_READ:
            raise
        raise _damaged(f"{where}: {error}") from error
    except (LayoutError, LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _damaged(f"{where}: a value is not what was written: {error}") from error
