"""Targets of the SQS port: heads, chunks, whole connections, the REST API."""

import asyncio
import json
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser

from elasticq.http.connection.chunks import Chunks
from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import CHUNKED, BadHead, HeadReader, without_body
from elasticq.http.pages.rest_call import Asked, refusal
from elasticq.model.errors import SqsError
from elasticq.rest import routes
from elasticq.wire.operations import OPERATIONS
from tests.http.desk import HOST, QUEUE_URL, Desk, chunked, form_request, json_request, post, responses, settle
from tests.http.heads import facts_of
from tests.system.fuzz.choices import Builder, Choices
from tests.system.fuzz.target import Target


@cache
def loop() -> asyncio.AbstractEventLoop:
    """One for all inputs, as a new one takes longer than most of them."""
    return asyncio.new_event_loop()


# --- heads ------------------------------------------------------------------------------

END = b"\r\n\r\n"
_JSON_HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:9324\r\nContent-Type: application/x-amz-json-1.0"
HEADS = (
    _JSON_HEAD + b"\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 5",
    _JSON_HEAD
    + b"\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nX-Amz-Date: 20260101T000000Z\r\namz-sdk-invocation-id: "
    b"11111111-2222-3333-4444-555555555555\r\namz-sdk-request: attempt=1\r\nAuthorization: AWS4-HMAC-SHA256 x\r\n"
    b"Content-Length: 17",
    b"POST /000000000000/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded"
    b"\r\nContent-Length: 0\r\nConnection: close\r\nX-Amzn-Trace-Id: Root=1-2-3\r\nX-Elasticq-Fence: g;7;1",
    b"GET /?Action=ListQueues HTTP/1.0",
    b"GET /api/v1/queues/jobs/messages?max=3&wait_s=1 HTTP/1.1\r\nHost: [::1]:9324\r\nAccept: application/json",
    b"POST /api/v1/queues/jobs/messages/12/ack HTTP/1.1\r\nHost: a\r\nContent-Length: 2",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nOrigin: http://b",
    b"OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\nTE: trailers",
)
HEAD_TOKENS = [
    "Host:",
    "Content-Length:",
    "Content-Type:",
    "Transfer-Encoding:",
    "Connection:",
    "Authorization:",
    "X-Amz-Target:",
    "Expect:",
    "X-Amzn-Trace-Id:",
    "X-Elasticq-Fence:",
    "X-Elasticq-GUID:",
    "Upgrade:",
    "Origin:",
    "User-Agent:",
    "Sec-Fetch-Site:",
    "amz-sdk-invocation-id:",
    "traceparent:",
    "Accept:",
    "HTTP/1.1",
    "HTTP/1.0",
    "POST",
    "GET",
    "DELETE",
    "/api/v1/queues/",
    "/messages",
    "chunked",
    "close",
    "Mozilla/5.0",
    "application/x-amz-json-1.0",
    "application/x-www-form-urlencoded",
    "AmazonSQS.SendMessage",
    "x-amzn-query-mode:",
    "%2F",
]


def judge_head(data: bytes) -> None:
    """A head, and behind its end how a second one of the same length differs.

    A reader that remembers lines, whole heads and templates must judge as one that never saw a head, and what it
    accepts must be read by aiohttp as having the same method, path and length.
    """
    first, _, edits = data.partition(END)
    reader = HeadReader()
    read = _read(reader, first)
    assert _facts(_read(reader, first)) == _facts(read), "a head that is known is judged differently"
    if read is not None and read.hot:
        reader._learn(read)
        assert _facts(_read(reader, first)) == _facts(read), "a template judges differently"
        _check_like_aiohttp(read)
    elif read is not None:
        assert END not in without_body(read.lines)[: -len(END)]
    choices, second = Choices(edits), bytearray(first)
    while second and not choices.is_over:
        second[choices.below(len(second))] = choices.below(256)
    if END not in second:
        judged, alone = _read(reader, bytes(second)), _read(HeadReader(), bytes(second))
        assert _facts(judged) == _facts(alone), "another head is judged differently"


def _read(reader: HeadReader, head: bytes) -> Head | None:
    try:
        read = reader.read(head)
    except BadHead:
        return None
    assert read.text == head
    assert read.body_bytes >= 0
    return read


