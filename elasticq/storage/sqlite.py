"""The storage of a data directory: a thread writes the log in segments, and the rows in SQLite follow it.

A record is durable when the log has it. The rows follow in batches. Each batch is one transaction, which also stores
the index up to which the rows are complete. A crash between the two loses nothing, because the start reads the log
from that index on.
"""

import asyncio
import sqlite3
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from pathlib import Path

from elasticq.engine.stored.mutations import Mutation
from elasticq.model.histogram import Histogram
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Base, Record, Vote
from elasticq.storage import install
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import Damaged, DataError, WrongFormat
from elasticq.storage.files import DirectoryFiles, Files
from elasticq.storage.heal import NobodyElse, heal
from elasticq.storage.interface import Damage, Loaded, OnDamaged, OnFetched, OnStored, OnSynced, Storage
from elasticq.storage.log.acknowledged_end import End, LogEnd, lower
from elasticq.storage.log.reserve import Reserve
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rowdb import RowDatabase, is_disk_full
from elasticq.storage.rows import schema
from elasticq.storage.rows.reading import damage_found
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import Snapshot, SnapshotRefused, Snapshots, check
from elasticq.storage.start import compose, judge_end, others_of
from elasticq.storage.writer import DISK_FULL_ERRORS, SYNC_BOUNDS_S, Durability, LogWriter, OnFailure, OnFull


class SqliteStorage(Storage):
    """The log and rows of a data directory.

    on_failure: called if data cannot be trusted; the process must end. on_full: called with a reason if the disk is
    full, and with None if it has space again. on_damaged: called if rows are damaged; without it, that is a failure.
    """

    volatile = False

    def __init__(
        self,
        directory: DataDirectory,
        loop: AbstractEventLoop,
        *,
        durability: Durability = "fsync",
        reserve_bytes: int = 64 * 1_048_576,
        on_failure: OnFailure,
        on_full: OnFull,
        on_damaged: OnDamaged | None = None,
        files: Files | None = None,
    ) -> None:
        self._directory = directory
        self._files = files or DirectoryFiles(directory.log)
        self._loop = loop
        self._durability: Durability = durability
        self._is_lazy = durability != "fsync"
        self._reserve = Reserve(directory.reserve, reserve_bytes)
        self._on_failure = on_failure
        self._on_full = on_full
        self._on_damaged = on_damaged or self._fail_damaged
        self._failed = False
        self._snapshots = Snapshots(directory.snapshots, self._copy)
        self._sync_times = Histogram(SYNC_BOUNDS_S)
        self._assemble()

    def _assemble(self) -> None:
        """Make a log and rows, to be loaded next: at the start, and after an install."""
        self._log = SegmentLog(self._files, lazy_sync=self._is_lazy)
        self._log_end = LogEnd(self._directory.log_end)
        self._rows = Rows()
        self._writer = LogWriter(
            self._log,
            self._log_end,
            self._reserve,
            self._loop,
            durability=self._durability,
            on_failure=self._fail,
            on_full=self._tell_full,
            sync_times=self._sync_times,
        )
        self._database = RowDatabase(
            self._directory.rows,
            self._rows,
            self._loop,
            on_failure=self._fail,
            on_full=self._writer.make_space,
            on_damaged=self._on_damaged,
            aside=self._directory.damaged,
        )

    def load(self) -> Loaded:
        self._snapshots.clean()
        return self._load()

    def _load(self) -> Loaded:
        """Load the data. On a full disk, remove the reserve first, as opening takes a little space."""
        try:
            loaded = load(self._directory, self._log, self._rows)
        except DiskFull:
            if not self._reserve.give_up():
                raise
            loaded = load(self._directory, self._log, self._rows)
        self._directory.remember_lazy_sync(self._is_lazy)  # ``load`` synced all earlier frames
        self._writer.start()
        self._database.watch()
        return loaded

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        self._writer.append(records, token, on_synced)

    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        self._database.take(committed, on_stored)

    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        self._database.fetch(fetch, on_fetched)

    def check(self, on_checked: Callable[[bool], None]) -> None:
        self._database.check(on_checked)

    def forget_log(self, index: int) -> None:
        self._writer.drop_through(index)

    @property
    def slow_sync_ms(self) -> int:
        return int(self._writer.slow_sync_s * 1_000)

    @property
    def sync_times(self) -> Histogram:
        return self._sync_times

    async def snapshot(self, index: int) -> Snapshot:
        return await self._snapshots.open(index, self._database.stored_index)

    def release(self, snapshot: Snapshot) -> None:
        self._snapshots.release(snapshot)

    async def _copy(self, file: Path, index: int) -> Base:
        return await self._database.copy(file, index)

    async def install(self, path: Path, is_wanted: Callable[[], bool]) -> Loaded:
        """Install a snapshot, as ``Storage.install`` describes. An error after the log is closed ends the member."""
        try:
            await asyncio.to_thread(check, path)
            await asyncio.to_thread(install.stage, self._directory, path)
        except OSError as error:
            raise DataError(f"{path} cannot be installed: {error}") from error
        if not is_wanted():
            install.clean(self._directory)
            raise SnapshotRefused("the log has caught up: the snapshot is not needed any more")
        try:
            await self._quiesce()
            install.commit(self._directory)
            self._assemble()
            return self._load()
        except (OSError, DataError) as error:
            self._fail(error)
            raise DataError(f"{path} could not be installed: {error}") from error

    def salvage(self, damaged: Damaged) -> Loaded:
        if damaged.file != schema.FILE:
            raise damaged
        self._writer.close()
        log = SegmentLog(self._files)
        try:
            told = heal(self._directory, log, log.load(was_lazy=self._directory.format.lazy_sync), among_others=True)
        except NobodyElse:
            raise damaged from None
        return self._load_healed([f"The rows are damaged: {damaged.reason}", *told])

    async def heal(self) -> Loaded:
        try:
            await self._quiesce()
            log = SegmentLog(self._files)
            image = log.load(was_lazy=self._is_lazy)
            return self._load_healed(await asyncio.to_thread(heal, self._directory, log, image))
        except (OSError, DataError) as error:
            self._fail(error)
            raise DataError(f"the rows could not be replaced: {error}") from error

    def _load_healed(self, told: list[str]) -> Loaded:
        self._assemble()
        loaded = self._load()
        loaded.told[:0] = told
        return loaded

    async def _quiesce(self) -> None:
        """Make what was appended durable and close the files. No callback comes any more."""
        self._writer.end()
        await self._database.close(may_write=False)
        await asyncio.to_thread(self._writer.close)
        self._log_end.close()

    def close(self) -> None:
        """Make the log durable and close it. The caller must call ``aclose`` next."""
        self._writer.close()

    async def aclose(self) -> None:
        """Write the pending rows, unless the storage failed or the disk is full, and release the directory."""
        self._writer.close()
        await self._database.close(may_write=not self._failed)
        self._snapshots.close()
        self._log_end.close()
        if isinstance(self._files, DirectoryFiles):
            self._files.close()
        self._directory.close()

    def _tell_full(self, reason: str | None) -> None:
        self._database.set_full(reason is not None)
        self._on_full(reason)

    def _fail_damaged(self, damage: Damage) -> None:
        self._fail(DataError(damage.told))

    def _fail(self, failure: BaseException) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(failure)


