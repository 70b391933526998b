"""The doors of /_elasticq/peek and /_aws/sqs/messages: who may look, and that odd requests are answered."""

import asyncio
import threading
from typing import Any

import pytest

from elasticq.http.connection.head import JSON
from elasticq.http.pages import peeking
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.extensions import Peek
from elasticq.model.results import PeekedMessage, PeekResult
from tests.http.desk import HOST, QUEUE_URL, Desk, form_request, json_request
from tests.http.signing import JSON_HEADERS, KEY, OTHER_KEY, signed, target

PEEK = "/_elasticq/peek"
QUEUE = f"http://{HOST}/{KEY.account}/orders"
BODY = b'{"QueueUrl": "%b"}' % QUEUE.encode()
PLAIN = {"Content-Type": JSON_HEADERS["Content-Type"]}


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


async def strict_desk() -> Desk:
    desk = Desk(auth="strict", keys=[KEY, OTHER_KEY])
    for action, body in (
        ("CreateQueue", b'{"QueueName": "orders"}'),
        ("SendMessage", BODY[:-1] + b', "MessageBody": "hello"}'),
    ):
        assert (await desk.ask(signed(body, target(action)))).status == 200
    return desk


async def test_strict_shows_a_queue_to_its_owner_only() -> None:
    desk = await strict_desk()
    mine = await desk.ask(signed(BODY, PLAIN, url=PEEK))
    assert [message["Body"] for message in mine.json()["Messages"]] == ["hello"]
    assert (await desk.ask(signed(BODY, PLAIN, url=PEEK, key=OTHER_KEY))).status == 403
    unsigned = signed(BODY, PLAIN, url=PEEK).replace(b"Authorization", b"X-Nothing")
    assert (await desk.ask(unsigned)).status == 403
    assert (await desk.ask(signed(BODY, PLAIN, url=PEEK).replace(b'"}', b'" '))).status == 403
    await desk.close()


async def test_strict_policy_of_receive_message_lets_a_stranger_look() -> None:
    desk = await strict_desk()
    allow = b', "Label": "look", "AWSAccountIds": ["%b"], "Actions": ["ReceiveMessage"]}' % OTHER_KEY.account.encode()
    assert (await desk.ask(signed(BODY[:-1] + allow, target("AddPermission")))).status == 200
    assert (await desk.ask(signed(BODY, PLAIN, url=PEEK, key=OTHER_KEY))).status == 200
    await desk.close()


async def test_strict_lists_messages_for_a_signed_get_only() -> None:
    desk = await strict_desk()
    url = f"/_aws/sqs/messages?QueueUrl={QUEUE.replace(':', '%3A').replace('/', '%2F')}"
    good = await desk.ask(signed(b"", {}, method="GET", url=url))
    assert (good.status, b"<Body>hello</Body>" in good.body) == (200, True)
    assert (await desk.ask(f"GET {url} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())).status == 403
    await desk.close()


async def test_queue_of_a_subscription_is_shown_to_nobody() -> None:
    """It holds the token that confirms the subscription, which only the endpoint may know."""
    desk = Desk()
    topic = "arn:aws:sns:us-east-1:000000000000:news"
    await desk.ask(form_request("Action=CreateTopic&Name=news"))
    for protocol, endpoint in (("http", "http://127.0.0.1:9/"), ("email", "a@example.com")):
        given = f"Protocol={protocol}&Endpoint={endpoint}&ReturnSubscriptionArn=true"
        made = await desk.ask(form_request(f"Action=Subscribe&TopicArn={topic}&{given}"))
        arn = made.body.partition(b"<SubscriptionArn>")[2].partition(b"<")[0].decode()
        key = arn.rpartition(":")[2]
        assert desk.node.state.names["000000000000/~topics", key].count == 1
        urls = (arn, key, f"/000000000000/{key}", f"~topics/{key}", f"http://x/000000000000/~topics/{key}")
        asks = [json_request("Peek", {"QueueUrl": url}, path=PEEK) for url in urls]
        asks += [get(f"/_aws/sqs/messages?QueueUrl={url}") for url in urls]
        asks += [get(f"/_aws/sqs/messages/{region}/000000000000/{key}") for region in ("~topics", "us-east-1")]
        asks += [get(f"/api/v1/queues/{url.replace('/', '%2F')}/export") for url in urls]
        for ask in asks:
            answer = await desk.ask(ask)
            assert answer.status in (400, 404), ask
            assert b"NonExistentQueue" in answer.body or b"QueueDoesNotExist" in answer.body, ask
    await desk.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"[]", 400), (b"{", 400), (b'{"QueueUrl": 5}', 400), (b'{"QueueUrl": "nowhere"}', 400)],
)
async def test_odd_requests_are_answered_with_an_error(body: bytes, status: int) -> None:
    desk = Desk()
    answer = await desk.ask(json_request("SendMessage", body, path=PEEK))
    assert answer.status == status
    assert "x-amzn-query-error" in answer.headers
    await desk.close()


