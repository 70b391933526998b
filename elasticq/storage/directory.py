"""The data directory of one member: who uses it, which format it has, which member it is.

lock           held (flock) by the process that uses the directory
format.json    format, member_id and created; there before anything else is
reserve        space set aside for receives and deletes on a full disk
log/           segments of the log
rows.db        committed state
rows.new.db    another member's state that takes the place of all this: see install.py
snapshots/     copies of the rows for members that are too far behind; nothing of a former life
discarded/     entries that clients had been told are stored, and a newer master did not have
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from elasticq.storage.errors import DataError, DirectoryInUse, FormatTooNew

FORMAT: Final = 5
FORMAT_FILE: Final = "format.json"
LOCK_FILE: Final = "lock"
_NEW_FORMAT_FILE: Final = "format.json.new"


class Format(Struct, frozen=True):
    """created: seconds since the epoch, for people.

    lazy_sync: the log may end with several frames that were never synced (durability os or none), so
    that a power cut may have torn any of them. Since format 2; what format 1 knew not may be so.
    Format 3: log and rows may name voters, which an older version would not see. Format 4: they may
    hold dead letters and FIFO messages, whose further fields an older version would drop. Format 5:
    log and rows may hold leases, ids that senders have used, and moves of the clock by tests.
    """

    format: int
    member_id: str
    created: int
    lazy_sync: bool = True


class DataDirectory:
    """Held from the constructor until ``close``."""

    def __init__(self, path: Path, node_id: str | None = None) -> None:
        """Opens; makes it for a member named ``node_id`` where there is none yet. Raises DataError."""
        self.path = path
        self.log = path / "log"
        self.rows = path / "rows.db"
        self.new_rows = path / "rows.new.db"
        self.reserve = path / "reserve"
        self.snapshots = path / "snapshots"
        self.discarded = path / "discarded"
        try:
            if node_id is not None:
                _make_directories(path)
            self._lock = _lock(path)
        except OSError as error:
            raise DataError(f"{path} cannot be used as data directory: {error.strerror or error}") from error
        try:
            self.format = _read_format(path) or _make_format(path, node_id)
            if self.format.format < FORMAT:
                self._change(self.format.lazy_sync)
            self.log.mkdir(mode=0o700, exist_ok=True)
            self.sync()
        except OSError as error:
            self.close()
            raise DataError(f"{path} cannot be used as data directory: {error.strerror or error}") from error
        except DataError:
            self.close()
            raise

    @property
    def member_id(self) -> str:
        return self.format.member_id

    def remember_lazy_sync(self, lazy_sync: bool) -> None:
        """Before the first frame that is not synced, and after all are."""
        if lazy_sync != self.format.lazy_sync:
            self._change(lazy_sync)

    def _change(self, lazy_sync: bool) -> None:
        self.format = Format(FORMAT, self.format.member_id, self.format.created, lazy_sync)
        _write_format(self.path, self.format)

    def sync(self) -> None:
        """The names in it are durable when this returns."""
        sync_directory(self.path)

    def close(self) -> None:
        """Another process may use it from now on."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Content and name are durable when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def _make_directories(path: Path) -> None:
    """With those above it, each durable in its parent."""
    if not path.exists():
        _make_directories(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        sync_directory(path.parent)


def _lock(path: Path) -> int:
    if not path.is_dir():
        raise DataError(f"{path} is not a data directory: there is no such directory")
    _refuse_foreign(path)
    descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DirectoryInUse(f"{path} is used by another process of elasticq: stop the server first") from None
    return descriptor


def _refuse_foreign(path: Path) -> None:
    """A directory with other things in it was hardly meant."""
    names = {each.name for each in path.iterdir()}
    if FORMAT_FILE not in names and names - {LOCK_FILE, _NEW_FORMAT_FILE}:
        raise DataError(f"{path} is not a data directory: it holds files, but no {FORMAT_FILE}")


def _read_format(path: Path) -> Format | None:
    try:
        text = (path / FORMAT_FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        number = msgspec.json.decode(text)["format"]
        if isinstance(number, int) and number > FORMAT:
            raise FormatTooNew(
                f"{path} has format {number}, this version of elasticq knows up to {FORMAT}: use a newer version"
            )
        return msgspec.json.decode(text, type=Format)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise DataError(f"{path / FORMAT_FILE} is damaged: {error}. Restore a backup") from error


def _make_format(path: Path, node_id: str | None) -> Format:
    if node_id is None:
        raise DataError(f"{path} is not a data directory: it has no {FORMAT_FILE}")
    made = Format(FORMAT, f"{node_id}-{os.urandom(8).hex()}", int(time.time()), lazy_sync=False)
    _write_format(path, made)
    return made


def _write_format(path: Path, made: Format) -> None:
    """Whole or not at all, whenever the machine stops."""
    new = path / _NEW_FORMAT_FILE
    new.write_bytes(msgspec.json.encode(made) + b"\n")
    sync_file(new)
    new.replace(path / FORMAT_FILE)
    sync_directory(path)
