"""One connection: order, waiting, bounds, deadlines, and clients that leave."""

import pytest

from elasticq.http import protocol as protocol_module
from elasticq.http.connection.bounds import Bounds
from elasticq.http.protocol import SqsProtocol
from elasticq.model.errors import SqsError
from elasticq.model.limits import HEAD_BYTES_MAX, REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX
from elasticq.wire.operations import OPERATIONS
from tests.http.desk import (
    QUEUE_URL,
    Desk,
    Line,
    form_request,
    json_request,
    responses,
    settle,
    until,
)

CREATE = json_request("CreateQueue", {"QueueName": "orders"})
POLL = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20})
LIST = json_request("ListQueues", {})


def send(body: str) -> bytes:
    return json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": body})


async def test_reply_waits_for_a_message_and_what_follows_waits_for_the_reply() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL + LIST)
    protocol.data_received(LIST)
    await settle()
    assert responses(line.received) == []
    await desk.ask(send("hello"))
    await until(lambda: len(responses(line.received)) == 3)
    received, *lists = responses(line.received)
    assert received.json()["Messages"][0]["Body"] == "hello"
    assert [one.json()["QueueUrls"] for one in lists] == [[QUEUE_URL]] * 2
    await desk.close()


async def test_request_ids_are_unique() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    waiting = [desk.connect() for _ in range(5)]
    for protocol, _ in waiting:
        protocol.data_received(POLL)
    for number in range(5):
        await desk.ask(send(str(number)))
    await until(lambda: all(line.received for _, line in waiting))
    ids = {responses(line.received)[0].headers["x-amzn-requestid"] for _, line in waiting}
    assert len(ids) == 5
    await desk.close()


async def test_a_burst_yields_to_other_connections_every_16_requests() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(LIST * 40)
    protocol.flush()
    assert len(responses(line.received)) == 16
    await until(lambda: len(responses(line.received)) == 40)
    await desk.close()


async def test_a_long_answer_yields_to_other_connections() -> None:
    """Else a new client waits until each of many connections has had all the megabytes that it takes unread."""
    desk = Desk()
    await desk.ask(CREATE)
    await desk.ask(send("x" * 100_000))
    receive = json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "VisibilityTimeout": 0})
    (one, first), (other, second) = desk.connect(), desk.connect()
    one.data_received(receive * 3)
    other.data_received(receive * 3)
    assert (len(responses(first.received)), len(responses(second.received))) == (1, 1)
    await until(lambda: len(responses(first.received)) == len(responses(second.received)) == 3)
    await desk.close()


async def test_reading_pauses_while_a_client_sends_ahead_too_much() -> None:
    desk = Desk(Bounds(held_bytes_max=10_000))
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL)
    count = 0
    while line.reading:
        protocol.data_received(LIST)
        count += 1
    assert count <= 10_000 // len(LIST) + 1
    await desk.ask(send("hello"))
    await until(lambda: len(responses(line.received)) == count + 1)
    assert line.reading
    await desk.close()


async def test_a_client_that_does_not_read_is_not_served_further() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.pause_writing()
    protocol.data_received(LIST)
    await settle()
    assert not line.received
    protocol.resume_writing()
    await until(lambda: len(responses(line.received)) == 1)
    protocol.pause_writing()
    desk.pass_ms(77_000)
    assert line.aborted
    await desk.close()


async def leave_by(way: str, protocol: SqsProtocol, line: Line) -> None:
    if way == "eof":
        assert not protocol.eof_received()
        line.close()
        await settle()
    else:
        protocol.connection_lost(None)


@pytest.mark.parametrize("leave", ["connection_lost", "eof"])
async def test_a_long_poll_whose_client_left_takes_no_message(leave: str) -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL)
    assert desk.runtime.status().waiters == 1
    await leave_by(leave, protocol, line)
    assert desk.runtime.status().waiters == 0
    await desk.ask(send("kept"))
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert (message["Body"], message["Attributes"]["ApproximateReceiveCount"]) == ("kept", "1")
    await desk.close()


