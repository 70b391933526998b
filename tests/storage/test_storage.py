"""What every storage owes its runtime, and what a durable one promises beyond."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from elasticq.engine.stored.mutations import (
    ClusterFounded,
    MessageStored,
    Mutation,
    QueueCreated,
    QueueRestored,
    UntouchedRestored,
    encode,
)
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import BEGINNING, NOTHING, Base, Durable, Entry, Record, Vote
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DirectoryInUse
from elasticq.storage.files import DirectoryFiles, Files
from elasticq.storage.interface import Storage
from elasticq.storage.log.reserve import FULL
from elasticq.storage.memory import MemoryStorage
from elasticq.storage.rows import schema
from elasticq.storage.sqlite import SqliteStorage

MEBIBYTE = 1_048_576
PATIENCE_S = 30


def entry(index: int, *mutations: Mutation, term: int = 1) -> Entry:
    return Entry(index, term, 1_000 + index, encode(list(mutations)))


class FaultyFiles(DirectoryFiles):
    """The real directory, whose syncs can be held back or fail and whose disk can be full."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.may_sync = Event()
        self.may_sync.set()
        self.at_sync = Event()
        self.append_errors: list[int] = []
        self.sync_errors: list[int] = []
        self.appends = 0
        self.syncs = 0

    def append(self, name: str, data: bytes) -> None:
        if self.append_errors:
            code = self.append_errors.pop()
            raise OSError(code, os.strerror(code))
        self.appends += 1
        super().append(name, data)

    def append_durably(self, name: str, data: bytes) -> None:
        Files.append_durably(self, name, data)

    def sync(self, name: str) -> None:
        self.at_sync.set()
        assert self.may_sync.wait(PATIENCE_S)
        if self.sync_errors:
            code = self.sync_errors.pop()
            raise OSError(code, os.strerror(code))
        self.syncs += 1
        super().sync(name)


class Opened:
    """A SqliteStorage, what it told, and a way to wait for it."""

    def __init__(self, path: Path, durability: Any = "fsync") -> None:
        self.directory = DataDirectory(path, "a")
        self.files = FaultyFiles(self.directory.log)
        self.told: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self.storage = SqliteStorage(
            self.directory,
            asyncio.get_running_loop(),
            durability=durability,
            reserve_bytes=MEBIBYTE,
            on_failure=lambda failure: self.told.put_nowait(("failure", str(failure))),
            on_full=lambda reason: self.told.put_nowait(("full", reason)),
            files=self.files,
        )
        self.loaded = self.storage.load()
        self.mutations = list(self.loaded.rows)

    def append(self, records: list[Record], token: int) -> None:
        self.storage.append(records, token, lambda synced: self.told.put_nowait(("synced", synced)))

    def take(self, *committed: Committed) -> None:
        self.storage.rows(list(committed), lambda index: self.told.put_nowait(("stored", index)))

    async def next(self) -> tuple[Any, ...]:
        return await asyncio.wait_for(self.told.get(), PATIENCE_S)

    async def close(self) -> None:
        self.storage.close()
        await self.storage.aclose()


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    one = Opened(tmp_path / "data")
    yield one
    await one.close()


class TestEveryStorage:
    """Runs on each."""

    @pytest.fixture(params=["memory", "sqlite"])
    async def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
        if request.param == "memory":
            yield MemoryStorage()
            return
        storage = SqliteStorage(
            DataDirectory(tmp_path / "data", "a"),
            asyncio.get_running_loop(),
            reserve_bytes=MEBIBYTE,
            on_failure=_unexpected,
            on_full=_ignore,
        )
        yield storage
        await storage.aclose()

    async def test_a_new_one_holds_nothing(self, storage: Storage) -> None:
        loaded = storage.load()
        assert loaded.durable == NOTHING
        assert list(loaded.rows) == []

    async def test_records_count_at_once_or_are_told(self, storage: Storage) -> None:
        list(storage.load().rows)
        synced: asyncio.Queue[int] = asyncio.Queue()
        records: list[Record] = [Vote(1, "a"), entry(1)]
        storage.append(records, 1, synced.put_nowait)
        records.clear()  # the caller's list is not kept
        if not storage.volatile:
            assert await asyncio.wait_for(synced.get(), PATIENCE_S) == 1
        storage.close()
        assert synced.empty()

    async def test_committed_entries_are_taken_and_the_log_is_forgotten(self, storage: Storage) -> None:
        list(storage.load().rows)
        storage.rows([Committed(1, 1, 0, [])], lambda index: None)
        storage.forget_log(1)
        storage.close()


