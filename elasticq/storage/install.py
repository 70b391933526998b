"""The replacement of log and rows by a snapshot, in steps that a stop of the machine cannot tear apart.

After a stop, the member has either the old state or the new one:

    stage    the snapshot is moved next to the rows as rows.new.partial and synced    old state
             rows.new.partial is renamed to rows.new.db, and the name synced          new state from here on
    finish   the log is reset: it keeps the vote and no entry, unless it goes on from where the snapshot ends
             the WAL of the old rows is removed, and the name synced: SQLite would replay it over the new
             rows.new.db is renamed to rows.db, and the name synced

A start that finds rows.new.db runs ``finish`` before it reads anything else. It repeats all steps, as each can be
done twice. So no process reads a state between two steps.

A log that goes on from where the snapshot ends is kept, because its entries were acknowledged. This happens when
damaged rows are replaced, by what is left of them or by those of another member. The term of the vote is raised to
the snapshot's term if it is lower: in every log, the vote's term is at least that of the entries.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from elasticq.replication.records import Base, Entry, Vote
from elasticq.storage.directory import DataDirectory, sync_file
from elasticq.storage.log.acknowledged_end import End, lower
from elasticq.storage.log.segments import LogImage, SegmentLog
from elasticq.storage.snapshot import base_of

SIDE_FILES: Final = ("-wal", "-shm")


def stage(directory: DataDirectory, file: Path) -> None:
    """Move the snapshot ``file`` into the directory; nothing else changes. Raise OSError if that fails."""
    partial = _partial(directory)
    try:
        file.replace(partial)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copyfile(file, partial)
        file.unlink()
    partial.chmod(0o600)
    sync_file(partial)


def commit(directory: DataDirectory) -> None:
    """Rename the staged snapshot: from here on the new state is used. Raise OSError if that fails."""
    _partial(directory).rename(directory.new_rows)
    directory.sync()


def clean(directory: DataDirectory) -> None:
    """Remove the snapshot of an install that was not committed."""
    _partial(directory).unlink(missing_ok=True)


def finish(directory: DataDirectory, log: SegmentLog, image: LogImage) -> LogImage:
    """Finish an install that was committed; return what the log then holds.

    ``image`` is what ``log`` returned when it was loaded. Raise OSError or DataError if the install fails.
    """
    base = base_of(directory.new_rows)
    if not _goes_on(image.entries, base):
        vote = image.vote if image.vote.term >= base.term else Vote(base.term, None)
        lower(directory.log_end, End(0, vote.term))
        log.reset(vote)
        image = LogImage(vote, [], 0)
    for suffix in SIDE_FILES:
        Path(f"{directory.rows}{suffix}").unlink(missing_ok=True)
    directory.sync()
    os.replace(directory.new_rows, directory.rows)
    directory.sync()
    return image


def _goes_on(entries: list[Entry], base: Base) -> bool:
    """Return whether the log continues the snapshot.

    It does if it begins right after the base, or if its entry at the base's index has the base's term.
    """
    if not entries or not entries[0].index <= base.index + 1 <= entries[-1].index + 1:
        return False
    return entries[0].index == base.index + 1 or entries[base.index - entries[0].index].term == base.term


def _partial(directory: DataDirectory) -> Path:
    return directory.new_rows.with_suffix(".partial")
