"""The replacement of damaged rows by what can be read of them; the damaged file is kept under another name.

The new rows are what salvage.py reads from the old ones. If rows are missing there, but the log still begins with
entry 1, the new file starts empty. The start then fills it from the log, and nothing is lost. The replacement is an
install, like that of a snapshot: if the machine stops meanwhile, either the old or the new rows are used.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from elasticq.storage import install
from elasticq.storage.directory import DataDirectory, sync_directory, sync_file
from elasticq.storage.errors import DataError
from elasticq.storage.log.segments import LogImage, SegmentLog
from elasticq.storage.rows import schema
from elasticq.storage.rows.salvage import NothingToSalvage, salvage
from elasticq.storage.snapshot import base_of
from elasticq.storage.start import others_of

SALVAGED: Final = "rows.salvaged.db"


class NobodyElse(DataError):
    """This member is the only voter: what cannot be read is lost, so the operator has to decide."""


def heal(directory: DataDirectory, log: SegmentLog, image: LogImage, *, among_others: bool = False) -> list[str]:
    """Replace damaged rows by what can be read of them. Return lines for the operator.

    They describe what was lost, and name the old file, which is kept.

    ``image`` is what ``log`` returned when it was loaded. ``among_others``: replace the rows only if there are other
    voters, which have what is lost; raise NobodyElse if there are none. Raise DataError or OSError if it fails.
    """
    install.clean(directory)
    made = directory.path / SALVAGED
    _remove(made)
    lost = _make(directory, made, image)
    if among_others and not others_of(directory.member_id, image.entries, base_of(made)):
        _remove(made)
        raise NobodyElse("this member is alone")
    kept = keep_aside(directory, directory.rows)
    sync_file(made)
    install.stage(directory, made)
    install.commit(directory)
    install.finish(directory, log, image)
    if lost and among_others:
        lost.append("Other members have it, and this one takes their rows before it takes part again.")
    return [*(lost or ["Nothing of them is lost."]), f"The damaged rows were set aside as {kept}."]


def keep_aside(directory: DataDirectory, file: Path) -> Path:
    """Give a file and its WAL a second name, so they stay when the file is replaced; return the new path."""
    number = 1
    while (kept := directory.path / f"damaged-{number}-{file.name}").exists():
        number += 1
    for suffix in (*install.SIDE_FILES, ""):
        side = Path(f"{file}{suffix}")
        if side.exists():
            os.link(side, f"{kept}{suffix}")
    sync_directory(directory.path)
    return kept


def _make(directory: DataDirectory, made: Path, image: LogImage) -> list[str]:
    """Write the new rows to ``made``; return lines that say what is lost, none if nothing is."""
    made.touch(0o600)
    goes_back = bool(image.entries) and image.entries[0].index == 1
    try:
        salvaged = salvage(directory.rows, made, image.entries)
        if not (salvaged.lines and goes_back and image.last_index >= salvaged.applied_index):
            return salvaged.lines
        lines = []
    except NothingToSalvage as error:
        lines = [] if goes_back else [f"{error}. Lost: every queue and message that is not in the log any more."]
    _remove(made)
    made.touch(0o600)
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        schema.prepare(connection)
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # without a WAL all rows are in one file
    return lines


def _remove(made: Path) -> None:
    for suffix in ("", *install.SIDE_FILES):
        Path(f"{made}{suffix}").unlink(missing_ok=True)
