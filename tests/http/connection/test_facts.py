"""What a request's head says, and its lines."""

import pytest

from elasticq.http.connection.facts import HEADERS_MAX, Head
from elasticq.wire.operations import OPERATIONS
from tests.http.heads import NAMES, facts_of


def head_of(text: bytes) -> Head:
    return Head(True, "/", 0, 1, None, "", b"", b"", "", False, text)


def test_a_head_tells_its_lines_when_asked() -> None:
    assert head_of(b"POST / HTTP/1.1\r\nHost: a\r\nB: c\nd").lines == [b"POST / HTTP/1.1", b"Host: a", b"B: c\nd"]


def test_lines_beyond_the_bound_stay_one() -> None:
    lines = head_of(b"\r\n".join([b"POST / HTTP/1.1", *[b"A: b"] * (HEADERS_MAX + 3)])).lines
    assert len(lines) == HEADERS_MAX + 1
    assert lines[-1] == b"\r\n".join([b"A: b"] * 4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lines"])
def test_heads_that_differ_in_one_fact_are_unequal_to_tests(name: str) -> None:
    one = head_of(b"POST / HTTP/1.1")
    other = Head(
        False, "/a", 1, 2, OPERATIONS["SendMessage"], "http://a", b"1", b"AWS4", "Root=1", True, b"POST", "g;1;1"
    )
    assert facts_of(one) == facts_of(head_of(b"POST / HTTP/1.1"))
    setattr(one, name, getattr(other, name))
    assert facts_of(one) != facts_of(head_of(b"POST / HTTP/1.1"))
