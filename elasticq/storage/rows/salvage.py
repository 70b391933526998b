"""The salvage of a damaged database: all that can be read is written to a new one, and the rest is listed.

Losses, by what is damaged:

    contents of a page        its living messages, unless the log still has them
    header of a page          nothing; all its messages are visible again, including deleted ones
    header and contents       its living messages; only their number is known, from the queue's row
    a touched message's row   nothing; the message is visible again, or at its first time if it was only rescheduled
    groups of a page          nothing; they are computed from its contents
    delays of a page          nothing; they are computed from its contents
    priorities of a page      changed priorities; all are computed from its contents and the queue's default
    a queue's row             its name, attributes and tags; the queue gets the name ``recovered-ID``
    the other small tables    the rows that the report counts

Tables are read from both ends up to the damage, so one bad page costs only the rows on it. Contents are read by their
keys. Those that are not found in this way are searched in the whole file (carve.py).
"""

import shutil
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from struct import error as LayoutError
from tempfile import TemporaryDirectory
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from elasticq.engine.ordering.kinds import PRIORITY, kind_of
from elasticq.engine.stored.mutations import CLUSTER, META, TABLES, MessageStored, QueueRestored, decode
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.replication.records import Entry
from elasticq.storage.errors import DataError
from elasticq.storage.rows import schema
from elasticq.storage.rows import statements as sql
from elasticq.storage.rows.carve import Key, carve
from elasticq.storage.rows.pages import (
    Delivery,
    Page,
    contents_crc,
    decode_contents,
    encode_delays,
    encode_groups,
    encode_priorities,
    living_priorities,
    make_page,
    runs_of,
    sequences_of,
)
from elasticq.storage.rows.reading import read_page, read_queue
from elasticq.storage.rows.small import SmallTable
from elasticq.storage.rows.statements import (
    APPLIED,
    AS_STORED,
    DELAYS,
    Applied,
    blob_row,
    checked,
    checksum,
    encode,
    priorities_row,
    queue_row,
    touched_row,
)
from elasticq.storage.rows.tables import NEVER
from elasticq.storage.rows.tables import Queue as TableQueue

RECOVERED: Final = "recovered-"
TABLES_TRIED: Final = ("meta_copy", "queues", "pages", "touched", "invocations", *(table.name for table in TABLES))
"""The tables whose rows are counted to find the right first page: all but the large ones."""
_BAD_VALUES: Final = (
    LayoutError,
    TypeError,
    ValueError,
    OverflowError,
    AssertionError,
    msgspec.MsgspecError,
    DataError,
)

Row = tuple[Any, ...]


class NothingToSalvage(DataError):
    """The error if not even the index up to which the rows were complete can be read."""


class Salvaged(Struct):
    """The result. applied_index: the index up to which the rows were complete; lines: what is lost, may be empty."""

    applied_index: int
    lines: list[str]


class _Queue(Struct):
    """A queue. pages: its pages by first sequence; orphans: first sequences of contents without a header.

    counted: the number of messages in its row; None if the row is lost. priorities: the rows of priorities that can be
    read, by first sequence of the page, with the changed ones last. unnamed: messages that are lost without a trace of
    their sequences. The other lists are sequences for the report.
    """

    row: QueueRestored
    counted: int | None = None
    pages: dict[int, Page] = field(default_factory=dict)
    orphans: set[int] = field(default_factory=set)
    priorities: dict[int, list[bytes]] = field(default_factory=dict)
    unnamed: int = 0
    lost: list[int] = field(default_factory=list)
    visible_again: list[int] = field(default_factory=list)
    perhaps_deleted: list[int] = field(default_factory=list)

    @property
    def floor(self) -> int:
        return self.row.watermark if self.row.deleted_ms is None else NEVER

    def told(self) -> list[str]:
        name = f"queue {self.row.name}"
        lines = []
        if self.unnamed > 0:
            lines.append(
                f"Lost: {self.unnamed} messages of {name}, which nothing names any more: its row counts them, and "
                "their pages are gone."
            )
        if self.lost:
            lines.append(f"Lost: {len(self.lost)} messages of {name}, sequences {runs_of(self.lost)}.")
        if self.visible_again:
            lines.append(
                f"Visible again: {len(self.visible_again)} messages of {name} that had been received, sequences "
                f"{runs_of(self.visible_again)}; the state of their delivery is lost."
            )
        if self.perhaps_deleted:
            lines.append(
                f"Visible again: {len(self.perhaps_deleted)} messages of {name}, sequences "
                f"{runs_of(self.perhaps_deleted)}; which of them had been received or deleted is unknown."
            )
        return lines


