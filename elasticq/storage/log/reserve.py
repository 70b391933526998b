"""The reserve: disk space that is set aside for receives and deletes, which make space again, on a full disk.

The disk counts as full if the reserve had to be removed, or if the free space is less than the reserve's size.
It counts as usable again if the reserve exists and a quarter more than its size is free.
"""

import os
from pathlib import Path
from typing import Final

from elasticq.storage.directory import sync_directory

FULL: Final = "The disk is full: messages can be received and deleted, but not sent."


class Reserve:
    """The reserve file; used by one thread."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self.size_bytes = size_bytes
        self.is_held = False
        self.is_full = False

    def start(self) -> None:
        """Make the reserve. The disk counts as full if there is no space for it."""
        if not self._is_whole():
            self.give_up()
            self._make()
        self.is_held = self._is_whole()
        self.review()

    def give_up(self) -> bool:
        """Remove the reserve to free its space; the disk then counts as full. Return False if there was no reserve."""
        was_held = self._path.exists()
        if was_held:
            self._path.unlink()
            sync_directory(self._path.parent)
        self.is_held = False
        self.is_full = True
        return was_held

    def review(self) -> None:
        """Check the free space, set ``is_full``, and make the reserve again if there is enough space."""
        free_bytes = self._free_bytes()
        if self.is_held:
            # Without the quarter, the state would change often when the free space is near the limit.
            wanted_bytes = self.size_bytes * 5 // 4 if self.is_full else self.size_bytes
            self.is_full = free_bytes < wanted_bytes
        elif free_bytes >= 2 * self.size_bytes:
            self._make()
            self.is_full = not self.is_held

    def _make(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self.size_bytes)
            self.is_held = True
        except OSError:  # usually there is no space; after any other error there is no reserve either
            self.give_up()
        finally:
            os.close(descriptor)

    def _is_whole(self) -> bool:
        try:
            return self._path.stat().st_size == self.size_bytes
        except FileNotFoundError:
            return False

    def _free_bytes(self) -> int:
        space = os.statvfs(self._path.parent)
        return space.f_bavail * space.f_frsize
