"""Framing that two parsers could read differently: 400, the connection ends, nothing is executed."""

import pytest

from elasticq.http.connection.chunks import CHUNKS_MAX
from tests.http.desk import Desk, json_request, responses, settle, until

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
    "authorization without a colon": with_lines(b"Authorization"),
    "invocation id without a colon": with_lines(b"amz-sdk-invocation-id"),
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
    "two dates": with_lines(b"X-Amz-Date: a", b"X-Amz-Date: b"),
    "two hashes of the body": with_lines(b"X-Amz-Content-SHA256: a", b"x-amz-content-sha256: b"),
    "two origins": with_lines(b"Origin: http://127.0.0.1:9324", b"Origin: https://evil.example"),
    "two agents, one a browser's": with_lines(b"User-Agent: curl", b"User-Agent: Mozilla/5.0"),
    "two expectations": with_lines(b"Expect: 100-continue", b"Expect: 100-continue"),
    "two targets, one cold line": with_lines(b"Expect: 100-continue", b"X-Amz-Target: AmazonSQS.ListQueues"),
    "too many headers": with_lines(*[b"X-%d: a" % number for number in range(101)]),
    "host beyond all names": with_lines(b"Host: " + b"a" * 254, without=b"Host"),
    "a URL for a path": with_lines().replace(b"POST /", b"POST http://elsewhere/", 1),
    "a host for a path": with_lines().replace(b"POST /", b"CONNECT elsewhere:80", 1),
    "a star for a path": with_lines().replace(b"POST /", b"OPTIONS *", 1),
    "an unknown method": with_lines().replace(b"POST", b"PROPFIND", 1),
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


CHUNKED_LINES = [*LINES[:-1], b"Transfer-Encoding: chunked"]
SLOW = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:9324\r\n\r\n"


def in_chunks(chunks: bytes) -> bytes:
    return b"\r\n".join([*CHUNKED_LINES, b"", chunks])


BAD_CHUNKS = {
    "extension": in_chunks(b"18;a=b\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "extension with an end of line in quotes": in_chunks(b'18;a="\r\n' + BODY + b"\r\n0\r\n\r\n"),
    "extension of the last chunk": in_chunks(b"18\r\n" + BODY + b"\r\n0;a\r\n\r\n"),
    "bare LF behind the size": in_chunks(b"18\n" + BODY + b"\r\n0\r\n\r\n"),
    "bare LF behind the bytes": in_chunks(b"18\r\n" + BODY + b"\n0\r\n\r\n"),
    "bare LF at the end": in_chunks(b"18\r\n" + BODY + b"\r\n0\n\n"),
    "bare LF at the very end": in_chunks(b"18\r\n" + BODY + b"\r\n0\r\n\n"),
    "size with zeros": in_chunks(b"0" * 20 + b"18\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "size with a sign": in_chunks(b"+18\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "size with a prefix": in_chunks(b"0x18\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "size with a space": in_chunks(b"18 \r\n" + BODY + b"\r\n0\r\n\r\n"),
    "size beyond 64 bits": in_chunks(b"10000000000000018\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "no size": in_chunks(b"\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "no end of line": in_chunks(b"18\r\n" + BODY + b"0\r\n\r\n"),
    "more bytes than announced": in_chunks(b"10\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "trailer": in_chunks(b"18\r\n" + BODY + b"\r\n0\r\nX-Amz-Target: AmazonSQS.DeleteQueue\r\n\r\n"),
    "announced trailer": in_chunks(b"18\r\n" + BODY + b"\r\n0\r\nX-One: a\r\n\r\n").replace(
        b"\r\n\r\n", b"\r\nTrailer: X-One\r\n\r\n", 1
    ),
    "request for a trailer": in_chunks(b"18\r\n" + BODY + b"\r\n0\r\n" + SLOW),
    "a byte a chunk": in_chunks(b"1\r\n \r\n" * CHUNKS_MAX + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("before", [b"", SLOW, in_chunks(b"2\r\n{}\r\n0\r\n\r\n")], ids=["first", "slow", "chunked"])
@pytest.mark.parametrize("request_bytes", [*BAD.values(), *BAD_CHUNKS.values()], ids=[*BAD, *BAD_CHUNKS])
async def test_ambiguous_framing_is_refused_and_nothing_runs(before: bytes, request_bytes: bytes) -> None:
    """Alike on a fresh connection and behind a request that aiohttp had, which is answered first."""
    desk = Desk()
    index = desk.runtime.status().last_index
    protocol, line = desk.connect()
    protocol.data_received(before + request_bytes)
    protocol.data_received(json_request("CreateQueue", {"QueueName": "behind"}))
    await until(lambda: line.ended)
    *answers, answer = responses(line.received)
    assert len(answers) == bool(before)
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert line.ended
    assert desk.runtime.status().last_index == index
    assert (desk.context.hot_requests, desk.context.slow_requests) == (0, len(answers))
    await desk.close()


async def test_a_good_request_before_a_bad_one_is_answered_on_the_slow_path_too() -> None:
    desk = Desk()
    good = in_chunks(b"18\r\n" + BODY + b"\r\n0\r\n\r\n")
    answers = await desk.exchange(good + BAD["two targets"], replies=2)
    assert [answer.status for answer in answers] == [200, 400]
    assert b"smuggled" in answers[0].body
    await desk.close()


async def test_a_hot_request_is_hot_again_behind_a_slow_one() -> None:
    desk = Desk()
    hot = json_request("ListQueues", {})
    answers = await desk.exchange(hot + SLOW + hot + SLOW + hot, replies=5)
    assert [answer.body for answer in answers] == [b"{}", b"OK", b"{}", b"OK", b"{}"]
    assert (desk.context.hot_requests, desk.context.slow_requests) == (3, 2)
    await desk.close()


async def test_nothing_behind_a_request_that_closes_is_read() -> None:
    desk = Desk()
    closing = SLOW.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    protocol, line = desk.connect()
    protocol.data_received(closing + json_request("CreateQueue", {"QueueName": "behind"}))
    await until(lambda: line.ended)
    assert [answer.body for answer in responses(line.received)] == [b"OK"]
    assert desk.context.hot_requests == 0
    await desk.close()


async def test_an_upgrade_that_nobody_asked_for_leaves_the_connection_as_it_is() -> None:
    desk = Desk()
    upgrade = SLOW.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    answers = await desk.exchange(upgrade + SLOW + json_request("ListQueues", {}), replies=3)
    assert [answer.status for answer in answers] == [200, 200, 200]
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
        assert desk.context.hot_requests == 0
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
