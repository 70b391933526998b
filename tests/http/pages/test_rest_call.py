"""The hot way of the REST API: it answers as aiohttp's does, and nothing gets lost where its client does."""

import gc
import json
import random
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from elasticq.http.connection.bounds import Bounds
from elasticq.http.pages.rest_call import RestCall
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, Response, get, json_request, responses, settle, until
from tests.http.pages.test_rest import API, DOQ, asked
from tests.http.signing import KEY, signed

SLOW: Final = "Upgrade: x\r\n"
"""A header that makes a request one for aiohttp, and that no handler reads."""
ODD: Final = [
    None, True, -1, 11, 2**63, 1.5, "", "x", "1", "é", "a" * 300, "\0", "messages", [], {}, {"a": "b"}, {"": "x"},
    {"AWS.x": "y"}, [{"content": "x"}],
]  # fmt: skip


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    one = Desk()
    await one.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
    one.context.slow_requests = 0
    yield one
    await one.close()


def essence(answer: Response) -> tuple[Any, ...]:
    told = [answer.headers.get(name) for name in ("content-type", "content-length", "allow", "retry-after")]
    return answer.status, *told, answer.body


class Pair:
    """A server that is asked the hot way, and one that is asked the same by aiohttp's; both must answer alike."""

    def __init__(self, **more: Any) -> None:
        self.hot, self.slow = Desk(**more), Desk(**more)

    async def ask(self, method: str, path: str, body: Any = None, headers: str = "") -> Response:
        hot = await self.hot.ask(asked(method, path, body, headers))
        slow = await self.slow.ask(asked(method, path, body, headers + SLOW))
        assert essence(hot) == essence(slow), (method, path, body)
        return hot

    async def close(self) -> None:
        await self.hot.close()
        await self.slow.close()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    both = Pair()
    yield both
    await both.close()


async def test_all_that_is_hot_is_answered_as_aiohttp_answers_it(pair: Pair) -> None:
    for name, kind in (("jobs", "delayed"), ("plain", "standard"), ("line.fifo", "fifo")):
        for desk in (pair.hot, pair.slow):
            assert (await desk.ask(asked("POST", f"{API}/queues", {"name": name, "type": kind}))).status == 200
    pair.hot.context.slow_requests = pair.slow.context.slow_requests = 0
    chance = random.Random(7)
    for number in range(120):
        queue = f"{chance.choice([API, DOQ])}/queues/{chance.choice(['jobs', 'jobs', 'plain', 'line.fifo', 'nowhere'])}"
        message = {
            "content": f"number {number}", "group": "g", "priority": number % 5, "metadata": {"a": "b"}, "id": "",
            "delay_s": 0, "deliver_at": 5, "deduplication_id": str(number),
        }  # fmt: skip
        for name in chance.sample(sorted(message), 5):
            if chance.random() < 0.5:
                del message[name]
            elif chance.random() < 0.3:
                message[name] = chance.choice(ODD)
        await pair.ask("POST", f"{queue}/messages", message if chance.random() < 0.9 else chance.choice(ODD))
        query = "&".join(
            f"{name}={value}" for name, value in
            (("max", chance.choice(["1", "3", "12", "0", "x"])), ("ack", chance.choice(["true", "false", "1"])),
             ("visibility_s", chance.choice(["0", "5", "50000"])), ("wait_s", "0"))
            if chance.random() < 0.5
        )  # fmt: skip
        taken = await pair.ask("GET", f"{queue}/messages?{query}" if query else f"{queue}/messages")
        if taken.status != 200:
            continue
        found = taken.json()
        for each in found.get("messages", [found]):
            body: dict[str, Any] = {"receipt": chance.choice([each["receipt"], each["receipt"], "", "AAAA", "no"])}
            what = chance.choice(["ack", "nack", "touch", "ack"])
            if what == "nack":
                body |= {"metadata": {"retry": "1"}, "delay_s": chance.choice([0, 3])}
            await pair.ask("POST", f"{queue}/messages/{each['id']}/{what}", chance.choice([body, body, b"", 7]))
    await pair.ask("POST", f"{API}/queues/jobs/messages/{1 << 70}/ack", {})
    await pair.ask("POST", f"{API}/queues/%6aobs/messages", {"content": "by another spelling"})
    await pair.ask("POST", f"{API}/queues/a%2Fb/messages", {"content": "x"})
    assert not pair.hot.context.slow_requests, "all of it was hot"
    assert pair.slow.context.slow_requests
    await pair.ask("POST", f"{API}/queues/jobs/messages", {"messages": [{"content": "1"}, {"content": ""}]})
    await pair.ask("POST", f"{API}/queues/jobs/messages", b'{"\\u006dessages": [{"content": "1"}]}')
    assert pair.hot.context.slow_requests == 2, "many are sent by tasks, which are aiohttp's"
    hot, slow = counted(pair.hot), counted(pair.slow)
    assert hot == slow, "metrics count both alike"
    assert min(hot[0][DEFAULT_ACCOUNT, "jobs"][:3]) > 0


