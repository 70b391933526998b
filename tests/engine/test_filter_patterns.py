"""Operators of filter policies, one value at a time."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.filter_patterns import FALSE, TRUE, Exists, Not, Prefix, Range, Wildcard, read_list, scalar
from tests.engine.naive_filters import like


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=4), st.text(alphabet="ab", max_size=12))
def test_a_wildcard_finds_what_trying_everything_finds(parts: list[str], text: str) -> None:
    assert Wildcard(parts).holds(text) is like(text, "*".join(parts))


def test_true_is_not_one() -> None:
    assert scalar(True) is TRUE
    assert scalar(False) is FALSE
    assert scalar(1) == 1
    assert not read_list([1]).holds([TRUE])
    assert not read_list([{"numeric": [">=", 0]}]).holds([FALSE])
    assert read_list([True]).holds([TRUE])


def test_equality_by_number_is_equality() -> None:
    wanted = read_list([{"numeric": ["=", 5]}, "x"])
    assert (wanted.exact, wanted.patterns, wanted.allows_absent) == ({5, "x"}, [], False)


def test_what_is_no_text_has_no_prefix() -> None:
    assert not Prefix("1").holds(1)
    assert Not(Prefix("1")).holds(1)
    assert Not(Prefix("1")).holds(None)


def test_null_and_the_empty_text_do_not_exist() -> None:
    assert [Exists().holds(value) for value in (None, "", 0, FALSE, "x")] == [False, False, True, True, True]


def test_a_range_without_ends_holds_for_every_number() -> None:
    assert Range(None, None).holds(1e300)
    assert not Range(None, None).holds("1")


def test_a_list_is_fulfilled_by_one_value_or_by_none_at_all() -> None:
    wanted = read_list(["x", {"exists": False}])
    assert wanted.holds(["y", "x"])
    assert not wanted.holds(["y"])
    assert wanted.holds([])
    assert not read_list(["x"]).holds([])
