"""What lists of filter policies ask for."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.filters.patterns import NotAmong, Wildcard, read_list
from elasticq.engine.filters.values import FALSE, TRUE, Budget
from tests.engine.filters.test_values import values_of
from tests.engine.naive_filters import like


def holds(given: list[object], *values: object) -> bool:
    """Whether the list holds for the values; both ways to ask must agree."""
    wanted, found = read_list(given), values_of(*values)
    assert bool(wanted.of(found)) is wanted.holds(found)
    return wanted.holds(found)


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=4), st.text(alphabet="ab", max_size=12))
def test_a_wildcard_finds_what_trying_everything_finds(parts: list[str], text: str) -> None:
    expected = like(text, "*".join(parts))
    if len(parts) > 1:
        assert bool(Wildcard(parts, is_opposite=False).of(values_of(text))) is expected
        assert bool(Wildcard(parts, is_opposite=True).of(values_of(text))) is not expected
    if all(parts[1:-1]):  # else a star stands behind a star, which a policy may not have
        assert holds([{"wildcard": "*".join(parts)}], text) is expected
        assert holds([{"anything-but": {"wildcard": "*".join(parts)}}], text) is not expected


def test_a_long_text_is_searched_in_slices() -> None:
    wildcard = Wildcard(["", "ab" * 30, ""], is_opposite=False)
    for text in ("b" * 99_990 + "ab" * 30 + "b" * 99_990, "b" * 200_000, "ab" * 29 + "b" * 200_000):
        budget, values, slices = Budget(1), values_of(text), 0
        for _ in wildcard.scan(values, budget):
            slices += 1
            budget.left = 1
        assert slices > 5
        assert wildcard.of(values) == ({text} if "ab" * 30 in text else set())


def test_true_is_not_one() -> None:
    assert not holds([1], TRUE)
    assert not holds([{"numeric": [">=", 0]}], FALSE)
    assert holds([True], TRUE)


def test_equality_by_number_is_equality() -> None:
    wanted = read_list([{"numeric": ["=", 5]}, "x", {"wildcard": "y"}])
    assert (wanted.exact, wanted.is_equality) == ({5, "x", "y"}, True)


def test_what_is_no_text_has_no_prefix() -> None:
    assert not holds([{"prefix": "1"}], 1)
    assert holds([{"anything-but": {"prefix": "1"}}], 1)
    assert holds([{"anything-but": {"prefix": ""}}], None)
    assert not holds([{"anything-but": {"prefix": ""}}], "x")


def test_a_prefix_has_all_that_begins_with_it() -> None:
    last = chr(0x10FFFF)
    for prefix in ("a", "a" + last, last, last * 2, ""):
        for rest in ("", "a", last, last * 3):
            assert holds([{"prefix": prefix}], prefix + rest)
            assert not holds([{"anything-but": {"prefix": prefix}}], prefix + rest)
        if prefix:
            assert not holds([{"prefix": prefix}], "")
            assert holds([{"anything-but": {"prefix": prefix}}], "", "a" * 9)


def test_null_and_the_empty_text_do_not_exist() -> None:
    assert [holds([{"exists": True}], value) for value in (None, "", 0, FALSE, "x")] == [False, False, True, True, True]


def test_lists_of_anything_but_hold_for_what_not_all_of_them_name() -> None:
    wanted = read_list([{"anything-but": ["x", "y"]}, {"anything-but": ["y", "z"]}])
    assert len(wanted.patterns) == 1
    assert isinstance(wanted.patterns[0], NotAmong)
    assert wanted.of(values_of("x", "y", "z", 1)) == {"x", "z", 1}


def test_a_hundred_and_fifty_patterns_are_a_few() -> None:
    """So each value is found once, however many of them hold for it."""
    wanted = read_list([{"anything-but": {"prefix": f"{each}"}} for each in range(150)] + [{"exists": True}] * 150)
    assert len(wanted.patterns) == 2
    assert len(wanted.spans[0].lows) == 1
