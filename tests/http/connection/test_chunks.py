"""Chunked bodies: the same wherever they are cut, and never more work than their bytes."""

from random import Random

import pytest

from elasticq.http.connection.chunks import CHUNKS_MAX, Chunks
from elasticq.http.connection.head import BadHead
from elasticq.model.limits import REQUEST_BYTES_MAX
from tests.http.desk import Desk, chunked, json_request, responses, settle

BODY = b'{"QueueName":"orders"}' * 7
NEXT = b"POST / HTTP/1.1\r\n"


def written(body: bytes, random: Random) -> bytes:
    """In chunks of random sizes, written as they may be."""
    found, at = b"", 0
    while at < len(body):
        part = body[at : at + random.randint(1, 40)]
        size = f"{len(part):0{random.randint(1, 8)}{random.choice('xX')}}"
        found += b"%b\r\n%b\r\n" % (size.encode(), part)
        at += len(part)
    return found + b"0\r\n\r\n"


@pytest.mark.parametrize("seed", range(40))
def test_a_body_is_the_same_wherever_it_is_cut(seed: int) -> None:
    random = Random(seed)
    stream = written(BODY, random) + NEXT
    body, chunks, at, rest = bytearray(), Chunks(), 0, None
    while rest is None:
        part = stream[at : at + random.randint(1, 1 + seed)]
        rest = chunks.feed(part, body)
        at += len(part)
    assert bytes(body) == BODY
    assert rest + stream[at:] == NEXT


@pytest.mark.parametrize(
    "stream",
    [b"1 \r\na\r\n0\r\n\r\n", b"1\r\nab\r\n0\r\n\r\n", b"1\r\na\r\n0\r\nX: a\r\n\r\n", b"1;a\r\na\r\n", b"g\r\n"],
)
def test_what_is_no_chunk_is_refused_wherever_it_is_cut(stream: bytes) -> None:
    for at in range(len(stream)):
        with pytest.raises(BadHead):
            feed(stream[:at], stream[at:])


def feed(*parts: bytes) -> None:
    chunks = Chunks()
    for part in parts:
        assert chunks.feed(part, bytearray()) is None


def test_as_many_chunks_as_the_bound_allows() -> None:
    body = bytearray()
    data = b"1\r\na\r\n" * (CHUNKS_MAX - 1) + b"0\r\n\r\n"
    assert Chunks().feed(data, body) == b""
    assert bytes(body) == b"a" * (CHUNKS_MAX - 1)
    with pytest.raises(BadHead, match="chunks"):
        Chunks().feed(b"1\r\na\r\n" + data, bytearray())


async def test_a_body_of_the_greatest_size_comes_whole() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    members = b'{"QueueUrl":"orders","MessageBody":"a"' + b" " * (REQUEST_BYTES_MAX - 39) + b"}"
    assert len(members) == REQUEST_BYTES_MAX
    head = chunked(json_request("SendMessage", b"")).removesuffix(b"0\r\n\r\n")
    parts = [members[at : at + 65_536] for at in range(0, len(members), 65_536)]
    stream = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
    (answer,) = await desk.exchange(head, *stream, b"0\r\n\r\n", replies=1)
    assert (answer.status, "MessageId" in answer.json()) == (200, True)
    assert desk.context.buffers_bytes == 0
    await desk.close()


async def test_a_body_that_comes_too_slowly_is_told_so() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(chunked(json_request("ListQueues", b"")).removesuffix(b"0\r\n\r\n"))
    for _ in range(12):
        protocol.data_received(b"1\r\n \r\n")
        await settle(1)
        desk.pass_ms(1_000)
    assert [answer.status for answer in responses(line.received)] == [408]
    assert line.ended
    await desk.close()