@pytest.mark.parametrize("leave", ["connection_lost", "eof"])
async def test_a_waiting_heartbeat_whose_client_left_prolongs_no_session(leave: str) -> None:
    desk = Desk()
    group = {"GroupName": "workers", "QueueNames": ["orders"], "SessionTimeoutMs": 9_000}
    await desk.ask(json_request("ElasticqSetGroup", group))
    joined = (await desk.ask(json_request("ElasticqJoinGroup", {"GroupName": "workers"}))).json()
    consumer = {"GroupName": "workers", "ConsumerId": joined["ConsumerId"]}
    version = (await desk.ask(json_request("ElasticqHeartbeat", consumer))).json()["Version"]
    protocol, line = desk.connect()
    protocol.data_received(
        json_request("ElasticqHeartbeat", {**consumer, "KnownVersion": version, "WaitTimeSeconds": 20})
    )
    assert not line.received
    await leave_by(leave, protocol, line)
    before = (await desk.ask(json_request("ElasticqDescribeGroups", {}))).json()["Groups"][0]["Consumers"]
    desk.pass_ms(4_000)  # the server lets a heartbeat wait for a third of the session at most
    await settle()
    after = (await desk.ask(json_request("ElasticqDescribeGroups", {}))).json()["Groups"][0]["Consumers"]
    assert [each["DeadlineMs"] for each in after] == [each["DeadlineMs"] for each in before]
    await desk.close()


async def test_a_message_that_cannot_be_written_becomes_visible_again() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL)
    line._closing = True  # the transport knows, the protocol was not told yet
    await desk.ask(send("kept"))
    await settle()
    assert not line.received
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert (message["Body"], message["Attributes"]["ApproximateReceiveCount"]) == ("kept", "1")
    await desk.close()


async def test_a_half_closed_client_gets_the_answers_to_what_it_sent() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(LIST * 20)
    assert protocol.eof_received()
    await until(lambda: line.ended)
    assert len(responses(line.received)) == 20
    await desk.close()


async def test_connection_close_is_honoured() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(json_request("ListQueues", {}, "Connection: close") + LIST)
    await settle()
    (answer,) = responses(line.received)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert line.ended
    await desk.close()


@pytest.mark.parametrize(
    ("request_head", "bytes_max"),
    [
        (json_request("SendMessage", b""), REQUEST_BYTES_MAX),
        (json_request("SendMessageBatch", b""), REQUEST_BYTES_MAX),
        (json_request("ReceiveMessage", b""), SMALL_REQUEST_BYTES_MAX),
        (json_request("DeleteMessageBatch", b""), SMALL_REQUEST_BYTES_MAX),
        (json_request("SetQueueAttributes", b""), SMALL_REQUEST_BYTES_MAX),
        (form_request(""), REQUEST_BYTES_MAX),
        (json_request("SendMessage", b"", "Expect: 100-continue"), REQUEST_BYTES_MAX),
    ],
    ids=["send", "batch", "receive", "handles", "attributes", "form", "cold"],
)
async def test_a_body_beyond_the_bound_is_refused_before_it_is_read(request_head: bytes, bytes_max: int) -> None:
    request = request_head.replace(b"Content-Length: 0", b"Content-Length: %d" % (bytes_max + 1))
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(request)
    (answer,) = responses(line.received)
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert b"RequestEntityTooLarge" in answer.body
    protocol.data_received(bytes(1_000_000))
    assert line.ended
    assert len(responses(line.received)) == 1
    await desk.close()


@pytest.mark.parametrize(
    ("action", "bytes_max"), [("SendMessage", REQUEST_BYTES_MAX), ("ListQueues", SMALL_REQUEST_BYTES_MAX)]
)
async def test_a_body_at_the_bound_is_read(action: str, bytes_max: int) -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    body = b'{"QueueUrl": "orders", "MessageBody": "x"' + b" " * (bytes_max - 42) + b"}"
    assert len(body) == bytes_max
    assert (await desk.ask(json_request(action, body))).status == 200
    await desk.close()