def _facts(head: Head | None) -> object:
    return None if head is None else facts_of(head)


def _check_like_aiohttp(head: Head) -> None:
    """Of a hot head, whose body no second parser ever sees."""
    parser = HttpRequestParser(BaseProtocol(loop()), loop(), 2**16, max_line_size=2**16, max_field_size=2**16)
    try:
        (found, *_), _, _ = parser.feed_data(head.text + END)
    except HttpProcessingError:
        return  # stricter than we are, which is no harm: it is not asked
    message = found[0]
    assert not message.chunked
    assert head.body_bytes != CHUNKED
    assert int(message.headers.get("Content-Length", 0)) == head.body_bytes
    assert message.path == head.path
    assert message.version == (1, 1)
    assert not message.upgrade


# --- chunks -----------------------------------------------------------------------------

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")


def judge_chunks(data: bytes) -> None:
    """The first byte says into how long pieces the rest is cut."""
    size, stream = (data[0] % 31 + 1 if data else 1), data[1:]
    whole = _fed([stream])
    assert _fed([stream[at : at + size] for at in range(0, len(stream), size)]) == whole, "cuts change a body"
    assert whole == _read_plainly(stream), "a plain reading differs"


def _fed(parts: list[bytes]) -> tuple[str, bytes, bytes]:
    """What became of it, the body, and the bytes behind it."""
    chunks, body = Chunks(), bytearray()
    for at, part in enumerate(parts):
        try:
            rest = chunks.feed(part, body)
        except BadHead:
            return "bad", b"", b""
        if rest is not None:
            return "whole", bytes(body), rest + b"".join(parts[at + 1 :])
    return "under way", bytes(body), b""


def _read_plainly(stream: bytes) -> tuple[str, bytes, bytes]:
    body, at = b"", 0
    while True:
        found = _CHUNK.match(stream, at)
        if found is None:
            is_possible = _may_become_a_line(stream[at:])
            return ("under way", body, b"") if is_possible else ("bad", b"", b"")
        size, at = int(found[1], 16), found.end()
        body, at = body + stream[at : at + size], at + size
        end = stream[at : at + 2]
        if not b"\r\n".startswith(end):
            return "bad", b"", b""
        if len(end) < 2:
            return "under way", body, b""
        at += 2
        if not size:
            return "whole", body, stream[at:]


def _may_become_a_line(part: bytes) -> bool:
    return len(part) < 11 and re.fullmatch(rb"(?:[0-9A-Fa-f]{1,8}\r?)?", part) is not None


# --- connections ------------------------------------------------------------------------


def judge_connection(data: bytes) -> None:
    """The bytes of one connection to a port in memory: cuts change no answer, and no answer is an internal failure."""
    size, stream = (data[0] + 1 if data else 1), data[1:]
    loop().run_until_complete(_judge_connection(stream, size))


async def _judge_connection(stream: bytes, size: int) -> None:
    whole = await _answers([stream])
    parts = await _answers([stream[at : at + size] for at in range(0, len(stream), size)])
    assert [_essence(each) for each in whole] == [_essence(each) for each in parts], "cuts change an answer"
    for each in whole:
        assert each.status != 500, each
        assert b"InternalFailure" not in each.body, each


def _essence(response: Any) -> object:
    """Of a head that is refused, that it is refused: of several reasons the first one to be seen is told."""
    is_refusal = response.headers["content-type"] == "text/plain" and 400 <= response.status < 500
    return "refused" if is_refusal else response.essence()


async def _answers(parts: list[bytes]) -> list[Any]:
    desk = Desk()
    try:
        protocol, line = desk.connect()
        for part in parts:
            protocol.data_received(part)
            if line.ended:
                break
        await settle(4)
        waited = 0
        while protocol.slow_request is not None and waited < 200:  # aiohttp has it
            await asyncio.sleep(0)
            waited += 1
        assert not desk.failures, desk.failures
        return [each for each in responses(line.received) if "content-type" in each.headers]
    finally:
        await desk.close()


