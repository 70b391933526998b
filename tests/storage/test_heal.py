"""Damaged rows under a living process, or met at a start: what is told, what is kept aside, what goes on."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Fetch
from elasticq.replication.records import Vote, Voter
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import Damaged
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.interface import Damage
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import SnapshotRefused
from elasticq.storage.sqlite import SqliteStorage, load
from tests.storage.damaged import QUEUES, change, filled, flip, messages_in, state_in
from tests.storage.damaged import path as path
from tests.storage.damaged import whole as whole
from tests.storage.test_storage import PATIENCE_S, Opened


class Reader(Opened):
    """Puts what it is told of damage among the rest."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.storage._on_damaged = self.storage._database._on_damaged = self.damaged

    def damaged(self, damage: Damage) -> None:
        self.told.put_nowait(("damaged", damage))

    async def fetch(self, queue_id: int, sequences: list[int]) -> list[m.MessageStored]:
        found: asyncio.Queue[list[m.MessageStored]] = asyncio.Queue()
        self.storage.fetch(Fetch(1, queue_id, sequences), lambda asked, contents: found.put_nowait(contents))
        return await asyncio.wait_for(found.get(), PATIENCE_S)


@pytest.fixture
async def closing_readers() -> AsyncIterator[list[Reader]]:
    readers: list[Reader] = []
    yield readers
    for reader in readers:
        await reader.close()


async def test_a_page_that_does_not_fit_is_told_and_kept_aside_and_the_others_are_read(
    path: Path, closing_readers: list[Reader]
) -> None:
    change(path, "UPDATE contents SET contents = X'0102' WHERE rowid = 1")
    reader = Reader(path)
    closing_readers.append(reader)
    (first,) = [row[1] for row in _contents_rows(path) if row[2] == b"\1\2"]
    queue_id = next(row[0] for row in _contents_rows(path) if row[2] == b"\1\2")
    wanted = [row[1] for row in _contents_rows(path) if row[0] == queue_id]
    contents = await reader.fetch(queue_id, wanted)
    kind, damage = await reader.next()
    assert kind == "damaged"
    assert damage.queue_id == queue_id
    assert first in damage.sequences
    assert f"of queue {QUEUES[queue_id]}, sequences {first}" in damage.told
    assert {message.sequence for message in contents} >= set(wanted[1:])
    assert not {message.sequence for message in contents} & set(damage.sequences)
    kept = reader.directory.damaged / f"contents-{queue_id}-{first}"
    assert kept.read_bytes() == b"\1\2"
    assert kept.stat().st_mode & 0o777 == 0o600


def _contents_rows(path: Path) -> list[tuple[int, int, bytes]]:
    with closing(sqlite3.connect(path / "rows.db")) as connection:
        return connection.execute("SELECT queue_id, first, contents FROM contents").fetchall()


async def test_rows_in_which_nothing_is_found_are_told_and_healed_in_the_living_process(
    path: Path, closing_readers: list[Reader]
) -> None:
    before = messages_in(path)
    reader = Reader(path)
    closing_readers.append(reader)
    with closing(sqlite3.connect(path / "rows.db")) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'contents'").fetchone()[0]
    flip(path / "rows.db", (root - 1) * schema.PAGE_BYTES)
    reader.storage.fetch(Fetch(1, 1, [1]), lambda asked, contents: reader.told.put_nowait(("fetched", contents)))
    kind, damage = await reader.next()
    assert (kind, damage.sequences) == ("damaged", [])
    with pytest.raises(SnapshotRefused, match="damaged"):
        await reader.storage.snapshot(1)
    loaded = await reader.storage.heal()
    assert "Nothing of them is lost." in loaded.told
    list(loaded.rows)
    reader.append([Vote(9, "a")], 5)
    assert await reader.next() == ("synced", 5)
    assert {message.sequence for message in await reader.fetch(1, [1])} <= {key[1] for key in before}
    await reader.close()
    closing_readers.clear()
    assert messages_in(path) == before


def storage_over(path: Path) -> SqliteStorage:
    """One that was not loaded yet."""
    told: list[object] = []
    loop = asyncio.get_running_loop()
    directory = DataDirectory(path)
    return SqliteStorage(directory, loop, reserve_bytes=1_048_576, on_failure=told.append, on_full=told.append)


async def test_rows_that_lost_something_have_holes_until_others_gave_theirs(tmp_path: Path) -> None:
    path = filled(tmp_path / "data", voters=(Voter("b-1"), Voter("c-1")))
    change(path, "UPDATE pages SET live = X'00' WHERE queue_id = 1")
    change(path, "UPDATE contents SET contents = X'00' WHERE queue_id = 2")
    with pytest.raises(Damaged) as found:
        state_in(path)
    storage = storage_over(path)
    loaded = storage.salvage(found.value)
    list(loaded.rows)
    assert not loaded.durable.is_whole
    assert any(line.startswith("Lost: ") for line in loaded.told)
    with pytest.raises(SnapshotRefused, match="damaged"):
        await storage.snapshot(1)
    await storage.aclose()
    files = DirectoryFiles(path / "log")
    directory = DataDirectory(path)
    again = load(directory, SegmentLog(files), Rows())
    list(again.rows)
    assert not again.durable.is_whole  # also at the next start
    files.close()
    directory.close()


async def test_a_member_alone_is_not_repaired_unasked(path: Path) -> None:
    change(path, "UPDATE pages SET live = X'00' WHERE queue_id = 1")
    with pytest.raises(Damaged) as found:
        state_in(path)
    storage = storage_over(path)
    with pytest.raises(Damaged):
        storage.salvage(found.value)
    assert not list(path.glob("damaged-*"))
    await storage.aclose()
