"""Record bytes: they come back, a torn tail is cut, damage is told from it."""

from typing import NamedTuple
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.ranges import TERM_MAX
from elasticq.replication.records import Entry, Record, Truncation, Vote, Voter
from elasticq.storage.log.records import (
    FIRST_CRC,
    HEADER_BYTES,
    SECTOR_BYTES,
    crc_of,
    encode_batch,
    encode_frame,
    scan_frames,
)

entries = st.builds(
    Entry,
    index=st.integers(1, 1 << 40),
    term=st.integers(1, TERM_MAX),
    time_ms=st.integers(0, 1 << 45),
    payload=st.binary(max_size=1_500) | st.integers(0, 1_500).map(bytes),
    voters=st.none()
    | st.lists(st.builds(Voter, id=st.text(min_size=1, max_size=8), address=st.text(max_size=8))).map(tuple),
    acked_before_commit=st.booleans(),
)
votes = st.builds(Vote, term=st.integers(0, 1 << 30), voted_for=st.none() | st.text(max_size=20))
truncations = st.builds(Truncation, index=st.integers(1, 1 << 40))
records = st.lists(entries | votes | truncations, max_size=8)


class Scan(NamedTuple):
    records: list[Record]
    valid_bytes: int
    crc: int
    damaged: bool


def encode_record(record: Record, previous_crc: int) -> bytes:
    """A frame of one record."""
    return encode_frame(encode_batch([record]), previous_crc)


def scan(data: bytes) -> Scan:
    """A file of frames with at most one unsynced."""
    found = scan_frames(data, 0, FIRST_CRC, False)
    records = [record for batch in found.batches for record in batch.records]
    return Scan(records, found.end, found.crc, bool(found.damage))


def write(kept: list[Record]) -> bytes:
    data, crc = b"", FIRST_CRC
    for record in kept:
        encoded = encode_record(record, crc)
        crc = crc_of(encoded)
        data += encoded
    return data


def torn_record(whole: bytes, data: st.DataObject) -> bytes:
    """A frame behind ``whole`` of which one sector never reached the disk."""
    last = bytearray(encode_record(Entry(1, 1, 1, b"x" * 2_000), scan(whole).crc))
    first, past = len(whole) // SECTOR_BYTES, -(-(len(whole) + len(last)) // SECTOR_BYTES)
    sector = data.draw(st.integers(first, past - 1))
    start = max(sector * SECTOR_BYTES - len(whole), 0)
    end = min((sector + 1) * SECTOR_BYTES - len(whole), len(last))
    last[start:end] = bytes(end - start)
    return bytes(last)


@given(records)
def test_records_survive_their_bytes(kept: list[Record]) -> None:
    data = write(kept)
    found = scan(data)
    assert (found.records, found.valid_bytes, found.damaged) == (kept, len(data), False)


@given(records)
def test_log_goes_on_from_the_crc_of_its_scan(kept: list[Record]) -> None:
    data = write(kept)
    longer = data + encode_record(Vote(7, "a"), scan(data).crc)
    assert scan(longer).records == [*kept, Vote(7, "a")]


@given(records, st.data())
def test_short_tail_is_cut_and_is_no_damage(kept: list[Record], data: st.DataObject) -> None:
    whole = write(kept)
    last = encode_record(Vote(9, "someone"), scan(whole).crc)
    torn = whole + last[: data.draw(st.integers(1, len(last) - 1))]
    assert scan(torn) == (kept, len(whole), scan(whole).crc, False)


@given(records, st.data())
def test_last_record_with_a_sector_of_zeros_is_cut(kept: list[Record], data: st.DataObject) -> None:
    whole = write(kept)
    last = torn_record(whole, data)
    assert scan(whole + last) == (kept, len(whole), scan(whole).crc, False)


@pytest.mark.parametrize("at", [0, 4, 8, HEADER_BYTES + 3])
def test_flipped_bit_in_an_older_record_is_damage(at: int) -> None:
    first = encode_record(Entry(1, 1, 1, b"first"), FIRST_CRC)
    data = bytearray(first + encode_record(Entry(2, 1, 1, b"second"), crc_of(first)))
    data[at] ^= 0x40
    assert scan(bytes(data)) == ([], 0, FIRST_CRC, True)


def test_flipped_bit_in_the_last_record_is_damage() -> None:
    data = bytearray(write([Entry(1, 1, 1, b"first"), Entry(2, 1, 1, b"second")]))
    data[-1] ^= 1
    found = scan(bytes(data))
    assert found.records == [Entry(1, 1, 1, b"first")]
    assert found.damaged


