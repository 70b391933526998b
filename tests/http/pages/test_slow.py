"""The slow path: the same answers as the hot one, and the pages that are not SQS."""

from typing import Any
from urllib.parse import quote

import pytest

from elasticq.model.limits import REQUEST_BYTES_MAX
from tests.http.desk import (
    HOST,
    QUEUE_URL,
    Desk,
    chunked,
    form_request,
    json_request,
    post,
    responses,
    settle,
    until,
)

Members = dict[str, Any]
ENTRIES = [{"Id": "a", "MessageBody": "one"}, {"Id": "b", "MessageBody": "two"}]

# (action, JSON members, Query parameters), in an order in which each has something to act on.
# HANDLE stands for the handle of the last receive.
CALLS: list[tuple[str, Members, str]] = [
    ("CreateQueue", {"QueueName": "orders"}, "QueueName=orders"),
    ("GetQueueUrl", {"QueueName": "orders"}, "QueueName=orders"),
    ("ListQueues", {"QueueNamePrefix": "o"}, "QueueNamePrefix=o"),
    (
        "SetQueueAttributes",
        {"QueueUrl": QUEUE_URL, "Attributes": {"DelaySeconds": "0"}},
        f"QueueUrl={QUEUE_URL}&Attribute.1.Name=DelaySeconds&Attribute.1.Value=0",
    ),
    (
        "GetQueueAttributes",
        {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]},
        f"QueueUrl={QUEUE_URL}&AttributeName.1=All",
    ),
    ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "a\r&<"}, f"QueueUrl={QUEUE_URL}&MessageBody=a%0D%26%3C"),
    (
        "SendMessageBatch",
        {"QueueUrl": QUEUE_URL, "Entries": ENTRIES},
        f"QueueUrl={QUEUE_URL}"
        "&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=one"
        "&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=two",
    ),
    ("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}, f"QueueUrl={QUEUE_URL}&AttributeName.1=All"),
    (
        "ChangeMessageVisibility",
        {"QueueUrl": QUEUE_URL, "ReceiptHandle": "HANDLE", "VisibilityTimeout": 7},
        f"QueueUrl={QUEUE_URL}&ReceiptHandle=HANDLE&VisibilityTimeout=7",
    ),
    (
        "ChangeMessageVisibilityBatch",
        {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", "ReceiptHandle": "HANDLE", "VisibilityTimeout": 7}]},
        f"QueueUrl={QUEUE_URL}&ChangeMessageVisibilityBatchRequestEntry.1.Id=a"
        "&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=HANDLE"
        "&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=7",
    ),
    (
        "DeleteMessage",
        {"QueueUrl": QUEUE_URL, "ReceiptHandle": "HANDLE"},
        f"QueueUrl={QUEUE_URL}&ReceiptHandle=HANDLE",
    ),
    (
        "DeleteMessageBatch",
        {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", "ReceiptHandle": "HANDLE"}, {"Id": "b", "ReceiptHandle": "x"}]},
        f"QueueUrl={QUEUE_URL}&DeleteMessageBatchRequestEntry.1.Id=a"
        "&DeleteMessageBatchRequestEntry.1.ReceiptHandle=HANDLE&DeleteMessageBatchRequestEntry.2.Id=b"
        "&DeleteMessageBatchRequestEntry.2.ReceiptHandle=x",
    ),
    ("PurgeQueue", {"QueueUrl": QUEUE_URL}, f"QueueUrl={QUEUE_URL}"),
    ("DeleteQueue", {"QueueUrl": QUEUE_URL}, f"QueueUrl={QUEUE_URL}"),
    ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "no queue"}, f"QueueUrl={QUEUE_URL}&MessageBody=no+queue"),
    ("NoSuchAction", {}, "QueueName=a"),
    ("CreateQueue", {"QueueName": "a/b"}, "QueueName=a/b"),
]


def hot_json(action: str, members: Members, form: str) -> bytes:
    return json_request(action, members)


def hot_form(action: str, members: Members, form: str) -> bytes:
    return form_request(f"Action={action}&{form}")


def by_url(action: str, members: Members, form: str) -> bytes:
    return f"GET /?Action={action}&{form} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def split(action: str, members: Members, form: str) -> bytes:
    return form_request(form, path=f"/?Action={action}")


SHAPES = {
    "json": (hot_json, lambda *call: chunked(hot_json(*call))),
    "form": (hot_form, lambda *call: chunked(hot_form(*call))),
    "query by URL": (hot_form, by_url),
    "query in both": (hot_form, split),
}