@pytest.mark.parametrize("action", [name for name in OPERATIONS if not name.startswith("SendMessage")])
async def test_only_what_carries_messages_may_be_as_long_as_they_are(action: str) -> None:
    desk = Desk()
    padding = "x" * SMALL_REQUEST_BYTES_MAX
    whole = json_request(action, {"More": padding})
    form = form_request(f"Action={action}&More={padding}")
    for request in (whole, form):
        answer = await desk.ask(request)
        assert (answer.status, b"RequestEntityTooLarge" in answer.body) == (413, True)
    await desk.close()


async def test_a_head_beyond_the_bound_is_refused() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(b"POST / HTTP/1.1\r\nX: " + b"a" * HEAD_BYTES_MAX)
    assert [answer.status for answer in responses(line.received)] == [431]
    await desk.close()


async def test_a_slow_head_ends_after_its_deadline_even_if_it_trickles() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(b"POST / HTTP/1.1\r\n")
    for _ in range(9):
        desk.pass_ms(1_000)
        protocol.data_received(b"X: a\r\n")
    assert not line.received
    desk.pass_ms(3_000)
    assert [answer.status for answer in responses(line.received)] == [408]
    await desk.close()


async def test_a_slow_body_ends_after_a_deadline_by_its_size() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(json_request("SendMessage", b"x" * 655_360)[:2_000])
    desk.pass_ms(18_000)
    assert not line.received
    desk.pass_ms(5_000)
    assert [answer.status for answer in responses(line.received)] == [408]
    await desk.close()


async def test_an_idle_connection_is_closed_without_a_word() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(LIST)
    desk.pass_ms(74_000)
    assert not line.ended
    desk.pass_ms(3_000)
    assert line.ended
    assert len(responses(line.received)) == 1
    await desk.close()


async def test_a_waiting_receive_is_not_idle() -> None:
    desk = Desk(Bounds(idle_ms=5_000))
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL)
    desk.pass_ms(15_000)
    assert not line.ended
    await desk.close()


async def test_connections_beyond_the_bound_get_503() -> None:
    desk = Desk(Bounds(connections_max=2))
    lines = [desk.connect()[1] for _ in range(3)]
    assert [bool(line.received) for line in lines] == [False, False, True]
    assert responses(lines[2].received)[0].status == 503
    lines[0].close()
    desk.pass_ms(4_000)
    await settle()
    assert await desk.ask(LIST)
    await desk.close()


async def test_connections_beyond_the_bound_of_their_address_get_503() -> None:
    desk = Desk(Bounds(connections_per_address=1))
    _, first = desk.connect("10.0.0.1")
    _, second = desk.connect("10.0.0.1")
    _, other = desk.connect("10.0.0.2")
    assert [bool(line.received) for line in (first, second, other)] == [False, True, False]
    assert responses(second.received)[0].status == 503
    first.close()
    desk.pass_ms(4_000)
    await until(lambda: desk.context.addresses == {"10.0.0.2": 1})
    _, again = desk.connect("10.0.0.1")
    assert not again.received
    await desk.close()


@pytest.mark.pure
async def test_an_unexpected_failure_answers_500_in_the_protocol_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    desk = Desk()
    monkeypatch.setattr(protocol_module.json, "encode", broken)
    monkeypatch.setattr(protocol_module.exchange.query, "encode", broken)
    answer = await desk.ask(LIST)
    assert (answer.status, answer.json()["__type"]) == (500, "com.amazonaws.sqs#InternalFailure")
    answer = await desk.ask(form_request("Action=ListQueues"))
    assert (answer.status, answer.headers["content-type"]) == (500, "text/xml")
    assert b"<Code>InternalFailure</Code>" in answer.body
    await desk.close()


@pytest.mark.pure
async def test_a_broken_node_answers_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()

    def broken(*_: object) -> None:
        raise AssertionError("an invariant")

    monkeypatch.setattr(desk.node, "submit", broken)
    protocol, line = desk.connect()
    protocol.data_received(LIST)
    assert line.aborted
    assert not line.received
    assert [type(failure) for failure in desk.failures] == [AssertionError]
    protocol, line = desk.connect()
    protocol.data_received(LIST)
    assert line.aborted


async def test_stop_answers_long_polls_empty_and_closes() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    protocol, waiting = desk.connect()
    protocol.data_received(POLL)
    _, idle = desk.connect()
    await desk.context.stop(5)
    (answer,) = responses(waiting.received)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert "Messages" not in answer.body.decode()
    assert idle.ended
    assert waiting.ended
    desk.runtime.close()


