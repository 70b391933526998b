"""How far the log reached when one of its records was acknowledged last: a file of a few bytes beside it.

A log whose tail is gone looks like one that ends earlier. This file tells the two apart. It is written after the
log's sync and never synced itself but where the log becomes shorter on purpose, and then before that: so it never
claims what the log did not have, unless the log was not synced either (durability os and none). A crash may leave it
older than the log, which says nothing.
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

    __slots__ = ("_descriptor", "_path", "_told")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._told: End | None = None

    def read(self) -> End | None:
        """Return what the file says; None if there is no file or it is damaged."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        body = data[: _FIELDS.size]
        if len(data) != _FIELDS.size + _CRC_BYTES or crc32(body) != int.from_bytes(data[_FIELDS.size :], "little"):
            return None
        return End(*_FIELDS.unpack(body))

    def tell(self, end: End) -> None:
        """Write the end that the log has. If that fails, as on a full disk, the older end stays, which claims less."""
        if end != self._told:
            try:
                self._write(end)
            except OSError:
                return
            self._told = end

    def lower(self, end: End) -> None:
        """Write the end that the log is about to be cut to; durable when this returns. Raises OSError."""
        if self._descriptor < 0 and not self._path.exists():
            return  # it claims nothing
        self._write(end)
        os.fdatasync(self._descriptor)
        self._told = end

    def _write(self, end: End) -> None:
        """Write less than a sector: the disk has it whole or not at all."""
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        body = _FIELDS.pack(*end)
        os.pwrite(self._descriptor, body + crc32(body).to_bytes(_CRC_BYTES, "little"), 0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lower(path: Path, end: End) -> None:
    """Write a lower end to the file at ``path``, for callers that do not go on with the log. Raises OSError."""
    with closing(LogEnd(path)) as known:
        known.lower(end)