def seeds_of_connection() -> list[bytes]:
    create = json_request("CreateQueue", {"QueueName": "orders"})
    send = json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x"}, "amz-sdk-invocation-id: 1-2-3")
    receive = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "MaxNumberOfMessages": 2})
    form = form_request(f"Action=SendMessage&QueueUrl={QUEUE_URL}&MessageBody=a%0Db%20c")
    topic = form_request("Action=CreateTopic&Name=news&Version=2010-03-31")
    rest = post(b'{"content":"x"}', "Content-Type: application/json", path="/api/v1/queues/orders/messages")
    many = [create + send + receive, create + form + receive, topic, create + rest, create + chunked(send)]
    many.append(f"GET /api/v1/queues/orders/messages?max=1 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    return [b"\x07" + each for each in many]


# --- REST -------------------------------------------------------------------------------

_METHODS = ("GET", "POST", "PUT", "DELETE")


class _Shapes(Builder):
    def is_present(self, field: Any) -> bool:
        return self.choices.flag()


def judge_rest(data: bytes) -> None:
    """A request of /api/v1: its route, query and body; half of the bodies are built for their route."""
    choices = Choices(data)
    method, base = choices.choice(_METHODS), choices.choice([routes.BASE, routes.DOQ_BASE])
    if choices.flag():
        route = choices.choice(routes.ROUTES)
        method, path = route.method, route.path.replace("{queue}", "jobs").replace("{id}", str(choices.below(1 << 64)))
        query = "&".join(f"{each.name}={choices.text()}" for each in route.query if choices.flag())
        body = b""
        if route.takes and choices.below(8):
            body = msgspec.json.encode(_Shapes(choices).struct(choices.choice(route.takes)))
    else:
        path, _, query = choices.randbytes(choices.below(80)).decode("latin-1").partition("?")
        body = choices.rest()
    asked = Asked(method, base + path, query, body)
    try:
        _ = asked.changes
        found, request = asked.read(_nobody, _Context())  # type: ignore[arg-type]
    except SqsError as error:
        _check_refusal(error)
        return
    if request.body is not None:
        again = routes.read_body(found, msgspec.json.encode(request.body))
        assert msgspec.json.encode(again) == msgspec.json.encode(request.body)
    try:
        loop().run_until_complete(_handle(found, request))
    except SqsError as error:
        _check_refusal(error)
    except _Submitted:
        pass


async def _handle(route: routes.Route, request: Any) -> None:
    await route.handler(request)


class _Submitted(Exception):
    """The handler made a command."""


async def _nobody(command: Any, name: str) -> Any:
    raise _Submitted


class _Context:
    """What a request reads of a server: its clock."""

    runtime = SimpleNamespace(
        time_ms=lambda: 1_700_000_000_000, status=lambda: SimpleNamespace(members=(), master=None)
    )


def _check_refusal(error: SqsError) -> None:
    for is_doq in (True, False):
        answer = refusal(error, is_doq=is_doq)
        assert 400 <= answer.status < 500, answer
        json.loads(answer.body)


def _seeds_of_rest() -> list[bytes]:
    built = [bytes((0, 0, 1, at)) + bytes(range(at, at + 60)) for at in range(len(routes.ROUTES))]
    paths = [b"/queues/jobs/messages?max=3&ack=true", b"/queues/a%2Fb/messages/7/ack", b"/queues", b"/ids"]
    return built + [bytes((at % 4, 0, 0, len(path))) + path + b'{"content":"x"}' for at, path in enumerate(paths)]


TARGETS: dict[str, Target] = {
    "head": Target(judge_head, [*HEADS, *(head + END + b"\x10\x41\x20\x42" for head in HEADS)], HEAD_TOKENS, 3_000),
    "chunks": Target(
        judge_chunks,
        [b"\x035\r\nhello\r\n0\r\n\r\nrest", b"\x00a\r\n0123456789\r\n00000000\r\n\r\n", b"\x1e1;x\r\na\r\n"],
        ["0\r\n\r\n", "\r\n", "ffffffff"],
    ),
    "connection": Target(
        judge_connection, seeds_of_connection(), [*HEAD_TOKENS, *OPERATIONS, "QueueUrl", "MessageBody"]
    ),
    "rest": Target(
        judge_rest, _seeds_of_rest(), ["content", "messages", "deliver_at", "priority", "metadata", "receipt"]
    ),
}
