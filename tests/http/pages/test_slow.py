"""The slow path: connections that aiohttp serves, from their first request to their end."""

import asyncio

import pytest

from elasticq.model.limits import REQUEST_BYTES_MAX
from tests.http.desk import HOST, QUEUE_URL, Desk, chunked, get, json_request, post, responses, settle, until


async def test_a_chunked_body_beyond_the_bound_is_refused() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    head = post(b"", "Content-Type: application/x-amz-json-1.0", "X-Amz-Target: AmazonSQS.ListQueues")
    protocol.data_received(head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    sent = 0
    while not line.ended and sent <= REQUEST_BYTES_MAX + 10 * 65_536:
        protocol.data_received(chunk)
        sent += 65_536
        await settle(3)
    await until(lambda: len(responses(line.received)) == 1)
    assert responses(line.received)[0].status == 413
    await desk.close()


async def test_a_slow_chunked_body_is_cut_off() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    request = chunked(json_request("ListQueues", {"QueueNamePrefix": "a" * 100}))
    protocol.data_received(request[:-20])
    await settle()
    desk.pass_ms(13_000)
    assert line.ended
    await desk.close()


async def test_a_slow_head_after_the_hand_over_is_cut_off() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(get("/health"))
    await until(lambda: len(responses(line.received)) == 1)
    protocol.data_received(b"GET /hea")
    for _ in range(9):
        desk.pass_ms(1_000)
        protocol.data_received(b"l")
    assert not line.ended
    desk.pass_ms(3_000)
    assert line.ended
    await desk.close()


async def test_a_request_whose_client_left_before_it_began_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Under TLS the transport is there still, but tells of no protocol."""
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    line.protocol = None
    await settle()
    assert (bytes(line.received), caplog.records) == (b"", [])
    line.protocol = protocol
    await desk.close()


async def test_stop_ends_connections_of_the_slow_path() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, line = desk.connect()
    protocol.data_received(get(f"/?Action=ReceiveMessage&WaitTimeSeconds=20&QueueUrl={QUEUE_URL}"))
    await until(lambda: desk.runtime.status().waiters == 1)
    _, idle = desk.connect()
    await desk.context.stop(5)
    assert [one.status for one in responses(line.received)] == [200]
    assert line.ended
    assert idle.ended
    desk.runtime.close()


@pytest.mark.parametrize("request_of", [get("/health"), get("/api/v1/queues")], ids=["page", "REST"])
async def test_requests_wait_while_another_thread_imports_the_slow_path(request_of: bytes) -> None:
    """An import in the loop's thread would wait for that thread, and nobody would be served meanwhile."""
    desk = Desk()
    desk.context.importing = asyncio.get_running_loop().create_future()
    protocol, line = desk.connect()
    other, left = desk.connect()
    protocol.data_received(request_of)
    other.data_received(request_of)
    await settle()
    assert (bytes(line.received), desk.context.slow_path) == (b"", None)
    assert (await desk.ask(json_request("ListQueues", {}))).status == 200
    left.close()
    await settle()
    desk.context.importing.set_result(None)
    await until(lambda: len(responses(line.received)) == 1)
    assert responses(line.received)[0].status == 200
    assert bytes(left.received) == b""
    protocol.data_received(request_of)
    await until(lambda: len(responses(line.received)) == 2)
    await desk.close()
