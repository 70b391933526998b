"""The file log.end: how far the log reached when its last record was acknowledged.

A log that lost its tail looks like a log that ends earlier. This file distinguishes the two: it then names an end
beyond that of the log. It is written after the log's sync, so it never claims entries that the log did not have. The
exceptions are the durabilities ``os`` and ``none``, which do not sync the log either.

The file itself is synced only before the log is shortened on purpose. So after a crash it may be older than the log,
which does no harm.
"""

import os
from contextlib import closing
from pathlib import Path
from struct import Struct as Layout
from typing import Final, NamedTuple
from zlib import crc32

_FIELDS: Final = Layout("<QQ")
_CRC_BYTES: Final = 4


class End(NamedTuple):
    """The end of a log. last_index: index of the last entry; term: term of the newest vote."""

    last_index: int
    term: int


class LogEnd:
    """The file log.end; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._told: End | None = None

    def read(self) -> End | None:
        """Return the end in the file; None if there is no file or it is damaged."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        body = data[: _FIELDS.size]
        if len(data) != _FIELDS.size + _CRC_BYTES or crc32(body) != int.from_bytes(data[_FIELDS.size :], "little"):
            return None
        return End(*_FIELDS.unpack(body))

    def tell(self, end: End) -> None:
        """Write the log's current end. If that fails, as on a full disk, the older end stays, which claims less."""
        if end != self._told:
            try:
                self._write(end)
            except OSError:
                return
            self._told = end

    def lower(self, end: End) -> None:
        """Write, durably, the end to which the caller is about to shorten the log. Raise OSError if that fails."""
        if self._descriptor < 0 and not self._path.exists():
            return  # without a file nothing is claimed
        self._write(end)
        os.fdatasync(self._descriptor)
        self._told = end

    def _write(self, end: End) -> None:
        """Write the end. It is smaller than a sector, so a crash leaves the old or the new one."""
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        body = _FIELDS.pack(*end)
        os.pwrite(self._descriptor, body + crc32(body).to_bytes(_CRC_BYTES, "little"), 0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lower(path: Path, end: End) -> None:
    """Write a lower end to the file at ``path``, for callers without a LogEnd. Raise OSError if that fails."""
    with closing(LogEnd(path)) as known:
        known.lower(end)
