"""Answers leave at the end of the loop's turn, in one write a connection, and before anything else happens to it."""

import asyncio
from collections.abc import Callable

import pytest

from elasticq.http.connection.bounds import Bounds
from elasticq.http.connection.outbox import ANSWER_BYTES_MAX, CONNECTIONS_MAX, Outbox
from elasticq.http.protocol import SqsProtocol
from tests.http.desk import HOST, QUEUE_URL, Desk, Line, json_request, responses, settle, until

CREATE = json_request("CreateQueue", {"QueueName": "orders"})
SEND = json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "a"})
LARGE = json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "a" * ANSWER_BYTES_MAX})
RECEIVE = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL})
POLL = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20})
CLOSE = json_request("ListQueues", {}, "Connection: close")
HEALTH = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
HALF = SEND[:-1]


def writes_of(line: Line) -> list[bytes]:
    """Return a list that each later write to ``line`` is appended to."""
    writes: list[bytes] = []

    def write(data: bytes | bytearray | memoryview) -> None:
        writes.append(bytes(data))
        Line.write(line, data)

    line.write = write  # type: ignore[method-assign]
    return writes


def statuses(line: Line) -> list[int]:
    return [response.status for response in responses(line.received)]


async def test_all_that_is_ready_is_read_before_anything_is_written() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    connections = [desk.connect() for _ in range(3)]
    for protocol, _ in connections:
        protocol.data_received(SEND)
    assert [line.received for _, line in connections] == [b"", b"", b""]
    await asyncio.sleep(0)
    assert [statuses(line) for _, line in connections] == [[200], [200], [200]]
    await desk.close()


async def test_what_one_connection_is_answered_in_a_turn_is_one_write() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    writes = writes_of(line)
    protocol.data_received(SEND + RECEIVE + json_request("NoSuchAction", {}))
    protocol.data_received(SEND)
    await settle()
    assert (len(writes), statuses(line)) == (1, [200, 200, 400, 200])
    await desk.close()


async def test_receives_that_one_batch_wakes_are_answered_at_the_end_of_the_turn() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    waiting = [desk.connect() for _ in range(2)]
    for protocol, _ in waiting:
        protocol.data_received(POLL)
    entries = [{"Id": each, "MessageBody": each} for each in "ab"]
    sender, sent = desk.connect()
    sender.data_received(json_request("SendMessageBatch", {"QueueUrl": QUEUE_URL, "Entries": entries}))
    assert [line.received for _, line in (*waiting, (sender, sent))] == [b"", b"", b""]
    await asyncio.sleep(0)
    found = [responses(line.received)[0].json()["Messages"][0]["Body"] for _, line in waiting]
    assert (found, statuses(sent)) == (["a", "b"], [200])
    await desk.close()


async def test_no_more_than_so_many_connections_wait_for_the_end_of_a_turn() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    connections = [desk.connect() for _ in range(CONNECTIONS_MAX + 1)]
    for protocol, _ in connections:
        protocol.data_received(SEND)
    assert [statuses(line) for _, line in connections] == [[200]] * CONNECTIONS_MAX + [[]]
    await asyncio.sleep(0)
    assert statuses(connections[-1][1]) == [200]
    await desk.close()


async def test_a_long_answer_is_written_at_once_behind_the_ones_before_it() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    await desk.ask(LARGE)
    alone, first_line = desk.connect()
    alone.data_received(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "VisibilityTimeout": 0}))
    assert statuses(first_line) == [200]
    behind, line = desk.connect()
    writes = writes_of(line)
    behind.data_received(json_request("ListQueues", {}) + RECEIVE)
    assert (len(writes), statuses(line)) == (1, [200, 200])
    await desk.close()


@pytest.mark.parametrize(
    ("then", "expected", "has_ended"),
    [
        (lambda protocol, line: protocol.data_received(CLOSE), [200, 200], True),
        (lambda protocol, line: protocol.data_received(b"no request\r\n\r\n"), [200, 400], True),
        (lambda protocol, line: protocol.data_received(b"A" * 70_000), [200, 431], True),
        (lambda protocol, line: protocol.data_received(HEALTH), [200, 200], False),
        (lambda protocol, line: protocol.stop(), [200], True),
        (lambda protocol, line: protocol.expire(), [200], True),
        (lambda protocol, line: protocol.abort(), [200], True),
        (lambda protocol, line: protocol.eof_received() or line.close(), [200], True),
    ],
    ids=["last answer", "bad head", "too long", "for aiohttp", "stop", "deadline", "abort", "client sends no more"],
)
async def test_an_answer_goes_out_before_anything_else_is_done_to_its_connection(
    then: Callable[[SqsProtocol, Line], object], expected: list[int], has_ended: bool
) -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(SEND)
    then(protocol, line)
    assert statuses(line)[:1] == [200]
    await until(lambda: len(responses(line.received)) == len(expected))
    await settle()
    assert (statuses(line), line.ended) == (expected, has_ended)
    await desk.close()


async def test_the_deadline_of_a_request_in_parts_leaves_the_answer_before_it() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(SEND + HALF)
    protocol.expire()
    assert (statuses(line), line.ended) == ([200, 408], True)
    await desk.close()


async def test_answers_of_a_connection_that_broke_are_dropped_and_all_others_written() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    connections = [desk.connect() for _ in range(3)]
    for protocol, _ in connections:
        protocol.data_received(SEND)
    connections[0][0].connection_lost(ConnectionResetError())
    connections[1][1].close()  # the transport itself, as where a write failed
    await settle()
    assert [statuses(line) for _, line in connections] == [[], [], [200]]
    await desk.close()


async def test_a_client_that_does_not_read_ends_where_there_is_no_room_for_its_answer() -> None:
    """The transport says so within the write at the end of the turn; the answer is counted whole."""
    desk = Desk(Bounds(buffers_bytes_max=100))
    await desk.ask(CREATE)
    protocol, line = desk.connect()

    def write(data: bytes | bytearray | memoryview) -> None:
        Line.write(line, data)
        protocol.pause_writing()

    line.write = write  # type: ignore[method-assign]
    protocol.data_received(SEND)
    assert desk.context.buffers_bytes == 0
    await asyncio.sleep(0)
    assert desk.context.buffers_bytes == len(line.received) > 100
    await settle()
    assert line.aborted
    await desk.close()


async def test_a_sender_that_adds_itself_while_all_are_flushed_has_its_turn_next() -> None:
    class Again:
        flushed = 0
        out = b""

        def flush(self) -> None:
            self.flushed += 1
            self.out = b""
            if self.flushed == 1:
                outbox.say(self, b"b")

    outbox, again = Outbox(asyncio.get_running_loop()), Again()
    outbox.say(again, b"a")
    await asyncio.sleep(0)
    assert again.flushed == 1
    await asyncio.sleep(0)
    assert again.flushed == 2
