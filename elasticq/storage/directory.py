"""The data directory of one member: its lock, its format, and the identity of the member.

lock           held (flock) by the process that uses the directory
format.json    format, member_id and created, written before all else; format.json.copy holds the same
log.end        how far the log reached: see log/acknowledged_end.py
reserve        space set aside for receives and deletes on a full disk
log/           segments of the log
rows.db        committed state
rows.new.db    another member's state that will replace log and rows: see install.py
damaged/       bytes of pages that could not be read, kept for people
snapshots/     copies of the rows for members that are too far behind; removed at each start
removed        exists if this member was a voter and was removed from the cluster
discarded/     entries that were acknowledged to clients, but that a newer master did not have
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct

from elasticq.storage.errors import (
    BEFORE_FIRST_RELEASE,
    DataError,
    DirectoryInUse,
    WrongFormat,
)

FORMAT: Final = 1
"""The format of the data directory. It changes if the log or the rows hold data that an older version would ignore."""
FORMAT_FILE: Final = "format.json"
LOCK_FILE: Final = "lock"
_COPY_FILE: Final = "format.json.copy"
_NEW_FORMAT_FILE: Final = "format.json.new"
_CRC_MARK: Final = b',"crc":'


class Format(Struct, frozen=True, rename={"format": "elasticq"}):
    """The content of format.json. created: seconds since the epoch, for people.

    lazy_sync: the log may end with several frames that were never synced (durability ``os`` or ``none``).
    A power cut may have torn any of them.
    """

    format: int
    member_id: str
    created: int
    lazy_sync: bool


class DataDirectory:
    """A data directory, locked for this process from the constructor until ``close``."""

    def __init__(self, path: Path, node_id: str | None = None) -> None:
        """Open the directory. Raise DataError if it cannot be used.

        ``node_id``: the name of the member for which the directory is made if it does not exist. If it is None, a
        missing directory is an error.
        """
        self.path = path
        self.log = path / "log"
        self.rows = path / "rows.db"
        self.new_rows = path / "rows.new.db"
        self.reserve = path / "reserve"
        self.snapshots = path / "snapshots"
        self.discarded = path / "discarded"
        self.damaged = path / "damaged"
        self.log_end = path / "log.end"
        self._removed = path / "removed"
        try:
            if node_id is not None:
                _make_directories(path)
            self._lock = _lock(path)
        except OSError as error:
            raise DataError(f"{path} cannot be used as data directory: {error.strerror or error}") from error
        try:
            self.format = _read_format(path) or _make_format(path, node_id)
            _make_private(path, self.rows)
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
        """Write ``lazy_sync`` to format.json: True before the first unsynced frame, False once all are synced."""
        if lazy_sync != self.format.lazy_sync:
            self._change(lazy_sync)

    def _change(self, lazy_sync: bool) -> None:
        self.format = Format(FORMAT, self.format.member_id, self.format.created, lazy_sync)
        _write_format(self.path, self.format)

    @property
    def was_removed(self) -> bool:
        """Return whether the last call of ``remember_removed``, in this or an earlier process, was with True."""
        return self._removed.exists()

    def remember_removed(self, was_removed: bool) -> None:
        """Store durably that this member was removed from its cluster, or that it is a voter again.

        Raise OSError if that fails.
        """
        if was_removed == self.was_removed:
            return
        if was_removed:
            self._removed.touch(0o600)
        else:
            self._removed.unlink()
        self.sync()

    def sync(self) -> None:
        """Make the names of the files in the directory durable."""
        sync_directory(self.path)

    def close(self) -> None:
        """Release the lock, so that another process can use the directory."""
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
    """Make the content and the name of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def _make_directories(path: Path) -> None:
    """Make the directory and its missing parents, and make their names durable."""
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
    """Raise DataError if the directory holds other files but no format file: it was probably named by mistake."""
    names = {each.name for each in path.iterdir()}
    if not names & {FORMAT_FILE, _COPY_FILE} and names - {LOCK_FILE, _NEW_FORMAT_FILE}:
        raise DataError(f"{path} is not a data directory: it holds files, but no {FORMAT_FILE}")


def _make_private(path: Path, rows: Path) -> None:
    """Let only the owner read format, rows and, if possible, the directory."""
    for file in (path / FORMAT_FILE, *path.glob(f"{rows.name}*")):
        _restrict(file, 0o600)
    with suppress(PermissionError):
        _restrict(path, 0o700)


def _restrict(path: Path, mode: int) -> None:
    if path.stat().st_mode & 0o777 != mode:
        path.chmod(mode)


def _read_format(path: Path) -> Format | None:
    """Return the content of format.json, or of its copy if the file is damaged or missing; repair the other one.

    None if neither exists. Raise DataError if neither can be read, and WrongFormat if this version cannot use it.
    """
    copy = _read_copy(path)
    try:
        found = _read_one(path / FORMAT_FILE)
    except WrongFormat:
        raise
    except DataError:
        if copy is None:
            raise
        found = None
    known = found or copy
    if known is not None and not found == copy == known:
        _write_format(path, known)
    return known


def _read_copy(path: Path) -> Format | None:
    try:
        return _read_one(path / _COPY_FILE)
    except DataError:
        return None


def _read_one(file: Path) -> Format | None:
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    body, mark, crc = text.rpartition(_CRC_MARK)
    try:
        if mark and int(crc.strip().removesuffix(b"}")) != crc32(body):
            raise DataError(f"{file} is damaged: its bytes do not fit their checksum. {_FORMAT_REMEDY}")
        members = msgspec.json.decode(text)
        if "format" in members:
            raise WrongFormat(f"{file.parent} {BEFORE_FIRST_RELEASE}")
        if members["elasticq"] > FORMAT:
            raise WrongFormat(
                f"{file.parent} has format {members['elasticq']}, this version of elasticq knows up to {FORMAT}: "
                "use a newer version"
            )
        if not mark:
            raise DataError(f"{file} is damaged: it has no checksum. {_FORMAT_REMEDY}")
        return msgspec.json.decode(text, type=Format)
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} is damaged: {error}. {_FORMAT_REMEDY}") from error


_FORMAT_REMEDY: Final = (
    "Restore a backup; or, in a cluster, empty the directory, start it and give the order 'elasticq cluster replace'"
)


def _make_format(path: Path, node_id: str | None) -> Format:
    if node_id is None:
        raise DataError(f"{path} is not a data directory: it has no {FORMAT_FILE}")
    made = Format(FORMAT, f"{node_id}-{os.urandom(8).hex()}", int(time.time()), lazy_sync=False)
    _write_format(path, made)
    return made


def _write_format(path: Path, made: Format) -> None:
    """Write format.json and then its copy. If the machine stops, each is either the old or the new file."""
    body = msgspec.json.encode(made).removesuffix(b"}")
    text = body + _CRC_MARK + str(crc32(body)).encode() + b"}\n"
    for name in (FORMAT_FILE, _COPY_FILE):
        new = path / _NEW_FORMAT_FILE
        new.touch(0o600)
        new.write_bytes(text)
        sync_file(new)
        new.replace(path / name)
        sync_directory(path)
