"""Rows that were changed or lost since they were written are found when they are read."""

import random
import sqlite3
from pathlib import Path

import pytest

from elasticq.engine import mutations as m
from elasticq.node.outputs import Committed
from elasticq.storage import schema
from elasticq.storage.errors import Damaged
from tests.storage.test_rows import fetched, filled, flush, loaded, opened


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
