"""The format of records in a log file: frames of length, chained crc32 and msgpack payload.

    frame = length u32 LE | head crc u32 LE | crc u32 LE | payload (msgpack list of Entry, Truncation, Vote)

One append writes one frame, so either all records of a batch are on the disk or none. The head's crc covers the
previous frame's crc and the length. The frame's crc continues it over the payload. So the chain rejects an old frame
that is left after a cut. It also distinguishes a length that changed on the disk from a frame that is only short.

A crash may leave the last frame torn. It is then short, or some of its sectors never reached the disk and read as
zeros. The system writes the pages of an unsynced frame in any order. A torn frame is cut off. Anything else that does
not fit is damage: synced bytes changed, and nothing after them can be trusted.

Zeros may follow the last frame (ADR 0034). No frame begins with zeros, as no payload is empty. So a file has no
further frame where only zeros follow.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from elasticq.model import limits
from elasticq.replication.records import Record

HEADER_BYTES: Final = 12
SECTOR_BYTES: Final = 512
RECORD_BYTES_MAX: Final = limits.FRAME_BYTES_MAX  # the limit of frames between members, so no entry is larger
FRAME_BYTES_MAX: Final = RECORD_BYTES_MAX + 16  # one largest record and the list around it
FIRST_CRC: Final = 0
FLIPPED_BYTES_MAX: Final = 4  # damaged bytes among the zeros after the last frame; any frame has more non-zero bytes

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])
_ZERO_SECTOR = bytes(SECTOR_BYTES)


class Batch(NamedTuple):
    """The records of one frame, and the offset in the file where it begins."""

    at: int
    records: list[Record]


class Frames(NamedTuple):
    """The frames of a file. batches: those that fit the chain; end, crc: offset and crc of the end of the last one.

    torn: whether an unfinished frame follows, which must be cut off. damage: why the bytes that follow cannot be read;
    empty if only zeros or nothing follow, or if torn.
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
    """Return the crc of one encoded frame: the ``previous_crc`` of the next frame."""
    return int.from_bytes(encoded[8:HEADER_BYTES], "little")


def scan_frames(data: bytes, at: int, previous_crc: int, any_may_be_torn: bool) -> Frames:
    """Return a file's frames from ``at`` to the end, to a torn frame or to damage; never raises.

    any_may_be_torn: several frames may have been unsynced at once. So a frame that lacks a sector need not be the last
    one; what follows it was not synced either.
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
    """Return the number of a file's bytes before the zeros at its end."""
    return len(data.rstrip(b"\0"))


def _head_fits(data: bytes, at: int, previous_crc: int) -> bool:
    return crc32(data[at : at + 4], previous_crc) == int.from_bytes(data[at + 4 : at + 8], "little")


def _claimed_end(data: bytes, at: int) -> int:
    return at + HEADER_BYTES + int.from_bytes(data[at : at + 4], "little")


def _end_of_frame(data: bytes, at: int, previous_crc: int) -> int | None:
    """Return the offset of the end of the frame at ``at``; None if no whole frame there fits the chain."""
    end = _claimed_end(data, at)
    if end > len(data) or end == at + HEADER_BYTES or not _head_fits(data, at, previous_crc):
        return None
    head_crc = int.from_bytes(data[at + 4 : at + 8], "little")
    payload = memoryview(data)[at + HEADER_BYTES : end]
    return end if crc32(payload, head_crc) == crc_of(data[at : at + HEADER_BYTES]) else None


def _is_torn(data: bytes, at: int, written: int, previous_crc: int, any_may_be_torn: bool) -> bool:
    """Return whether the frame at ``at``, which does not fit the chain, is an unfinished write and not damage.

    It is if it is the last one, and short or without some of its sectors. If any_may_be_torn, a frame without some of
    its sectors need not be the last one. written: the offset of the zeros at the end of ``data``.
    """
    if written - at < HEADER_BYTES:
        return True
    if not _head_fits(data, at, previous_crc):
        if written - at - data.count(0, at, written) <= FLIPPED_BYTES_MAX:
            return True  # damaged zeros: no frame was there
        # The length cannot be trusted. The bytes that remain must at least fit into one frame.
        is_possible = any_may_be_torn or written - at <= HEADER_BYTES + FRAME_BYTES_MAX
        return is_possible and _has_zero_sector(data, at, at + HEADER_BYTES)
    end = _claimed_end(data, at)
    return end > written or ((any_may_be_torn or end == written) and _has_zero_sector(data, at, end))


def _has_zero_sector(data: bytes, at: int, end: int) -> bool:
    """Return whether a sector that overlaps [at, end) is all zeros from ``at`` on; the last sector may be short.

    The bytes of a sector before ``at`` belong to older frames. They were on the disk before, so they are ignored.
    """
    for sector in range(at // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1):
        start = max(sector * SECTOR_BYTES, at)
        part = data[start : (sector + 1) * SECTOR_BYTES]
        if part and part == _ZERO_SECTOR[: len(part)]:
            return True
    return False
