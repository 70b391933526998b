"""Contents found in the raw pages of a file that SQLite cannot read."""

import sqlite3
from contextlib import closing
from pathlib import Path

from elasticq.storage.rows.carve import carve
from tests.storage.damaged import whole as whole


def test_carving_finds_contents_and_does_not_take_groups_for_them(whole: Path) -> None:
    with closing(sqlite3.connect(whole / "rows.db")) as connection:
        rows = connection.execute("SELECT queue_id, first, contents FROM contents").fetchall()
    assert dict(carve(whole / "rows.db", {row[:2] for row in rows})) == {row[:2]: row[2] for row in rows}