def _ignore(reason: str | None) -> None:
    """The disk that the tests run on may be full."""


def _unexpected(failure: BaseException) -> None:
    raise AssertionError("the storage failed") from failure


@pytest.mark.parametrize("durability", ["fsync", "os", "none"])
async def test_what_was_appended_is_there_after_a_restart(tmp_path: Path, durability: str) -> None:
    one = Opened(tmp_path / "data", durability)
    one.append([Vote(1, "a")], 1)
    assert await one.next() == ("synced", 1)
    one.append([entry(1), entry(2)], 2)
    assert await one.next() == ("synced", 2)
    await one.close()
    again = Opened(tmp_path / "data", durability)
    assert again.loaded.durable == Durable(Vote(1, "a"), [entry(1), entry(2)])
    await again.close()


async def test_all_that_queued_during_a_sync_is_one_append_and_one_sync(opened: Opened) -> None:
    appends, syncs = opened.files.appends, opened.files.syncs
    opened.files.may_sync.clear()
    opened.files.at_sync.clear()
    opened.append([entry(1)], 1)
    assert await asyncio.to_thread(opened.files.at_sync.wait, PATIENCE_S)
    for index in range(2, 8):
        opened.append([entry(index)], index)
    assert opened.told.empty()
    opened.files.may_sync.set()
    assert [await opened.next(), await opened.next()] == [("synced", 1), ("synced", 7)]
    assert (opened.files.appends - appends, opened.files.syncs - syncs) == (2, 2)


@pytest.mark.parametrize("durability", ["os", "none"])
async def test_a_vote_is_synced_in_every_durability(tmp_path: Path, durability: str) -> None:
    one = Opened(tmp_path / "data", durability)
    one.files.may_sync.clear()
    one.append([entry(1)], 1)
    assert await one.next() == ("synced", 1)
    one.append([Vote(1, "a")], 2)
    one.append([entry(2)], 3)
    assert one.told.empty()
    one.files.may_sync.set()
    newest = 0
    while newest < 3:
        _, newest = await one.next()
        assert newest >= 2
    await one.close()