def test_zeros_inside_an_older_record_are_damage() -> None:
    first = bytearray(encode_record(Entry(1, 1, 1, b"x" * 2_000), FIRST_CRC))
    second = encode_record(Entry(2, 1, 1, b"second"), crc_of(bytes(first)))
    first[SECTOR_BYTES : 2 * SECTOR_BYTES] = bytes(SECTOR_BYTES)
    assert scan(bytes(first) + second).damaged


def test_record_of_another_life_of_the_file_does_not_fit_the_chain() -> None:
    old = write([Entry(1, 1, 1, b"old first"), Entry(2, 1, 1, b"old second")])
    first_old = len(encode_record(Entry(1, 1, 1, b"old first"), FIRST_CRC))
    new = encode_record(Entry(1, 2, 1, b"new first"), FIRST_CRC)
    found = scan(new + old[first_old:])
    assert found.records == [Entry(1, 2, 1, b"new first")]
    assert found.damaged


def test_record_of_an_unknown_kind_is_damage() -> None:
    payload = b"\x91\x91\x63"  # a batch of one array with tag 99
    length = len(payload).to_bytes(4, "little")
    head = crc32(length, FIRST_CRC)
    data = length + head.to_bytes(4, "little") + crc32(payload, head).to_bytes(4, "little") + payload
    assert scan(data).damaged


def test_entry_of_an_older_version_names_no_voters() -> None:
    payload = msgspec.msgpack.encode([[1, 7, 2, 99, b"payload"]])
    found = scan(encode_frame(payload, FIRST_CRC))
    assert found.records == [Entry(7, 2, 99, b"payload", None, False)]


@given(records, st.integers(1, 3_000))
def test_zeros_behind_the_frames_are_neither_torn_nor_damage(kept: list[Record], zeros: int) -> None:
    data = write(kept)
    found = scan_frames(data + bytes(zeros), 0, FIRST_CRC, False)
    assert [record for batch in found.batches for record in batch.records] == kept
    assert (found.end, found.torn, found.damage) == (len(data), False, "")


@given(records, st.data())
def test_short_tail_before_zeros_is_cut_and_is_no_damage(kept: list[Record], data: st.DataObject) -> None:
    whole = write(kept)
    last = encode_record(Vote(9, "someone"), scan(whole).crc)
    torn = whole + last[: data.draw(st.integers(1, len(last) - 1))]
    found = scan_frames(torn + bytes(data.draw(st.integers(1, 3_000))), 0, FIRST_CRC, False)
    assert (found.end, found.torn, found.damage) == (len(whole), True, "")


@given(records, st.data())
def test_a_sector_that_never_arrived_before_zeros_is_cut(kept: list[Record], data: st.DataObject) -> None:
    whole = write(kept)
    last = torn_record(whole, data)
    assert scan(whole + last + bytes(data.draw(st.integers(1, 3_000)))) == (kept, len(whole), scan(whole).crc, False)


def test_flipped_bit_before_zeros_is_damage() -> None:
    whole = write([Entry(1, 1, 1, b"first"), Entry(2, 1, 1, b"second")])
    for at in range(len(whole)):
        data = bytearray(whole + bytes(5_000))
        data[at] ^= 1
        assert scan(bytes(data)).damaged, f"byte {at}"


def test_flipped_bit_in_the_zeros_behind_the_frames_is_cut_and_is_no_damage() -> None:
    whole = write([Entry(1, 1, 1, b"first"), Entry(2, 1, 1, b"second")])
    for at in range(len(whole), len(whole) + 1_200):
        data = bytearray(whole + bytes(5_000))
        data[at] ^= 1
        assert scan(bytes(data))[1:] == (len(whole), scan(whole).crc, False), f"byte {at}"


def test_what_lies_behind_a_frame_that_lacks_a_sector_makes_it_damage() -> None:
    first = bytearray(encode_record(Entry(1, 1, 1, b"x" * 2_000), FIRST_CRC))
    first[SECTOR_BYTES : 2 * SECTOR_BYTES] = bytes(SECTOR_BYTES)
    assert not scan(bytes(first) + bytes(5_000)).damaged
    assert scan(bytes(first) + bytes(3_000) + b"x" + bytes(2_000)).damaged


def test_empty_file_holds_nothing() -> None:
    assert scan(b"") == ([], 0, FIRST_CRC, False)
