"""A file layer with a faulty disk: it stops at any call, fails at any call, and loses what was not synced."""

import errno
import os
from random import Random

from elasticq.sim.files import PaddedFile
from elasticq.storage.files import Files
from elasticq.storage.log.records import SECTOR_BYTES


class Crash(BaseException):
    """The machine stops here; no OSError, so nothing may handle it."""


class _File(PaddedFile):
    """synced: what a crash cannot take; ends: of the writes since."""

    def __init__(self) -> None:
        super().__init__()
        self.synced = b""
        self.ends: list[int] = []

    def sync(self) -> None:
        self.synced, self.synced_end, self.ends = bytes(self.data), self.end, []

    def write(self, data: bytes, padding_bytes: int) -> None:
        super().write(data, padding_bytes)
        self.ends.append(self.end)


class FaultyFiles(Files):
    """In memory. ``calls`` counts those that change something; ``stop_at`` and ``fail_at`` name one of them (from 1).

    At the call it stops at, the effect may be there, partly there or missing, as ``random`` wants. An append that
    lengthens a file leaves ``padding_bytes`` zeros behind.
    """

    def __init__(self, random: Random | None = None, *, padding_bytes: int = 0) -> None:
        self.random = random or Random(0)
        self.padding_bytes = padding_bytes
        self.files: dict[str, _File] = {}
        self.calls: list[str] = []
        self.stop_at = 0
        self.fail_at: dict[int, int] = {}  # number of the call: errno

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        return bytes(self._file(name).data)

    def create(self, name: str) -> None:
        happens, dies = self._call("create")
        if name in self.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if happens:
            self.files[name] = _File()
        self._die(dies)

    def append(self, name: str, data: bytes) -> None:
        file = self._file(name)
        number = len(self.calls) + 1
        if number in self.fail_at:  # a full disk takes what still fits
            file.write(data[: self.random.randint(0, len(data) - 1)], 0)
        happens, dies = self._call("append")
        if happens:
            file.write(data, self.padding_bytes)
        else:
            file.write(data[: self.random.randint(0, len(data))], 0)
        self._die(dies)

    def sync(self, name: str) -> None:
        file = self._file(name)
        happens, dies = self._call("sync")
        if happens:
            file.sync()
        self._die(dies)

    def truncate(self, name: str, size_bytes: int) -> None:
        file = self._file(name)
        happens, dies = self._call("truncate")
        if happens:
            assert size_bytes <= len(file.data)
            file.cut(size_bytes)
            file.sync()
        self._die(dies)

    def trim(self, name: str) -> None:
        file = self._file(name)
        if len(file.data) > file.end:
            self.truncate(name, file.end)

    def remove(self, name: str) -> None:
        self._file(name)
        happens, dies = self._call("remove")
        if happens:
            del self.files[name]
        self._die(dies)

    def crash(self) -> None:
        """The power is cut: of what was not synced, any sectors stay, and any length of it."""
        for file in self.files.values():
            file.data = self._after_crash(file)
            file.end = len(file.data)
            file.sync()
        self.stop_at, self.fail_at, self.calls = 0, {}, []

    def kill(self) -> None:
        """Only the process ends: the system still has what was written, but not on the disk."""
        for file in self.files.values():
            file.end = len(file.data)  # a process that opens a file does not know where its zeros began
        self.stop_at, self.fail_at, self.calls = 0, {}, []

    def _after_crash(self, file: _File) -> bytearray:
        synced_bytes, written_bytes = len(file.synced), len(file.data)
        is_full = self.random.random() < 0.5
        kept = file.data[: written_bytes if is_full else self.random.randint(synced_bytes, written_bytes)]
        share_lost = self.random.choice((0, 0.2, 0.7))
        for start in range(file.synced_end // SECTOR_BYTES * SECTOR_BYTES, len(kept), SECTOR_BYTES):
            if self.random.random() < share_lost:
                end = min(start + SECTOR_BYTES, len(kept))
                # A sector that two writes share may have reached the disk after the first one.
                older = max(self.random.choice([file.synced_end, *file.ends]), start)
                kept[older:end] = bytes(max(0, end - older))
        return kept

    def _file(self, name: str) -> _File:
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self.files[name]

    def _call(self, kind: str) -> tuple[bool, bool]:
        """Whether the effect happens, and whether the machine stops then. Raises OSError where it should fail."""
        self.calls.append(kind)
        number = len(self.calls)
        if number in self.fail_at:
            code = self.fail_at[number]
            raise OSError(code, os.strerror(code))
        dies = number == self.stop_at
        return not dies or self.random.random() < 0.5, dies

    def _die(self, dies: bool) -> None:
        if dies:
            raise Crash