async def run_all(shape: Any) -> tuple[list[Any], Desk]:
    desk, handle, answers = Desk(), "", []
    for call in CALLS:
        request = shape(*call)
        quoted = handle if b"x-amz-json" in request else quote(handle)
        request_bytes = shape(call[0], _filled(call[1], handle), call[2].replace("HANDLE", quoted))
        answer = await desk.ask(request_bytes)
        answers.append((call[0], answer.essence()))
        body = answer.body.decode()
        if call[0] == "ReceiveMessage":
            start, end = ("<ReceiptHandle>", "</") if body.startswith("<") else ('"ReceiptHandle":"', '"')
            handle = body.partition(start)[2].partition(end)[0]
            assert handle
    return answers, desk


def _filled(members: Any, handle: str) -> Any:
    if isinstance(members, dict):
        return {name: _filled(value, handle) for name, value in members.items()}
    if isinstance(members, list):
        return [_filled(value, handle) for value in members]
    return handle if members == "HANDLE" else members


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_action_gives_the_same_bytes_on_both_paths(shape: str) -> None:
    hot, hot_desk = await run_all(SHAPES[shape][0])
    slow, slow_desk = await run_all(SHAPES[shape][1])
    assert hot == slow
    assert (hot_desk.context.hot_requests, hot_desk.context.slow_requests) == (len(CALLS), 0)
    assert (slow_desk.context.hot_requests, slow_desk.context.slow_requests) == (0, len(CALLS))
    assert [essence[0] for _, essence in hot] == [200] * 14 + [400] * 3
    await hot_desk.close()
    await slow_desk.close()


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", *lines, "", ""]).encode()


async def test_health_and_ready_tell_the_state() -> None:
    desk = Desk()
    assert (await desk.ask(get("/health"))).body == b"OK"
    assert (await desk.ask(get("/ready"))).body == b"OK"
    assert desk.context.slow_requests == 2
    desk.context.stopping = True
    assert (await desk.ask(get("/ready"))).status == 503
    await desk.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/"),
        get("/000000000000/orders"),
        get("/favicon.ico"),
        get("/?Version=2012-11-05"),
        get("/cluster"),  # on the admin port
        post(b"{}", path="/"),
    ],
)
async def test_what_is_no_action_is_404(request_bytes: bytes) -> None:
    desk = Desk()
    answer = await desk.ask(request_bytes)
    assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>")
    await desk.close()


@pytest.mark.parametrize(
    ("page_url", "told"),
    [
        ("http://127.0.0.1:9325", b'<a href="http://127.0.0.1:9325">'),
        ("", b"There are no pages for people"),
        ('"<b>', b"&quot;&lt;b&gt;"),
    ],
)
async def test_a_browser_is_told_where_the_page_is(page_url: str, told: bytes) -> None:
    desk = Desk()
    desk.context.page_url = page_url
    answer = await desk.ask(get("/", "Accept: text/html,*/*;q=0.8"))
    assert (answer.status, told in answer.body, b"<b>" in answer.body) == (200, True, False)
    assert (await desk.ask(get("/orders", "Accept: text/html"))).status == 404
    listed = await desk.ask(get("/?Action=ListQueues", "Accept: text/html"))
    assert b"ListQueuesResponse" in listed.body
    await desk.close()


async def test_a_browser_without_a_key_is_told_nothing() -> None:
    desk = Desk(auth="strict")
    answer = await desk.ask(get("/", "Accept: text/html"))
    assert (answer.status, b"<h1>" in answer.body) == (403, False)
    await desk.close()


async def test_json_with_another_content_type_is_known_by_its_target() -> None:
    desk = Desk()
    answer = await desk.ask(post(b"{}", "Content-Type: application/json", "X-Amz-Target: AmazonSQS.ListQueues"))
    assert (answer.status, answer.json()) == (200, {})
    await desk.close()


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


async def test_an_aborted_long_poll_on_the_slow_path_takes_no_message() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, line = desk.connect()
    protocol.data_received(get(f"/?Action=ReceiveMessage&WaitTimeSeconds=20&QueueUrl={QUEUE_URL}"))
    await until(lambda: desk.runtime.status().waiters == 1)
    line.close()
    await until(lambda: desk.runtime.status().waiters == 0)
    await desk.ask(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "kept"}))
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    await desk.close()


async def test_an_answer_in_the_moment_of_the_abort_is_given_back() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, _ = desk.connect()
    protocol.data_received(get(f"/?Action=ReceiveMessage&WaitTimeSeconds=20&QueueUrl={QUEUE_URL}"))
    await until(lambda: desk.runtime.status().waiters == 1)
    sender, _ = desk.connect()
    sender.data_received(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "kept"}))
    protocol.connection_lost(None)  # the reply is in the future already, its task has not run yet
    await settle()
    received = await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}))
    (message,) = received.json()["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
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
