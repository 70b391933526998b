"""The file of the rows: how it is made, and that a newer format is left alone."""

from pathlib import Path

import pytest

from elasticq.storage.errors import WrongFormat
from elasticq.storage.rows import schema
from tests.storage.rows.test_rows import opened


def test_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    connection = opened(path)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    with pytest.raises(WrongFormat, match=f"format {schema.FORMAT + 1}"):
        schema.prepare(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT + 1,)


def test_file_of_an_older_format_gets_the_missing_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = opened(tmp_path / "rows.db")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE added (number INTEGER)",)))
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + 1)
    schema.prepare(connection)
    assert connection.execute("SELECT count(*) FROM added").fetchone() == (0,)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
    schema.prepare(connection)


def test_file_from_before_the_first_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = opened(tmp_path / "rows.db")
    connection.execute("PRAGMA application_id = 0")
    with pytest.raises(WrongFormat, match="before the first release"):
        schema.prepare(connection)
    assert connection.execute("PRAGMA application_id").fetchone() == (0,)


def test_file_is_made_with_incremental_vacuum_and_a_write_ahead_log(tmp_path: Path) -> None:
    connection = opened(tmp_path / "rows.db")
    values = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("auto_vacuum", "journal_mode", "page_size")
    }
    assert values == {"auto_vacuum": 2, "journal_mode": "wal", "page_size": 8_192}
