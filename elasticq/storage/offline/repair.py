"""The repair of a damaged data directory: it salvages what can be read, and reports what is lost.

Replaced files and cut bytes stay in the directory, under names that begin with ``damaged-``, so nothing is destroyed.
The repair can be stopped and run again.
"""

import sqlite3
from collections import deque
from contextlib import closing
from pathlib import Path

from elasticq.replication.records import Base, Vote
from elasticq.storage import install
from elasticq.storage.directory import DataDirectory, sync_directory
from elasticq.storage.errors import Damaged, DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.heal import heal, keep_aside
from elasticq.storage.log.acknowledged_end import End, LogEnd, lower
from elasticq.storage.log.segments import LogImage, SegmentLog
from elasticq.storage.log.segments import repair as repair_log
from elasticq.storage.offline.backup import TERMS_SKIPPED
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import check, check_all
from elasticq.storage.sqlite import open_rows
from elasticq.storage.start import compose


def repair(path: Path) -> str:
    """Repair the data directory; return a report for the operator. Raise DataError or OSError if that fails."""
    with closing(DataDirectory(path)) as directory, closing(DirectoryFiles(directory.log)) as files:
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
            told += [f"The rows are damaged: {reason}", *heal(directory, log, image)]
            image = log.load()
        return "\n".join([*told, *_join(directory, log, image, end)])


def _finish_install(directory: DataDirectory, log: SegmentLog, image: LogImage) -> tuple[LogImage, list[str]]:
    """Finish an install, or rename its snapshot if that is damaged; return the log's content and report lines."""
    try:
        check(directory.new_rows)
    except DataError as error:
        kept = keep_aside(directory, directory.new_rows)
        directory.new_rows.unlink()
        sync_directory(directory.path)
        return image, [f"A snapshot that was being installed cannot be read: {error}", f"It was set aside as {kept}."]
    return install.finish(directory, log, image), ["A snapshot that was being installed is in its place now."]


# --- rows ---------------------------------------------------------------------------------


def damage_of(directory: DataDirectory) -> str:
    """Read all rows; return the first damage found as text, or an empty text."""
    try:
        with closing(open_rows(directory)) as connection:
            check_all(connection, directory.rows)
    except Damaged as error:
        return error.reason
    except (DataError, sqlite3.Error, AssertionError) as error:
        return str(error) or "they contradict themselves"
    return ""


# --- log and rows ---------------------------------------------------------------------------


def _join(directory: DataDirectory, log: SegmentLog, image: LogImage, end: End | None) -> list[str]:
    """Make the log follow the rows; return lines that say what was done.

    If entries between the two are missing, the log is emptied, and starts again after the rows.
    """
    applied = _applied(directory)
    # Records that were cut off may have held votes of unknown terms.
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
        told.append(f"A new log was started after index {applied.index}: entries that only the old log had are lost.")
    else:
        log.append([Vote(term, None)])
        log.sync()
    if end is not None and end.last_index > reached:
        told.append(f"Lost: entries {reached + 1} to {end.last_index} of the log, although they were acknowledged.")
    return [*told, f"The rows hold all up to index {applied.index}, the log goes on to {reached}."]


def _applied(directory: DataDirectory) -> Base:
    with closing(open_rows(directory)) as connection:
        applied, mutations = Rows().load(connection)
        deque(mutations, 0)
        return applied
