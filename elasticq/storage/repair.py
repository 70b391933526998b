"""Makes a damaged data directory usable again: salvages what can be read, says what is lost.

What is taken out of use is kept beside it under a name that begins with
``damaged-``, so nothing is destroyed. Safe to be stopped and run again.
"""

import os
import sqlite3
from collections import deque
from pathlib import Path
from typing import NamedTuple

from elasticq.replication.records import Base, Vote
from elasticq.storage import install, schema
from elasticq.storage.backup import TERMS_SKIPPED
from elasticq.storage.directory import DataDirectory, sync_directory, sync_file
from elasticq.storage.errors import Damaged, DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log import LogImage, SegmentLog
from elasticq.storage.log import repair as repair_log
from elasticq.storage.log_end import End, LogEnd, lower
from elasticq.storage.rows import Rows
from elasticq.storage.salvage import NothingToSalvage, salvage
from elasticq.storage.snapshot import check, check_all
from elasticq.storage.sqlite import open_rows
from elasticq.storage.start import compose

SALVAGED = "rows.salvaged.db"


def repair(path: Path) -> str:
    """What was done, for the operator, line by line. Raises DataError, OSError."""
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        end = LogEnd(directory.log_end).read()
        told = [*repair_log(files).lines]
        log = SegmentLog(files)
        image = log.load()
        if directory.new_rows.exists():
            image, lines = _finish_install(directory, log, image)
            told += lines
        reason = damage_of(directory)
        if not reason:
            told.append("The rows are not damaged, nothing was changed.")
        else:
            healed = heal(directory, log, image)
            image = healed.image
            told += [f"The rows are damaged: {reason}", *healed.told]
        return "\n".join([*told, *_join(directory, log, image, end)])
    finally:
        files.close()
        directory.close()


def _finish_install(directory: DataDirectory, log: SegmentLog, image: LogImage) -> tuple[LogImage, list[str]]:
    """The state of another member that was about to take the place of this one's."""
    try:
        check(directory.new_rows)
    except DataError as error:
        kept = _keep(directory, directory.new_rows)
        directory.new_rows.unlink()
        sync_directory(directory.path)
        return image, [f"A snapshot that was being installed cannot be read: {error}", f"It was set aside as {kept}."]
    return install.finish(directory, log, image), ["A snapshot that was being installed is in its place now."]


# --- rows ---------------------------------------------------------------------------------


def damage_of(directory: DataDirectory) -> str:
    """What is wrong with the rows, after all of them were read; empty if nothing is."""
    try:
        connection = open_rows(directory)
        try:
            check_all(connection, directory.rows)
        finally:
            connection.close()
    except Damaged as error:
        return error.reason
    except (DataError, sqlite3.Error, AssertionError) as error:
        return str(error) or "they contradict themselves"
    return ""


class Healed(NamedTuple):
    """image: what the log holds now; told: what was lost, and where the old bytes are."""

    image: LogImage
    told: list[str]


def heal(directory: DataDirectory, log: SegmentLog, image: LogImage) -> Healed:
    """Rows that can be read in the place of damaged ones. Raises DataError, OSError."""
    install.clean(directory)
    made = directory.path / SALVAGED
    lost = _make_rows(directory, made, image)
    kept = _keep(directory, directory.rows)
    sync_file(made)
    install.stage(directory, made)
    install.commit(directory)
    image = install.finish(directory, log, image)
    return Healed(image, [*(lost or ["Nothing of them is lost."]), f"The damaged rows are kept as {kept}."])


def _make_rows(directory: DataDirectory, made: Path, image: LogImage) -> list[str]:
    """What is lost, line by line."""
    for suffix in ("", *install.SIDE_FILES):
        Path(f"{made}{suffix}").unlink(missing_ok=True)
    made.touch(0o600)
    reaches_back = bool(image.entries) and image.entries[0].index == 1
    try:
        salvaged = salvage(directory.rows, made, image.entries)
        if not (salvaged.lines and reaches_back and image.last_index >= salvaged.applied_index):
            return salvaged.lines
    except NothingToSalvage as error:
        lines = [f"{error}. Lost: every queue and message that is not in the log any more."]
    made.unlink()
    made.touch(0o600)
    connection = sqlite3.connect(made, isolation_level=None)
    try:
        schema.prepare(connection)
        connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        connection.close()
    return [] if reaches_back else lines


def _keep(directory: DataDirectory, file: Path) -> Path:
    """A second name for what is about to be replaced, under which it stays."""
    number = 1
    while (kept := directory.path / f"damaged-{number}-{file.name}").exists():
        number += 1
    for suffix in (*install.SIDE_FILES, ""):
        side = directory.path / (file.name + suffix)
        if side.exists():
            os.link(side, directory.path / (kept.name + suffix))
    sync_directory(directory.path)
    return kept


# --- log and rows ---------------------------------------------------------------------------


def _join(directory: DataDirectory, log: SegmentLog, image: LogImage, end: End | None) -> list[str]:
    """Log and rows must go together. Where they do not, the rows count and the log begins anew behind them."""
    applied = _applied(directory)
    # Records that were cut off may have held votes of terms that this process cannot know.
    term = max(image.vote.term, applied.term, 0 if end is None else end.term) + TERMS_SKIPPED
    told: list[str] = []
    is_new = 0 < image.last_index < applied.index
    try:
        compose(Vote(term, None), image.entries, applied)
    except DataError as error:
        told.append(str(error))
        is_new = True
    reached = applied.index if is_new else max(image.last_index, applied.index)
    lower(directory.log_end, End(0 if is_new else image.last_index, term))
    if is_new:
        log.reset(Vote(term, None))
        told.append(f"The log was begun anew behind index {applied.index}: what only it held is lost.")
    else:
        log.append([Vote(term, None)])
        log.sync()
    if end is not None and end.last_index > reached:
        told.append(f"Lost: entries {reached + 1} to {end.last_index} of the log, although they were acknowledged.")
    return [*told, f"The rows hold all up to index {applied.index}, the log goes on to {reached}."]


def _applied(directory: DataDirectory) -> Base:
    connection = open_rows(directory)
    try:
        applied, mutations = Rows().load(connection)
        deque(mutations, 0)
        return applied
    finally:
        connection.close()
