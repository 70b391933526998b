"""Frames survive any cut; damaged or foreign bytes raise a FrameError and nothing else, within the bound."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.peers.errors import FrameError, UnexpectedKind, WrongChecksum, WrongLength, WrongVersion
from elasticq.peers.frames import (
    DATA,
    FRAME_BYTES_MAX,
    GREETING,
    HANDSHAKE_KINDS,
    HELLO,
    IDLE,
    LINK_KINDS,
    MAC_BYTES,
    CrcSeal,
    FrameReader,
    FrameWriter,
    MacSeal,
    Seal,
)

KEY = b"k" * 32


def make_seal(is_keyed: bool) -> Seal:
    return MacSeal(KEY) if is_keyed else CrcSeal()


def written(frames: list[tuple[int, bytes]], *, is_keyed: bool) -> bytes:
    writer = FrameWriter()
    writer.seal = make_seal(is_keyed)
    pieces: list[bytes] = []
    for kind, body in frames:
        writer.add(pieces, kind, body)
    return b"".join(pieces)


def make_reader(*, is_keyed: bool = False) -> FrameReader:
    reader = FrameReader()
    reader.seal = make_seal(is_keyed)
    reader.allow(LINK_KINDS)
    return reader


def read(reader: FrameReader, data: bytes, sizes: list[int]) -> list[tuple[int, bytes]]:
    """All frames of the data, fed in pieces of these sizes, over and over."""
    found = []
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        reader.feed(data[at : at + size])
        at, turn = at + size, turn + 1
        while (frame := reader.next_frame()) is not None:
            found.append(frame)
    return found


frames = st.lists(
    st.tuples(st.sampled_from([DATA, GREETING]), st.binary(max_size=600)) | st.just((IDLE, b"")), max_size=8
)
cuts = st.lists(st.integers(1, 700), min_size=1, max_size=6)


@given(frames, cuts, st.booleans())
def test_frames_come_back_whole_and_in_order_whatever_the_cuts(
    sent: list[tuple[int, bytes]], sizes: list[int], is_keyed: bool
) -> None:
    reader = make_reader(is_keyed=is_keyed)
    assert read(reader, written(sent, is_keyed=is_keyed), sizes) == sent
    assert reader.kept_bytes == 0


@given(frames.filter(bool), cuts, st.booleans(), st.data())
def test_a_flipped_bit_never_passes(
    sent: list[tuple[int, bytes]], sizes: list[int], is_keyed: bool, data: st.DataObject
) -> None:
    stream = bytearray(written(sent, is_keyed=is_keyed))
    at = data.draw(st.integers(0, len(stream) - 1))
    stream[at] ^= 1 << data.draw(st.integers(0, 7))
    reader = make_reader(is_keyed=is_keyed)
    try:
        assert len(read(reader, bytes(stream), sizes)) < len(sent)
    except FrameError:
        return
    # It became the header of a longer frame of another kind, whose end is awaited: that does not fit either.
    with pytest.raises(FrameError):
        read(reader, bytes(FRAME_BYTES_MAX), [FRAME_BYTES_MAX])


@given(st.binary(max_size=2_000), cuts, st.booleans())
def test_noise_raises_a_frame_error_or_waits_within_the_bound(noise: bytes, sizes: list[int], is_keyed: bool) -> None:
    reader = make_reader(is_keyed=is_keyed)
    try:
        assert read(reader, noise, sizes) == []
    except FrameError:
        return
    assert reader.kept_bytes < 8


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_any_header_is_an_error_or_within_the_bound(length: int, stamped: int) -> None:
    reader = make_reader()
    reader.feed(struct.pack(">II", length, stamped))
    try:
        assert reader.next_frame() is None
    except FrameError:
        return
    assert length <= FRAME_BYTES_MAX


@given(st.integers(1, 2**32 - 1 - FRAME_BYTES_MAX))
def test_a_frame_beyond_the_bound_is_refused_at_its_header(excess: int) -> None:
    length = FRAME_BYTES_MAX + excess
    stamp = 0x4551 << 16 | 1 << 8 | DATA
    reader = make_reader()
    reader.feed(struct.pack(">II", length, length ^ stamp))
    with pytest.raises(WrongLength):
        reader.next_frame()


def test_a_frame_at_the_bound_passes_in_pieces() -> None:
    body = bytes(FRAME_BYTES_MAX)
    stream = written([(DATA, body), (IDLE, b"")], is_keyed=True)
    assert read(make_reader(is_keyed=True), stream, [65_536]) == [(DATA, body), (IDLE, b"")]


def test_a_stranger_may_send_handshake_frames_only() -> None:
    reader = FrameReader()
    reader.feed(written([(HELLO, b"x"), (DATA, b"y")], is_keyed=False))
    assert reader.next_frame() == (HELLO, b"x")
    with pytest.raises(UnexpectedKind):
        reader.next_frame()
    assert max(HANDSHAKE_KINDS.values()) <= 65_536


def test_another_format_is_named() -> None:
    reader = make_reader()
    reader.feed(struct.pack(">II", 3, 3 ^ (0x4551 << 16 | 2 << 8 | DATA)))
    with pytest.raises(WrongVersion, match="format 2"):
        reader.next_frame()


def test_http_on_the_peer_port_is_refused() -> None:
    reader = make_reader()
    reader.feed(b"GET / HTTP/1.1\r\n")
    with pytest.raises(WrongLength):
        reader.next_frame()


@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_repeated_or_missing_frame_is_found(is_keyed: bool) -> None:
    first = written([(DATA, b"a")], is_keyed=is_keyed)
    both = written([(DATA, b"a"), (DATA, b"b")], is_keyed=is_keyed)
    for stream in (first + first, both[len(first) :]):
        with pytest.raises(WrongChecksum):
            read(make_reader(is_keyed=is_keyed), stream, [1_000])


def test_another_key_is_found() -> None:
    reader = make_reader(is_keyed=True)
    reader.seal = MacSeal(b"j" * 32)
    assert reader.seal.size == MAC_BYTES
    with pytest.raises(WrongChecksum):
        read(reader, written([(DATA, b"a")], is_keyed=True), [1_000])
