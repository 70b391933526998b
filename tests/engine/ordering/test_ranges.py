"""Ranges against a plain set."""

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.ordering.ranges import Ranges

STEPS = st.lists(st.tuples(st.sampled_from(["add", "discard", "front"]), st.integers(1, 40)), max_size=120)


@settings(max_examples=150)
@given(STEPS)
def test_ranges_behave_like_a_sorted_set(steps: list[tuple[str, int]]) -> None:
    ranges, model = Ranges(), set[int]()
    for action, number in steps:
        if action == "add":
            assert ranges.add(number) == (number not in model)
            model.add(number)
        elif action == "discard":
            assert ranges.discard(number) == (number in model)
            model.discard(number)
        elif model:
            first = min(model)
            assert ranges.discard(first)
            model.discard(first)
        assert list(ranges) == sorted(model)
        assert ranges.count == len(model)
        assert ranges.first() == min(model, default=None)
        assert all((probe in ranges) == (probe in model) for probe in range(42))


def test_the_trimmed_front_may_be_filled_again() -> None:
    ranges = Ranges()
    for number in range(0, 400, 2):
        ranges.add(number)
    for number in range(0, 300, 2):
        assert ranges.discard(number)
    for number in range(0, 300, 2):
        assert ranges.add(number)
    assert list(ranges) == list(range(0, 400, 2))


def test_neighbours_cost_one_pair() -> None:
    ranges = Ranges()
    for number in range(10_000):
        ranges.add(number)
    assert len(ranges._firsts) == 1
    assert ranges.count == 10_000


def test_clear_forgets_everything() -> None:
    ranges = Ranges()
    ranges.add(3)
    ranges.clear()
    assert (list(ranges), ranges.count, ranges.first()) == ([], 0, None)