class DiskFull(DataError):
    """The disk has no space to open the data directory."""


def load(directory: DataDirectory, log: SegmentLog, rows: Rows) -> Loaded:
    """Read the log and the rows, and finish an install that was interrupted. Raise DataError if they cannot be used.

    The iterator ``rows`` of the result keeps the database open until it is read to its end.
    """
    end = LogEnd(directory.log_end).read()
    try:
        image = log.load(was_lazy=directory.format.lazy_sync)
        if directory.new_rows.exists():
            image, end = install.finish(directory, log, image), None
        else:
            install.clean(directory)
    except OSError as error:
        kind = DiskFull if error.errno in DISK_FULL_ERRORS else DataError
        raise kind(f"{directory.log} cannot be read: {error}") from error
    connection = open_rows(directory)
    try:
        applied, mutations = rows.load(connection)
        others = others_of(directory.member_id, image.entries, applied)
        was_lazy = directory.format.lazy_sync
        told = judge_end(image, end, applied, others=others, was_lazy=was_lazy, torn_bytes=log.torn_bytes)
        vote = image.vote
        if end is not None and end.term > vote.term:
            vote = Vote(end.term, None)  # clients got ids of that term, which must not be used twice
            log.append([vote])
            log.sync()
        durable = compose(vote, image.entries, applied)
        if not others:
            rows.accept_holes()
        durable.is_whole = not rows.has_holes
        durable.was_removed = directory.was_removed
        if 0 < image.last_index < applied.index:
            lower(directory.log_end, End(0, vote.term))
            log.reset(vote)  # the rows are ahead of the log, so its next entry is not the one after its end
    except BaseException:
        connection.close()
        raise
    return Loaded(durable, _closing(connection, mutations), told)


def open_rows(directory: DataDirectory) -> sqlite3.Connection:
    """Open the database and migrate it to this version's schema. Raise DataError if that fails.

    A newer format is treated as damage: format.json, which was read before, would have a newer format as well.
    """
    if not directory.rows.exists():
        _make_file(directory.rows)
    connection = sqlite3.connect(directory.rows, isolation_level=None)
    try:
        with damage_found("it cannot be opened"):
            schema.prepare(connection)
        directory.sync()
    except WrongFormat as error:
        connection.close()
        raise Damaged(directory.rows.name, schema.FORMAT_AT, str(error)) from error
    except sqlite3.Error as error:
        connection.close()
        if is_disk_full(error):
            raise DiskFull(f"{directory.rows} cannot be opened: {error}") from error
        raise DataError(
            f"{directory.rows} cannot be read: {error}. Nothing was changed. Restore a backup, or run "
            "'elasticq repair DIR': it salvages what can be read and says what is lost."
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner may read. Raise DataError if that fails."""
    try:
        path.touch(0o600)
    except OSError as error:
        kind = DiskFull if error.errno in DISK_FULL_ERRORS else DataError
        raise kind(f"{path} cannot be made: {error}") from error


def _closing(connection: sqlite3.Connection, mutations: Iterator[Mutation]) -> Iterator[Mutation]:
    try:
        yield from mutations
    finally:
        connection.close()
