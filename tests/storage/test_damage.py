"""Damaged bytes of the rows: what is told, what is kept, what goes on, and what comes of it at the next start."""

import asyncio
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from elasticq.engine import mutations as m
from elasticq.node.effects import Committed, Fetch
from elasticq.replication.records import Vote, Voter
from elasticq.storage import schema
from elasticq.storage.backup import backup
from elasticq.storage.carve import carve
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import Damaged, DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.interface import Damage
from elasticq.storage.log import SegmentLog
from elasticq.storage.log_end import End, LogEnd
from elasticq.storage.repair import repair
from elasticq.storage.rows import Rows
from elasticq.storage.snapshot import SnapshotRefused, flush
from elasticq.storage.sqlite import SqliteStorage, load, open_rows
from tests.storage.test_storage import PATIENCE_S, Opened, entry

QUEUES = {1: "a", 2: "b", 3: "c.fifo"}
ROUNDS = 12
FLIPS = 20
Messages = dict[tuple[int, int], str]


def stored(queue_id: int, sequence: int, body: str) -> m.MessageStored:
    group = f"g{sequence % 3}" if queue_id == 3 else None
    unique = f"d{sequence}" if queue_id == 3 else None
    return m.MessageStored(queue_id, sequence, body, 7, "sender", group_id=group, deduplication_id=unique)


def entries_of(seed: int) -> list[list[m.Mutation]]:
    """Queues with messages that were received, deleted and left alone, large ones among them."""
    random, sequence = Random(seed), 0
    found: list[list[m.Mutation]] = [[m.ClusterFounded("cluster", b"k" * 32, 1), m.TookOver(1, "a", 0, 0)]]
    for queue_id, name in QUEUES.items():
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {"DelaySeconds": "0"}
        found.append([m.QueueCreated(queue_id, "000000000000", name, attributes, {"tag": name}, 5)])
    for _ in range(ROUNDS):
        for queue_id in QUEUES:
            bodies = [random.randbytes(random.choice([5, 200, 1_500])).hex() for _ in range(25)]
            found.append([stored(queue_id, sequence + at + 1, body) for at, body in enumerate(bodies)])
            got = list(range(sequence + 5, sequence + 15))
            found.append([m.MessagesReceived(queue_id, 9, 99_999, got, [1] * 10, [1] * 10, [9] * 10)])
            found.append(
                [
                    m.MessagesRemoved(queue_id, got[:4]),
                    m.InvocationRecorded(b"%016d" % (sequence % 10**16), 9, 1, 1, b""),
                ]
            )
            sequence += 25
    return found


def filled(path: Path, *, voters: tuple[Voter, ...] | None = None, logged_from: int | None = None) -> Path:
    """A directory whose rows hold all of it, written in several batches; the log: from that index on, if any."""
    directory = DataDirectory(path, "a")
    rows, files = Rows(), DirectoryFiles(directory.log)
    with closing(open_rows(directory)) as connection:
        list(rows.load(connection)[1])
        for index, mutations in enumerate(entries_of(1), 1):
            rows.take(Committed(index, 1, 1_000 + index, mutations, voters if index == 1 else None))
            if index % 9 == 0:
                flush(connection, rows)
        flush(connection, rows)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    log = SegmentLog(files)
    log.load()
    log.append([Vote(1, "a")])
    if logged_from is not None:
        logged = list(enumerate(entries_of(1), 1))[logged_from - 1 :]
        log.append([entry(index, *mutations) for index, mutations in logged])
    log.sync()
    files.close()
    directory.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("whole") / "data")


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "data")
    return tmp_path / "data"


def messages_in(path: Path) -> Messages:
    directory = DataDirectory(path)
    files, rows = DirectoryFiles(directory.log), Rows()
    try:
        list(load(directory, SegmentLog(files), rows).rows)
        with closing(open_rows(directory)) as connection:
            read = [message for page in rows.read_contents(connection) for message in page]
        return {(message.queue_id, message.sequence): message.body for message in read}
    finally:
        files.close()
        directory.close()


