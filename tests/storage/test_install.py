"""A snapshot takes the place of rows and log: a kill at any of its steps leaves the old state or the new one."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from elasticq.engine.state import State
from elasticq.replication.records import Base, Durable, Vote
from elasticq.storage import install
from elasticq.storage.directory import DataDirectory
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.offline.repair import repair
from elasticq.storage.rows.rows import Rows
from elasticq.storage.sqlite import load
from tests.storage.test_snapshot import VOTERS, filled, snapshot_file, state_of
from tests.storage.test_storage import Opened, entry, message


class Stop(BaseException):
    """The process is killed before this call."""


CHANGING = {"os.rename", "os.remove", "os.truncate", "os.chmod", "shutil.copyfile"}


class Killer:
    """Counts the calls that change a directory, wherever they come from, and stops before the nth."""

    def __init__(self) -> None:
        self.left: int | None = None
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.left is None:
            return
        is_opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGING or is_opened:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Stop

    def run(self, work: Callable[[], object], calls: int) -> bool:
        """True: it came to its end."""
        self.left = calls
        try:
            work()
        except Stop:
            return False
        finally:
            self.left = None
        return True


@pytest.fixture(scope="module")
def killer() -> Killer:
    return Killer()  # an audit hook stays for ever


async def _old_directory(path: Path) -> None:
    """As kill -9 leaves it: a WAL that counts, and log entries behind the snapshot's index."""
    one = Opened(path.with_name("living"))
    await filled(one)
    while one.storage._database.stored_index < 3:
        await one.next()
    one.append([Vote(6, "c"), *(entry(index, message(index)) for index in range(4, 13))], 20)
    while await one.next() != ("synced", 20):
        pass
    shutil.copytree(path.with_name("living"), path)
    assert (path / "rows.db-wal").stat().st_size
    await one.close()


def _loaded(path: Path) -> tuple[Durable, bytes]:
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        loaded = load(directory, SegmentLog(files), Rows())
        return loaded.durable, _names(state_of(loaded.rows))
    finally:
        files.close()
        directory.close()


def _names(state: State) -> bytes:
    return repr([(queue.name, queue.count, queue.last_sequence) for queue in state.queues.values()]).encode()


def _install(path: Path, file: Path) -> None:
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        install.stage(directory, file)
        install.commit(directory)
        list(load(directory, SegmentLog(files), Rows()).rows)
    finally:
        files.close()
        directory.close()


async def test_a_kill_at_any_step_of_an_install_leaves_the_old_or_the_new_state(tmp_path: Path, killer: Killer) -> None:
    await _old_directory(tmp_path / "old")
    file = snapshot_file(tmp_path / "incoming.db")
    shutil.copytree(tmp_path / "old", tmp_path / "untouched")
    old = _loaded(tmp_path / "untouched")
    assert [kept.index for kept in old[0].entries] == list(range(1, 13))
    new = Durable(Vote(6, "c"), [], Base(9, 4, 1_009, VOTERS), 9), b"[('new', 300, 300)]"
    seen = []
    for calls in range(100):
        path = tmp_path / f"killed-{calls}"
        shutil.copytree(tmp_path / "old", path)
        shutil.copyfile(file, tmp_path / f"{calls}.db")
        is_over = killer.run(partial(_install, path, tmp_path / f"{calls}.db"), calls)
        found = _recovered(path, killer)
        assert found in (old, new)
        assert _loaded(path) == found
        assert not list(path.glob("rows.new*"))
        seen.append(found == new)
        if is_over:
            break
    assert is_over
    assert seen == sorted(seen), "once it is the new state it stays so"
    assert 2 < seen.index(True) < len(seen) - 5, "there were steps before and behind the turning point"


def _recovered(path: Path, killer: Killer) -> tuple[Durable, bytes]:
    """The next start is killed at each of its steps as well, until one comes through."""
    for calls in range(100):
        if killer.run(lambda: _loaded(path), calls):
            return _loaded(path)
    raise AssertionError("it never comes to its end")


async def test_repair_ends_an_install(tmp_path: Path) -> None:
    await _old_directory(tmp_path / "old")
    snapshot_file(tmp_path / "old" / "rows.new.db")
    assert "in its place now" in repair(tmp_path / "old")
    assert _loaded(tmp_path / "old")[1] == b"[('new', 300, 300)]"


async def test_repair_sets_a_damaged_snapshot_aside(tmp_path: Path) -> None:
    await _old_directory(tmp_path / "old")
    (tmp_path / "old" / "rows.new.db").write_bytes(b"none")
    assert "damaged-1-rows.new.db" in repair(tmp_path / "old")
    assert _loaded(tmp_path / "old")[1].startswith(b"[('orders'")