def salvage(file: Path, into: Path, entries: list[Entry]) -> Salvaged:
    """Write to the new file ``into`` what can be read of ``file``, and what the log's ``entries`` have of the rest.

    Raise NothingToSalvage if too little can be read, and sqlite3.Error if the new file cannot be written.
    """
    with (
        TemporaryDirectory(prefix=into.name, dir=into.parent) as scratch,
        closing(_source(file, Path(scratch))) as source,
        closing(sqlite3.connect(into, isolation_level=None)) as target,
    ):
        schema.prepare(target)
        target.execute("BEGIN")
        told = _Salvage(source, target, file, entries).run()
        target.execute("COMMIT")
        target.execute("PRAGMA journal_mode = DELETE").fetchall()  # without a WAL all rows are in one file
        return told


def _source(file: Path, scratch: Path) -> sqlite3.Connection:
    """Open the damaged file. If its first page does not name all tables, open a copy with another first page.

    The chosen first page is the one with which most rows can be read.
    """
    source = _connect(file)
    if all(_Rows(source, table, 1).is_whole for table in TABLES_TRIED):
        return source
    source.close()
    found: list[tuple[int, Path]] = []
    for number, page in enumerate(_first_pages()):
        copy = scratch / f"{number}-{file.name}"
        for suffix in ("", "-wal"):
            if Path(f"{file}{suffix}").exists():
                shutil.copyfile(f"{file}{suffix}", f"{copy}{suffix}")
        with copy.open("r+b") as opened:
            opened.write(page)
        with closing(_connect(copy)) as source:
            found.append((sum(1 for table in TABLES_TRIED for _ in _Rows(source, table, 1)), copy))
    return _connect(max(found)[1])


def _connect(file: Path) -> sqlite3.Connection:
    source = sqlite3.connect(file, isolation_level=None)
    source.text_factory = lambda text: text.decode(errors="replace")  # damaged text fails the row, not the whole table
    return source


def _first_pages() -> list[bytes]:
    """Return the two possible first pages: of a file that was made table by table, and of one made by VACUUM.

    The tables begin at different pages in the two.
    """
    pages = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.prepare(connection)
        for _ in range(2):
            page = bytearray(connection.serialize()[: schema.PAGE_BYTES])
            page[18:20] = b"\x02\x02"  # with a WAL
            page[24:40] = b"\0\0\0\1" + bytes(12)  # a file of any size, without free pages
            page[92:96] = bytes(4)
            pages.append(bytes(page))
            connection.execute("VACUUM")
    return pages