def state_in(path: Path) -> list[str]:
    """All that a start would read of the rows."""
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        return [repr(mutation) for mutation in load(directory, SegmentLog(files), Rows()).rows]
    finally:
        files.close()
        directory.close()


def flip(file: Path, at: int, bit: int = 3) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


def change(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path / "rows.db", isolation_level=None)) as connection:
        connection.execute(statement, parameters)


def refusal_of(work: Callable[[], object]) -> str:
    """Why it was not done; each says what to do."""
    try:
        work()
    except DataError as error:
        return str(error) if "elasticq repair" in str(error) else f"no remedy: {error}"
    return ""


def told_lost(told: str) -> Messages:
    numbers = {name: queue_id for queue_id, name in QUEUES.items()}
    lost: Messages = {}
    for name, sequences in re.findall(r"messages of queue (\S+), sequences ([\d, -]+)", told):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", sequences):
            lost |= {(numbers[name], sequence): "" for sequence in range(int(first), int(last or first) + 1)}
    return lost


# --- repair and backup ----------------------------------------------------------------------


def test_a_flip_anywhere_costs_what_is_told_and_backup_does_not_hide_it(whole: Path, tmp_path: Path) -> None:
    """The bytes at which SQLite keeps the order of things, and any others."""
    before, state = messages_in(whole), state_in(whole)
    size_bytes, random = (whole / "rows.db").stat().st_size, Random(7)
    for number in range(FLIPS):
        path = tmp_path / str(number)
        shutil.copytree(whole, path)
        at = random.randrange(size_bytes)
        if number % 2:
            at = at // schema.PAGE_BYTES * schema.PAGE_BYTES + random.randrange(100)
        flip(path / "rows.db", at, random.randrange(8))
        refusal = refusal_of(lambda path=path: backup(path, tmp_path / "backup"))  # type: ignore[misc]
        is_good = not refusal
        assert not refusal.startswith("no remedy"), refusal
        (tmp_path / "backup").unlink(missing_ok=True)
        told = repair(path)
        after = messages_in(path)
        assert ("The rows are not damaged" in told) == is_good, (at, told)
        assert before.keys() - after.keys() <= told_lost(told).keys(), (at, told)
        assert after.items() <= before.items() or "Visible again" in told, (at, told)
        if "Lost" not in told and "Visible" not in told:
            assert state_in(path) == state, (at, told)
        assert is_good or list(path.glob("damaged-1-rows.db")), at
        assert "not damaged" in repair(path)


def test_contents_that_do_not_fit_cost_their_page_alone(path: Path) -> None:
    before = messages_in(path)
    change(
        path, "UPDATE contents SET contents = X'00' WHERE queue_id = 2 AND first = (SELECT min(first) FROM contents)"
    )
    change(path, "UPDATE contents SET contents = X'00' WHERE rowid = 3")
    told = repair(path)
    after = messages_in(path)
    assert after.items() < before.items()
    assert told_lost(told).keys() == before.keys() - after.keys()


def test_what_the_log_still_has_is_taken_from_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "data", logged_from=3)
    before = messages_in(path)
    change(path, "UPDATE contents SET contents = X'00'")
    assert "Nothing of them is lost." in repair(path)
    assert messages_in(path) == before


def test_a_log_that_goes_back_to_the_beginning_makes_all_rows_anew(tmp_path: Path) -> None:
    path = filled(tmp_path / "data", logged_from=1)
    change(path, "UPDATE queues SET name = 'other'")
    (path / "rows.db").write_bytes(b"none")
    assert "Nothing of them is lost." in repair(path)
    assert "QueueRestored" not in "".join(state_in(path))  # they are made by the log at the start


