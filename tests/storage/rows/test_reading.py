"""Rows that were changed or lost since they were written are found when they are read."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed
from elasticq.storage.errors import Damaged
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.salvage import salvage
from tests.storage.rows.test_rows import fetched, filled, flush, loaded, opened, stored


def changed(connection: sqlite3.Connection, table: str, column: str) -> None:
    """One bit of a value in one row."""
    value = connection.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()[0]
    other = value ^ 1 if isinstance(value, int) else bytes([value[0] ^ 16]) + value[1:]
    key = {"pages": "first", "contents": "first", "touched": "sequence", "queues": "id", "invocations": "number"}
    name = key.get(table, "name")
    row = connection.execute(f"SELECT {name} FROM {table} LIMIT 1").fetchone()[0]
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (other, row))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("pages", "live"),
        ("pages", "untouched"),
        ("pages", "last"),
        ("touched", "visible_at_ms"),
        ("touched", "hand_out"),
        ("touched", "sequence"),
        ("queues", "watermark"),
        ("queues", "attributes"),
        ("invocations", "rows"),
        ("meta", "value"),
    ],
)
def test_changed_row_is_damage(table: str, column: str) -> None:
    connection = opened()
    rows = filled(connection, 300)
    received = m.MessagesReceived(7, 1, 9, [5, 250], [3, 3], [1, 1], [1, 1])
    rows.take(Committed(400, 1, 1, [received, m.InvocationRecorded(b"a" * 16, 1, 7, 1)]))
    flush(rows, connection)
    loaded(connection)
    changed(connection, table, column)
    with pytest.raises(Damaged, match=r"rows\.db is damaged"):
        loaded(connection)


def delayed(connection: sqlite3.Connection) -> Rows:
    """Rows of queue 7 with a page of delayed messages, one of others and one of both, each in a batch of its own."""
    rows = filled(connection, 3)
    for first, delays in ((11, (900, 800, 700)), (21, (0, 0, 0)), (31, (0, 500, 400))):
        messages = [stored(first + at, visible_at_ms=delay_ms) for at, delay_ms in enumerate(delays)]
        rows.take(Committed(100 + first, 1, 1, messages))
        flush(rows, connection)
    return rows


def test_delays_are_read_from_their_pages_until_a_message_gets_another_time(tmp_path: Path) -> None:
    connection = opened(tmp_path / "rows.db")
    rows = delayed(connection)
    assert not connection.execute("SELECT * FROM touched").fetchall()
    moved = m.VisibilityChanged(7, [12], [1_500])
    received = m.MessagesReceived(7, 850, 9_000, [13], [3], [1], [850])
    rows.take(Committed(200, 1, 1, [moved, received, m.MessagesRemoved(7, [32])]))
    flush(rows, connection)
    _, mutations = Rows().load(connection)
    found = {type(each): each for each in mutations}
    assert found[m.DelaysRestored] == m.DelaysRestored(7, [33], [400])
    assert found[m.RowsRestored].sequences == [12, 13]
    _, _, view = loaded(connection)
    assert view[3] == [(7, sequence) for sequence in (1, 2, 3, 21, 22, 23, 31)]
    assert {key[1]: row[0] for key, row in view[4].items()} == {11: 900, 12: 1_500, 13: 9_000, 33: 400}
    rows.take(Committed(201, 1, 1, [m.MessagesRemoved(7, [11, 12, 13])]))
    flush(rows, connection)
    assert connection.execute("SELECT first FROM delays").fetchall() == [(31,)]
    again, _, _ = loaded(connection)
    again.take(Committed(202, 1, 1, [m.QueuePurged(7, 50, 9)]))
    flush(again, connection)
    assert not connection.execute("SELECT first FROM delays").fetchall()
    loaded(connection)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM delays WHERE first = 31",
        "UPDATE delays SET delays = substr(delays, 1, length(delays) - 1) || x'00' WHERE first = 11",
        "UPDATE delays SET first = 21 WHERE first = 31",
        "UPDATE delays SET crc = crc + 1",
    ],
)
def test_no_message_comes_too_soon_because_its_time_was_lost(tmp_path: Path, harm: str) -> None:
    file = tmp_path / "rows.db"
    with closing(opened(file)) as connection:
        delayed(connection)
        before = loaded(connection)[2]
        connection.execute(harm)
        with pytest.raises(Damaged):
            loaded(connection)
    assert not salvage(file, tmp_path / "whole.db", []).lines
    with closing(opened(tmp_path / "whole.db")) as connection:
        assert loaded(connection)[2] == before


@pytest.mark.parametrize("table", ["pages", "contents", "touched", "queues", "meta"])
def test_missing_row_is_damage(table: str) -> None:
    connection = opened()
    rows = filled(connection, 300)
    rows.take(Committed(400, 1, 1, [m.MessagesReceived(7, 1, 9, [5, 250], [3, 3], [1, 1], [1, 1])]))
    flush(rows, connection)
    connection.execute(f"DELETE FROM {table}")
    with pytest.raises(Damaged):
        loaded(connection)


def test_changed_contents_are_damage_when_they_are_fetched() -> None:
    connection = opened()
    filled(connection, 300)
    changed(connection, "contents", "contents")
    rows, _, _ = loaded(connection)
    with pytest.raises(Damaged, match="contents of queue 7"):
        fetched(rows, connection, 7, [1])


def test_flipped_byte_of_the_file_is_found_or_does_not_matter(tmp_path: Path) -> None:
    path, broken = tmp_path / "rows.db", tmp_path / "broken.db"
    connection = opened(path)
    rows = filled(connection, 2_000)
    rows.take(Committed(3_000, 1, 1, [m.MessagesReceived(7, 1, 9, list(range(1, 900)), *[[3] * 899] * 3)]))
    flush(rows, connection)
    expected = loaded(connection)[2]
    contents = fetched(rows, connection, 7, list(range(1, 2_001)))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    data, found, random_ = path.read_bytes(), 0, random.Random(1)
    for _ in range(150):
        at = random_.randrange(100, len(data))
        broken.write_bytes(data[:at] + bytes([data[at] ^ 1 << random_.randrange(8)]) + data[at + 1 :])
        connection = sqlite3.connect(broken, isolation_level=None)
        try:
            schema.prepare(connection)
            rows, _, view = loaded(connection)
            assert view == expected
            assert fetched(rows, connection, 7, list(range(1, 2_001))) == contents
        except (Damaged, sqlite3.DatabaseError):
            found += 1
        connection.close()
    assert found > 100
