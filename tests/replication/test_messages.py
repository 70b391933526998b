"""Frames: every message survives the wire, and nothing else than FrameError comes of other bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.replication import messages
from elasticq.replication.messages import PROTOCOL_VERSION, AnyMessage, Append, FrameError, decode, encode
from elasticq.replication.records import Entry, Truncation, Vote
from tests.model.structs import structs

KINDS = AnyMessage.__args__
ANY_MESSAGE = st.one_of([structs(kind) for kind in KINDS])


def outcome(frame: bytes) -> AnyMessage | None:
    """The message, or None for a FrameError; anything else fails the test."""
    try:
        return decode(frame)
    except FrameError:
        return None


@given(ANY_MESSAGE)
def test_encode_then_decode_is_the_same(message: AnyMessage) -> None:
    assert decode(encode(message)) == message


@given(st.one_of([structs(kind) for kind in (Entry, Truncation, Vote)]))
def test_records_survive_the_same_codec(record: Entry | Truncation | Vote) -> None:
    packed = messages.msgspec.msgpack.encode(record)
    assert messages.msgspec.msgpack.decode(packed, type=Entry | Truncation | Vote) == record


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_a_frame_error(frame: bytes) -> None:
    outcome(frame)
    outcome(bytes([PROTOCOL_VERSION]) + frame)


@settings(max_examples=300)
@given(ANY_MESSAGE, st.data())
def test_damaged_frames_are_messages_or_frame_errors(message: AnyMessage, data: st.DataObject) -> None:
    frame = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.integers(0, 255))
    outcome(bytes(frame))
    outcome(bytes(frame[: data.draw(st.integers(0, len(frame)))]))


def test_text_that_is_no_utf8_is_a_frame_error() -> None:
    message = messages.TimeoutNow(cluster="", group=0, sender="alpha", to="b", term=1)
    with pytest.raises(FrameError):
        decode(encode(message).replace(b"alpha", b"\xff\xff\xff\xff\xff"))


def test_other_protocol_versions_are_refused() -> None:
    frame = encode(messages.TimeoutNow(cluster="", group=0, sender="a", to="b", term=1))
    for version in (0, PROTOCOL_VERSION + 1, 255):
        with pytest.raises(FrameError):
            decode(bytes([version]) + frame[1:])


@pytest.mark.parametrize("depth", [10, 10_000, 200_000])
def test_deep_nesting_is_a_frame_error(depth: int) -> None:
    with pytest.raises(FrameError):
        decode(bytes([PROTOCOL_VERSION]) + b"\x91" * depth)


def test_trailing_bytes_are_a_frame_error() -> None:
    frame = encode(messages.TimeoutNow(cluster="", group=0, sender="a", to="b", term=1))
    with pytest.raises(FrameError):
        decode(frame + b"\x00")


def test_announced_lengths_cost_no_memory() -> None:
    with pytest.raises(FrameError):
        decode(bytes([PROTOCOL_VERSION]) + b"\xdd\xff\xff\xff\xff")
    with pytest.raises(FrameError):
        decode(bytes([PROTOCOL_VERSION]) + b"\x98\x05\xdb\xff\xff\xff\xff")


def test_tags_are_distinct() -> None:
    tags = [kind.__struct_config__.tag for kind in KINDS]
    assert sorted(tags) == list(range(1, 11))
    assert Append.__struct_config__.tag == 5


@given(structs(messages.Found))
def test_founding_entry_keeps_its_voters_byte_by_byte(found: messages.Found) -> None:
    """All founders must have the same entry."""
    again = decode(encode(found))
    assert isinstance(again, messages.Found)
    assert again.entry == found.entry
    assert encode(again) == encode(found)


def test_entry_of_a_frame_without_voters_has_none() -> None:
    """Entries that were written before voters stood in the log are read as they were meant."""
    packed = messages.msgspec.msgpack.encode([1, 7, 2, 1_000, b"x"])
    assert messages.msgspec.msgpack.decode(packed, type=Entry) == Entry(7, 2, 1_000, b"x", None, False)
