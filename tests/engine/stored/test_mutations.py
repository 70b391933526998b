"""Mutations on the wire: round trips, strangers, sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.stored import mutations as m
from elasticq.model.limits import MUTATION_ROWS_MAX
from tests.model.structs import structs

KINDS = m.Mutation.__args__


@given(st.lists(st.one_of([structs(kind) for kind in KINDS]), max_size=5))
def test_encode_then_decode_is_the_same(mutations: list[m.Mutation]) -> None:
    assert m.decode(m.encode(mutations)) == mutations


def test_tags_are_distinct_and_never_reused() -> None:
    tags = {kind.__name__: kind.__struct_config__.tag for kind in KINDS}
    assert tags == {
        "ClusterFounded": 1,
        "TookOver": 2,
        "QueueCreated": 3,
        "QueueAttributesSet": 4,
        "QueueDeleted": 5,
        "QueueReclaimed": 6,
        "QueuePurged": 7,
        "MessageStored": 8,
        "MessagesReceived": 9,
        "VisibilityChanged": 10,
        "MessagesRemoved": 11,
        "ReceiveReturned": 12,
        "InvocationRecorded": 13,
        "RangeRemoved": 14,
        "ClusterRenamed": 15,
        "AttemptRecorded": 40,
        "GroupsServed": 41,
        "GroupsRestored": 42,
        "LeaseCalled": 70,
        "LeaseSet": 71,
        "LeaseForgotten": 72,
        "PrioritiesSet": 100,
        "PrioritiesRestored": 101,
        "ConsumerGroupSet": 130,
        "ConsumerGroupDeleted": 131,
        "GroupRebalanced": 132,
        "ConsumerSet": 133,
        "ConsumerRenewed": 134,
        "ConsumerRemoved": 135,
        "ResourceAssigned": 136,
        "ResourceFreed": 137,
        "TokensGiven": 138,
        "ConsumerChanged": 139,
        "TurnsSet": 120,
        "QueueTagged": 60,
        "MoveTaskSet": 61,
        "MoveTaskForgotten": 62,
        "SentIdTaken": 80,
        "ClockAdvanced": 90,
        "TopicSet": 110,
        "TopicDeleted": 111,
        "SubscriptionSet": 112,
        "SubscriptionDeleted": 113,
        "PublishSet": 114,
        "PublishDelivered": 115,
        "QueueRestored": 32,
        "UntouchedRestored": 33,
        "RowsRestored": 34,
        "DelaysRestored": 140,
        "RowsCompared": 150,
        "MetadataKept": 141,
        "MetadataForgotten": 142,
    }


@pytest.mark.parametrize("payload", [b"", b"\x91\x92\x63\x01", b"\x91\xc0", b"\xc1", b"\x91\x92\x07\xa1x"])
def test_an_unknown_mutation_stops_the_member(payload: bytes) -> None:
    with pytest.raises(m.UnknownMutation):
        m.decode(payload)


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_unknown(payload: bytes) -> None:
    try:
        m.decode(payload)
    except m.UnknownMutation:
        return


def test_text_that_is_no_utf8_is_an_unknown_mutation() -> None:
    good = m.encode([m.ClusterFounded("id", b"key", 1)])
    with pytest.raises(m.UnknownMutation):
        m.decode(good.replace(b"id", b"\xff\xff"))


@given(st.integers(0, 3 * MUTATION_ROWS_MAX + 1))
def test_chunks_keep_all_rows_and_the_bound(count: int) -> None:
    parts = m.chunks(list(range(count)))
    assert [x for part in parts for x in part] == list(range(count))
    assert all(0 < len(part) <= MUTATION_ROWS_MAX for part in parts)


def test_a_receive_costs_few_bytes_a_message() -> None:
    term = 3
    sequences = [(term << 40) + at for at in range(10)]
    received = m.MessagesReceived(
        (term << 40) + 1, 1_700_000_000_000, 1_700_000_030_000, sequences, [(term << 32) + 1] * 10, [1] * 10, [0] * 10
    )
    assert len(m.encode([received])) < 300


@given(st.lists(st.integers(0, 2**62), unique=True))
def test_growing_numbers_are_told_by_their_distances(numbers: list[int]) -> None:
    numbers.sort()
    assert m.from_distances(m.distances(numbers)) == numbers
    assert all(distance >= 0 for distance in m.distances(numbers))


def test_subscriptions_that_a_publish_waits_for_take_little() -> None:
    numbers = [(7 << 40) + (1 << 39) + at for at in range(100_000)]
    row = m.PublishSet(1, 2, 3, "x", m.distances(numbers), "")
    assert len(m.encode([row])) < 110_000
