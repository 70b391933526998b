"""The reader of heads: what it keeps, and which heads are hot."""

import pytest

from elasticq.http.head import BadHead, HeadReader
from tests.http.test_framing import LINES


def test_known_lines_are_bounded_and_secrets_are_not_kept() -> None:
    reader = HeadReader()
    lines = reader._fact.__self__  # type: ignore[attr-defined]
    for number in range(3_000):
        reader.read(b"\r\n".join([*LINES, b"User-Agent: %d" % number, b"Authorization: %d" % number]))
    assert 0 < len(lines) <= 1_024
    assert not [line for line in lines if b"Authorization" in line]


def test_a_line_is_judged_alike_when_new_and_when_known() -> None:
    reader = HeadReader()
    head = b"\r\n".join(LINES)
    assert reader.read(head) == reader.read(head) == HeadReader().read(head)
    for _ in range(2):
        with pytest.raises(BadHead):
            reader.read(head + b"\r\nContent-Length: 24")


@pytest.mark.parametrize(
    ("line", "hot"),
    [
        (b"Connection: keep-alive", True),
        (b"Connection: close", True),
        (b"Expect: 100-continue", False),
        (b"Connection: Upgrade, HTTP2-Settings", False),
        (b"Upgrade: h2c", False),
        (b"Content-Encoding: gzip", False),
        (b"Content-Encoding: identity", True),
        (b"X-Anything: \xe4 at all", True),
    ],
)
def test_only_plain_requests_are_hot(line: bytes, hot: bool) -> None:
    head = HeadReader().read(b"\r\n".join([*LINES, line]))
    assert head.hot is hot
    assert head.close is (b"close" in line)
