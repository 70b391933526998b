"""The SQLite database of the rows: it runs the statements of Rows through aiosqlite.

One connection writes and one reads. Each call of aiosqlite costs a change of thread, so a call gets a whole batch. A
flush begins when enough is pending, or one second after the first change. Only one flush runs at a time.

Each batch is checkpointed before the next one is written, so the WAL never grows beyond one batch. On a full disk the
transaction is rolled back, and tried again each second. Meanwhile, free pages are released to the file system; else
they are kept for new messages. A read that finds no space for SQLite's own files waits for it.

If contents do not fit their checksum, their page is lost. Its bytes are copied to a file, its living messages are
reported, and everything else continues. If SQLite's own structure is damaged, the rows are neither written nor read
any more, and must be replaced by new ones.

A snapshot is read in one transaction, in a thread with its own connection. Until it ends, the WAL cannot be emptied
and grows. On a full disk the snapshot is given up.
"""

import asyncio
import sqlite3
from asyncio import AbstractEventLoop, Task, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

import aiosqlite

from elasticq.engine.stored.mutations import MessageStored
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Base
from elasticq.storage.errors import Damaged
from elasticq.storage.interface import Damage, OnDamaged, OnFetched, OnStored
from elasticq.storage.rows import schema
from elasticq.storage.rows.batches import Batch
from elasticq.storage.rows.pages import runs_of
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.statements import fetches
from elasticq.storage.snapshot import SnapshotRefused, vacuum_into
from elasticq.storage.writer import OnFailure

FLUSH_MESSAGES: Final = 8_192
FLUSH_BYTES: Final = 8 * 1_048_576
FLUSH_S: Final = 1.0
RECLAIM_S: Final = 0.1
VACUUM_PAGES: Final = 500  # freed in a second on a full disk
ATTEMPTS_MAX: Final = 50  # flushes that a snapshot waits for, until the rows reach its index
WATCH_EVERY_S: Final = 3_600.0  # between two checks of all rows
WATCH_STEP_S: Final = 1.0  # between two steps of a check, each of about a megabyte of pages
_Value = TypeVar("_Value")
_SHARED_MEMORY_FULL: Final = sqlite3.SQLITE_IOERR_SHMSIZE


