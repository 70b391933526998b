"""How the page writes what it shows."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.admin.page import text


@pytest.mark.parametrize(
    ("age_ms", "told"),
    [
        (None, ""),
        (-5, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90_061_000, "1 d 1 h"),
    ],
)
def test_ages_have_two_units(age_ms: int | None, told: str) -> None:
    assert text.age(age_ms) == told


def test_sizes_have_one_unit() -> None:
    assert [text.size(each) for each in (0, 999, 1_000, 23_413_354_496, 2.5e12)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "23.4 GB",
        "2.5 TB",
    ]


def test_times_are_written_as_a_field_holds_them() -> None:
    assert text.typed_time(1_801_296_000_999) == "2027-01-30T08:00:00"
    assert text.typed_time(10**20) == ""


def test_numbers_and_moments() -> None:
    assert (text.count(1_234_567), text.rate(0.001), text.rate(0.5), text.rate(1_234.56)) == (
        "1,234,567",
        "0",
        "0.50",
        "1,234.6",
    )
    assert text.moment(0) == "1970-01-01 00:00:00 UTC"
    assert text.moment(10**18) == str(10**18)
    assert text.moment(None) == ""


def test_a_body_of_json_is_laid_out_and_another_is_not() -> None:
    assert text.pretty('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert text.pretty("[" * 60_000) == ""
    assert text.pretty("12") == ""
    assert text.pretty("{") == ""


def test_letters_that_deceive_are_shown_as_numbers() -> None:
    assert text.shown("pay\u202ematt\u200b\x00") == "pay\\u202ematt\\u200b\\u0000"
    assert text.pretty(json.dumps({"a": "\u202e"}, ensure_ascii=False)) == '{\n  "a": "\\u202e"\n}'


def test_a_long_body_is_cut_and_says_so() -> None:
    assert text.shown("x" * (text.SHOWN_CHARS + 5)).endswith("... 5 more characters: download it")
    assert text.hexdump("x" * 5_000).endswith("... 904 more bytes")


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_hexadecimal_digits_give_the_body_back(body: str) -> None:
    lines = text.hexdump(body).splitlines()
    data = b"".join(bytes.fromhex(line[8:56].strip()) for line in lines)
    assert data == body.encode("utf-8", "replace")


@settings(max_examples=50)
@given(st.text())
def test_the_start_of_a_body_is_one_line(body: str) -> None:
    assert "\n" not in text.start(body)
