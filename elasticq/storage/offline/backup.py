"""Backup and restore: a state is written to one file, and a new data directory is made from such a file.

The file is a SQLite database. The table ``backup`` holds the member's id and term. Of a stopped server, the file holds
the rows, after every durable entry of the log was applied to them. In a cluster of one member, all these entries are
committed. Of a running member, the file is a snapshot.

A restored directory continues with a much higher term, and as another cluster. The original may have used ids after
the backup, and none of them may be used twice.
"""

import os
import shutil
import sqlite3
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from elasticq.engine.stored.mutations import ClusterRenamed, decode
from elasticq.node.outputs import Committed
from elasticq.replication.records import Entry, Vote, Voter
from elasticq.storage.directory import DataDirectory, sync_directory, sync_file
from elasticq.storage.errors import DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import check_all, flush
from elasticq.storage.sqlite import load, open_rows

TERMS_SKIPPED: Final = 4_096
_BUSY_BYTES: Final = 8 * 1_048_576


class _Label(NamedTuple):
    member_id: str
    term: int
    applied_index: int
    messages: int


class _Written(NamedTuple):
    """The result of ``_write``. ``told``: lines that say what the data directory had lost before."""

    label: _Label
    told: list[str]


def backup(path: Path, file: Path) -> str:
    """Write the data directory ``path`` to the new file ``file``; return a report for the operator.

    Raise DataError if ``file`` exists, or if the directory cannot be used; OSError if the file cannot be written.
    """
    directory = DataDirectory(path)
    try:
        partial = new_partial(file)
        label, told = _write(directory, partial)
    except sqlite3.Error as error:
        raise DataError(
            f"{file} could not be written from {path}: {error}. If the rows are damaged, 'elasticq repair DIR' "
            "salvages what can be read and says what is lost."
        ) from error
    finally:
        directory.close()
    _place(partial, file)
    return "\n".join([*told, _report(file, label)])


def new_partial(file: Path) -> Path:
    """Make the empty file that a backup is written to before it becomes ``file``. Raise DataError if ``file`` exists.

    Only the owner may read it. What an interrupted backup left is replaced.
    """
    if file.exists():
        raise DataError(f"{file} exists: a backup is only written to a new file")
    partial = file.with_name(file.name + ".partial")
    partial.unlink(missing_ok=True)
    partial.touch(0o600)
    return partial


def finish(snapshot: Path, file: Path, member_id: str, term: int) -> str:
    """Check a snapshot of a running member and make it the new backup ``file``; return a report for the operator.

    term: the newest that the member knows. Raise DataError if the snapshot cannot be restored.
    """
    label = _Label(member_id, term, *_checked(snapshot))
    _put_label(snapshot, label)
    _place(snapshot, file)
    return _report(file, label)


def verify(file: Path) -> str:
    """Read all of a backup; return a report for the operator. Raise DataError if it cannot be restored."""
    label = _label(file)
    index, messages = _checked(file)
    if (index, messages) != (label.applied_index, label.messages):
        raise DataError(f"{file} says that it is of index {label.applied_index}, but its rows are of index {index}")
    return f"{_report(file, label)}; all readable; from {label.member_id} in term {label.term}"


def _report(place: Path, label: _Label) -> str:
    return f"{place} holds everything up to index {label.applied_index}; messages: {label.messages}"


def _place(partial: Path, file: Path) -> None:
    sync_file(partial)
    partial.rename(file)
    sync_directory(file.parent)


def _checked(file: Path) -> tuple[int, int]:
    """Read every row of a database; return its index and its number of messages. Raise DataError if that fails."""
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    try:
        index = check_all(connection, file).index
        (messages,) = connection.execute("SELECT coalesce(sum(messages), 0) FROM queues").fetchone()
        return index, messages
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    except AssertionError as error:
        raise DataError(f"{file} cannot be read: it contradicts itself") from error
    finally:
        connection.close()