def test_trees_that_lead_nowhere_lose_nothing(path: Path) -> None:
    before = messages_in(path)
    with closing(sqlite3.connect(path / "rows.db")) as connection:
        names = ("contents", "sqlite_autoindex_contents_1")
        roots = [connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name]) for name in names]
        pages = [root.fetchone()[0] for root in roots]
    data = bytearray((path / "rows.db").read_bytes())
    for page in pages:
        data[(page - 1) * schema.PAGE_BYTES] ^= 0xFF
    (path / "rows.db").write_bytes(data)
    told = repair(path)
    assert messages_in(path) == before
    assert told_lost(told) == {}


@pytest.mark.parametrize("at", [0, 18, 20, 60, 100, 103, 109, schema.PAGE_BYTES - 1])
def test_a_first_page_that_says_nothing_loses_nothing(path: Path, at: int) -> None:
    before = state_in(path)
    flip(path / "rows.db", at, 4)
    with pytest.raises(DataError, match="elasticq repair"):
        state_in(path)
    assert "Nothing of them is lost." in repair(path)
    assert state_in(path) == before


@pytest.mark.parametrize("table", ["meta", "meta_copy"])
def test_of_the_two_copies_of_what_all_rests_on_one_is_enough(path: Path, table: str) -> None:
    before = state_in(path)
    change(path, f"UPDATE {table} SET value = X'00'")
    repair(path)
    assert state_in(path) == before


def test_a_queue_without_its_row_comes_back_under_another_name(path: Path) -> None:
    before = messages_in(path)
    change(path, "UPDATE queues SET attributes = X'80' WHERE id IN (1, 3)")
    told = repair(path)
    assert messages_in(path) == before
    assert "recovered-1" in told
    names = [line for line in state_in(path) if line.startswith("QueueRestored")]
    assert [re.search(r"name='([^']+)'", line)[1] for line in names] == ["recovered-1", "b", "recovered-3.fifo"]  # type: ignore[index]


def test_messages_whose_delivery_is_lost_are_visible_again(path: Path) -> None:
    before = messages_in(path)
    change(path, "UPDATE touched SET hand_out = 77 WHERE queue_id = 1")
    told = repair(path)
    assert messages_in(path) == before
    assert "had been received" in told


def test_carving_finds_contents_and_does_not_take_groups_for_them(whole: Path) -> None:
    with closing(sqlite3.connect(whole / "rows.db")) as connection:
        rows = connection.execute("SELECT queue_id, first, contents FROM contents").fetchall()
    assert dict(carve(whole / "rows.db", {row[:2] for row in rows})) == {row[:2]: row[2] for row in rows}


def test_a_repair_that_is_stopped_is_done_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = messages_in(path)
    change(path, "UPDATE meta SET value = X'00'")

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    for name in ("keep_aside", "install.stage", "install.commit", "install.finish"):
        with monkeypatch.context() as patched:
            patched.setattr(f"elasticq.storage.heal.{name}", stop)
            with pytest.raises(KeyboardInterrupt):
                repair(path)
    repair(path)
    assert messages_in(path) == before


# --- while it lives ---------------------------------------------------------------------------


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


# --- among others -----------------------------------------------------------------------------


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


# --- the log's end ------------------------------------------------------------------------------


def logged(path: Path, *, voters: tuple[Voter, ...] | None = None, lazy: bool = False) -> None:
    """Six entries, four of them in the rows, and a note of where the log ends."""
    directory = DataDirectory(path, "a")
    directory.remember_lazy_sync(lazy)
    rows, files = Rows(), DirectoryFiles(directory.log)
    entries = [[m.ClusterFounded("cluster", b"k" * 32, 1)], [m.QueueCreated(1, "0", "a", {}, {}, 5)]]
    entries += [[stored(1, at, f"body {at}")] for at in range(1, 5)]
    with closing(open_rows(directory)) as connection:
        list(rows.load(connection)[1])
        for index, mutations in enumerate(entries[:4], 1):
            rows.take(Committed(index, 2, 1_000 + index, list(mutations), voters if index == 1 else None))
        flush(connection, rows)
    log = SegmentLog(files)
    log.load()
    log.append([Vote(2, "a")])
    for index, mutations in enumerate(entries, 1):
        log.append([entry(index, *mutations, term=2)])
    log.sync()
    with closing(LogEnd(directory.log_end)) as end:
        end.tell(End(log.last_index, log.term))
    files.close()
    directory.close()


