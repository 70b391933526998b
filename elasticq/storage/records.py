"""Records as bytes in a log file, and back: length, chained crc32, msgpack payload.

    record = length u32 LE | head crc u32 LE | crc u32 LE | payload (msgpack of Entry, Truncation or Vote)

The head's crc covers the previous record's crc and the length; the record's
crc goes on from there over the payload. So a record of an older life of the
file, left over behind a cut, does not fit the chain, and a length that changed
on the disk is told from a record that is merely short.

A crash may leave the last record torn: short, or with sectors that never
reached the disk and read as zeros (the pages of an unsynced record persist in
any order). That is cut. Whatever else does not fit is damage: bytes that had
been synced and changed, and nothing behind them can be trusted.
"""

from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from elasticq.replication.records import Record

HEADER_BYTES: Final = 12
SECTOR_BYTES: Final = 512
RECORD_BYTES_MAX: Final = 8 * 1_048_576  # frames are no larger, so no entry is
FIRST_CRC: Final = 0

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_ZERO_SECTOR = bytes(SECTOR_BYTES)


class Scan(NamedTuple):
    """records: those that fit the chain; valid_bytes: their length; crc: of the last of them.

    damaged: what follows them is neither nothing nor a torn last record.
    """

    records: list[Record]
    valid_bytes: int
    crc: int
    damaged: bool


def encode_record(record: Record, previous_crc: int) -> bytes:
    """The bytes that follow a record whose crc was ``previous_crc`` (FIRST_CRC at the start of a file)."""
    payload = _encoder.encode(record)
    assert len(payload) <= RECORD_BYTES_MAX
    length = len(payload).to_bytes(4, "little")
    head_crc = crc32(length, previous_crc)
    return length + head_crc.to_bytes(4, "little") + crc32(payload, head_crc).to_bytes(4, "little") + payload


def crc_of(encoded: bytes) -> int:
    """The crc of one encoded record: ``previous_crc`` for the next."""
    return int.from_bytes(encoded[8:HEADER_BYTES], "little")


def scan(data: bytes) -> Scan:
    """Reads records until the end, a torn tail or damage; never raises."""
    records: list[Record] = []
    at, crc = 0, FIRST_CRC
    while at < len(data):
        end = _end_of_record(data, at, crc)
        if end is None:
            return Scan(records, at, crc, not _is_torn(data, at, crc))
        try:
            records.append(_decoder.decode(memoryview(data)[at + HEADER_BYTES : end]))
        except msgspec.DecodeError:  # a whole record of a kind that this version does not know
            return Scan(records, at, crc, True)
        crc = crc_of(data[at : at + HEADER_BYTES])
        at = end
    return Scan(records, at, crc, False)


def _head_fits(data: bytes, at: int, previous_crc: int) -> bool:
    return crc32(data[at : at + 4], previous_crc) == int.from_bytes(data[at + 4 : at + 8], "little")


def _claimed_end(data: bytes, at: int) -> int:
    return at + HEADER_BYTES + int.from_bytes(data[at : at + 4], "little")


def _end_of_record(data: bytes, at: int, previous_crc: int) -> int | None:
    """Where the record at ``at`` ends; None if there is no whole one that fits the chain."""
    end = _claimed_end(data, at)
    if end > len(data) or not _head_fits(data, at, previous_crc):
        return None
    head_crc = int.from_bytes(data[at + 4 : at + 8], "little")
    payload = memoryview(data)[at + HEADER_BYTES : end]
    return end if crc32(payload, head_crc) == crc_of(data[at : at + HEADER_BYTES]) else None


def _is_torn(data: bytes, at: int, previous_crc: int) -> bool:
    """The record at ``at`` is the last one and short, or the last one and partly never written."""
    if len(data) - at < HEADER_BYTES:
        return True
    if not _head_fits(data, at, previous_crc):
        # Its length is not to be trusted; what remains must at least be possible as one record.
        is_possible = len(data) - at <= HEADER_BYTES + RECORD_BYTES_MAX
        return is_possible and _has_zero_sector(data, at, at + HEADER_BYTES)
    end = _claimed_end(data, at)
    return end > len(data) or (end == len(data) and _has_zero_sector(data, at, end))


def _has_zero_sector(data: bytes, at: int, end: int) -> bool:
    """Does an all-zero sector (cut short by the end of the file or not) hold any of [at, end)?

    The part of the sector that lies before ``at`` belongs to older, synced records: a sector that
    was never written keeps it, so only what lies from ``at`` on is asked.
    """
    for sector in range(at // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1):
        start = max(sector * SECTOR_BYTES, at)
        part = data[start : (sector + 1) * SECTOR_BYTES]
        if part and part == _ZERO_SECTOR[: len(part)]:
            return True
    return False
