"""A subscription's URL may be this port: a request that carries the header of a post is refused, and does nothing."""

from collections.abc import Iterator

import pytest

from elasticq.engine.views.digest import state_digest
from elasticq.http.connection.head import LEARN_EVERY
from elasticq.http.pages.testing import METHODS
from elasticq.rest.routes import BASE, DOQ_BASE, ROUTES
from elasticq.wire.headers import NOTIFICATION_TYPE
from tests.http.calls import CALLS, SHAPES, by_url
from tests.http.desk import HOST, QUEUE_URL, Desk, chunked, json_request, post
from tests.http.signing import KEY

CERTIFICATE = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
PAGES = ("/", "/health", "/ready", "/_localstack/health", CERTIFICATE, f"{BASE}/docs", f"{BASE}/openapi.json")
PEEKS = ("/_elasticq/peek", f"/_aws/sqs/messages?QueueUrl={QUEUE_URL}", "/_aws/sqs/messages/us-east-1/0/orders")
TOPIC = "TopicArn=arn:aws:sns:us-east-1:000000000000:t&Message=again&Version=2010-03-31"


def asked(method: str, path: str, body: bytes = b"{}") -> bytes:
    """A request whose Content-Type is that of a post."""
    return post(body, "Content-Type: text/plain; charset=UTF-8", path=path).replace(b"POST", method.encode(), 1)


def requests() -> Iterator[bytes]:
    """Every way to ask this port for something: each action in each shape, each route, each page."""
    for one, other in SHAPES.values():
        for call in CALLS:
            yield from (one(*call), other(*call), by_url(*call).replace(b"GET", b"POST", 1))
    for action in ("Publish", "ConfirmSubscription", "DeleteTopic"):
        yield from (asked(method, f"/?Action={action}&{TOPIC}") for method in ("GET", "POST"))
    for route in ROUTES:
        path = route.path.replace("{queue}", "orders").replace("{id}", "1")
        yield from (asked(route.method, base + path) for base in (BASE, DOQ_BASE))
    yield asked("GET", f"{BASE}/queues/orders/stream")
    yield from (asked(method, path) for path, methods in METHODS.items() for method in methods)
    yield asked("POST", "/moto-api/reset")
    yield from (asked(method, path) for path in (*PAGES, *PEEKS, "/nothing") for method in ("GET", "POST", "OPTIONS"))


def marked(request: bytes, line: str = f"{NOTIFICATION_TYPE}: Notification") -> bytes:
    return request.replace(b"\r\n", f"\r\n{line}\r\n".encode(), 1)


async def desk_with_a_message(auth: str = "off") -> Desk:
    desk = Desk(auth=auth, keys=[KEY], has_testing=True)
    if auth == "off":
        await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
        await desk.ask(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "kept"}))
    return desk


@pytest.mark.parametrize("auth", ["off", "strict"])
async def test_no_request_with_the_header_of_a_post_is_executed(auth: str) -> None:
    desk = await desk_with_a_message(auth)
    before = state_digest(desk.node.state)
    entries = desk.node.replica.log.last_index
    for request in requests():
        answer = await desk.ask(marked(request))
        assert answer.status == 403, request
        assert desk.node.replica.log.last_index == entries, request
    assert state_digest(desk.node.state) == before
    await desk.close()


async def test_the_requests_would_be_answered_without_the_header() -> None:
    """Otherwise the test above would show nothing."""
    desk = await desk_with_a_message()
    others = [(await desk.ask(request)).status for request in requests() if b"/stream" not in request]
    assert 403 not in others
    assert {200, 400, 404} <= set(others)
    await desk.close()


@pytest.mark.parametrize(
    "line",
    [
        NOTIFICATION_TYPE,
        NOTIFICATION_TYPE.upper(),
        "X-Amz-Sns-Message-Type: SubscriptionConfirmation",
        f"{NOTIFICATION_TYPE}: ",
        f"{NOTIFICATION_TYPE}:Notification",
        f"{NOTIFICATION_TYPE}: x\r\n{NOTIFICATION_TYPE}: x",
        f"{NOTIFICATION_TYPE}: {'x' * 3_000}",
        f"{NOTIFICATION_TYPE}: x\r\nExpect: 100-continue",
        f"Content-Encoding: gzip\r\n{NOTIFICATION_TYPE}: x",
    ],
)
async def test_the_header_is_known_in_each_spelling_and_beside_any_other(line: str) -> None:
    desk = await desk_with_a_message()
    line = line if ":" in line else f"{line}: Notification"
    for request in (json_request("PurgeQueue", {"QueueUrl": QUEUE_URL}), asked("POST", f"{BASE}/queues/orders/purge")):
        for shaped in (request, chunked(request)):
            assert (await desk.ask(marked(shaped, line))).status == 403
    await desk.close()


async def test_heads_that_were_remembered_or_made_a_template_let_no_post_pass() -> None:
    desk = await desk_with_a_message()
    plain = f"GET {BASE}/queues/orders/messages HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    for number in range(2 * LEARN_EVERY):
        numbered = json_request("ListQueues", {}, f"amz-sdk-invocation-id: {number:032d}")
        assert (await desk.ask(numbered)).status == 200
        assert (await desk.ask(marked(numbered))).status == 403
        assert (await desk.ask(plain)).status == 200
        assert (await desk.ask(marked(plain))).status == 403
    await desk.close()
