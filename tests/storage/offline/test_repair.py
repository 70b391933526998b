"""Damaged bytes of the rows: what a repair tells, what it keeps, and that a backup does not hide them."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from elasticq.engine.ordering.priority import PRIORITY
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import MessageAttributeValue
from elasticq.node.outputs import Committed
from elasticq.storage.errors import DataError
from elasticq.storage.offline.backup import backup
from elasticq.storage.offline.repair import repair
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.salvage import salvage
from tests.storage.damaged import change, filled, flip, messages_in, refusal_of, state_in, told_lost
from tests.storage.damaged import path as path
from tests.storage.damaged import whole as whole
from tests.storage.rows.test_rows import PRIORITY_QUEUE, created, flush, opened, stored

FLIPS = 20


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


@pytest.mark.parametrize("bit", [2, 7])
def test_definitions_of_tables_that_changed_are_told_and_repaired(whole: Path, tmp_path: Path, bit: int) -> None:
    """SQLite quotes what it cannot read: bytes that are no text at all are an error of another kind in Python."""
    told_damaged = 0
    for number, at in enumerate(range(150, schema.PAGE_BYTES, 371)):
        path = tmp_path / str(number)
        shutil.copytree(whole, path)
        flip(path / "rows.db", at, bit)
        refusal = refusal_of(lambda path=path: backup(path, tmp_path / "backup"))  # type: ignore[misc]
        (tmp_path / "backup").unlink(missing_ok=True)
        assert not refusal.startswith("no remedy"), refusal
        assert ("The rows are not damaged" in repair(path)) == (not refusal), at
        assert "not damaged" in repair(path), at
        told_damaged += bool(refusal)
    assert told_damaged > 2


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


def test_priorities_come_from_their_table_and_else_from_the_contents(tmp_path: Path) -> None:
    file = tmp_path / "rows.db"
    attributes = {PRIORITY: MessageAttributeValue("Number", "3")}
    with closing(opened(file)) as connection:
        rows = Rows()
        messages = [stored(sequence, PRIORITY_QUEUE, attributes=attributes) for sequence in (1, 2)]
        rows.take(Committed(1, 1, 1, [created(PRIORITY_QUEUE), *messages]))
        flush(rows, connection)
        rows.take(Committed(2, 1, 1, [m.PrioritiesSet(PRIORITY_QUEUE, [2], [-5])]))
        flush(rows, connection)
    assert priorities_salvaged(file, tmp_path / "whole") == {1: 3, 2: -5}
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM queues")
    assert priorities_salvaged(file, tmp_path / "nameless") == {1: 3, 2: -5}
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE priorities SET crc = 0 WHERE part = 1")
    assert priorities_salvaged(file, tmp_path / "damaged") == {1: 3, 2: 3}


def priorities_salvaged(file: Path, into: Path) -> dict[int, int]:
    salvage(file, into, [])
    with closing(opened(into)) as connection:
        _, mutations = Rows().load(connection)
        found = [each for each in mutations if isinstance(each, m.PrioritiesRestored)]
    return {sequence: each.priorities[at] for each in found for at, sequence in enumerate(each.sequences)}


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


def test_messages_whose_pages_are_gone_with_their_headers_are_counted(path: Path) -> None:
    """Nothing names them any more but the number in their queue's row."""
    before = messages_in(path)
    first = min(sequence for queue_id, sequence in before if queue_id == 1)
    change(path, "DELETE FROM pages WHERE queue_id = 1 AND first = (SELECT min(first) FROM pages WHERE queue_id = 1)")
    change(path, f"DELETE FROM contents WHERE queue_id = 1 AND first = {first}")
    told = repair(path)
    gone = before.keys() - messages_in(path).keys()
    assert gone
    assert {queue_id for queue_id, _ in gone} == {1}
    assert f"Lost: {len(gone)} messages of queue a, which" in told
    assert "not damaged" in repair(path)


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