class _Salvage:
    def __init__(
        self, source: sqlite3.Connection, target: sqlite3.Connection, file: Path, entries: list[Entry]
    ) -> None:
        self._source = source
        self._target = target
        self._file = file
        self._entries = entries
        self._queues: dict[int, _Queue] = {}
        self._found: dict[Key, bytes] = {}  # contents that a query does not find, from carve.py or the log
        self._told: list[str] = []
        self._delay_pages = 0

    def run(self) -> Salvaged:
        applied = self._applied()
        self._find_queues(applied.queues)
        self._find_pages()
        self._find_contents(applied.index)
        self._write_queues()
        counts = {**self._small(applied), DELAYS: self._delay_pages}
        applied = replace(applied, queues=len(self._queues), counts=counts)
        self._copy("invocations", 1, sql.PUT_INVOCATIONS, _is_history, None)
        applied.has_holes |= bool(self._told)
        self._put_meta(APPLIED, encode(applied))
        return Salvaged(applied.index, self._told)

    # --- small tables -------------------------------------------------------------------

    def _meta(self, name: str) -> bytes | None:
        for table in ("meta", "meta_copy"):
            for row in _Rows(self._source, table, 1):
                if row[0] == name and _fits(_is_checked, row):
                    value: bytes = row[1]
                    return value
        return None

    def _put_meta(self, name: str, value: bytes) -> None:
        for put in (sql.PUT_META, sql.PUT_META_COPY):
            self._target.execute(put, checked(name, value))

    def _applied(self) -> Applied:
        value = self._meta(APPLIED)
        if value is None:
            raise NothingToSalvage(f"{self._file.name} does not say any more up to which entry it holds everything")
        return msgspec.msgpack.decode(value, type=Applied)

    def _small(self, applied: Applied) -> dict[str, int]:
        """Copy the small tables; return the number of copied rows by the name of the table."""
        counts = {META.name: int(self._founded(applied))}
        for table in TABLES:
            if table is not META:
                columns, small = len(table.columns()), SmallTable(table)
                expected = applied.counts.get(table.name, 0)
                counts[table.name] = self._copy(table.name, columns, small.put, small.is_whole, expected)
        return counts

    def _founded(self, applied: Applied) -> bool:
        is_founded = applied.counts.get(META.name, 0) > 0
        value = self._meta(CLUSTER) if is_founded else None
        if value is not None:
            self._put_meta(CLUSTER, value)
        elif is_founded:
            self._told.append(
                "Lost: the cluster's id and key. It gets new ones; receipt handles are not valid any more."
            )
        return value is not None

    def _copy(
        self, table: str, key_columns: int, put: str, is_good: Callable[[Row], bool], expected: int | None
    ) -> int:
        """Copy the good rows of a table; return their number. ``expected``: the number before, None if unknown."""
        rows = _Rows(self._source, table, key_columns)
        found = list(rows)
        good = [row for row in found if _fits(is_good, row)]
        self._target.executemany(put, good)
        if expected is not None and len(good) < expected:
            self._told.append(f"Lost: {expected - len(good)} of {expected} rows of the table {table}.")
        elif expected is None and (len(good) < len(found) or not rows.is_whole):
            self._told.append(f"Lost: rows of the table {table}; a send that is tried again may be stored twice.")
        return len(good)

    # --- queues and pages -----------------------------------------------------------------

    def _find_queues(self, expected: int) -> None:
        for row in _Rows(self._source, "queues", 1):
            if _fits(_is_queue, row):
                self._queues[row[0]] = _Queue(*read_queue(row))
        if missing := expected - len(self._queues):
            self._recover_queues(missing)

    def _recover_queues(self, missing: int) -> None:
        """Make rows for ``missing`` queues whose rows are lost. Their ids are found in the keys of their contents."""
        known = {key[0] for key in self._keys()}
        for queue_id in sorted(known - self._queues.keys()):
            name = f"{RECOVERED}{queue_id}"
            row = QueueRestored(queue_id, DEFAULT_ACCOUNT, name, {}, {}, 0, 0, None, None, 0, 0)
            self._queues[queue_id] = _Queue(row)
            self._told.append(f"Lost: name, attributes and tags of queue {queue_id}. It is called {name} now.")
            missing -= 1
        if missing > 0:
            self._told.append(f"Lost: {missing} queues, and all messages that they may have had.")

    def _keys(self) -> Iterator[Key]:
        """Yield the keys of all rows of ``contents`` that can be read."""
        for row in _Rows(self._source, "contents", 2, "queue_id, first"):
            if _fits(_is_key, row):
                yield row[0], row[1]

    def _find_pages(self) -> None:
        dead: set[Key] = set()
        for row in _Rows(self._source, "pages", 2):
            if _fits(_is_page, row):
                page, queue = read_page(row), self._queues.get(row[0])
                if queue is None or page.last < queue.floor:
                    dead.add((row[0], page.first))
                else:
                    queue.pages[page.first] = page
        for queue_id, first in self._keys():
            queue = self._queues.get(queue_id)
            if (
                queue is not None
                and first >= queue.floor
                and first not in queue.pages
                and (queue_id, first) not in dead
            ):
                queue.orphans.add(first)

    # --- contents -------------------------------------------------------------------------

    def _contents(self, key: Key) -> bytes | None:
        if key in self._found:
            return self._found[key]
        try:
            row = self._source.execute("SELECT * FROM contents WHERE queue_id = ? AND first = ?", key).fetchone()
        except sqlite3.DatabaseError:
            return None
        return row[2] if row is not None and _fits(_is_contents, row) else None

    def _find_contents(self, index: int) -> None:
        """Find contents that a query does not find: in the bytes of the file, or in the log's entries up to ``index``.

        Note the messages that are lost.
        """
        wanted = {
            (queue_id, first)
            for queue_id, queue in self._queues.items()
            for first in (*queue.pages, *queue.orphans)
            if self._contents((queue_id, first)) is None
        }
        if wanted:
            self._found.update(carve(self._file, wanted))
            wanted -= self._found.keys()
        logged = self._logged(wanted, index) if wanted else {}
        for key in sorted(wanted):
            queue = self._queues[key[0]]
            page = queue.pages.get(key[1])
            if page is None:
                queue.orphans.discard(key[1])
                self._told.append(
                    f"Lost: what lived of a page of queue {queue.row.name}, sequences {key[1]} and after."
                )
                continue
            kept = sum([1 << message.sequence - page.first for message in logged[key]])
            queue.lost += sequences_of(page.live & ~kept, page.first)
            page.live, page.untouched = page.live & kept, page.untouched & kept
            if kept:
                self._found[key] = encode(logged[key])
            else:
                del queue.pages[page.first]

    def _logged(self, wanted: set[Key], index: int) -> dict[Key, list[MessageStored]]:
        """Return the living messages of these pages that the log has, by page."""
        found: dict[Key, list[MessageStored]] = {key: [] for key in wanted}
        firsts: dict[int, list[int]] = {}
        for queue_id, first in sorted(wanted):
            firsts.setdefault(queue_id, []).append(first)
        for entry in self._entries:
            for mutation in decode(entry.payload) if entry.index <= index else ():
                if isinstance(mutation, MessageStored) and mutation.queue_id in firsts:
                    before = bisect_right(firsts[mutation.queue_id], mutation.sequence) - 1
                    first = firsts[mutation.queue_id][before] if before >= 0 else -1
                    page = self._queues[mutation.queue_id].pages.get(first)
                    if page is not None and page.live >> mutation.sequence - first & 1:
                        found[mutation.queue_id, first].append(mutation)
        return found

    # --- writing --------------------------------------------------------------------------

    def _write_queues(self) -> None:
        touched: dict[int, dict[int, Delivery]] = {}
        for row in _Rows(self._source, "touched", 2):
            if _fits(_is_touched, row):
                touched.setdefault(row[0], {})[row[1]] = row[2:7]
        for row in _Rows(self._source, "priorities", 3):
            queue = self._queues.get(row[0])
            if queue is not None and _fits(_is_priorities, row):
                queue.priorities.setdefault(row[1], []).append(row[3])
        for queue_id, queue in self._queues.items():
            self._write_queue(queue_id, queue, touched.get(queue_id, {}))
            self._told += queue.told()

    def _write_queue(self, queue_id: int, queue: _Queue, touched: dict[int, Delivery]) -> None:
        row, messages = queue.row, 0
        for first in sorted((*queue.pages, *queue.orphans)):
            contents = self._contents((queue_id, first))
            assert contents is not None, "what has none is not among them any more"
            run = decode_contents(contents)
            if not row.attributes and run[0].deduplication_id is not None:
                row.name, row.attributes = f"{row.name}.fifo", {"FifoQueue": "true"}
            if not row.attributes and queue.priorities:
                row.attributes = {PRIORITY.marker: PRIORITY.marker_value}
            page = queue.pages.get(first)
            if page is None:
                page, _ = make_page(run, touched)
                queue.perhaps_deleted += sequences_of(page.live, first)
            messages += page.live.bit_count()
            row.last_sequence = max(row.last_sequence, page.last)
            self._write_page(queue_id, queue, page, contents, run, touched)
        # Deleted messages that came back make this number too small. The report names their sequences, too.
        if queue.counted is not None and row.deleted_ms is None:
            queue.unnamed = queue.counted - messages - len(queue.lost)
        self._target.execute(sql.PUT_QUEUE, queue_row(row, messages))

    def _write_page(
        self,
        queue_id: int,
        queue: _Queue,
        page: Page,
        contents: bytes,
        run: list[MessageStored],
        touched: dict[int, Delivery],
    ) -> None:
        received = page.live & ~page.untouched
        rows = []
        for message in run:
            bit = 1 << message.sequence - page.first
            if received & bit:
                if message.sequence in touched:
                    rows.append(touched_row(queue_id, message.sequence, touched[message.sequence]))
                else:
                    page.untouched |= bit
        queue.visible_again += sequences_of(received & page.untouched, page.first)
        self._target.executemany(sql.PUT_TOUCHED, rows)
        self._target.execute(sql.PUT_PAGE, page.header(queue_id))
        self._target.execute(sql.PUT_CONTENTS, blob_row(queue_id, page.first, contents))
        kind = kind_of(queue.row.attributes)
        groups = encode_groups(run, needs_groups=kind.needs_group)
        if groups:
            self._target.execute(sql.PUT_GROUPS, blob_row(queue_id, page.first, groups))
        delays = encode_delays(run)
        if delays:
            self._target.execute(sql.PUT_DELAYS, blob_row(queue_id, page.first, delays))
            self._delay_pages += 1
        if kind.has_priorities:
            priorities = TableQueue(queue.row).priorities_of(run)
            for packed in queue.priorities.get(page.first, ()):
                priorities.update(living_priorities(page, packed))
            packed = encode_priorities(page.first, priorities, are_all=True)
            self._target.execute(sql.PUT_PRIORITIES, priorities_row(queue_id, page.first, AS_STORED, packed))