async def test_headers_of_an_answer() -> None:
    desk = Desk()
    answer = await desk.ask(LIST)
    assert answer.headers == {
        "content-type": "application/x-amz-json-1.0",
        "date": "Fri, 15 Jan 2027 08:00:00 GMT",
        "x-amzn-requestid": "00000000-0000-0000-0000-000000000001",
        "content-length": str(len(answer.body)),
    }
    answer = await desk.ask(json_request("GetQueueUrl", {"QueueName": "none"}))
    assert answer.headers["x-amzn-query-error"] == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    await desk.close()


async def test_equal_attempts_of_one_call_are_one_message() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    members = {"QueueUrl": QUEUE_URL, "MessageBody": "once"}
    one, again = [
        (await desk.ask(json_request("SendMessage", members, "amz-sdk-invocation-id: a-1"))).json() for _ in range(2)
    ]
    other = (await desk.ask(json_request("SendMessage", members, "amz-sdk-invocation-id: a-2"))).json()
    assert one["MessageId"] == again["MessageId"] != other["MessageId"]
    await desk.close()


async def test_attempts_of_an_application_are_one_message_by_its_own_id() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    members = {"QueueUrl": QUEUE_URL, "MessageBody": "once"}
    ids = []
    for guid, sdk_id in (("order-7", "a"), ("order-7", "b"), ("order-8", "b")):
        headers = f"amz-sdk-invocation-id: {sdk_id}", f"x-elasticq-guid: {guid}"
        ids.append((await desk.ask(json_request("SendMessage", members, *headers))).json()["MessageId"])
    assert ids[0] == ids[1] != ids[2]
    await desk.close()


async def test_one_id_for_two_queues_that_their_paths_name_is_of_two_calls() -> None:
    """Clients of AWS Query post to the queue's own URL, so that the bodies are equal."""
    desk = Desk()
    ids = []
    for name in ("one", "other"):
        await desk.ask(json_request("CreateQueue", {"QueueName": name}))
        for form in ("Action=SendMessage&MessageBody=x", "Action=SendMessage&MessageBody=x"):
            send = form_request(form, "x-elasticq-guid: order-7", path=f"/000000000000/{name}")
            ids.append(found_in((await desk.ask(send)).body))
        counted = json_request("GetQueueAttributes", {"QueueUrl": name, "AttributeNames": ["All"]})
        assert (await desk.ask(counted)).json()["Attributes"]["ApproximateNumberOfMessages"] == "1"
    assert ids[0] == ids[1] != ids[2] == ids[3]
    await desk.close()


def found_in(body: bytes) -> bytes:
    """The MessageId of an answer in XML."""
    return body.partition(b"<MessageId>")[2].partition(b"</MessageId>")[0]


async def test_an_id_as_long_as_a_head_may_be_counts_too() -> None:
    desk = Desk()
    await desk.ask(CREATE)
    members = {"QueueUrl": QUEUE_URL, "MessageBody": "once"}
    ids = [
        (await desk.ask(json_request("SendMessage", members, f"{name}: {'g' * 15_000}{end}"))).json()["MessageId"]
        for name in ("amz-sdk-invocation-id", "x-elasticq-guid")
        for end in ("", "", "z")
    ]
    assert len(set(ids)) == 2
    await desk.close()


async def test_queue_urls_follow_the_host_header() -> None:
    desk = Desk()
    request = CREATE.replace(b"Host: 127.0.0.1:9324", b"Host: [::1]:80")
    assert (await desk.ask(request)).json()["QueueUrl"] == "http://[::1]:80/000000000000/orders"
    await desk.close()


async def test_the_ticket_survives_a_second_life_of_the_connection_object() -> None:
    """A reply after the connection is gone is dropped, and nothing is written."""
    desk = Desk()
    await desk.ask(CREATE)
    protocol, line = desk.connect()
    protocol.data_received(POLL)
    protocol.connection_lost(None)
    protocol.release(SqsError("late"))
    assert not line.received
    await desk.close()
