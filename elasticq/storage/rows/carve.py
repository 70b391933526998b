"""The search for contents in a database file whose trees are damaged: every page is read as if it were a leaf.

Each row of ``contents`` has its key and a checksum over key and contents. It never changes, and its key is never used
again. So bytes anywhere in the file that fit their checksum are the row with that key, even if no tree leads to them.
Source of the layout: https://www.sqlite.org/fileformat2.html §1.5 and §1.6 (table leaf cells), §2.1 (records).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from elasticq.storage.rows.pages import contents_crc, decode_contents
from elasticq.storage.rows.schema import PAGE_BYTES

Key = tuple[int, int]
"""The key of a row of ``contents``: (queue_id, first sequence of the page)."""

_LEAF: Final = b"\x0d"
_CELLS_AT: Final = 8  # where the cell pointers begin in a leaf
_POINTER_BYTES: Final = 2
_LOCAL_MAX: Final = PAGE_BYTES - 35
_LOCAL_MIN: Final = (PAGE_BYTES - 12) * 32 // 255 - 23
_COLUMNS: Final = 4
_VARINT_BYTES_MAX: Final = 9
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)  # size of an integer by its serial type
_ZERO, _ONE = 8, 9  # serial types of the constants 0 and 1
_BLOB_FROM: Final = 12
_PAYLOAD_BYTES_MAX: Final = 64 * 1_048_576  # no row is larger


class _NoRow(Exception):
    """The error for bytes that are not a row of ``contents``."""


def carve(file: Path, wanted: set[Key]) -> Iterator[tuple[Key, bytes]]:
    """Yield the key and contents of each page of ``wanted`` that is found, each once. Raise OSError if a read fails."""
    left = set(wanted)
    with file.open("rb") as opened:
        number = 0
        while left and (page := _page(opened.fileno(), number)):
            number += 1
            for cell in _cells(page):
                try:
                    key, contents = _row(opened.fileno(), page, cell)
                except (_NoRow, IndexError):
                    continue
                if key in left:
                    left.remove(key)
                    yield key, contents


def _page(descriptor: int, number: int) -> bytes:
    """Return a page of the file by its number, from 0; it is short or empty at the end of the file."""
    return os.pread(descriptor, PAGE_BYTES, number * PAGE_BYTES)


def _cells(page: bytes) -> list[int]:
    """Return the offsets of the page's cells, including wrong ones if the page is damaged.

    The number of cells in the head may be damaged. So all pointers before the first cell count as well.
    """
    pointers = [int.from_bytes(page[at : at + _POINTER_BYTES], "big") for at in range(_CELLS_AT, len(page) - 1, 2)]
    first, room = len(page), 0
    while _CELLS_AT + _POINTER_BYTES * room < first and room < len(pointers):
        if _CELLS_AT < pointers[room] < first:
            first = pointers[room]
        room += 1
    said = int.from_bytes(page[3:5], "big") if page[:1] == _LEAF else 0
    return [pointer for pointer in pointers[: max(room, said)] if _CELLS_AT < pointer < len(page)]


def _row(descriptor: int, page: bytes, at: int) -> tuple[Key, bytes]:
    size_bytes, at = _varint(page, at)
    _, at = _varint(page, at)  # rowid
    if size_bytes > _PAYLOAD_BYTES_MAX:
        raise _NoRow
    local_bytes = size_bytes
    if size_bytes > _LOCAL_MAX:
        surplus = _LOCAL_MIN + (size_bytes - _LOCAL_MIN) % (PAGE_BYTES - 4)
        local_bytes = surplus if surplus <= _LOCAL_MAX else _LOCAL_MIN
    head = page[at : at + local_bytes]
    types, at_value = _types(head)
    at += local_bytes
    queue_id, at_value = _integer(head, types[0], at_value)
    first, at_value = _integer(head, types[1], at_value)
    blob_bytes = (types[2] - _BLOB_FROM) // 2
    crc_bytes = _integer_bytes(types[3])
    if types[2] < _BLOB_FROM or types[2] % 2 or at_value + blob_bytes + crc_bytes != size_bytes:
        raise _NoRow
    payload = head if local_bytes == size_bytes else _whole(descriptor, head, page[at : at + 4], size_bytes)
    contents = payload[at_value : at_value + blob_bytes]
    crc, _ = _integer(payload, types[3], at_value + blob_bytes)
    if contents_crc(queue_id, first, contents) != crc:
        raise _NoRow
    try:
        decode_contents(contents)
    except msgspec.DecodeError:
        raise _NoRow from None  # probably a row of ``groups``, which has the same form
    return (queue_id, first), contents


def _whole(descriptor: int, head: bytes, next_page: bytes, size_bytes: int) -> bytes:
    """Return a row's payload: ``head`` and the rest on its overflow pages, each of which names the next one.

    Raise _NoRow if a page is missing.
    """
    parts, left = [head], size_bytes - len(head)
    while left > 0:
        number = int.from_bytes(next_page, "big")
        page = _page(descriptor, number - 1) if number else b""
        if len(page) != PAGE_BYTES:
            raise _NoRow
        next_page, part = page[:4], page[4 : 4 + left]
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _types(payload: bytes) -> tuple[list[int], int]:
    """Return the serial types of a record, and the offset of its values. Raise _NoRow unless it has _COLUMNS."""
    end, at = _varint(payload, 0)
    types = []
    for _ in range(_COLUMNS):
        one, at = _varint(payload, at)
        types.append(one)
    if at != end:
        raise _NoRow
    return types, end


def _integer_bytes(serial_type: int) -> int:
    if serial_type in (_ZERO, _ONE):
        return 0
    if not 0 < serial_type < len(_INTEGER_BYTES):
        raise _NoRow
    return _INTEGER_BYTES[serial_type]


def _integer(payload: bytes, serial_type: int, at: int) -> tuple[int, int]:
    size_bytes = _integer_bytes(serial_type)
    if not size_bytes:
        return serial_type - _ZERO, at
    return int.from_bytes(payload[at : at + size_bytes], "big", signed=True), at + size_bytes


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the SQLite varint at ``at`` and the offset after it. Raise IndexError if the data end before."""
    value = 0
    for place in range(_VARINT_BYTES_MAX - 1):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + _VARINT_BYTES_MAX - 1], at + _VARINT_BYTES_MAX
