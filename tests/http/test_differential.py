"""One request in many shapes: whichever path reads it, and whatever came before, the answer is the same.

Each shape has a server of its own, and all get the same calls in the same order, so that even handles and message
ids must be equal. aiohttp's own parser is the oracle for heads: what ours takes, it must read in the same way.
"""

import asyncio
import random
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser

from elasticq.http.connection.head import CHUNKED, BadHead, HeadReader
from elasticq.model.limits import HEAD_BYTES_MAX
from tests.http.calls import CALLS
from tests.http.desk import HOST, QUEUE_URL, Desk, chunked, json_request, responses, until
from tests.http.signing import KEY, signed

ODD: Final = [
    None, True, 0, -1, 11, 43_201, 2**31, 1.5, "", "x", "1", " 1", "１", "é", "😀", "a" * 300, "\t", "%41", "+", "&",
    "=", "<x>", "../x", "null", [], {}, [None], [[]], {"a": None}, ["All"],
]  # fmt: skip
LINES: Final = [
    b"X-One: a", b"X-One:", b"X-One: \xe9\xff", b"Accept: application/json", b"Accept: */*", b"Authorization: \xe9",
    b"Authorization: AWS4-HMAC-SHA256 Credential=123456789012/x", b"amz-sdk-invocation-id: 1",
    b"X-Amzn-Trace-Id: Root=1", b"x-amzn-query-mode: true",
    b"Content-Encoding: identity", b"Content-Encoding: gzip", b"Connection: keep-alive",
    b"Connection: TE", b"X-Amz-Date: x", b"X-Long: " + b"a" * 9_000, b"TE: trailers", b"Via: 1.1 x", b"Trailer: X-One",
    b"User-Agent: Mozilla/5.0", b"Origin: http://127.0.0.1:9324", b"X-Amz-Target: AmazonSQS.ListQueues",
    b"Content-Type: text/plain", b"Host: localhost", b"Upgrade: websocket", b"Connection: Upgrade",
]  # fmt: skip
PATHS: Final = [
    "/", "/", "/", "/", "/000000000000/orders", "/000000000000/orders/", "//", "/x", "/%30", "/%", "/a/../b", "/?",
    "/?a=b", "/?Action=ListQueues", "/000000000000/orders?Action=GetQueueAttributes", "/health", "/#x", '/"x', "/a;b",
]  # fmt: skip
FLIPS: Final = [
    b"\0", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\xff", b"%", b"chunked", b"Content-Length: 1\r\n", b"a",
    b"Transfer-Encoding: chunked\r\n", b"Host: a\r\n",
]  # fmt: skip
GET: Final = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
BEFORE: Final = chunked(json_request("GetQueueUrl", {"QueueName": "nowhere"}))


