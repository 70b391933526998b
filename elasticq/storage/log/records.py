"""Records as bytes in a log file, and back: length, chained crc32, msgpack payload.

    frame = length u32 LE | head crc u32 LE | crc u32 LE | payload (msgpack list of Entry, Truncation, Vote)

One append is one frame, so a batch of records is on the disk wholly or not at
all. The head's crc covers the previous frame's crc and the length; the frame's
crc goes on from there over the payload. So a frame of an older life of the
file, left over behind a cut, does not fit the chain, and a length that changed
on the disk is told from a frame that is merely short.

A crash may leave the last frame torn: short, or with sectors that never
reached the disk and read as zeros (the pages of an unsynced frame persist in
any order). That is cut. Whatever else does not fit is damage: bytes that had
been synced and changed, and nothing behind them can be trusted.

Zeros may stand behind the last frame (ADR 0034): no frame begins with zeros, as
no payload is empty. So where nothing but zeros follows, the frames are over.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from elasticq.model import limits
from elasticq.replication.records import Record

HEADER_BYTES: Final = 12
SECTOR_BYTES: Final = 512
RECORD_BYTES_MAX: Final = limits.FRAME_BYTES_MAX  # frames between members are no larger, so no entry is larger
FRAME_BYTES_MAX: Final = RECORD_BYTES_MAX + 16  # one largest record and the list around it
FIRST_CRC: Final = 0
FLIPPED_BYTES_MAX: Final = 4  # changed in the zeros behind the last frame: less than any frame has

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])
_ZERO_SECTOR = bytes(SECTOR_BYTES)


class Batch(NamedTuple):
    """The records of one frame, and the offset in the file where it begins."""

    at: int
    records: list[Record]


class Frames(NamedTuple):
    """batches: those that fit the chain; end: where the last of them ends; crc: of the last of them.

    torn: an unfinished frame follows, to be cut. damage: why what follows cannot be read, else empty.
    Where neither is said, nothing or zeros follow.
    """

    batches: list[Batch]
    end: int
    crc: int
    torn: bool
    damage: str


def encode_batch(records: Sequence[Record]) -> bytes:
    """Encode the payload of one frame."""
    return _encoder.encode(records)


def encode_frame(payload: bytes, previous_crc: int) -> bytes:
    """Encode a frame that follows a frame whose crc was ``previous_crc``."""
    assert len(payload) <= FRAME_BYTES_MAX
    length = len(payload).to_bytes(4, "little")
    head_crc = crc32(length, previous_crc)
    return length + head_crc.to_bytes(4, "little") + crc32(payload, head_crc).to_bytes(4, "little") + payload


def crc_of(encoded: bytes) -> int:
    """Return the crc of one encoded frame, which is ``previous_crc`` for the next."""
    return int.from_bytes(encoded[8:HEADER_BYTES], "little")


def scan_frames(data: bytes, at: int, previous_crc: int, any_may_be_torn: bool) -> Frames:
    """Reads a file's frames from ``at`` until the end, a torn frame or damage; never raises.

    any_may_be_torn: several frames may have been unsynced at once, so one that lacks a sector
    need not be the last one; whatever lies behind it was not synced either.
    """
    batches: list[Batch] = []
    crc = previous_crc
    written = written_bytes(data)
    while at < written:
        end = _end_of_frame(data, at, crc)
        if end is None:
            torn = _is_torn(data, at, written, crc, any_may_be_torn)
            return Frames(batches, at, crc, torn, "" if torn else "the bytes do not fit their checksum")
        try:
            records = _decoder.decode(memoryview(data)[at + HEADER_BYTES : end])
        except msgspec.DecodeError:
            return Frames(batches, at, crc, False, "a record of a kind that this version does not know")
        batches.append(Batch(at, records))
        at, crc = end, crc_of(data[at : at + HEADER_BYTES])
    return Frames(batches, at, crc, False, "")


def written_bytes(data: bytes) -> int:
    """Return how many of a file's bytes stand before the zeros at its end."""
    return len(data.rstrip(b"\0"))


def _head_fits(data: bytes, at: int, previous_crc: int) -> bool:
    return crc32(data[at : at + 4], previous_crc) == int.from_bytes(data[at + 4 : at + 8], "little")


def _claimed_end(data: bytes, at: int) -> int:
    return at + HEADER_BYTES + int.from_bytes(data[at : at + 4], "little")


def _end_of_frame(data: bytes, at: int, previous_crc: int) -> int | None:
    """Return where the frame at ``at`` ends; None if there is no whole frame that fits the chain."""
    end = _claimed_end(data, at)
    if end > len(data) or end == at + HEADER_BYTES or not _head_fits(data, at, previous_crc):
        return None
    head_crc = int.from_bytes(data[at + 4 : at + 8], "little")
    payload = memoryview(data)[at + HEADER_BYTES : end]
    return end if crc32(payload, head_crc) == crc_of(data[at : at + HEADER_BYTES]) else None


def _is_torn(data: bytes, at: int, written: int, previous_crc: int, any_may_be_torn: bool) -> bool:
    """True if the frame at ``at`` is the last one and short, or (the last one and) partly never written.

    written: where the zeros at the end of ``data`` begin.
    """
    if written - at < HEADER_BYTES:
        return True
    if not _head_fits(data, at, previous_crc):
        if written - at - data.count(0, at, written) <= FLIPPED_BYTES_MAX:
            return True  # zeros of which a few bytes changed: no frame is lost with them
        # Its length is not to be trusted; what remains must at least be possible as one frame.
        is_possible = any_may_be_torn or written - at <= HEADER_BYTES + FRAME_BYTES_MAX
        return is_possible and _has_zero_sector(data, at, at + HEADER_BYTES)
    end = _claimed_end(data, at)
    return end > written or ((any_may_be_torn or end == written) and _has_zero_sector(data, at, end))


def _has_zero_sector(data: bytes, at: int, end: int) -> bool:
    """True if an all-zero sector (cut short by the end of the file or not) holds any of [at, end).

    The part of the sector that lies before ``at`` belongs to older frames: a sector that
    was never written keeps it, so only what lies from ``at`` on is asked.
    """
    for sector in range(at // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1):
        start = max(sector * SECTOR_BYTES, at)
        part = data[start : (sector + 1) * SECTOR_BYTES]
        if part and part == _ZERO_SECTOR[: len(part)]:
            return True
    return False
