"""A template fits a head that differs in its values only, and values are printable."""

import pytest

from elasticq.http.connection.templates import Template

HEAD = b"POST / HTTP/1.1\r\nA: one\r\nB: two"
SPANS = [(19, 23), (27, 31)]


def test_the_values_of_an_equal_head_are_cut_out() -> None:
    template = Template(HEAD, SPANS)
    assert template.values(HEAD) == (b" one", b" two")
    assert template.values(HEAD.replace(b"one", b"1:~").replace(b"two", b"   ")) == (b" 1:~", b"    ")


@pytest.mark.parametrize("at", [at for at in range(len(HEAD)) if not any(begin <= at < end for begin, end in SPANS)])
def test_any_other_byte_makes_it_another_head(at: int) -> None:
    assert Template(HEAD, SPANS).values(HEAD[:at] + b"x" + HEAD[at + 1 :]) is None


@pytest.mark.parametrize("byte", [*range(0x20), *range(0x7F, 0x100)])
def test_no_value_holds_an_end_of_line_or_anything_else_that_is_not_printable(byte: int) -> None:
    for at in (20, 30):
        assert Template(HEAD, SPANS).values(HEAD[:at] + bytes((byte,)) + HEAD[at + 1 :]) is None


def test_a_value_may_be_empty_or_the_whole_head() -> None:
    assert Template(b"ab", [(1, 1)]).values(b"ab") == (b"",)
    assert Template(b"ab", [(0, 2)]).values(b"xy") == (b"xy",)
    assert Template(b"ab", []).values(b"ab") == ()
