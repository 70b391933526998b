"""Framing that two parsers could read differently: 400, the connection ends, nothing is executed."""

import pytest

from elasticq.http.head import BadHead, HeadReader
from tests.http.desk import Desk, json_request, responses, settle

BODY = b'{"QueueName":"smuggled"}'
LINES = [
    b"POST / HTTP/1.1",
    b"Host: 127.0.0.1:9324",
    b"Content-Type: application/x-amz-json-1.0",
    b"X-Amz-Target: AmazonSQS.CreateQueue",
    b"Content-Length: 24",
]


def with_lines(*more: bytes, without: bytes = b"\0", end: bytes = b"\r\n") -> bytes:
    lines = [line for line in LINES if not line.startswith(without)]
    return end.join([*lines, *more, b"", b""]) + BODY


BAD = {
    "content-length twice, equal": with_lines(b"Content-Length: 24"),
    "content-length twice, different": with_lines(b"Content-Length: 0"),
    "content-length twice, other case": with_lines(b"content-length: 24"),
    "content-length list": with_lines(b"Content-Length: 24, 24", without=b"Content-Length"),
    "content-length negative": with_lines(b"Content-Length: -24", without=b"Content-Length"),
    "content-length with plus": with_lines(b"Content-Length: +24", without=b"Content-Length"),
    "content-length hex": with_lines(b"Content-Length: 0x18", without=b"Content-Length"),
    "content-length underscore": with_lines(b"Content-Length: 2_4", without=b"Content-Length"),
    "content-length inner space": with_lines(b"Content-Length: 2 4", without=b"Content-Length"),
    "content-length empty": with_lines(b"Content-Length:", without=b"Content-Length"),
    "content-length beyond 64 bits": with_lines(b"Content-Length: 99999999999999999999", without=b"Content-Length"),
    "content-length unicode digits": with_lines("Content-Length: ２４".encode(), without=b"Content-Length"),
    "length and chunked": with_lines(b"Transfer-Encoding: chunked"),
    "chunked and length": with_lines(b"Transfer-Encoding: chunked", b"Content-Length: 24", without=b"Content-Length"),
    "chunked twice": with_lines(
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", without=b"Content-Length"
    ),
    "unknown coding": with_lines(b"Transfer-Encoding: xchunked", without=b"Content-Length"),
    "coding list": with_lines(b"Transfer-Encoding: identity, chunked", without=b"Content-Length"),
    "vertical tab before chunked": with_lines(b"Transfer-Encoding: \x0bchunked", without=b"Content-Length"),
    "space before colon": with_lines(b"Transfer-Encoding : chunked"),
    "space before name": with_lines(b" Transfer-Encoding: chunked"),
    "folded line": with_lines(b"X-Long: a", b" b"),
    "folded by tab": with_lines(b"X-Long: a", b"\tb"),
    "bare LF between lines": with_lines(end=b"\n"),
    "bare LF in a line": with_lines(b"X-One: a\nTransfer-Encoding: chunked"),
    "bare CR in a line": with_lines(b"X-One: a\rTransfer-Encoding: chunked"),
    "NUL in a value": with_lines(b"X-One: a\0b"),
    "NUL in a name": with_lines(b"X\0One: a"),
    "NUL in an authorization": with_lines(b"Authorization: AWS4 Credential=a\0/b"),
    "no colon": with_lines(b"X-One"),
    "empty name": with_lines(b": a"),
    "name with bracket": with_lines(b"X[One]: a"),
    "name beyond ASCII": with_lines("X-Ö: a".encode()),
    "two hosts": with_lines(b"Host: other"),
    "no host": with_lines(without=b"Host"),
    "host with path": with_lines(b"Host: a/b", without=b"Host"),
    "host with user": with_lines(b"Host: a@b", without=b"Host"),
    "two targets": with_lines(b"X-Amz-Target: AmazonSQS.ListQueues"),
    "two content types": with_lines(b"Content-Type: text/plain"),
    "two authorizations": with_lines(b"Authorization: a", b"Authorization: b"),
    "two invocation ids": with_lines(b"amz-sdk-invocation-id: a", b"amz-sdk-invocation-id: b"),
    "too many headers": with_lines(*[b"X-%d: a" % number for number in range(101)]),
    "a header as request line": b"\r\n".join(LINES[1:]) + b"\r\n\r\n" + BODY,
    "a request line as header": with_lines(b"POST / HTTP/1.1"),
    "empty line first": b"\r\n" + with_lines(),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "version 1.2": with_lines().replace(b"HTTP/1.1", b"HTTP/1.2", 1),
    "two spaces": with_lines().replace(b"POST /", b"POST  /", 1),
    "tab for space": with_lines().replace(b"POST /", b"POST\t/", 1),
    "space in the path": with_lines().replace(b"POST /", b"POST /a b", 1),
    "control character in the path": with_lines().replace(b"POST /", b"POST /\x01", 1),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", BAD.values(), ids=BAD.keys())
async def test_ambiguous_framing_is_refused_and_nothing_runs(request_bytes: bytes) -> None:
    desk = Desk()
    before = desk.runtime.status().last_index
    protocol, line = desk.connect()
    protocol.data_received(request_bytes)
    protocol.data_received(json_request("CreateQueue", {"QueueName": "behind"}))
    await settle()
    (answer,) = responses(line.received)
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert line.ended
    assert desk.runtime.status().last_index == before
    assert desk.site.hot_requests == desk.site.slow_requests == 0
    await desk.close()


@pytest.mark.parametrize(
    "name", ["length and chunked", "bare LF in a line", "content-length twice, different", "two hosts"]
)
async def test_ambiguous_framing_is_refused_wherever_it_is_cut(name: str) -> None:
    for at in range(1, len(BAD[name])):
        desk = Desk()
        protocol, line = desk.connect()
        protocol.data_received(BAD[name][:at])
        protocol.data_received(BAD[name][at:])
        await settle(2)
        assert [answer.status for answer in responses(line.received)] == [400], f"cut at {at}"
        assert desk.site.hot_requests == 0
        await desk.close()


async def test_bare_line_feeds_are_refused_before_the_head_is_complete() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(b"POST / HTTP/1.1\nHost: a\n\n")
    assert [answer.status for answer in responses(line.received)] == [400]
    await desk.close()


async def test_good_requests_before_a_bad_one_are_answered() -> None:
    desk = Desk()
    answers = await desk.exchange(json_request("ListQueues", {}) + BAD["length and chunked"], replies=2)
    assert [answer.status for answer in answers] == [200, 400]
    await desk.close()


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
