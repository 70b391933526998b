"""The file layer under the log: one flat directory, in whose place a test or the simulator can put a faulty disk."""

import os
from abc import ABC, abstractmethod
from pathlib import Path


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