async def test_without_durability_nothing_waits_for_the_disk(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data", "none")
    one.files.may_sync.clear()
    one.append([entry(1)], 1)
    assert await one.next() == ("synced", 1)
    one.files.may_sync.set()
    await one.close()


async def test_a_failed_sync_is_a_failure_and_never_an_acknowledgement(opened: Opened) -> None:
    opened.files.sync_errors.append(errno.EIO)
    opened.append([entry(1)], 1)
    kind, text = await opened.next()
    assert kind == "failure"
    assert "could not be synced" in text
    opened.append([entry(2)], 2)
    opened.storage.close()
    assert opened.told.empty()


async def test_a_failed_write_is_a_failure(opened: Opened) -> None:
    opened.files.append_errors.append(errno.EIO)
    opened.append([entry(1)], 1)
    assert (await opened.next())[0] == "failure"


async def test_a_full_disk_costs_the_reserve_and_loses_nothing(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    one.append([Vote(1, "a")], 1)
    assert await one.next() == ("synced", 1)
    assert one.directory.reserve.stat().st_size == MEBIBYTE
    one.files.append_errors.append(errno.ENOSPC)
    one.append([entry(1)], 2)
    told = [await one.next(), await one.next()]
    assert ("synced", 2) in told
    if ("full", FULL) in told:  # else the space was back before anybody had to be told
        assert await one.next() == ("full", None)
    await one.close()
    again = Opened(tmp_path / "data")
    assert again.loaded.durable.entries == [entry(1)]
    await again.close()


async def test_a_disk_that_is_full_without_the_reserve_is_waited_for(opened: Opened) -> None:
    opened.append([Vote(1, "a")], 1)
    assert await opened.next() == ("synced", 1)
    opened.files.append_errors += [errno.ENOSPC] * 2
    opened.append([entry(1)], 2)
    opened.append([entry(2)], 3)
    told = [await opened.next()]
    while told[-1] != ("synced", 3):
        told.append(await opened.next())
    assert {kind for kind, _ in told} <= {"synced", "full"}


FOUNDED = ClusterFounded("c", b"key", 1)
CREATED = QueueCreated(1, "000000000000", "orders", {}, {}, 5)


def message(sequence: int, body: str = "body") -> MessageStored:
    return MessageStored(1, sequence, body, 7, "sender")


async def test_rows_follow_behind_and_can_be_fetched(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    mutations = [FOUNDED, CREATED, message(1), message(2, "second")]
    one.append([Vote(1, "a"), entry(1, *mutations)], 1)
    one.take(Committed(1, 1, 1_001, mutations))
    assert {await one.next(), await one.next()} == {("synced", 1), ("stored", 1)}
    fetch, found = Fetch(9, 1, [2]), asyncio.Queue[tuple[Fetch, list[MessageStored]]]()
    one.storage.fetch(fetch, lambda asked, contents: found.put_nowait((asked, contents)))
    asked, contents = await asyncio.wait_for(found.get(), PATIENCE_S)
    assert asked == fetch
    assert message(2, "second") in contents
    await one.close()
    again = Opened(tmp_path / "data")
    assert again.loaded.durable == Durable(Vote(1, "a"), [entry(1, *mutations)], BEGINNING, 1)
    assert FOUNDED in again.mutations
    assert [m.name for m in again.mutations if isinstance(m, QueueRestored)] == ["orders"]
    assert [(m.firsts, m.lasts) for m in again.mutations if isinstance(m, UntouchedRestored)] == [([1], [2])]
    again.append([entry(2)], 1)
    assert await again.next() == ("synced", 1)
    await again.close()


async def test_many_messages_are_stored_without_waiting_for_the_timer(opened: Opened) -> None:
    opened.take(Committed(1, 1, 1, [FOUNDED, CREATED]))
    for number in range(9):
        first = number * 1_000 + 1
        opened.take(Committed(number + 2, 1, 1, [message(first + at) for at in range(1_000)]))
    indexes = [(await opened.next())[1]]
    while indexes[-1] < 10:
        indexes.append((await opened.next())[1])
    assert indexes == sorted(set(indexes))


@pytest.mark.parametrize("ends", ["behind the check", "between two looks"])
async def test_a_check_while_a_batch_is_written_finds_no_damage(opened: Opened, ends: str) -> None:
    """Pages are known as soon as their batch begins. That they are not there yet stopped a member that was well."""
    opened.take(Committed(1, 1, 1, [FOUNDED, CREATED, message(1)]))
    assert await opened.next() == ("stored", 1)
    database = opened.storage._database
    transact, select = database._transact, database._select
    at_write, may_write = asyncio.Event(), asyncio.Event()

    async def held(batch: Any) -> None:
        at_write.set()
        await may_write.wait()
        await transact(batch)

    async def looked(queries: Any) -> Any:
        found = await select(queries)
        if not found and ends == "between two looks" and not may_write.is_set():
            may_write.set()
            assert await opened.next() == ("stored", 2)
        return found

    database._transact, database._select = held, looked  # type: ignore[method-assign]
    opened.take(Committed(2, 1, 1, [message(2 + at) for at in range(9_000)]))
    await asyncio.wait_for(at_write.wait(), PATIENCE_S)
    assert await checked(opened)
    if ends == "behind the check":
        may_write.set()
        assert await opened.next() == ("stored", 2)
    assert may_write.is_set()
    assert await checked(opened)


async def checked(opened: Opened) -> bool:
    """Whether a check of all rows found no damage."""
    verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    opened.storage.check(verdict.set_result)
    return await asyncio.wait_for(verdict, PATIENCE_S)


async def test_rows_that_found_the_disk_full_are_written_later(opened: Opened) -> None:
    opened.take(Committed(1, 1, 1, [FOUNDED, CREATED]))
    assert await opened.next() == ("stored", 1)
    database = opened.storage._database
    connection = database._write_connection
    assert connection is not None
    await connection.execute_fetchall("PRAGMA max_page_count = 1")  # as many as there are
    is_refused = asyncio.Event()
    make_space = database._on_full
    database._on_full = lambda: (is_refused.set(), make_space())  # type: ignore[assignment, func-returns-value]
    opened.take(Committed(2, 1, 1, [message(1 + at, "x" * 1_000) for at in range(9_000)]))
    await asyncio.wait_for(is_refused.wait(), PATIENCE_S)
    opened.take(Committed(3, 1, 1, []))
    await connection.execute_fetchall("PRAGMA max_page_count = 100000")
    told = [await opened.next()]
    while told[-1] != ("stored", 3):
        told.append(await opened.next())
    assert [index for kind, index in told if kind == "stored"] == [2, 3]


def keep_closed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let no connection to the rows be opened until ``undo``, as where SQLite has no room for files of its own.

    The event is set when the rows have found the disk full.
    """
    refused, database = asyncio.Event(), opened.storage._database
    make_space = database._on_full
    database._on_full = lambda: (refused.set(), make_space())  # type: ignore[assignment, func-returns-value]
    too_much = ("PRAGMA max_page_count = 1", "CREATE TABLE too_much (a)")
    monkeypatch.setattr(schema, "PRAGMAS", (*schema.PRAGMAS, *too_much))
    return refused


async def test_rows_that_a_full_disk_keeps_closed_are_written_later(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = keep_closed(opened, monkeypatch)
    opened.storage._database.set_full(True)  # as at a start on a full disk
    opened.take(Committed(1, 1, 1, [FOUNDED, CREATED]))
    await asyncio.wait_for(refused.wait(), PATIENCE_S)
    monkeypatch.undo()
    told = [await opened.next()]
    while told[-1] != ("stored", 1):
        told.append(await opened.next())
    assert {kind for kind, _ in told} <= {"stored", "full"}


async def test_a_fetch_of_rows_that_a_full_disk_keeps_closed_is_answered_later(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer without them would say that they are lost."""
    opened.take(Committed(1, 1, 1, [FOUNDED, CREATED, message(1)]))
    assert await opened.next() == ("stored", 1)
    refused, found = keep_closed(opened, monkeypatch), asyncio.Queue[list[MessageStored]]()
    opened.storage.fetch(Fetch(9, 1, [1]), lambda asked, contents: found.put_nowait(contents))
    await asyncio.wait_for(refused.wait(), PATIENCE_S)
    monkeypatch.undo()
    assert await asyncio.wait_for(found.get(), PATIENCE_S) == [message(1)]


async def test_a_fetch_that_waits_for_space_does_not_keep_a_server_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Opened(tmp_path / "data")
    one.take(Committed(1, 1, 1, [FOUNDED, CREATED, message(1)]))
    assert await one.next() == ("stored", 1)
    refused = keep_closed(one, monkeypatch)
    one.storage.fetch(Fetch(9, 1, [1]), lambda asked, contents: one.told.put_nowait(("fetched", contents)))
    await asyncio.wait_for(refused.wait(), PATIENCE_S)
    await asyncio.wait_for(one.close(), PATIENCE_S)
    assert "fetched" not in {one.told.get_nowait()[0] for _ in range(one.told.qsize())}


async def test_pending_rows_are_written_at_the_end(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    one.append([Vote(1, "a"), entry(1, FOUNDED, CREATED)], 1)
    one.take(Committed(1, 1, 1_001, [FOUNDED, CREATED]))
    await one.close()
    again = Opened(tmp_path / "data")
    assert again.loaded.durable.applied_index == 1
    await again.close()


async def test_a_log_that_ends_before_the_rows_goes_on_behind_them(tmp_path: Path) -> None:
    """As after a power failure with durability os: the rows were synced, the log was not."""
    one = Opened(tmp_path / "data")
    one.append([Vote(3, "a"), entry(1, FOUNDED)], 1)
    one.take(*[Committed(index, 1, 1_000, [FOUNDED] if index == 1 else []) for index in (1, 2, 3)])
    await one.close()
    again = Opened(tmp_path / "data")
    assert again.loaded.durable == Durable(Vote(3, "a"), [], Base(3, 1, 1_000), 3)
    again.append([entry(4)], 1)
    assert await again.next() == ("synced", 1)
    await again.close()
    last = Opened(tmp_path / "data")
    assert last.loaded.durable == Durable(Vote(3, "a"), [entry(4)], Base(3, 1, 1_000), 3)
    await last.close()


async def test_the_directory_is_held_until_the_end(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(DirectoryInUse):
        DataDirectory(tmp_path / "data")
    await opened.close()
    DataDirectory(tmp_path / "data").close()
