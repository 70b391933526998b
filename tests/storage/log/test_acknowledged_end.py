"""Where the log ended when it was last acknowledged, and what a start says when it ends before that."""

from contextlib import closing
from pathlib import Path

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed
from elasticq.replication.records import Vote, Voter
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.acknowledged_end import End, LogEnd
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.offline.repair import repair
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import flush
from elasticq.storage.sqlite import load, open_rows
from tests.storage.damaged import flip, stored
from tests.storage.test_storage import Opened, entry


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
    with pytest.raises(DataError, match="starts a new log after the rows"):
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
