"""Snapshots of a live storage, and their install: the old state or the new one, wherever the machine stops."""

import asyncio
import os
import shutil
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import roll_back
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Base, Durable, Vote, Voter
from elasticq.storage import snapshot
from elasticq.storage.errors import DataError, WrongFormat
from elasticq.storage.memory import MemoryStorage
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import FILES_MAX, SnapshotRefused, check
from tests.engine.driver import Driver
from tests.storage.test_storage import CREATED, FOUNDED, PATIENCE_S, Opened, entry, message

VOTERS = (Voter("a-1", "127.0.0.1:9326"), Voter("b-2"))
OTHERS = [m.ClusterFounded("other", b"key", 1), m.QueueCreated(5, "000000000000", "new", {}, {}, 5)]


def wanted() -> bool:
    """The node still wants the snapshot."""
    return True


def state_of(mutations: Any) -> State:
    state = State()
    for mutation in mutations:
        apply(state, mutation)
    return state


def snapshot_file(path: Path, index: int = 9, term: int = 4) -> Path:
    """Of another member: 300 messages, the first one received."""
    stored = [m.MessageStored(5, sequence, f"new {sequence}", 7, "sender") for sequence in range(1, 301)]
    received = m.MessagesReceived(5, 8, 9, [1], [1], [1], [8])
    snapshot.fill(path, Base(index, term, 1_009, VOTERS), iter([[*OTHERS], [*stored], [received]]))
    return path


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    one = Opened(tmp_path / "data")
    yield one
    await one.close()


async def filled(one: Opened, first: int = 1, last: int = 3) -> None:
    """Entries that are in the log and in the rows."""
    for index in range(first, last + 1):
        mutations: list[m.Mutation] = [FOUNDED, CREATED] if index == 1 else [message(index, f"old {index}")]
        one.append([Vote(2, "a"), entry(index, *mutations)], index)
        one.take(Committed(index, 1, 1_000 + index, mutations, VOTERS if index == 1 else None))
    while await one.next() != ("synced", last):
        pass


@pytest.mark.parametrize("bit", [2, 7])
def test_snapshot_whose_tables_are_told_wrongly_is_refused(tmp_path: Path, bit: int) -> None:
    """SQLite keeps the tables' definitions as texts: a changed one may be another table, or no UTF-8."""
    path = snapshot_file(tmp_path / "snapshot")
    whole, refused = path.read_bytes(), 0
    for at in range(100, schema.PAGE_BYTES, 23):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            assert check(path).index == 9
        except DataError:
            refused += 1
    assert refused > 5


# --- making -------------------------------------------------------------------------------


async def test_snapshot_holds_all_up_to_the_index_that_was_asked_for(opened: Opened) -> None:
    await filled(opened)
    made = await opened.storage.snapshot(3)
    assert (made.index, made.term, made.size_bytes) == (3, 1, made.path.stat().st_size)
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert check(made.path) == Base(3, 1, 1_003, VOTERS)
    rows, connection = Rows(), sqlite3.connect(made.path)
    state = state_of(rows.load(connection)[1])
    connection.close()
    assert [queue.count for queue in state.queues.values()] == [2]


async def test_snapshot_is_used_again_until_it_is_old(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "STALE_ENTRIES", 5)
    await filled(opened)
    first = await opened.storage.snapshot(3)
    opened.take(*[Committed(index, 1, 2_000, []) for index in range(4, 9)])
    while await opened.next() != ("stored", 8):
        pass
    assert await opened.storage.snapshot(3) is first
    opened.take(Committed(9, 1, 2_000, []))
    while await opened.next() != ("stored", 9):
        pass
    second = await opened.storage.snapshot(3)
    assert second.index == 9
    assert await opened.storage.snapshot(1) is second


