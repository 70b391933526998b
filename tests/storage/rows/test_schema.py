"""The file of the rows: how it is made, and that a newer format is left alone."""

from pathlib import Path

import pytest

from elasticq.storage.errors import FormatTooNew
from elasticq.storage.rows import schema
from tests.storage.rows.test_rows import opened


def test_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    connection = opened(path)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    with pytest.raises(FormatTooNew, match=f"format {schema.FORMAT + 1}"):
        schema.prepare(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT + 1,)


def test_file_is_made_with_incremental_vacuum_and_a_write_ahead_log(tmp_path: Path) -> None:
    connection = opened(tmp_path / "rows.db")
    values = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("auto_vacuum", "journal_mode", "page_size")
    }
    assert values == {"auto_vacuum": 2, "journal_mode": "wal", "page_size": 8_192}
