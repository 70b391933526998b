"""What all connections together may buffer: beyond it 503 or the end, and nothing stays counted."""

import sys

import pytest

from elasticq.http.connection.bounds import Bounds
from elasticq.http.context import SMALL_BYTES
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import SendMessageResult
from tests.http.desk import QUEUE_URL, Desk, Line, chunked, json_request, responses, settle, until

CREATE = json_request("CreateQueue", {"QueueName": "orders"})
POLL = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20})
LARGE = json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x" * 100_000})
SMALL = json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x" * 1_000})
ROOM = Bounds(buffers_bytes_max=250_000)


async def test_a_body_for_which_there_is_no_room_is_answered_503() -> None:
    desk = Desk(ROOM)
    await desk.ask(CREATE)
    waiting = [desk.connect() for _ in range(3)]
    for protocol, _ in waiting:
        protocol.data_received(LARGE[:-1])
    (refused,) = responses(waiting[2][1].received)
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["__type"].endswith("#ServiceUnavailable")
    for protocol, line in waiting[:2]:
        protocol.data_received(LARGE[-1:])
        protocol.flush()
        assert responses(line.received)[0].status == 200
    assert desk.context.buffers_bytes == 0
    await desk.close()


async def test_an_ordinary_request_still_comes_in_parts_when_the_buffers_are_full() -> None:
    desk = Desk(Bounds(buffers_bytes_max=100_000))
    await desk.ask(CREATE)
    full, _ = desk.connect()
    full.data_received(LARGE[:99_990])
    protocol, line = desk.connect()
    assert len(SMALL) < SMALL_BYTES
    for at in range(0, len(SMALL), 100):
        protocol.data_received(SMALL[at : at + 100])
    protocol.flush()
    assert responses(line.received)[0].status == 200
    await desk.close()


async def test_a_body_in_chunks_is_counted_too() -> None:
    desk = Desk(Bounds(buffers_bytes_max=50_000))
    await desk.ask(CREATE)
    assert (await desk.ask(chunked(LARGE))).status == 503
    assert (await desk.ask(chunked(SMALL))).status == 200
    await settle()
    assert desk.context.buffers_bytes == 0
    await desk.close()


async def test_what_is_sent_ahead_of_a_reply_is_counted_and_its_connection_ends() -> None:
    desk = Desk(ROOM)
    await desk.ask(CREATE)
    polls = [desk.connect() for _ in range(3)]
    for protocol, _ in polls:
        protocol.data_received(POLL)
        protocol.data_received(LARGE)
    await settle()
    assert [line.aborted for _, line in polls] == [False, False, True]
    assert desk.runtime.status().waiters == 2
    await desk.close()
    await settle()
    assert desk.context.buffers_bytes == 0


async def test_replies_that_nobody_reads_are_counted_and_their_connection_ends() -> None:
    desk = Desk(ROOM)
    lines = [desk.connect() for _ in range(3)]
    for protocol, line in lines:
        line.received += bytes(100_000)
        protocol.pause_writing()
    await until(lambda: lines[2][1].aborted)
    assert not lines[0][1].aborted
    assert not lines[1][1].aborted
    lines[0][0].resume_writing()
    await settle()
    assert desk.context.buffers_bytes == 100_000
    await desk.close()


async def test_heads_that_never_end_are_counted() -> None:
    desk = Desk(Bounds(buffers_bytes_max=30_000))
    lines = [desk.connect() for _ in range(5)]
    for protocol, _ in lines:
        protocol.data_received(b"POST / HTTP/1.1\r\nX-Long: " + b"x" * 9_000)
    found = [responses(line.received)[0].status if line.received else 0 for _, line in lines]
    assert found == [0, 0, 0, 0, 503]
    assert desk.context.buffers_bytes <= 45_000
    await desk.close()