def counted(desk: Desk) -> tuple[dict[tuple[str, str], tuple[int, ...]], dict[tuple[str, str], int]]:
    meter = desk.context.meter
    return {key: (each.sent, each.received, each.deleted) for key, each in meter.by_queue().items()}, meter.errors


async def test_signatures_are_asked_for_as_elsewhere() -> None:
    both = Pair(auth="strict", keys=(KEY,))
    try:
        refused = await both.ask("POST", f"{API}/queues/jobs/messages", {"content": "x"})
        assert refused.status == 403
        url, headers = f"{API}/queues/jobs/messages", {"Content-Type": "application/json"}
        request = signed(b'{"content": "x"}', headers, url=url)
        assert (await both.hot.ask(request)).status == 404, "who may ask is told that there is no such queue"
        assert (await both.hot.ask(request.replace(b'"x"', b'"y"'))).status == 403
        assert both.hot.context.slow_requests == 0
        for desk in (both.hot, both.slow):
            asks = await desk.ask(signed(b"", {}, method="GET", url=url, presigned_s=60))
            assert (asks.status, desk.context.slow_requests) == (404, 1 + (desk is both.slow))
    finally:
        await both.close()


async def test_a_fence_stands_before_what_is_hot_too(pair: Pair) -> None:
    """A call must not be executed without the fence that it has."""
    url, fence = f"{API}/queues/jobs/messages", "X-Elasticq-Fence: g;1\r\n"
    for desk in (pair.hot, pair.slow):
        await desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
        await desk.ask(asked("POST", url, {"content": "x"}))
    pair.hot.context.slow_requests = 0
    for query in ("", "?ack=true"):
        refused = await pair.ask("GET", url + query, headers=fence)
        assert (refused.status, refused.json()["code"]) == (400, "ElasticqNotHolder")
        assert (await pair.ask("GET", url + query, headers="X-Elasticq-Fence: g\r\n")).status == 400
    taken = (await pair.ask("GET", url)).json()["messages"][0]
    receipt = {"receipt": taken["receipt"]}
    for what, body in (
        ("ack", receipt), ("ack", {}), ("touch", receipt), ("touch", receipt | {"visibility_s": 5}), ("nack", {}),
        ("nack", {"priority": 1}), ("nack", receipt | {"delay_s": 0, "metadata": {"a": "b"}}),
    ):  # fmt: skip
        refused = await pair.ask("POST", f"{url}/{taken['id']}/{what}", body, fence)
        assert (refused.status, refused.json()["code"]) == (400, "ElasticqNotHolder"), (what, body)
    assert (await pair.ask("POST", url, {"content": "y"}, fence)).status == 200, "a send has no fence"
    assert not pair.hot.context.slow_requests


@pytest.mark.parametrize("header", ["Referer: http://evil.example/\r\n", "Origin: http://evil.example\r\n"])
async def test_get_that_a_page_may_have_sent_receives_nothing(header: str) -> None:
    both = Pair(browsers=Browsers())
    try:
        for desk in (both.hot, both.slow):
            await desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
        assert (await both.ask("GET", f"{API}/queues/jobs/messages", None, header)).status == 403
        both.hot.context.slow_requests = 0
        assert (await both.ask("GET", f"{API}/queues/jobs/messages")).status == 200
        assert both.hot.context.slow_requests == 0
    finally:
        await both.close()


