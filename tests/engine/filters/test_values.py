"""Orders of a message's values, and spans in them."""

import random

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.filters.values import (
    ADDRESSES,
    ENDS,
    FALSE,
    IPV6,
    LARGE,
    LOWERED,
    NUMBERS,
    SORTED,
    TEXTS,
    TRUE,
    Budget,
    End,
    Spans,
    Values,
    address_of,
    scalar,
)


def values_of(*found: object) -> Values:
    values = Values()
    values.all.update(found)
    return values


def test_true_is_not_one() -> None:
    assert scalar(True) is TRUE
    assert scalar(False) is FALSE
    assert scalar(1) == 1


def test_integers_whose_hashes_a_client_chose_take_no_time() -> None:
    """A set of these integers themselves would take an hour: all have the same hash."""
    values = values_of(*[scalar((2**61 - 1) * (2**60 + each)) for each in range(100_000)])
    assert all(type(each) is float for each in values.all)
    assert scalar(10**400) == float("inf")
    assert scalar(-(10**400)) == float("-inf")


def test_each_order_has_what_belongs_to_it_by_its_keys() -> None:
    values = values_of("bA", "ab", 3, -0.5, TRUE, None, "10.0.0.7", "::1")
    assert values.sorted_by(NUMBERS) == [([-0.5, 3], [-0.5, 3])]
    assert values.sorted_by(TEXTS)[0][0] == ["10.0.0.7", "::1", "ab", "bA"]
    assert values.sorted_by(ENDS)[0] == (["1::", "7.0.0.01", "Ab", "ba"], ["::1", "10.0.0.7", "bA", "ab"])
    assert values.sorted_by(LOWERED)[0][1] == ["10.0.0.7", "::1", "ab", "bA"]
    assert values.sorted_by(ADDRESSES) == [([10 << 24 | 7, IPV6 + 1], ["10.0.0.7", "::1"])]
    assert sorted(values.texts()) == ["10.0.0.7", "::1", "ab", "bA"]
    assert values.text_count == 4


def test_an_address_is_no_longer_than_addresses_are() -> None:
    assert address_of("10.0.0.1") == 10 << 24 | 1
    assert address_of("fe80::1%" + "z" * 100) is None
    assert address_of("ten") is None


def test_an_order_is_made_in_slices() -> None:
    values = values_of(*range(3 * SORTED))
    budget, slices = Budget(1_000), 0
    for _ in values.sort(NUMBERS, budget):
        slices += 1
        budget.left = 1_000
    assert slices > 40
    assert sorted(key for keys, _ in values.sorted_by(NUMBERS) for key in keys) == list(range(3 * SORTED))
    assert not list(values.sort(NUMBERS, Budget(0)))  # it is there


def test_many_values_or_long_ones_are_large() -> None:
    assert not values_of("x", 1).is_large
    assert values_of(*range(LARGE + 1)).is_large
    assert values_of("x" * 100_000).is_large


ends = st.tuples(st.integers(0, 12), st.integers(0, 1))


@given(st.lists(st.tuples(ends, st.none() | ends), max_size=5), st.sets(st.integers(0, 12)))
def test_spans_are_what_each_of_them_is(given_ends: list[tuple[End, End | None]], keys: set[int]) -> None:
    spans = Spans(NUMBERS, given_ends)
    expected = {
        key for key in keys if any(low <= (key, 0) and (high is None or (key, 0) < high) for low, high in given_ends)
    }
    assert {key for key in keys if spans.has(key)} == expected
    ordered = sorted(keys)
    assert {key for first, behind in spans.found(ordered) for key in ordered[first:behind]} == expected
    assert spans.meet(ordered) is bool(expected)
    assert sum(behind - first for first, behind in spans.found(ordered)) == len(expected)  # none is found twice


def test_spans_that_touch_are_one() -> None:
    ends: list[tuple[End, End | None]] = [((at, 0), (at + 1, 0)) for at in range(150)]
    random.Random(7).shuffle(ends)
    assert (Spans(NUMBERS, ends).lows, Spans(NUMBERS, ends).highs) == ([(0, 0)], [(150, 0)])