class _Rows:
    """The readable rows of a table: from its beginning up to the damage, and from its end back to it.

    key_columns: how many columns are the key; they must be the first ones. is_whole: False if damage was found.
    """

    def __init__(self, source: sqlite3.Connection, table: str, key_columns: int, columns: str = "*") -> None:
        self._source = source
        names = [row[1] for row in self._ask(f"PRAGMA table_info({table})")][:key_columns]
        self._up = f"SELECT {columns} FROM {table} ORDER BY {', '.join(names)}"
        self._down = f"SELECT {columns} FROM {table} ORDER BY {', '.join(f'{name} DESC' for name in names)}"
        self._key_columns = key_columns
        self.is_whole = bool(names)

    def __iter__(self) -> Iterator[Row]:
        """Yield each key once, even if a damaged tree leads to it twice."""
        seen: set[Row] = set()
        for query in (self._up, self._down):
            for row in self._ask(query):
                key = row[: self._key_columns]
                if key in seen:
                    if query is self._down:
                        break
                    continue
                seen.add(key)
                yield row
            if self.is_whole:
                break

    def _ask(self, query: str) -> Iterator[Row]:
        try:
            yield from self._source.execute(query)
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # SQLite may quote damaged bytes in its error text
            self.is_whole = False


# --- checks that a row is undamaged: as it was written ---


def _fits(is_good: Callable[[Row], bool], row: Row) -> bool:
    try:
        return bool(is_good(row))
    except _BAD_VALUES:
        return False


def _is_checked(row: Row) -> bool:
    return bool(checked(row[0], row[1]) == row)


def _is_history(row: Row) -> bool:
    number, _, removed, recorded, crc = row
    return bool(crc32(recorded, crc32(removed, number & 0xFFFFFFFF)) == crc)


def _is_queue(row: Row) -> bool:
    read_queue(row)
    return True


def _is_page(row: Row) -> bool:
    read_page(row)
    return True


def _is_key(row: Row) -> bool:
    return type(row[0]) is int and type(row[1]) is int


def _is_contents(row: Row) -> bool:
    return bool(contents_crc(*row[:3]) == row[3])


def _is_priorities(row: Row) -> bool:
    return priorities_row(*row[:4]) == row


def _is_touched(row: Row) -> bool:
    return bool(checksum(row[:7]) == row[7])