def restore(file: Path, path: Path) -> str:
    """Make the data directory ``path`` from ``file``; return a report for the operator.

    Raise DataError if ``path`` is not empty or ``file`` is no backup; OSError if the directory cannot be written.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path} exists and is not empty: a backup is only restored to a new directory")
    label = _label(file)
    building = path.with_name(path.name + ".restoring")
    if building.exists():
        raise DataError(f"{building} is left over from a restore that was interrupted: remove it first")
    directory = DataDirectory(building, label.member_id.rpartition("-")[0])
    try:
        _fill(directory, file, label)
        building.rename(path)  # so a restore that is interrupted leaves no directory at ``path``
        sync_directory(path.parent)
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be restored: {error}") from error
    finally:
        directory.close()
    return _report(path, label)


def _write(directory: DataDirectory, file: Path) -> _Written:
    """Write the rows and the log to ``file``. Every row is read and checked, so the backup can be restored."""
    files = DirectoryFiles(directory.log)
    rows = Rows()
    loaded = load(directory, SegmentLog(files), rows)
    files.close()
    deque(loaded.rows, 0)  # Rows must have loaded all rows before it takes more
    durable = loaded.durable
    connection = open_rows(directory)
    try:
        check_all(connection, directory.rows)
        _take(connection, rows, [entry for entry in durable.entries if entry.index > durable.applied_index])
        (messages,) = connection.execute("SELECT coalesce(sum(messages), 0) FROM queues").fetchone()
        connection.execute("VACUUM INTO ?", (str(file),))
    finally:
        connection.close()
    index = durable.entries[-1].index if durable.entries else durable.base.index
    label = _Label(directory.member_id, durable.vote.term, index, messages)
    _put_label(file, label)
    return _Written(label, loaded.told)


def _take(connection: sqlite3.Connection, rows: Rows, entries: list[Entry]) -> None:
    """Apply ``entries``, which follow the rows, to the rows in the database."""
    for entry in entries:
        rows.take(Committed(entry.index, entry.term, entry.time_ms, decode(entry.payload), entry.voters))
        if rows.pending_bytes >= _BUSY_BYTES:
            flush(connection, rows)
    flush(connection, rows)


def _put_label(file: Path, label: _Label) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.execute("CREATE TABLE backup (member_id TEXT, term INTEGER, applied INTEGER, messages INTEGER)")
        connection.execute("INSERT INTO backup VALUES (?, ?, ?, ?)", label)
    finally:
        connection.close()


def _label(file: Path) -> _Label:
    if not file.is_file():
        raise DataError(f"{file} is not there")
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise DataError(f"{file} is damaged: {verdict}")
        return _Label(*connection.execute("SELECT member_id, term, applied, messages FROM backup").fetchone())
    except sqlite3.Error as error:
        raise DataError(f"{file} is no backup of elasticq: {error}") from error
    finally:
        connection.close()


def _fill(directory: DataDirectory, file: Path, label: _Label) -> None:
    shutil.copyfile(file, directory.rows)
    connection = sqlite3.connect(directory.rows, isolation_level=None)
    try:
        connection.execute("DROP TABLE backup")
    finally:
        connection.close()
    connection = open_rows(directory)
    try:
        rows = Rows()
        base, mutations = rows.load(connection)
        deque(mutations, 0)  # this checks all checksums
        if base.index:  # the old cluster may be alive, so this member becomes a cluster of its own
            renamed = ClusterRenamed(os.urandom(16).hex())
            rows.take_part(Committed(base.index, base.term, base.time_ms, [renamed], (Voter(directory.member_id),)))
            flush(connection, rows)
    finally:
        connection.close()
    sync_file(directory.rows)
    files = DirectoryFiles(directory.log)
    log = SegmentLog(files)
    log.load()
    log.append([Vote(label.term + TERMS_SKIPPED, None)])
    log.sync()
    files.close()
