"""Makes a damaged data directory usable again: salvages what can be read, says what is lost.

What is taken out of use is kept beside it under a name that begins with
``damaged-``, so nothing is destroyed. Safe to be stopped and run again.
"""

import sqlite3
from collections import deque
from pathlib import Path

import msgspec

from elasticq.replication.records import Base, Vote
from elasticq.storage import install
from elasticq.storage.backup import TERMS_SKIPPED
from elasticq.storage.directory import DataDirectory, sync_directory
from elasticq.storage.errors import DataError, FormatTooNew
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log import LogImage, SegmentLog
from elasticq.storage.log import repair as repair_log
from elasticq.storage.rows import Rows
from elasticq.storage.snapshot import check
from elasticq.storage.sqlite import open_rows
from elasticq.storage.start import compose


def repair(path: Path) -> str:
    """What was done, for the operator, line by line. Raises DataError, OSError."""
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        lines = [*repair_log(files).lines, *_finish_install(directory, files)]
        applied, told = _repair_rows(directory)
        log = SegmentLog(files)
        return "\n".join([*lines, *told, *_join(log, log.load(), applied)])
    finally:
        files.close()
        directory.close()


def _finish_install(directory: DataDirectory, files: DirectoryFiles) -> list[str]:
    """The state of another member that was about to take the place of this one's."""
    install.clean(directory)
    if not directory.new_rows.exists():
        return []
    try:
        check(directory.new_rows)
    except DataError as error:
        kept = _set_aside(directory, directory.new_rows)
        return [f"A snapshot that was being installed cannot be read: {error}", f"It was set aside as {kept}."]
    log = SegmentLog(files)
    install.finish(directory, log, log.load().vote)
    return ["A snapshot that was being installed is in its place now."]


def _repair_rows(directory: DataDirectory) -> tuple[Base, list[str]]:
    try:
        return _read_rows(directory), ["The rows are not damaged, nothing was changed."]
    except FormatTooNew:
        raise
    except (DataError, sqlite3.Error, msgspec.DecodeError, AssertionError) as error:
        reason = str(error) or "they contradict themselves"
    kept = _set_aside(directory, directory.rows)
    return _read_rows(directory), [
        f"The rows cannot be read: {reason}",
        f"They were set aside as {kept}. Lost: every queue and message that is not in the log any more.",
    ]


def _read_rows(directory: DataDirectory) -> Base:
    """Everything in them, checked, and up to where they hold it."""
    connection = open_rows(directory)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise DataError(verdict)
        applied, mutations = Rows().load(connection)
        deque(mutations, 0)
        return applied
    finally:
        connection.close()


def _set_aside(directory: DataDirectory, file: Path) -> Path:
    number = 1
    while (kept := directory.path / f"damaged-{number}-{file.name}").exists():
        number += 1
    for suffix in install.SIDE_FILES:
        side = directory.path / (file.name + suffix)
        if side.exists():
            side.rename(directory.path / (kept.name + suffix))
    file.rename(kept)
    sync_directory(directory.path)
    return kept


def _join(log: SegmentLog, image: LogImage, applied: Base) -> list[str]:
    """Log and rows must go together. Where they do not, the rows count and the log begins anew behind them."""
    try:
        compose(image.vote, image.entries, applied)
    except DataError as error:
        # Ids of the terms that are lost must not be given again.
        log.reset(Vote(max(image.vote.term, applied.term) + TERMS_SKIPPED, None))
        return [f"{error}", f"The log was begun anew behind index {applied.index}: what only it held is lost."]
    # Records that were cut off may have held votes of terms that this process cannot know.
    log.append([Vote(max(image.vote.term, applied.term) + TERMS_SKIPPED, None)])
    log.sync()
    return [f"The rows hold all up to index {applied.index}, the log goes on to {image.last_index or applied.index}."]
