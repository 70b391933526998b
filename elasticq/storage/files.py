"""The file layer under the log: one flat directory. Tests and the simulator replace it by a faulty disk.

A file may be longer than what was appended to it: zeros follow (ADR 0034). A durable append that overwrites these
zeros changes no metadata of the file system. So the disk has less to write, and the append is much faster.
"""

import errno
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

PADDING_BYTES: Final = 512 * 1_024
"""How many zeros a durable append adds after its data, if the data did not fit into the zeros of the file."""

_ZEROS: Final = bytes(PADDING_BYTES)
_SYNC_AT_ONCE: Final[int] = getattr(os, "RWF_DSYNC", 0)
"""The flag of a write that returns when its data are durable. Only Linux has it; 0 on other systems."""


class NotSynced(OSError):
    """The error of an append that could not be made durable. Its data may or may not be on the disk."""


class Files(ABC):
    """The files of one directory. All calls block, and raise the OSError of the system. Names have no slashes."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all files, sorted."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return all bytes of the file, including zeros after what was appended."""

    @abstractmethod
    def create(self, name: str) -> None:
        """Make a new empty file. Its name is durable when this returns."""

    @abstractmethod
    def append(self, name: str, data: bytes) -> None:
        """Write all of ``data`` after what was appended before, or raise OSError. ``sync`` makes it durable.

        The first append to a file of an earlier process goes after all its bytes, including zeros at its end.
        """

    @abstractmethod
    def sync(self, name: str) -> None:
        """Make what was appended durable. It is durable when this returns."""

    def append_durably(self, name: str, data: bytes) -> None:
        """Write all of ``data`` after what was appended before, and make it durable.

        Raise NotSynced if it may not be durable, or another OSError if not all of it was written.
        """
        self.append(name, data)
        try:
            self.sync(name)
        except OSError as error:
            raise NotSynced(error.errno, error.strerror) from error

    @abstractmethod
    def truncate(self, name: str, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``, where the next append then begins. The cut is durable when this returns."""

    @abstractmethod
    def trim(self, name: str) -> None:
        """Cut off the zeros after what was appended. The cut is durable when this returns."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the file. The removal is durable when this returns."""


class _OpenFile:
    """An open file. end_bytes: where the next append begins; size_bytes: the size including the zeros at the end."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.end_bytes = self.size_bytes = os.fstat(descriptor).st_size

    def grow(self, written_bytes: int) -> None:
        """Move the end by ``written_bytes``, after a write there."""
        self.end_bytes += written_bytes
        self.size_bytes = max(self.size_bytes, self.end_bytes)

    def has_taken(self, data_bytes: int) -> bool:
        """Return whether a failed write of ``data_bytes`` at the end may have changed the file."""
        try:
            return any(os.pread(self.descriptor, data_bytes, self.end_bytes))
        except OSError:
            return True


class DirectoryFiles(Files):
    """The files of a real directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, _OpenFile] = {}
        self._syncs_at_once = bool(_SYNC_AT_ONCE)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir() if path.is_file())

    def read(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def create(self, name: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._open[name] = _OpenFile(os.open(self.directory / name, flags, 0o600))
        self._sync_directory()

    def append(self, name: str, data: bytes) -> None:
        file = self._file(name)
        view = memoryview(data)
        while view:
            written_bytes = os.pwrite(file.descriptor, view, file.end_bytes)
            file.grow(written_bytes)
            view = view[written_bytes:]

    def append_durably(self, name: str, data: bytes) -> None:
        """Write and sync with one system call if the system has one (RWF_DSYNC).

        The calling thread then releases the interpreter lock once instead of twice.
        """
        if not self._syncs_at_once:
            super().append_durably(name, data)
            return
        file = self._file(name)
        fits = file.end_bytes + len(data) <= file.size_bytes
        try:
            written_bytes = os.pwritev(
                file.descriptor, (data,) if fits else (data, _ZEROS), file.end_bytes, _SYNC_AT_ONCE
            )
        except OSError as error:
            if file.has_taken(len(data)):
                raise NotSynced(error.errno, error.strerror) from error
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                raise
            self._syncs_at_once = False
            super().append_durably(name, data)
            return
        file.size_bytes = max(file.size_bytes, file.end_bytes + written_bytes)
        file.end_bytes += min(written_bytes, len(data))
        if written_bytes < len(data):  # the disk is full, or nearly
            super().append_durably(name, data[written_bytes:])

    def sync(self, name: str) -> None:
        os.fdatasync(self._file(name).descriptor)

    def truncate(self, name: str, size_bytes: int) -> None:
        file = self._file(name)
        os.ftruncate(file.descriptor, size_bytes)
        file.end_bytes = file.size_bytes = size_bytes
        os.fsync(file.descriptor)

    def trim(self, name: str) -> None:
        file = self._file(name)
        if file.size_bytes > file.end_bytes:
            self.truncate(name, file.end_bytes)

    def remove(self, name: str) -> None:
        self._close(name)
        (self.directory / name).unlink()
        self._sync_directory()

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _file(self, name: str) -> _OpenFile:
        if name not in self._open:
            self._open[name] = _OpenFile(os.open(self.directory / name, os.O_RDWR | os.O_CLOEXEC))
        return self._open[name]

    def _close(self, name: str) -> None:
        file = self._open.pop(name, None)
        if file is not None:
            os.close(file.descriptor)

    def _sync_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
