"""Shares are even within one by weight, within the bound, and take no more than they must from those who hold."""

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.consumer_groups.targets import NO_BOUND, PlannedConsumer, set_targets

WEIGHTS = st.lists(st.integers(0, 5), max_size=8)


def seats_of(weights: list[int], held: list[int]) -> list[PlannedConsumer]:
    return [
        PlannedConsumer(number, weight, count)
        for number, (weight, count) in enumerate(zip(weights, held, strict=True), 1)
    ]


def taken(held: list[int], targets: list[int]) -> int:
    return sum(max(count - target, 0) for count, target in zip(held, targets, strict=True))


@settings(max_examples=100, deadline=None)
@given(weights=WEIGHTS, total=st.integers(0, 40), most=st.integers(0, 12), data=st.data())
def test_shares_are_even_within_one_by_weight_and_within_the_bound(
    weights: list[int], total: int, most: int, data: st.DataObject
) -> None:
    held = data.draw(st.lists(st.integers(0, 9), min_size=len(weights), max_size=len(weights)))
    seats = seats_of(weights, held)
    set_targets(seats, total, most)
    eligible = [seat for seat in seats if seat.weight]
    room = most * len(eligible) if most else total
    assert sum(seat.target for seat in seats) == (min(total, room) if eligible else 0)
    at_bound = [seat for seat in eligible if most and seat.target == most]
    others = [seat for seat in eligible if seat not in at_bound]
    left, weight = total - most * len(at_bound), sum(seat.weight for seat in others)
    for seat in others:
        assert seat.target < most or not most
        if not at_bound:
            assert abs(seat.target - Fraction(left * seat.weight, weight)) < 1
    assert all(seat.target == 0 for seat in seats if not seat.weight)


@settings(max_examples=60, deadline=None)
@given(held=st.lists(st.integers(0, 4), min_size=1, max_size=5), total=st.integers(0, 12))
def test_no_even_shares_take_less(held: list[int], total: int) -> None:
    """Against all there are."""
    seats = seats_of([1] * len(held), held)
    set_targets(seats, total, NO_BOUND)
    low = total // len(held)
    even = [shares for shares in product((low, low + 1), repeat=len(held)) if sum(shares) == total]
    assert taken(held, [seat.target for seat in seats]) == min(taken(held, list(shares)) for shares in even)


@settings(max_examples=100, deadline=None)
@given(count=st.integers(0, 12), total=st.integers(0, 60))
def test_a_newcomer_takes_no_more_than_its_share(count: int, total: int) -> None:
    seats = seats_of([1] * count, [0] * count)
    set_targets(seats, total, NO_BOUND)
    held = [seat.target for seat in seats] + [0]
    after = seats_of([1] * (count + 1), held)
    set_targets(after, total, NO_BOUND)
    assert taken(held, [seat.target for seat in after]) <= -(-total // (count + 1))


def test_the_heaviest_are_at_the_bound_first() -> None:
    seats = seats_of([8, 1, 1], [0, 0, 0])
    set_targets(seats, 10, 5)
    assert [seat.target for seat in seats] == [5, 3, 2]