async def test_a_receive_whose_reply_has_no_room_takes_no_message() -> None:
    desk = Desk(ROOM)
    await desk.ask(CREATE)
    await desk.ask(SMALL)
    unread, line = desk.connect()
    line.received += bytes(250_001)
    unread.pause_writing()
    desk.context.bounds = Bounds(buffers_bytes_max=desk.context.buffers_bytes - 1)
    receive = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL})
    refused = await desk.ask(receive)
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    await settle()
    desk.context.bounds = ROOM
    unread.connection_lost(None)
    assert len((await desk.ask(receive)).json()["Messages"]) == 1
    await desk.close()


@pytest.mark.parametrize("is_slow", [False, True], ids=["hot", "slow"])
async def test_what_a_waiting_receive_holds_is_counted_as_it_is_decoded(is_slow: bool) -> None:
    desk = Desk(Bounds(buffers_bytes_max=330_000))
    await desk.ask(CREATE)
    names = {"MessageAttributeNames": [f"{number:x}" for number in range(1_000)]}
    request = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20, **names})
    polls = [desk.connect() for _ in range(4)]
    for number, (protocol, _) in enumerate(polls):
        before = desk.context.buffers_bytes
        protocol.data_received(chunked(request) if is_slow else request)
        await until(lambda at=number: desk.runtime.status().waiters > at or polls[at][1].received)  # type: ignore[misc]
        if not polls[number][1].received:
            assert desk.context.buffers_bytes - before > 1_000 * sys.getsizeof("fff")
    answers = [responses(line.received) for _, line in polls]
    refused = [found[0] for found in answers if found]
    assert desk.runtime.status().waiters == len(answers) - len(refused) > 0
    assert {(answer.status, answer.headers["retry-after"]) for answer in refused} == {(503, "1")}
    desk.pass_ms(1_000)
    await desk.ask(SMALL)
    await desk.close()
    await settle()
    assert desk.context.buffers_bytes == 0


async def test_a_message_that_waits_for_the_disk_is_counted() -> None:
    desk = Desk(ROOM)
    await desk.ask(CREATE)
    desk.context.submit = lambda call, ticket: None  # the node keeps it
    waiting = [desk.connect() for _ in range(4)]
    for protocol, _ in waiting:
        protocol.data_received(LARGE)
    desk.context.outbox.flush()
    assert [len(responses(line.received)) for _, line in waiting] == [0, 0, 1, 1]
    assert responses(waiting[2][1].received)[0].status == 503
    assert 200_000 < desk.context.buffers_bytes < 250_000
    waiting[0][0].release(SendMessageResult("id"))
    assert 100_000 < desk.context.buffers_bytes < 150_000
    waiting[1][0].release(ServiceUnavailable("no"))
    assert desk.context.buffers_bytes == 0
    await desk.close()


def stop_reading(line: Line, taken_bytes: int) -> None:
    """The client reads no more; of what is written to it the system takes ``taken_bytes``."""

    def write(data: bytes | bytearray | memoryview) -> None:
        Line.write(line, data)
        if len(line.received) > taken_bytes:
            line.protocol.pause_writing()

    line.write = write  # type: ignore[method-assign]
    line.get_write_buffer_size = lambda: max(0, len(line.received) - taken_bytes)  # type: ignore[method-assign]


@pytest.mark.parametrize("is_slow", [False, True], ids=["hot", "slow"])
async def test_an_answer_that_is_read_in_part_is_held_whole(is_slow: bool) -> None:
    desk = Desk(ROOM)
    await desk.ask(CREATE)
    await desk.ask(LARGE)
    receive = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "VisibilityTimeout": 0})
    receive = chunked(receive) if is_slow else receive
    readers = [desk.connect() for _ in range(4)]
    for protocol, line in readers:
        stop_reading(line, 90_000)
        protocol.data_received(receive)
        await until(lambda line=line: line.received)  # type: ignore[misc]
        await settle()
    found = [(int(line.received[9:12]), line.aborted) for _, line in readers]
    beyond = (503, False) if is_slow else (200, True)
    assert found == [(200, False), (200, False), beyond, beyond]
    assert desk.context.buffers_bytes > 200_000
    for protocol, line in readers[:2]:
        line.received.clear()
        protocol.resume_writing()
    await settle()
    assert desk.context.buffers_bytes == 0
    await desk.close()