async def test_at_most_two_snapshots_are_kept_and_those_in_use_stay(opened: Opened, tmp_path: Path) -> None:
    await filled(opened)
    held = [await opened.storage.snapshot(3)]
    await filled(opened, 4, 4)
    held.append(await opened.storage.snapshot(4))
    await filled(opened, 5, 5)
    with pytest.raises(SnapshotRefused, match="in use"):
        await opened.storage.snapshot(5)
    opened.storage.release(held[0])
    third = await opened.storage.snapshot(5)
    assert not held[0].path.exists()
    assert len(list((tmp_path / "data" / "snapshots").iterdir())) == FILES_MAX
    assert check(held[1].path).index == 4
    assert third.id not in {one.id for one in held}


async def test_two_that_ask_at_once_get_the_same_file(opened: Opened) -> None:
    await filled(opened)
    first, second = await asyncio.gather(opened.storage.snapshot(3), opened.storage.snapshot(3))
    assert first is second


async def test_snapshot_of_what_is_not_there_yet_is_refused(opened: Opened, tmp_path: Path) -> None:
    await filled(opened)
    with pytest.raises(SnapshotRefused, match="index 4"):
        await opened.storage.snapshot(4)
    assert list((tmp_path / "data" / "snapshots").iterdir()) == []


async def test_rows_are_written_while_a_snapshot_is_made(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is held inside its transaction until newer rows are durable; it does not hold them."""
    await filled(opened)
    loop, may_end, is_reading = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def slow(connection: sqlite3.Connection, file: Path) -> Base:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM meta").fetchone()
        loop.call_soon_threadsafe(is_reading.set)
        asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(PATIENCE_S)
        connection.execute("COMMIT")
        return vacuum_into(connection, file)

    vacuum_into = snapshot.vacuum_into
    monkeypatch.setattr("elasticq.storage.rowdb.vacuum_into", slow)
    making = asyncio.create_task(opened.storage.snapshot(3))
    await asyncio.wait_for(is_reading.wait(), PATIENCE_S)
    for index in (4, 5):  # the second would wait for a checkpoint of the first
        opened.take(Committed(index, 1, 2_000, [message(index)]))
        opened.storage._database._flush()
        while await opened.next() != ("stored", index):
            pass
    may_end.set()
    assert (await making).index >= 3


async def test_snapshot_under_way_is_given_up_when_the_storage_ends(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    await filled(one)
    making = asyncio.create_task(one.storage.snapshot(3))
    await asyncio.sleep(0)
    await one.close()
    outcome = (await asyncio.gather(making, return_exceptions=True))[0]
    assert isinstance(outcome, SnapshotRefused | snapshot.Snapshot)
    assert list((tmp_path / "data" / "snapshots").glob("*")) == [] or isinstance(outcome, snapshot.Snapshot)


async def test_files_of_a_former_life_are_removed_at_the_start(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    await one.close()
    left_over = tmp_path / "data" / "snapshots" / "0123.db"
    left_over.parent.mkdir(exist_ok=True)
    left_over.write_bytes(b"x")
    again = Opened(tmp_path / "data")
    assert not left_over.exists()
    await again.close()


# --- installing -----------------------------------------------------------------------------


async def test_install_replaces_rows_and_log_in_a_living_process(opened: Opened, tmp_path: Path) -> None:
    await filled(opened)
    opened.take(Committed(4, 1, 1_004, [message(4)]))
    opened.append([Vote(5, "b"), entry(4, message(4))], 77)
    loaded = await opened.storage.install(snapshot_file(tmp_path / "incoming.db"), wanted)
    assert loaded.durable == Durable(Vote(5, "b"), [], Base(9, 4, 1_009, VOTERS), 9)
    state = state_of(loaded.rows)
    assert [(queue.name, queue.count) for queue in state.queues.values()] == [("new", 300)]
    assert not (tmp_path / "incoming.db").exists()
    while not opened.told.empty():  # what came before the file was good
        assert opened.told.get_nowait()[0] != "failure"
    opened.append([entry(10, term=5), entry(11, term=5)], 1)
    assert await opened.next() == ("synced", 1)
    opened.take(Committed(10, 5, 2_000, [m.MessageStored(5, 301, "newest", 8, "sender")]))
    assert await opened.next() == ("stored", 10)
    found = asyncio.Queue[list[m.MessageStored]]()
    opened.storage.fetch(Fetch(1, 5, [2, 301]), lambda asked, contents: found.put_nowait(contents))
    bodies = {content.body for content in await asyncio.wait_for(found.get(), PATIENCE_S)}
    assert {"new 2", "newest"} <= bodies
    await opened.close()
    again = Opened(tmp_path / "data")
    assert again.loaded.durable.vote == Vote(5, "b")
    assert [kept.index for kept in again.loaded.durable.entries] == [11]
    assert again.loaded.durable.base.voters == VOTERS
    await again.close()


async def test_nothing_of_the_old_node_is_told_after_an_install(opened: Opened, tmp_path: Path) -> None:
    await filled(opened)
    loaded = await opened.storage.install(snapshot_file(tmp_path / "incoming.db"), wanted)
    list(loaded.rows)
    while not opened.told.empty():
        opened.told.get_nowait()
    opened.append([entry(10, term=5)], 1)
    opened.take(Committed(10, 5, 2_000, []))
    assert {await opened.next(), await opened.next()} == {("synced", 1), ("stored", 10)}


async def test_a_vote_of_an_older_term_than_the_snapshot_becomes_none(opened: Opened, tmp_path: Path) -> None:
    await filled(opened)
    loaded = await opened.storage.install(snapshot_file(tmp_path / "incoming.db", term=8), wanted)
    assert loaded.durable.vote == Vote(8, None)
    list(loaded.rows)


def _flip(data: bytearray) -> None:
    data[:] = data.replace(b"new 250", b"new 25X")  # SQLite may leave an old copy in space that it does not use


def _cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def _clear(data: bytearray) -> None:
    data[:] = b"SQLite format 3\0" + bytes(1_000)


@pytest.mark.parametrize("damage", [_flip, _cut, _clear, bytearray.clear])
async def test_a_bad_file_changes_nothing(opened: Opened, tmp_path: Path, damage: Callable[[bytearray], None]) -> None:
    await filled(opened)
    file = snapshot_file(tmp_path / "incoming.db")
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)
    with pytest.raises(DataError):
        await opened.storage.install(file, wanted)
    await filled(opened, 4, 4)
    await opened.close()
    again = Opened(tmp_path / "data")
    assert (again.loaded.durable.entries[-1].index, again.loaded.durable.applied_index) == (4, 4)
    assert [queue.name for queue in state_of(again.mutations).queues.values()] == ["orders"]
    await again.close()


async def test_a_file_of_a_newer_format_is_refused(opened: Opened, tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "incoming.db")
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    connection.close()
    with pytest.raises(WrongFormat):
        await opened.storage.install(file, wanted)


async def test_a_file_that_is_not_there_is_refused(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not there"):
        await opened.storage.install(tmp_path / "none.db", wanted)


# --- memory -----------------------------------------------------------------------------------


def driven() -> Driver:
    driver = Driver()
    steps = [("send", a, b) for a in range(4) for b in range(8)] + [("delayed", 1, 3), ("receive", 4, 7)]
    driver.run([*steps, ("takeover", 1, 1), ("delete", 0, 1), ("batch", 2, 3), ("drop", 1, 0), ("create", 1, 1)])
    driver.run([("purge", 1, 1), ("send", 1, 1), ("wait", 0, 3), ("retry", 0, 1)])
    return driver


async def test_memory_is_written_down_by_a_fork_and_read_by_another_member(tmp_path: Path) -> None:
    driver = driven()
    base = Base(41, 3, driver.desk.context.now_ms, VOTERS)
    storage = MemoryStorage(lambda: (driver.desk.state, base))
    made = await storage.snapshot(41)
    assert (made.index, made.term) == (41, 3)
    assert await storage.snapshot(40) is made
    file = tmp_path / "incoming.db"
    shutil.copyfile(made.path, file)
    other = MemoryStorage(None, lambda: Vote(9, "a-1"))
    loaded = await other.install(file, wanted)
    assert loaded.durable == Durable(Vote(9, "a-1"), [], base, 41)
    state = state_of(loaded.rows)
    now_ms = driver.desk.context.now_ms
    assert state_digest(state, now_ms) == state_digest(driver.desk.state, now_ms)
    assert state.contents_bytes == driver.desk.state.contents_bytes
    storage.release(made)
    storage.close()
    other.close()
    assert not made.path.exists()


async def test_child_may_take_back_what_is_not_committed() -> None:
    driver = driven()
    undo: Any = []
    before = state_digest(driver.desk.state)
    driver.desk.write([m.QueueCreated(1 << 60, "000000000000", "uncommitted", {}, {}, 1)], undo)
    ahead = state_digest(driver.desk.state)

    def source() -> tuple[State, Base]:
        roll_back(undo)
        return driver.desk.state, Base(2, 1, 1)

    storage = MemoryStorage(source, lambda: Vote(1, None))
    made = await storage.snapshot(1)
    assert state_digest(driver.desk.state) == ahead, "only the child took it back"
    copied = made.path.with_suffix(".copy")
    shutil.copyfile(made.path, copied)
    assert state_digest(state_of((await storage.install(copied, wanted)).rows)) == before
    storage.close()


async def test_child_that_fails_tells_why() -> None:
    def source() -> tuple[State, Base]:
        raise ValueError("no state today")

    storage = MemoryStorage(source)
    with pytest.raises(SnapshotRefused, match="no state today"):
        await storage.snapshot(1)
    storage.close()


async def test_memory_that_is_not_so_far_yet_refuses() -> None:
    storage = MemoryStorage(lambda: (State(), Base(3, 1, 1)))
    with pytest.raises(SnapshotRefused, match="at index 3"):
        await storage.snapshot(4)
    storage.close()


async def test_child_holds_no_connection_of_its_parent() -> None:
    """The client would not see its end before the child's."""
    held, peer = socket.socketpair()

    def source() -> tuple[State, Base]:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(held.fileno())
        return State(), Base(1, 1, 1)

    storage = MemoryStorage(source)
    assert (await storage.snapshot(1)).index == 1
    storage.close()
    held.close()
    peer.close()


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_dump_makes_the_rows_that_the_entries_make(tmp_path: Path, chunk: int) -> None:
    driver = driven()
    mutations = [mutation for part in dump(driver.desk.state) for mutation in part]
    parts = [mutations[at : at + chunk] for at in range(0, len(mutations), chunk)]
    now_ms = driver.desk.context.now_ms
    snapshot.fill(tmp_path / "dump.db", Base(50, 2, now_ms, VOTERS), parts)
    assert check(tmp_path / "dump.db") == Base(50, 2, now_ms, VOTERS)
    connection = sqlite3.connect(tmp_path / "entries.db", isolation_level=None)
    schema.prepare(connection)
    rows = Rows()
    for index, mutation in enumerate(driver.desk.log, 1):
        rows.take(Committed(index, 2, now_ms, [mutation]))
    snapshot.flush(connection, rows)
    connection.close()
    digests = {_digest(tmp_path / name, now_ms) for name in ("dump.db", "entries.db")}
    assert digests == {state_digest(driver.desk.state, now_ms)}


def _digest(file: Path, now_ms: int) -> bytes:
    rows, connection = Rows(), sqlite3.connect(file)
    state = state_of(rows.load(connection)[1])

    def read(queue_id: int, sequences: list[int]) -> list[m.MessageStored]:
        queries = rows.fetch(queue_id, sequences)
        return rows.decode([row for sql, parameters in queries for row in connection.execute(sql, parameters)])

    digest = state_digest(state, now_ms, read)
    connection.close()
    return digest