async def test_receive_waits_and_the_next_request_of_its_connection_after_it(desk: Desk) -> None:
    protocol, line = desk.connect()
    send = asked("POST", f"{API}/queues/jobs/messages", {"content": "second"})
    protocol.data_received(asked("GET", f"{API}/queues/jobs/messages?wait_s=20&ack=true") + send)
    await settle()
    assert not line.received
    await desk.ask(asked("POST", f"{API}/queues/jobs/messages", {"content": "first"}))
    await until(lambda: len(responses(line.received)) == 2)
    taken, sent = responses(line.received)
    assert [each["content"] for each in taken.json()["messages"]] == ["first"]
    assert sent.json()["status"] == "ENQUEUED"
    left = await desk.ask(asked("GET", f"{API}/queues/jobs/messages?max=10"))
    assert [each["content"] for each in left.json()["messages"]] == ["second"], "what is acked at once is gone"
    assert desk.context.slow_requests == 0


@pytest.mark.parametrize("is_reset", [False, True])
async def test_message_goes_to_nobody_who_left(desk: Desk, is_reset: bool) -> None:
    protocol, line = desk.connect()
    protocol.data_received(asked("GET", f"{API}/queues/jobs/messages?wait_s=20"))
    await settle()
    if is_reset:
        line.close()
    else:
        protocol.eof_received()
    await settle()
    await desk.ask(asked("POST", f"{API}/queues/jobs/messages", {"content": "x"}))
    await settle()
    answer = await desk.ask(asked("GET", f"{API}/queues/jobs/messages"))
    assert [(each["content"], each["receive_count"]) for each in answer.json()["messages"]] == [("x", 1)]


async def test_answer_that_is_the_last_one_says_so(desk: Desk) -> None:
    protocol, line = desk.connect()
    request = asked("POST", f"{API}/queues/jobs/messages", {"content": "x"}, "Connection: close\r\n")
    protocol.data_received(request)
    await until(lambda: line.ended)
    [answer] = responses(line.received)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert desk.context.slow_requests == 0


async def test_server_that_stops_says_that_it_does(desk: Desk) -> None:
    desk.runtime.close()
    answer = await desk.ask(asked("POST", f"{API}/queues/jobs/messages", {"content": "x"}))
    assert (answer.status, answer.json()["detail"]) == (503, "The server is stopping.")
    assert answer.headers["retry-after"] == "1"


async def test_request_that_is_too_large_for_what_is_left_is_refused() -> None:
    desk = Desk(Bounds(buffers_bytes_max=100_000))
    try:
        await desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
        answer = await desk.ask(asked("POST", f"{API}/queues/jobs/messages", {"content": "x" * 20_000}))
        assert (answer.status, answer.json()["code"]) == (503, "ServiceUnavailable")
        assert desk.context.buffers_bytes == 0
        assert (await desk.ask(asked("POST", f"{API}/queues/jobs/messages", {"content": "x" * 700}))).status == 200
        assert desk.context.buffers_bytes == 0
    finally:
        await desk.close()


async def test_get_with_a_body_and_chunks_are_for_aiohttp(desk: Desk) -> None:
    request = asked("GET", f"{API}/queues/jobs/messages", {"x": 1})
    assert (await desk.ask(request)).status == 200
    head = f"POST {API}/queues/jobs/messages HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = json.dumps({"content": "in chunks"}).encode()
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    assert (await desk.ask(head.encode() + chunks)).json()["content"] == "in chunks"
    assert desk.context.slow_requests == 2


async def test_refused_calls_leave_nothing_in_memory() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    for at in range(20):
        protocol.data_received(get(f"/api/v1/queues/none{at}/messages"))
        await until(lambda: len(responses(line.received)) == 1)
        assert responses(line.received)[0].status == 404
        line.received.clear()
    gc.collect()
    assert sum(type(each) is RestCall for each in gc.get_objects()) <= 1
    await desk.close()