def cut_to(path: Path, entries: int) -> None:
    """So that the log ends behind so many, by whole records."""
    (segment,) = (path / "log").glob("log-*")
    for size_bytes in range(segment.stat().st_size, 0, -1):
        with segment.open("r+b") as opened:
            opened.truncate(size_bytes)
        files = DirectoryFiles(path / "log")
        image = SegmentLog(files).load()
        files.close()
        if image.last_index == entries:
            return
    raise AssertionError("no such entry")


def opened_load(path: Path) -> tuple[list[str], int]:
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        loaded = load(directory, SegmentLog(files), Rows())
        list(loaded.rows)
        last = loaded.durable.entries[-1].index if loaded.durable.entries else loaded.durable.base.index
        return loaded.told, last
    finally:
        files.close()
        directory.close()


def test_a_whole_log_says_nothing(tmp_path: Path) -> None:
    logged(tmp_path / "data")
    assert opened_load(tmp_path / "data") == ([], 6)


def test_a_cut_tail_is_told_with_what_was_acknowledged(tmp_path: Path) -> None:
    logged(tmp_path / "data")
    cut_to(tmp_path / "data", 5)
    told, last = opened_load(tmp_path / "data")
    assert last == 5
    assert "Entries 6 to 6 are lost, although they were acknowledged." in told[0]


def test_a_log_that_ends_below_the_rows_is_refused_until_repair(tmp_path: Path) -> None:
    path = tmp_path / "data"
    logged(path)
    cut_to(path, 2)
    with pytest.raises(DataError, match="begins the log anew behind the rows"):
        opened_load(path)
    told = repair(path)
    assert "Lost: entries 5 to 6 of the log, although they were acknowledged." in told
    assert opened_load(path) == ([], 4)


def test_a_voter_that_forgot_what_it_acknowledged_does_not_start(tmp_path: Path) -> None:
    logged(tmp_path / "data", voters=(Voter("b-1"), Voter("c-1")))
    cut_to(tmp_path / "data", 5)
    with pytest.raises(DataError, match="must not vote any more"):
        opened_load(tmp_path / "data")


def test_a_durability_that_promised_less_goes_on(tmp_path: Path) -> None:
    logged(tmp_path / "data", voters=(Voter("b-1"), Voter("c-1")), lazy=True)
    cut_to(tmp_path / "data", 2)
    told, last = opened_load(tmp_path / "data")
    assert "promises no more" in told[0]
    assert last == 4


def test_a_damaged_note_of_the_end_is_none(tmp_path: Path) -> None:
    logged(tmp_path / "data")
    flip(tmp_path / "data" / "log.end", 9)
    cut_to(tmp_path / "data", 5)
    assert opened_load(tmp_path / "data") == ([], 5)
    cut_to(tmp_path / "data", 3)
    with pytest.raises(DataError, match="has lost its tail"):  # the rows are ahead, and a member alone never lets them
        opened_load(tmp_path / "data")


async def test_ids_of_a_term_that_was_cut_off_are_not_given_again(tmp_path: Path) -> None:
    logged(tmp_path / "data")
    with closing(LogEnd(tmp_path / "data" / "log.end")) as end:
        end.tell(End(6, 9))
    directory = DataDirectory(tmp_path / "data")
    files = DirectoryFiles(directory.log)
    loaded = load(directory, SegmentLog(files), Rows())
    list(loaded.rows)
    files.close()
    directory.close()
    assert loaded.durable.vote == Vote(9, None)
    assert "No entry is missing." in loaded.told[0]


async def test_the_end_is_noted_when_it_is_acknowledged(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    one.append([Vote(4, "a"), entry(1), entry(2)], 1)
    assert await one.next() == ("synced", 1)
    assert LogEnd(one.directory.log_end).read() == End(2, 4)
    await one.close()
