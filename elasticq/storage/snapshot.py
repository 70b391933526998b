"""Snapshots: immutable files, each with a member's committed state at one index, for members that are too far behind.

Every caller gets the same file, as long as it is not too old. A file belongs to this process. It is removed when its
place is needed and nobody reads it, at the end of the process, and at the next start.
"""

import os
import sqlite3
from asyncio import Lock
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from elasticq.engine.stored.mutations import Mutation
from elasticq.node.outputs import Committed
from elasticq.replication.records import Base
from elasticq.storage.directory import sync_file
from elasticq.storage.errors import Damaged, DataError
from elasticq.storage.rows import schema
from elasticq.storage.rows.reading import damage_found, read_base
from elasticq.storage.rows.rows import Rows

FILES_MAX: Final = 2
STALE_ENTRIES: Final = 10_000  # a file that is further behind is replaced by a new one, if FILES_MAX allows it

Make = Callable[[Path, int], Awaitable[Base]]
"""A function that writes the state at the given index or a later one to a new file, and returns its base.

It raises DataError if it cannot.
"""


class SnapshotRefused(DataError):
    """A snapshot cannot be made or used now. Later, or at another member, it may work."""


class Snapshot(Struct, frozen=True):
    """One snapshot file. It stays unchanged until it is released. No other snapshot ever has its ``id``."""

    path: Path
    id: str
    index: int
    term: int
    size_bytes: int


class Snapshots:
    """The snapshot files of one directory, and how many callers use each."""

    def __init__(self, directory: Path, make: Make) -> None:
        self._directory = directory
        self._make = make
        self._users: dict[str, int] = {}
        self._kept: list[Snapshot] = []
        self._making = Lock()

    def clean(self) -> None:
        """Remove the files of earlier processes."""
        if self._directory.exists():
            for path in self._directory.iterdir():
                path.unlink()

    async def open(self, index: int, newest_index: int) -> Snapshot:
        """Return a snapshot at ``index`` or above, for the caller to ``release``.

        ``newest_index``: the index of the current state. Raise DataError if there is no snapshot and none can be made.
        """
        async with self._making:
            snapshot = self._find(index, newest_index - STALE_ENTRIES)
            if snapshot is None and self._make_room():
                snapshot = await self._make_one(index)
            if snapshot is None:
                snapshot = self._find(index, 0)  # an old file is better than none
            if snapshot is None:
                raise SnapshotRefused(f"{FILES_MAX} snapshots are in use, and none of them reaches index {index}")
            self._users[snapshot.id] += 1
            return snapshot

    def release(self, snapshot: Snapshot) -> None:
        """Count one reader less. Keep the file, because ``open`` may return it again."""
        assert self._users[snapshot.id] > 0
        self._users[snapshot.id] -= 1

    def close(self) -> None:
        """Remove all files, even if they are in use, as the process ends."""
        for snapshot in self._kept:
            snapshot.path.unlink(missing_ok=True)
        self._kept.clear()

    def _find(self, index: int, fresh_index: int) -> Snapshot | None:
        fit = [kept for kept in self._kept if kept.index >= max(index, fresh_index)]
        return max(fit, key=lambda kept: kept.index, default=None)

    def _make_room(self) -> bool:
        while len(self._kept) >= FILES_MAX:
            unused = next((kept for kept in self._kept if not self._users[kept.id]), None)
            if unused is None:
                return False
            self._kept.remove(unused)
            del self._users[unused.id]
            unused.path.unlink(missing_ok=True)
        return True

    async def _make_one(self, index: int) -> Snapshot:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        name = os.urandom(8).hex()
        partial, path = self._directory / f"{name}.partial", self._directory / f"{name}.db"
        try:
            base = await self._make(partial, index)
            partial.rename(path)
            size_bytes = path.stat().st_size
        except OSError as error:
            raise SnapshotRefused(f"a snapshot could not be written: {error}") from error
        finally:
            partial.unlink(missing_ok=True)
        assert base.index >= index
        snapshot = Snapshot(path, f"{base.index}-{name}", base.index, base.term, size_bytes)
        self._kept.append(snapshot)
        self._users[snapshot.id] = 0
        return snapshot


def vacuum_into(connection: sqlite3.Connection, file: Path) -> Base:
    """Write the current content of the database to a new durable file; return its base.

    The call blocks. Other connections may write to the database meanwhile.
    """
    file.touch(0o600)  # only the owner may read messages
    connection.execute("VACUUM INTO ?", (str(file),))
    sync_file(file)
    with closing(read_only(file)) as copy:
        return read_base(copy)


def check(file: Path) -> Base:
    """Read all of a snapshot; return its base. Raise DataError if it cannot be installed. The call blocks."""
    if not file.is_file():
        raise DataError(f"{file} is not there")
    try:
        with closing(read_only(file)) as connection:
            version = schema.format_of(connection, file)
            if version < schema.FORMAT:
                raise DataError(f"{file} has format {version}: it is no snapshot of a member of this version")
            base = check_all(connection, file)
    except sqlite3.Error as error:
        raise DataError(f"{file} is no snapshot that can be read: {error}") from error
    except AssertionError as error:
        raise DataError(f"{file} is no snapshot that can be read: it contradicts itself") from error
    if not base.index:
        raise DataError(f"{file} holds nothing")
    return base


def check_all(connection: sqlite3.Connection, file: Path) -> Base:
    """Read every row and check all pages of the file; return the base of the rows.

    Raise DataError or sqlite3.Error if something cannot be read, and AssertionError if the file contradicts itself.
    """
    with damage_found("what its tables are"):  # SQLite raises other errors, or text that cannot be decoded
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise Damaged(file.name, 0, verdict.splitlines()[-1])
    rows = Rows()
    base, mutations = rows.load(connection)
    deque(mutations, 0)
    deque(rows.read_contents(connection), 0)
    return base


def base_of(file: Path) -> Base:
    """Return the base of a snapshot. Raise DataError if it cannot be read."""
    try:
        with closing(read_only(file)) as connection:
            return read_base(connection)
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be read: {error}") from error


def read_only(file: Path) -> sqlite3.Connection:
    """Open a database that does not change meanwhile."""
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)


def fill(file: Path, base: Base, parts: Iterable[list[Mutation]]) -> None:
    """Write a state to a new durable file. ``parts``: as of engine/views/dump.py. The call blocks."""
    file.touch(0o600)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        schema.prepare(connection)
        connection.execute("PRAGMA journal_mode = OFF")  # no roll-back: after a crash the file is discarded
        connection.execute("PRAGMA synchronous = OFF")
        rows = Rows()
        rows.take_part(Committed(base.index, base.term, base.time_ms, [], base.voters))
        for mutations in parts:
            rows.take_part(Committed(base.index, base.term, base.time_ms, mutations))
            flush(connection, rows)
        flush(connection, rows)
    sync_file(file)


def flush(connection: sqlite3.Connection, rows: Rows) -> None:
    """Write all pending rows to the database."""
    while (batch := rows.begin()) is not None:
        connection.execute("BEGIN IMMEDIATE")
        for sql, parameters in batch.statements:
            connection.executemany(sql, parameters)
        connection.execute("COMMIT")
        rows.done()
