"""The rows on a disk that forgets: whatever was not synced may be lost, by sectors, and no committed batch ever is.

A VFS notes each write, cut and sync of SQLite. Any prefix of these notes is a
moment at which the machine may stop; what a file then holds is what was synced
and any choice of the sectors written since.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from tests.storage.rows.test_rows import Model, created, loaded, stored

SECTOR_BYTES = 512
MAIN, WAL = "rows.db", "rows.db-wal"


class Recorder(apsw.VFS):
    """Passes on to the system's files and notes (what, file, bytes, offset) of the database and its WAL."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, bytes, int]] = []
        super().__init__("recorder", "")

    def xOpen(self, name: Any, flags: list[int]) -> "RecordedFile":
        return RecordedFile(self.notes, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.notes.append(("truncate", Path(filename).name, b"", 0))


class RecordedFile(apsw.VFSFile):
    def __init__(self, notes: list[tuple[str, str, bytes, int]], name: Any, flags: list[int]) -> None:
        self.notes = notes
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.file = Path(path).name if path else "temporary"
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.notes.append(("write", self.file, bytes(data), offset))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self.notes.append(("truncate", self.file, b"", newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.notes.append(("sync", self.file, b"", 0))


class Disk:
    """The files of a machine that may stop after any note."""

    def __init__(self) -> None:
        self.synced = {MAIN: b"", WAL: b""}
        self.unsynced: dict[str, list[tuple[bytes | None, int]]] = {MAIN: [], WAL: []}

    def note(self, what: str, file: str, data: bytes, offset: int) -> None:
        if file not in self.synced:
            return
        if what == "sync":
            self.synced[file] = self._written(file, None)
            self.unsynced[file] = []
        else:
            self.unsynced[file].append((data if what == "write" else None, offset))

    def after_crash(self, file: str, random: Random) -> bytes:
        return self._written(file, random)

    def _written(self, file: str, random: Random | None) -> bytes:
        """With ``random``: each sector may be missing, and each cut."""
        content = bytearray(self.synced[file])
        share = random.choice((0.0, 0.2, 0.8, 1.0)) if random is not None else 1.0
        for data, offset in self.unsynced[file]:
            if data is None:
                if random is None or random.random() < share:
                    del content[offset:]
                continue
            for at, part in sectors(data, offset):
                if random is None or random.random() < share:
                    content += bytes(max(0, at - len(content)))
                    content[at : at + len(part)] = part
        return bytes(content)


def sectors(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """The parts of a write, cut where sectors end."""
    at = offset
    while at < offset + len(data):
        end = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, offset + len(data))
        yield at, data[at - offset : end - offset]
        at = end


def history(random: Random) -> Iterator[list[m.Mutation]]:
    """Entries that use every table: sends, receives, removals, returns, a purge."""
    yield [m.ClusterFounded("c", b"k" * 16, 1), m.TookOver(1, "n", 1, 2), created()]
    for number in range(30):
        first = 1 + number * 60
        made: list[m.Mutation] = [stored(sequence, body="b" * 300) for sequence in range(first, first + 60)]
        made.append(m.InvocationRecorded(bytes([number]) * 16, number, 7, first))
        chosen = sorted(random.sample(range(1, first + 60), 20))
        made.append(m.MessagesReceived(7, number, number + 30, chosen, [number] * 20, [1] * 20, [number] * 20))
        made.append(m.VisibilityChanged(7, chosen[:5], [number + 90] * 5))
        made.append(m.MessagesRemoved(7, chosen[5:]))
        if number == 20:
            made.append(m.QueuePurged(7, first, number))
        yield made


def recorded(
    path: Path, random: Random
) -> tuple[list[tuple[str, str, bytes, int]], dict[int, Any], list[tuple[int, int]]]:
    """The notes of a run; the model at each index; (length of the notes, index) where a COMMIT had returned."""
    recorder, model, rows = Recorder(), Model(), Rows()
    connection = apsw.Connection(str(path), vfs="recorder")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # the shared memory of a WAL does not go through Python
    for pragma in schema.PRAGMAS:
        connection.execute(pragma)
    connection.execute("BEGIN IMMEDIATE")
    for migration in schema.MIGRATIONS:
        for statement in migration:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
    connection.execute("COMMIT")
    views: dict[int, Any] = {0: snapshot(model)}
    returned = [(len(recorder.notes), 0)]
    for index, mutations in enumerate(history(random), 1):
        for mutation in mutations:
            model.apply(mutation)
        rows.take(Committed(index, 1, index, mutations))
        views[index] = snapshot(model)
        batch = rows.begin()
        assert batch is not None
        connection.execute("BEGIN IMMEDIATE")
        for sql, parameters in batch.statements:
            connection.executemany(sql, parameters)
        connection.execute("COMMIT")
        returned.append((len(recorder.notes), rows.done()))
        if index % 4 == 0:
            connection.execute("PRAGMA incremental_vacuum(10)")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    notes = list(recorder.notes)
    connection.close()
    recorder.unregister()
    return notes, views, returned


def snapshot(model: Model) -> bytes:
    return repr(tuple(dict(sorted(part.items())) if part is model.delivery else part for part in model.view())).encode()


@pytest.mark.parametrize("seed", [1, 2])
def test_no_crash_of_the_machine_takes_a_batch_whose_commit_returned(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    notes, views, returned = recorded(tmp_path / MAIN, random)
    begin = returned[0][0]
    stops = [at for at in range(begin, len(notes) + 1) if at == begin or notes[at - 1][0] != "write"]
    stops = sorted({*stops, *[stop + 1 for stop in stops], *random.sample(range(begin, len(notes)), 60)})
    disk, at, seen = Disk(), 0, set()
    for stop in stops:
        for note in notes[at:stop]:
            disk.note(*note)
        at = stop
        durable = max(index for length, index in returned if length <= stop)
        index, view = after_crash(disk, tmp_path, random)
        assert index >= durable
        assert repr(view).encode() == views[index]
        seen.add(index)
    assert seen == set(views)


def after_crash(disk: Disk, directory: Path, random: Random) -> tuple[int, tuple[Any, ...]]:
    path = directory / "crashed" / MAIN
    path.parent.mkdir(exist_ok=True)
    for file in path.parent.iterdir():
        file.unlink()
    for name in (MAIN, WAL):
        (path.parent / name).write_bytes(disk.after_crash(name, random))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        schema.prepare(connection)
        _, index, view = loaded(connection)
    finally:
        connection.close()
    return index, (*view[:4], dict(sorted(view[4].items())), *view[5:])