@pytest.mark.parametrize("path", ["/_aws/sqs/messages/", "/_aws/sqs/messages/a/b", "/_aws/sqs/messages/a/b/c/d"])
async def test_path_that_names_no_queue_is_an_error(path: str) -> None:
    desk = Desk()
    answer = await desk.ask(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    assert (answer.status, b"NonExistentQueue" in answer.body) == (400, True)
    await desk.close()


async def test_connection_goes_on_after_a_peek() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    peek = json_request("Peek", {"QueueUrl": QUEUE_URL}, path=PEEK)
    answers = await desk.exchange(peek + peek, replies=2)
    assert [answer.json() for answer in answers] == [{"Messages": [], "NextSequence": None, "LastSequence": 0}] * 2
    await desk.close()


async def test_a_listing_is_bounded_in_all_that_messages_hold() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    large = {"a": {"DataType": "String", "StringValue": "v" * 400_000}}
    for _ in range(30):
        message = {"QueueUrl": QUEUE_URL, "MessageBody": "x", "MessageAttributes": large}
        assert (await desk.ask(json_request("SendMessage", message))).status == 200
    answer = await desk.ask(f"GET /_aws/sqs/messages?QueueUrl=orders HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    assert answer.status == 200
    assert peeking.LIST_BYTES_MAX / 2 < len(answer.body) < 2.1 * peeking.LIST_BYTES_MAX
    await desk.close()


async def test_others_are_served_between_the_pages_of_a_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by turns of the loop, not by the clock; bodies and attributes both count towards what is listed."""
    turns = 0
    message = PeekedMessage("id", "x", 1, "visible", {}, {"a": MessageAttributeValue("String", "v" * 250_000)})
    asked: list[int] = []

    async def submit(command: Peek) -> PeekResult:
        asked.append(turns)
        return PeekResult([message] * 4, next_sequence=len(asked))

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    loop = asyncio.get_running_loop()
    loop.call_soon(turn)
    listing = peeking.Listing(peeking.LIST_PATH, {"QueueUrl": QUEUE_URL}, "")
    found = await listing.collect(submit)
    assert len(found) * 250_000 <= peeking.LIST_BYTES_MAX + 4 * 250_000
    assert len(set(asked)) == len(asked) == 5
    writers = set()
    plain = peeking.encode

    def noted(*arguments: Any) -> Any:
        writers.add(threading.current_thread())
        return plain(*arguments)

    monkeypatch.setattr(peeking, "encode", noted)
    answer = await peeking.answer(JSON, listing, submit, "request-1")
    assert (answer.status, threading.current_thread() in writers) == (200, False)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/x-amz-json-1.0"])
async def test_a_long_request_for_a_listing_is_refused_unread(kind: str) -> None:
    desk = Desk()
    head = (
        f"POST {peeking.LIST_PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {kind}\r\nContent-Length: 100000\r\n\r\n"
    )
    answer = await desk.ask(head.encode() + b"%" * 100_000)
    assert (answer.status, b"longer than 16384 bytes" in answer.body) == (413, True)
    await desk.close()