class RowDatabase:
    """The rows in SQLite. All methods are called in the loop's thread."""

    def __init__(
        self,
        path: Path,
        rows: Rows,
        loop: AbstractEventLoop,
        *,
        on_failure: OnFailure,
        on_full: Callable[[], None],
        on_damaged: OnDamaged,
        aside: Path,
    ) -> None:
        """Open nothing yet. ``aside``: the directory to which the bytes of damaged contents are copied."""
        self._path = path
        self._aside = aside
        self._on_damaged = on_damaged
        self._is_damaged = False
        self._damages = 0  # how many were found
        self._rows = rows
        self._loop = loop
        self._on_failure = on_failure
        self._on_full = on_full
        self._on_stored: OnStored = lambda index: None
        self._write_connection: aiosqlite.Connection | None = None
        self._read_connection: aiosqlite.Connection | None = None
        self._connecting = asyncio.Lock()
        self._timer: TimerHandle | None = None
        self._flushing: Task[None] | None = None
        self._fetching: Task[None] | None = None
        self._fetches: deque[tuple[Fetch, OnFetched]] = deque()
        self._copying: dict[asyncio.Future[Any], _Aside] = {}
        self._checking: set[Task[None]] = set()
        self._is_full = False
        self._needs_checkpoint = False  # the WAL could not be emptied, so no batch may be written
        self._closed = False

    def set_full(self, is_full: bool) -> None:
        """Set whether the disk is full. If it is, give up snapshots, and release free pages to the file system."""
        self._is_full = is_full
        if is_full:
            self._give_up_copies()
        if is_full and self._timer is None:
            self._timer = self._loop.call_later(RECLAIM_S, self._flush)

    def take(self, committed: list[Committed], on_stored: OnStored) -> None:
        if self._closed or self._is_damaged:
            return
        self._on_stored = on_stored
        for each in committed:
            self._rows.take(each)
        if self._is_due() and not self._is_full:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(FLUSH_S, self._flush)

    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        if self._closed or self._is_damaged:
            return
        self._fetches.append((fetch, on_fetched))
        if self._fetching is None:
            self._fetching = self._loop.create_task(self._guarded(self._fetch_all()))

    async def close(self, *, may_write: bool) -> None:
        """Write what is pending, if ``may_write``, and close. No callback comes any more."""
        self._closed = True
        self._cancel_timer()
        self._fetches.clear()
        self._give_up_copies()
        for task in self._checking:
            task.cancel()
        under_way: list[asyncio.Future[Any]] = [task for task in (self._flushing, self._fetching) if task is not None]
        under_way += [*self._copying, *self._checking]  # these end soon
        if under_way:
            await asyncio.wait(under_way)
        if may_write and self._rows.pending_index and not (self._rows.is_loading or self._is_damaged):
            await self._guarded(self._flush_all())
        for connection in (self._write_connection, self._read_connection):
            if connection is not None:
                await connection.close()

    # --- writing --------------------------------------------------------------------

    def _is_due(self) -> bool:
        return self._rows.pending_messages >= FLUSH_MESSAGES or self._rows.pending_bytes >= FLUSH_BYTES

    def _flush(self) -> None:
        self._cancel_timer()
        if self._flushing is None and not (self._closed or self._is_damaged):
            self._flushing = self._loop.create_task(self._guarded(self._flush_all()))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _flush_all(self) -> None:
        """Write what is pending, and schedule another flush for what is left."""
        try:
            delay_s = await self._write_batches()
        finally:
            self._flushing = None
        if delay_s is not None and self._timer is None and not (self._closed or self._is_damaged):
            self._timer = self._loop.call_later(delay_s, self._flush)

    async def _write_batches(self) -> float | None:
        """Write batches until too little is pending for another one.

        Return in how many seconds to continue; None to continue with the next ``take``.
        """
        if (self._is_full or self._needs_checkpoint) and not await self._give_space_back():
            return FLUSH_S
        while (batch := self._rows.begin()) is not None:
            if not await self._write(batch):
                return FLUSH_S
            if not self._closed:
                self._on_stored(batch.index)
            if not await self._make_room(batch.after):
                return FLUSH_S
            if not self._is_due():
                # If nothing is pending, there may still be space to reclaim, in small steps with pauses.
                return FLUSH_S if self._rows.pending_index > batch.index else RECLAIM_S
        return FLUSH_S if self._is_full else None

    async def _write(self, batch: Batch) -> bool:
        """Write a batch; return False if nothing was written, because the disk is full or the file is damaged."""
        try:
            await self._transact(batch)
        except sqlite3.Error as error:
            self._rows.failed()
            self._met_full_disk(error)
            return False
        self._rows.done()
        self._needs_checkpoint = True
        return True

    def _met_full_disk(self, error: sqlite3.Error) -> None:
        if is_damage(error):
            self._met_damage(error)
            return
        if not is_disk_full(error):
            raise error
        self._is_full = True
        self._give_up_copies()
        self._on_full()

    async def _give_space_back(self) -> bool:
        """Empty the WAL into the database, then cut free pages off the file; return False if that failed."""
        return await self._make_room([]) and await self._make_room([f"PRAGMA incremental_vacuum({VACUUM_PAGES})"])

    async def _make_room(self, statements: list[str]) -> bool:
        """Run ``statements`` and empty the WAL; return False if it could not be emptied.

        Then no batch may be written until it can. The WAL file is cut only on a full disk. Else SQLite overwrites it
        from its beginning.
        """
        try:
            connection = await self._writing()
            for sql in statements:
                await connection.executescript(sql)  # unlike execute it runs a PRAGMA to its end
            mode = "TRUNCATE" if self._is_full else "PASSIVE"
            ((is_busy, written, moved),) = await connection.execute_fetchall(f"PRAGMA wal_checkpoint({mode})")
        except sqlite3.Error as error:
            self._met_full_disk(error)
            return False
        self._needs_checkpoint = (bool(is_busy) or moved < written) and not self._copying  # a fetch keeps it busy
        return not self._needs_checkpoint

    async def _writing(self) -> aiosqlite.Connection:
        if self._write_connection is None:
            self._write_connection = await self._connect()
            await self._write_connection.execute_fetchall("PRAGMA wal_autocheckpoint = 0")
        return self._write_connection

    async def _transact(self, batch: Batch) -> None:
        connection = await self._writing()
        await connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, parameters in batch.statements:
                await connection.executemany(sql, parameters)
            await connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                await connection.execute("ROLLBACK")
            raise

    # --- checking -------------------------------------------------------------------

    def watch(self) -> None:
        """Check all rows slowly, again and again, until ``close``."""
        self._start_check(self._watch())

    def check(self, on_checked: Callable[[bool], None]) -> None:
        """Check all rows once, without a pause, and report damage as ``fetch`` does.

        ``on_checked`` is called with True if there is no damage.
        """
        self._start_check(self._check_for(on_checked))

    def _start_check(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._checking.add(task)
        task.add_done_callback(self._check_ended)

    def _check_ended(self, task: Task[None]) -> None:
        self._checking.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._on_failure(failure)

    async def _watch(self) -> None:
        while not self._is_damaged:
            await asyncio.sleep(WATCH_EVERY_S)
            await self._check_all(pause_s=WATCH_STEP_S)

    async def _check_for(self, on_checked: Callable[[bool], None]) -> None:
        known = self._damages
        await self._check_all(pause_s=0)
        if not self._closed:
            on_checked(self._damages == known and not self._rows.has_holes)

    async def _check_all(self, *, pause_s: float) -> None:
        for queue_id in self._rows.queue_ids:
            first = -1
            while (firsts := self._rows.pages_behind(queue_id, first)) and not self._is_damaged:
                await self._contents(queue_id, firsts)
                first = firsts[-1]
                await asyncio.sleep(pause_s)
        if not (self._closed or self._is_damaged):
            await self._check_structure()

    async def _check_structure(self) -> None:
        """Check the structure of the file with SQLite's quick_check."""
        try:
            verdict = await self._read_aside(_structure)
        except SnapshotRefused:
            return
        except sqlite3.Error as error:
            if is_damage(error):
                self._met_damage(error)
            return  # the check was interrupted or ran out of memory; the next one may finish
        if verdict != "ok":
            self._met_damage(Damaged(self._path.name, 0, verdict))

    # --- damage ---------------------------------------------------------------------

    def _met_damage(self, error: Exception) -> None:
        """Stop reading and writing, and report damage of the file's structure: a write could destroy more."""
        if not self._is_damaged:
            self._is_damaged = True
            self._damages += 1
            self._cancel_timer()
            self._fetches.clear()
            self._give_up_copies()
            if not self._closed:
                self._on_damaged(Damage(f"{self._path} is damaged: {error}"))

    async def _read_singly(self, queue_id: int, firsts: list[int]) -> list[MessageStored]:
        """Return the messages of the pages, read one by one; skip and report damaged contents.

        Raise Damaged if a page has no contents, and sqlite3.Error if SQLite cannot read.
        """
        contents: list[MessageStored] = []
        for first in firsts:
            rows = await self._select(fetches(queue_id, [first]))
            living = self._rows.living_in(queue_id, first)
            if living and not rows:
                rows = await self._select(fetches(queue_id, [first]))  # its batch may have ended since the first query
                if not rows and self._rows.living_in(queue_id, first):
                    raise Damaged(self._path.name, 0, f"the contents of queue {queue_id} from {first} are missing")
            try:
                contents += self._rows.decode(rows)
            except Damaged as damaged:
                if not living:
                    continue
                self._damages += 1
                await asyncio.get_running_loop().run_in_executor(None, self._keep_aside, *rows[0][:3])
                name, what = self._rows.name_of(queue_id), f"{damaged.file}: {damaged.reason}"
                told = f"{what}: {len(living)} messages of queue {name}, sequences {runs_of(living)}."
                if not self._closed:
                    self._on_damaged(Damage(told, queue_id, living))
        return contents

    def _keep_aside(self, queue_id: int, first: int, contents: object) -> None:
        """Copy damaged contents to a file for people. Errors are ignored, as no code needs the file."""
        with suppress(OSError):
            self._aside.mkdir(mode=0o700, exist_ok=True)
            file = self._aside / f"contents-{queue_id}-{first}"
            file.touch(0o600)
            file.write_bytes(contents if isinstance(contents, bytes) else repr(contents).encode())

    # --- reading --------------------------------------------------------------------

    async def _fetch_all(self) -> None:
        try:
            while self._fetches:
                fetch, on_fetched = self._fetches.popleft()
                firsts = self._rows.pages_of(fetch.queue_id, fetch.sequences)
                contents = await self._contents(fetch.queue_id, firsts)
                if not (self._closed or self._is_damaged):
                    on_fetched(fetch, contents)
        finally:
            self._fetching = None

    async def _contents(self, queue_id: int, firsts: list[int]) -> list[MessageStored]:
        """Return the messages of the pages that begin at ``firsts``, without those that cannot be read."""
        try:
            rows = await self._select(fetches(queue_id, firsts))
            with suppress(Damaged):
                contents = self._rows.decode(rows)
                if len(rows) == len(firsts):
                    return contents
            return await self._read_singly(queue_id, firsts)
        except Damaged as damaged:
            self._met_damage(damaged)
        except sqlite3.Error as error:
            if is_damage(error):
                self._met_damage(error)
            elif not self._closed:
                raise
        return []

    async def _select(self, queries: list[tuple[str, tuple[int, ...]]]) -> list[tuple[Any, ...]]:
        """Return the rows that the queries find. Wait if the disk is full, as SQLite needs a file for shared memory."""
        while True:
            try:
                return await self._select_now(queries)
            except sqlite3.Error as error:
                if self._closed or not is_disk_full(error):
                    raise
                self._met_full_disk(error)
            await asyncio.sleep(FLUSH_S)

    async def _select_now(self, queries: list[tuple[str, tuple[int, ...]]]) -> list[tuple[Any, ...]]:
        async with self._connecting:  # a fetch and a check may begin at the same time
            if self._read_connection is None:
                self._read_connection = await self._connect()
        found: list[tuple[Any, ...]] = []
        for sql, parameters in queries:
            found += map(tuple, await self._read_connection.execute_fetchall(sql, parameters))
        return found

    # --- copying --------------------------------------------------------------------

    @property
    def stored_index(self) -> int:
        """Return the index up to which the rows are durable."""
        return self._rows.stored_index

    async def copy(self, file: Path, index: int) -> Base:
        """Write the rows as of ``index`` or later to a new file; return their base.

        Raise SnapshotRefused if that is not possible now.
        """
        if self._is_damaged or self._rows.has_holes:
            raise SnapshotRefused("the rows of this member are damaged")
        await self._reach(index)
        try:
            return await self._read_aside(lambda connection: vacuum_into(connection, file))
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.Error) and is_damage(error):
                self._met_damage(error)
            raise SnapshotRefused(f"the rows could not be copied: {error}") from error

    async def _read_aside(self, work: Callable[[sqlite3.Connection], _Value]) -> _Value:
        """Run ``work`` in a thread with its own connection. Raise SnapshotRefused if it is given up before it begins.

        Raise sqlite3.OperationalError if it is given up later.
        """
        aside = _Aside(self._path)
        reading = self._loop.run_in_executor(None, aside.run, work)
        self._copying[reading] = aside
        reading.add_done_callback(self._have_read)
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            aside.give_up()
            raise

    def _have_read(self, reading: asyncio.Future[Any]) -> None:
        del self._copying[reading]
        reading.exception()  # marks the error as seen, as the caller may be gone

    def _give_up_copies(self) -> None:
        for aside in self._copying.values():
            aside.give_up()

    async def _reach(self, index: int) -> None:
        """Write until the rows are durable up to ``index``. Raise SnapshotRefused if that is not possible now.

        The entries up to ``index`` must have been taken before.
        """
        for _ in range(ATTEMPTS_MAX):
            if self._rows.stored_index >= index:
                return
            if self._closed or self._is_full or self._rows.pending_index < index:
                break
            self._flush()
            if self._flushing is not None:
                await asyncio.wait([self._flushing])
            if self._rows.stored_index < index:
                await asyncio.sleep(RECLAIM_S)  # a read keeps the WAL busy
        raise SnapshotRefused(f"index {index} cannot be stored now, the rows are at {self._rows.stored_index}")

    # --- both -----------------------------------------------------------------------

    async def _connect(self) -> aiosqlite.Connection:
        connection = await aiosqlite.connect(self._path, isolation_level=None)
        try:
            for statement in schema.PRAGMAS:
                await connection.execute_fetchall(statement)
        except BaseException:
            await connection.close()  # ends its thread
            raise
        return connection

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as failure:  # also an error that the node raised in a callback: it ends the member
            self._on_failure(failure)


class _Aside:
    """A connection of its own, for one long read in a thread."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._is_given_up = False
        self._lock = Lock()  # a closed connection must not be interrupted

    def run(self, work: Callable[[sqlite3.Connection], _Value]) -> _Value:
        try:
            if self._is_given_up:
                raise SnapshotRefused("the copy was given up")
            return work(self._connection)
        finally:
            with self._lock:
                self._is_given_up = True
                self._connection.close()

    def give_up(self) -> None:
        with self._lock:
            if not self._is_given_up:
                self._is_given_up = True
                self._connection.interrupt()


def _structure(connection: sqlite3.Connection) -> str:
    verdict: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return verdict.splitlines()[-1]


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error means that bytes of the file changed or cannot be read."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or code == sqlite3.SQLITE_IOERR_READ


def is_disk_full(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL or code == _SHARED_MEMORY_FULL
