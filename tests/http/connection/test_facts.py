"""What a request's head says, and its lines."""

from elasticq.http.connection.facts import HEADERS_MAX, Head


def facts_of(text: bytes) -> Head:
    return Head(True, "/", 0, 1, None, "", b"", b"", "", False, text)


def test_a_head_tells_its_lines_when_asked() -> None:
    assert facts_of(b"POST / HTTP/1.1\r\nHost: a\r\nB: c\nd").lines == [b"POST / HTTP/1.1", b"Host: a", b"B: c\nd"]


def test_lines_beyond_the_bound_stay_one() -> None:
    lines = facts_of(b"\r\n".join([b"POST / HTTP/1.1", *[b"A: b"] * (HEADERS_MAX + 3)])).lines
    assert len(lines) == HEADERS_MAX + 1
    assert lines[-1] == b"\r\n".join([b"A: b"] * 4)