def mutated(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {name: mutated(member, chance) for name, member in value.items() if chance.random() > 0.05}
    if isinstance(value, list):
        return [mutated(member, chance) for member in value for _ in range(chance.choice([1, 1, 1, 2]))]
    return value


def flipped(data: bytes, chance: random.Random, times: int) -> bytes:
    for _ in range(times):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(FLIPS) + data[at + chance.choice([0, 0, 1, 3]) :]
    return data


def made(chance: random.Random) -> bytes:
    """A request with a Content-Length: a call of some action, more or less as it should be."""
    action, members, form = chance.choice(CALLS)
    if chance.random() < 0.6:
        body = msgspec.json.encode(mutated(members, chance))
        lines = [b"Content-Type: application/x-amz-json-1.0", b"X-Amz-Target: AmazonSQS.%b" % action.encode()]
    else:
        body = f"Action={action}&{form}".encode()
        lines = [b"Content-Type: application/x-www-form-urlencoded"]
    body = flipped(body, chance, chance.choice([0, 0, 0, 1, 2]))
    lines += [b"Host: " + HOST.encode(), b"Content-Length: %d" % len(body)]
    lines += chance.sample(LINES, chance.choice([0, 0, 0, 1, 2, 3]))
    chance.shuffle(lines)
    first = f"POST {chance.choice(PATHS)} HTTP/1.1".encode()
    return b"\r\n".join([first, *lines, b"", body])


def cut(request: bytes, chance: random.Random) -> list[bytes]:
    places = sorted(chance.sample(range(1, len(request)), 3))
    return [request[start:end] for start, end in zip([0, *places], [*places, len(request)], strict=True)]


def with_line(request: bytes, line: bytes) -> bytes:
    return request.replace(b"\r\n", b"\r\n" + line + b"\r\n", 1)


Shape = Callable[[bytes, random.Random], list[bytes]]
AS_IT_IS: Final[dict[str, Shape]] = {
    "whole": lambda request, _: [request],
    "cut": cut,
    "behind a GET": lambda request, _: [GET, request],
    "in one piece with a GET": lambda request, _: [GET + request],
    "in one piece with chunks, cut": lambda request, chance: cut(BEFORE + request, chance),
}
REWRITTEN: Final[dict[str, Shape]] = {
    "chunked": lambda request, _: [chunked(request)],
    "chunked, cut": lambda request, chance: cut(chunked(request), chance),
    "expecting": lambda request, _: [with_line(request, b"Expect: 100-continue")],
    "of a browser, behind a GET": lambda request, _: [GET, with_line(request, b"Sec-Fetch-Mode: cors")],
}


async def outcome(desk: Desk, parts: list[bytes]) -> tuple[Any, ...]:
    """The last answer, without what differs between two answers to the same request, and whether the end followed."""
    protocol, line = desk.connect()
    for part in parts:
        protocol.data_received(part)
        if part == GET:
            await until(lambda: len(responses(line.received)) == 1)
    wanted = 1 + b"".join(parts).startswith((GET, BEFORE))
    await until(lambda: len(responses(line.received)) >= wanted)
    answer = responses(line.received)[wanted - 1]
    answer.body = re.sub(rb'"RequestId":"[^"]*', b"", answer.body)
    closes = answer.headers.get("connection") == "close"
    if closes:
        await until(lambda: line.ended)
    assert line.ended is closes
    line.close()
    return (*answer.essence(), closes)


async def compare(seed: int, count: int, shapes: dict[str, Shape], make: Callable[[random.Random], bytes]) -> None:
    desks = {name: Desk() for name in shapes}
    chance = random.Random(seed)
    for number in range(count):
        request = make(chance)
        found = {name: await outcome(desks[name], shape(request, chance)) for name, shape in shapes.items()}
        assert len(set(found.values())) == 1, (seed, number, request, found)
    states = {(desk.runtime.status().last_index, *desk.failures) for desk in desks.values()}
    assert len(states) == 1, (seed, states)
    for desk in desks.values():
        await desk.close()


def made_badly(chance: random.Random) -> bytes:
    """The head is broken somewhere, the length may be wrong with it, and nothing is to come."""
    head, _, body = made(chance).partition(b"\r\n\r\n")
    return flipped(head, chance, chance.choice([0, 1, 1, 2])) + b"\r\n\r\n" + body + b"\r\n\r\n" * 2


async def shapes_agree(seed: int, count: int) -> None:
    await compare(seed, count, AS_IT_IS | REWRITTEN, made)


async def readers_agree(seed: int, count: int) -> None:
    """Ours takes nothing that aiohttp's refuses or reads otherwise."""
    chance, taken = random.Random(seed), 0
    loop = asyncio.get_running_loop()
    for number in range(count):
        request = made_badly(chance)
        head, _, rest = request.partition(b"\r\n\r\n")
        try:
            judged = HeadReader().read(head)
        except BadHead:
            continue
        if judged.body_bytes == CHUNKED or judged.body_bytes > len(rest):
            continue
        taken += 1
        parser = HttpRequestParser(
            BaseProtocol(loop),
            loop,
            2**16,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
            auto_decompress=False,
        )
        context = seed, number, request
        try:
            messages, _, _ = parser.feed_data(head + b"\r\n\r\n" + rest[: judged.body_bytes])
        except HttpProcessingError as error:
            raise AssertionError(context) from error
        ((message, payload),) = messages
        first, *lines = judged.lines
        pairs = [(name, value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in lines)]
        assert first == f"{message.method} {message.path} HTTP/1.{message.version[1]}".encode(), context
        assert list(message.raw_headers) == pairs, context
        assert judged.close is message.should_close or message.version == (1, 0), context
        if not message.upgrade:
            assert await payload.read() == rest[: judged.body_bytes], context
    assert taken > count // 4


async def test_one_request_has_one_answer_in_every_shape() -> None:
    await shapes_agree(seed=1, count=400)


async def test_what_our_reader_takes_aiohttp_reads_in_the_same_way() -> None:
    await readers_agree(seed=1, count=5_000)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(2, 12))
async def test_one_request_has_one_answer_in_every_shape_for_long(seed: int) -> None:
    await shapes_agree(seed, count=5_000)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(2, 12))
async def test_what_our_reader_takes_aiohttp_reads_in_the_same_way_for_long(seed: int) -> None:
    await readers_agree(seed, count=100_000)


async def test_signatures_are_judged_alike_in_every_shape() -> None:
    """A good request, and the same with a line of its head changed, added or twice."""
    chance = random.Random(1)
    shapes = AS_IT_IS
    desks = {name: Desk(auth="strict", keys=[KEY]) for name in shapes}
    body = b'{"QueueUrl": "%b", "MessageBody": "x"}' % QUEUE_URL.encode()
    good = signed(body)
    for number in range(150):
        request = good
        lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        match number % 4:
            case 1:
                request = with_line(request, chance.choice(lines))
            case 2:
                request = with_line(request, chance.choice(LINES))
            case 3:
                line = chance.choice([line for line in lines if not line.startswith((b"Content-Length", b"Host"))])
                request = request.replace(line + b"\r\n", chance.choice(LINES) + b"\r\n", 1)
        found = {name: await outcome(desks[name], shape(request, chance)) for name, shape in shapes.items()}
        assert len(set(found.values())) == 1, (number, request, found)
        if number % 4 == 0:
            assert found["whole"][0] == 200, found
    for desk in desks.values():
        await desk.close()
