"""The file layer under the log: one flat directory, in whose place a test or the simulator can put a faulty disk."""

import errno
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

_SYNC_AT_ONCE: Final[int] = getattr(os, "RWF_DSYNC", 0)
"""The flag of a write that ends when its data are durable; 0 where the system has none (only Linux does)."""


class NotSynced(OSError):
    """What was appended may be lost, as it could not be made durable; it may also be there."""


class Files(ABC):
    """The files of one directory. All calls block and raise OSError as the system does. Names have no slashes."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all files, sorted."""

    @abstractmethod
    def read(self, name: str) -> bytes: ...

    @abstractmethod
    def create(self, name: str) -> None:
        """Make a new empty file, whose name is durable when this returns."""

    @abstractmethod
    def append(self, name: str, data: bytes) -> None:
        """Write all of ``data`` at the end, or raise OSError; it is not durable before ``sync``."""

    @abstractmethod
    def sync(self, name: str) -> None:
        """Make what was appended durable; it is when this returns."""

    def append_durably(self, name: str, data: bytes) -> None:
        """Write all of ``data`` at the end and make it durable.

        Raises NotSynced, or another OSError where not all of it was written.
        """
        self.append(name, data)
        try:
            self.sync(name)
        except OSError as error:
            raise NotSynced(error.errno, error.strerror) from error

    @abstractmethod
    def truncate(self, name: str, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``; that is durable when this returns."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the file; that is durable when this returns."""


class DirectoryFiles(Files):
    """The files of a real directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, int] = {}
        self._syncs_at_once = bool(_SYNC_AT_ONCE)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir() if path.is_file())

    def read(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def create(self, name: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._open[name] = os.open(self.directory / name, flags, 0o600)
        self._sync_directory()

    def append(self, name: str, data: bytes) -> None:
        descriptor = self._descriptor(name)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def append_durably(self, name: str, data: bytes) -> None:
        """Do it by one call of the system where there is one.

        The calling thread then gives the interpreter lock up, and waits to have it back, once and not twice.
        """
        if not self._syncs_at_once:
            super().append_durably(name, data)
            return
        descriptor = self._descriptor(name)
        size_bytes = os.fstat(descriptor).st_size
        try:
            written_bytes = os.pwritev(descriptor, (data,), size_bytes, _SYNC_AT_ONCE)
        except OSError as error:
            if os.fstat(descriptor).st_size > size_bytes:
                raise NotSynced(error.errno, error.strerror) from error
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                raise
            self._syncs_at_once = False
            super().append_durably(name, data)
            return
        if written_bytes < len(data):  # the disk is full, or nearly
            super().append_durably(name, data[written_bytes:])

    def sync(self, name: str) -> None:
        os.fdatasync(self._descriptor(name))

    def truncate(self, name: str, size_bytes: int) -> None:
        descriptor = self._descriptor(name)
        os.ftruncate(descriptor, size_bytes)
        os.fsync(descriptor)

    def remove(self, name: str) -> None:
        self._close(name)
        (self.directory / name).unlink()
        self._sync_directory()

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _descriptor(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self.directory / name, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        return self._open[name]

    def _close(self, name: str) -> None:
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _sync_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
