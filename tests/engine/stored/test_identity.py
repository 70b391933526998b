"""Ids: never given twice, valid everywhere, and nothing else is."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.stored.identity import (
    DELIVERY_TERM_SHIFT,
    RECENT_MAX,
    TERM_SHIFT,
    Identity,
    next_delivery_number,
    next_sequence,
)
from elasticq.model.errors import ReceiptHandleIsInvalid

NUMBER = st.integers(0, 2**64 - 1)
IDENTITY = Identity(b"k" * 32)


@given(NUMBER, NUMBER, NUMBER)
def test_handle_says_what_it_was_made_of_on_every_member(queue_id: int, sequence: int, delivery_number: int) -> None:
    handle = IDENTITY.receipt_handle(queue_id, sequence, delivery_number)
    receipt = Identity(b"k" * 32).read_handle(handle)
    assert (receipt.queue_id, receipt.sequence, receipt.delivery_number) == (queue_id, sequence, delivery_number)
    assert len(handle) <= 1_024
    assert handle.isascii()


def test_every_altered_bit_makes_a_handle_invalid() -> None:
    raw = b64decode(IDENTITY.receipt_handle(1 << 40 | 1, 1 << 40 | 7, 1 << 32 | 1))
    for bit in range(len(raw) * 8):
        altered = bytearray(raw)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ReceiptHandleIsInvalid):
            IDENTITY.read_handle(b64encode(altered).decode())


def test_every_altered_character_makes_a_handle_invalid() -> None:
    handle = IDENTITY.receipt_handle(1, 2, 3)
    for at in range(len(handle)):
        for other in "Az09+/=_- \n":
            altered = handle[:at] + other + handle[at + 1 :]
            if altered != handle:
                with pytest.raises(ReceiptHandleIsInvalid):
                    IDENTITY.read_handle(altered)
    for cut in (handle[:-1], handle + "A", handle + "\n", " " + handle, ""):
        with pytest.raises(ReceiptHandleIsInvalid):
            IDENTITY.read_handle(cut)


def test_a_handle_under_another_key_is_invalid() -> None:
    with pytest.raises(ReceiptHandleIsInvalid):
        Identity(b"j" * 32).read_handle(IDENTITY.receipt_handle(1, 2, 3))


def test_message_ids_depend_on_key_queue_and_sequence() -> None:
    ids = {
        IDENTITY.message_id(1, 2),
        IDENTITY.message_id(2, 1),
        IDENTITY.message_id(1, 3),
        Identity(b"j" * 32).message_id(1, 2),
    }
    assert len(ids) == 4
    assert IDENTITY.message_id(1, 2) == Identity(b"k" * 32).message_id(1, 2)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)), max_size=30))
def test_ids_that_are_remembered_are_those_that_are_made(wanted: list[tuple[int, int, int]]) -> None:
    """The messages share places in the memory of ids, and no other identity has made an id before."""
    warm = Identity(b"k" * 32)
    for queue_id, place, delivery_number in wanted:
        sequence = 7 + place * RECENT_MAX
        assert warm.message_id(queue_id, sequence) == Identity(b"k" * 32).message_id(queue_id, sequence)
        handle = warm.receipt_handle(queue_id, sequence, delivery_number)
        assert handle == Identity(b"k" * 32).receipt_handle(queue_id, sequence, delivery_number)
        for identity in (warm, Identity(b"k" * 32)):
            receipt = identity.read_handle(handle)
            assert (receipt.queue_id, receipt.sequence) == (queue_id, sequence)
            assert receipt.delivery_number == delivery_number


def test_handles_are_valid_after_they_are_forgotten() -> None:
    identity = Identity(b"k" * 32)
    handles = [identity.receipt_handle(1, sequence, 1) for sequence in range(RECENT_MAX + 1)]
    assert [identity.read_handle(handle).sequence for handle in handles] == list(range(RECENT_MAX + 1))


def test_newest_handles_are_remembered_and_their_number_is_bounded() -> None:
    identity = Identity(b"k" * 32)
    handles: list[str] = []
    for sequence in range(3 * RECENT_MAX):
        handles.append(identity.receipt_handle(1, sequence, 1))
        remembered = (
            identity._recent.handles.keys() | identity._recent.older_handles.keys() if sequence % 97 == 0 else ()
        )
        assert not remembered or remembered >= set(handles[-RECENT_MAX // 2 :])
        assert len(remembered) <= RECENT_MAX


@given(st.lists(st.tuples(st.sampled_from(["next", "lost", "term"]), st.integers(1, 3)), max_size=60))
def test_sequences_grow_and_never_repeat_though_a_tail_is_lost(steps: list[tuple[str, int]]) -> None:
    last = kept = 0
    term, given_out = 1, set[int]()
    for action, by in steps:
        if action == "next":
            last = next_sequence(last, term)
            assert last not in given_out
            assert last >> TERM_SHIFT == term
            given_out.add(last)
        elif action == "lost":
            last, term = kept, term + by  # a new master, without what was not committed
        else:
            kept = last


@given(st.lists(st.booleans(), max_size=60))
def test_hand_out_numbers_never_repeat_though_a_tail_is_lost(steps: list[bool]) -> None:
    last = kept = 0
    term, given_out = 1, set[int]()
    for is_lost in steps:
        if is_lost:
            last, term = kept, term + 1
        else:
            kept = last
            last = next_delivery_number(last, term)
            assert last not in given_out
            assert last >> DELIVERY_TERM_SHIFT == term
            assert last > kept
            given_out.add(last)


def test_token_confirms_one_subscription_of_this_cluster() -> None:
    identity, other = Identity(b"a" * 32), Identity(b"b" * 32)
    token = identity.token(7)
    assert (len(token), identity.read_token(token), identity.read_token(identity.token(8))) == (288, 7, 8)
    for text in (other.token(7), token[:-1], token + "0", token.upper() + "x", "", "é" * 288, "0" * 288):
        assert identity.read_token(text) is None
    assert identity.subscription_key(7) != identity.message_id(7, 1)
