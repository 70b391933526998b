"""What requests leave behind: of those that failed nothing, and no more of the others than bounds say."""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from aiohttp.web import BaseRequest
from msgspec import Struct
from msgspec.structs import astuple

from elasticq.http.pages.asked import Asked
from elasticq.http.protocol import SqsProtocol
from elasticq.model.limits import QUOTED_CHARS_MAX, SMALL_REQUEST_BYTES_MAX
from elasticq.wire import sigv4
from elasticq.wire.operations import OPERATIONS
from tests.http.desk import QUEUE_URL, Desk, chunked, form_request, json_request, responses, settle, until
from tests.http.signing import JSON_HEADERS, KEY, signed
from tests.memory import errors_in_memory

NOWHERE = QUEUE_URL.replace("orders", "nowhere")
ARN = "arn:aws:sqs:us-east-1:000000000000:nowhere"
LISTS = ("ListQueues", "ElasticqDescribeGroups")
NAMED: dict[str, Any] = {"QueueUrl": NOWHERE, "QueueName": "no name", "SourceArn": ARN, "TaskHandle": "none"}


def failing() -> Iterator[bytes]:
    """A call of each action that the engine refuses, in both protocols, and some that fail on the way to it."""
    for action in OPERATIONS:
        members = NAMED if action not in LISTS else {"MaxResults": 0}
        yield json_request(action, {**members, "WaitTimeSeconds": 20} if action == "ReceiveMessage" else members)
        query = "&".join(f"{name}={value}" for name, value in members.items())
        yield form_request(f"Action={action}&{query}")
        yield chunked(json_request(action, members))
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x" * (1 << 20) + "x"})
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": {"not": "a text"}})
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": None, "DelaySeconds": "soon"})
    yield json_request("SendMessage", b"{")
    yield json_request("SendMessage", b"[" * 100)
    yield json_request("SendMessage", b"[]")
    yield json_request("SendMessageBatch", b'{"Entries":{}}' + b" " * SMALL_REQUEST_BYTES_MAX)
    yield json_request("SendMessageBatch", {"QueueUrl": None, "Entries": [None, {"Id": 1}]})
    yield json_request("NoAction", {})
    yield form_request("Action=SendMessage&MessageBody=%FF")


async def test_a_call_that_fails_leaves_nothing_behind(errors_before: int) -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    for request in failing():
        assert (await desk.ask(request)).status in (400, 404), request[:300]
    await settle()
    assert errors_in_memory() == errors_before
    await desk.close()


async def test_a_wait_that_ends_in_an_error_leaves_nothing_behind(errors_before: int) -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, line = desk.connect()
    protocol.data_received(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20}))
    await desk.ask(json_request("DeleteQueue", {"QueueUrl": QUEUE_URL}))
    assert [each.status for each in responses(line.received)] == [400]
    assert errors_in_memory() == errors_before
    await desk.close()


# --- what was sent, and is over ---------------------------------------------------

LONG = f"{uuid4().hex:x<5000}"
"""Nothing else in the process begins so; longer than any text that is worth remembering."""


def held_texts() -> list[str | bytes]:
    """Texts of clients with LONG in them that anything in the process still holds, but for LONG itself."""
    gc.collect()
    seen: set[int] = set()
    found: dict[int, str | bytes] = {}
    waiting = [each for each in gc.get_objects() if each is not globals()]
    while waiting:
        referents = gc.get_referents(*waiting)
        referents += [value for each in waiting if isinstance(each, Struct) for value in astuple(each)]
        referents += [key for each in waiting if isinstance(each, dict) for key in each]  # texts are left out above
        waiting = []
        for each in referents:
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, str | bytes | bytearray):
                mark = LONG[:32] if isinstance(each, str) else LONG[:32].encode()
                if len(each) >= len(LONG) and mark in each and each is not LONG:
                    found[id(each)] = each
            elif not gc.is_tracked(each) and not isinstance(each, int | float | type(None)):
                waiting.append(each)
    return list(found.values())


def long_ones() -> Iterator[bytes]:
    """Requests that are answered well, or not, and name something in far more words than anybody needs."""
    url = f"http://{LONG}/000000000000/orders"
    for members in ({"QueueUrl": url}, {"QueueUrl": LONG}, {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 0, LONG: LONG}):
        for action in ("SendMessage", "ReceiveMessage", "GetQueueAttributes", "ListQueueTags", "DeleteMessage"):
            yield json_request(action, {**members, "MessageBody": "x"})
            yield form_request(
                f"Action={action}&MessageBody=x&QueueUrl={quote(members['QueueUrl'], safe='')}&{LONG}={LONG}"
            )
            yield form_request(f"Action={action}&MessageBody=x", path=f"/{LONG}/000000000000/orders")
    yield json_request("GetQueueUrl", {"QueueName": LONG, "QueueOwnerAWSAccountId": LONG})
    yield json_request("CreateQueue", {"QueueName": LONG})
    yield json_request("ListQueues", {"QueueNamePrefix": LONG})
    yield json_request(LONG, {})
    for header in ("Authorization: ", "X-Amz-Date: ", "X-Amzn-Trace-Id: ", "User-Agent: ", "amz-sdk-invocation-id: "):
        yield json_request("ListQueues", {}, header + LONG)
        yield json_request(
            "ListQueues", {}, header + LONG, "X-Amz-Content-Sha256: " + LONG[:500], "Accept: text/" + LONG
        )


async def test_nothing_that_is_long_is_remembered_when_it_is_answered() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    for request in long_ones():
        assert (await desk.ask(request)).status in (200, 400, 403, 404)
    del request
    await desk.ask(json_request("PurgeQueue", {"QueueUrl": QUEUE_URL}))
    await settle()
    assert [text[:300] for text in held_texts()] == []
    await desk.close()


async def test_what_is_remembered_of_signed_requests_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sigv4, "REMEMBERED_BYTES_MAX", 10 * len(LONG))
    desk = Desk(auth="strict", keys=[KEY])
    for number in range(30):
        request = signed(headers={**JSON_HEADERS, "X-Amz-Note": LONG + str(number)}, region=LONG + str(number))
        assert (await desk.ask(request)).status == 200
        del request
    await settle()
    assert sum(map(len, held_texts())) < 3 * sigv4.REMEMBERED_BYTES_MAX  # in a line, and in what is made of it
    await desk.close()


async def test_the_walk_of_these_tests_finds_what_is_held() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    await desk.ask(json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": f"{LONG} waits"}))
    held = [text for text in held_texts() if isinstance(text, str)]  # in bytes it stands in the log
    assert held == [f"{LONG} waits"]
    await desk.close()


# --- what errors repeat -----------------------------------------------------------

TEXT = {"DataType": "String", "StringValue": "v"}
ENTRY = {"Id": "a", "MessageBody": "x", "MessageAttributes": {"name": TEXT}, "MessageSystemAttributes": {"name": TEXT}}
IN_ORDER = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
HELD = {"QueueUrl": QUEUE_URL, "ReceiptHandle": "h", "VisibilityTimeout": 7}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("CreateQueue", {"QueueName": "more", "Attributes": {"DelaySeconds": "1"}, "tags": {"key": "value"}}),
    ("CreateQueue", {"QueueName": "more", "Attributes": {"RedrivePolicy": "{}"}}),
    ("GetQueueUrl", {"QueueName": "orders", "QueueOwnerAWSAccountId": "000000000000"}),
    ("ListQueues", {"QueueNamePrefix": "o", "NextToken": "t", "MaxResults": 1}),
    ("GetQueueAttributes", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"]}),
    ("SetQueueAttributes", {"QueueUrl": QUEUE_URL, "Attributes": {"Policy": "{}"}}),
    ("SetQueueAttributes", {"QueueUrl": QUEUE_URL, "Attributes": {"RedriveAllowPolicy": "{}"}}),
    ("SendMessage", {"QueueUrl": QUEUE_URL, **ENTRY, "MessageGroupId": "g"}),
    ("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x", "MessageDeduplicationId": "d"}),
    ("SendMessage", {"QueueUrl": f"{QUEUE_URL}.fifo", "MessageBody": "x", **IN_ORDER}),
    ("SendMessageBatch", {"QueueUrl": QUEUE_URL, "Entries": [ENTRY, {**ENTRY, "Id": "b", **IN_ORDER}]}),
    ("SendMessageBatch", {"QueueUrl": f"{QUEUE_URL}.fifo", "Entries": [{"Id": "a", "MessageBody": "x", **IN_ORDER}]}),
    ("ReceiveMessage", {"QueueUrl": QUEUE_URL, "AttributeNames": ["All"], "MessageAttributeNames": ["a"]}),
    ("ReceiveMessage", {"QueueUrl": f"{QUEUE_URL}.fifo", "ReceiveRequestAttemptId": "r"}),
    ("DeleteMessage", {"QueueUrl": QUEUE_URL, "ReceiptHandle": "h"}),
    ("DeleteMessageBatch", {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", "ReceiptHandle": "h"}]}),
    ("ChangeMessageVisibility", HELD),
    ("ChangeMessageVisibilityBatch", {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "a", **HELD}]}),
    ("TagQueue", {"QueueUrl": QUEUE_URL, "Tags": {"key": "value"}}),
    ("UntagQueue", {"QueueUrl": QUEUE_URL, "TagKeys": ["key"]}),
    ("ListQueueTags", {"QueueUrl": QUEUE_URL}),
    ("AddPermission", {"QueueUrl": QUEUE_URL, "Label": "l", "AWSAccountIds": ["000000000000"], "Actions": ["*"]}),
    ("RemovePermission", {"QueueUrl": QUEUE_URL, "Label": "l"}),
    ("ListDeadLetterSourceQueues", {"QueueUrl": QUEUE_URL, "NextToken": "t"}),
    ("StartMessageMoveTask", {"SourceArn": ARN, "DestinationArn": ARN}),
    ("CancelMessageMoveTask", {"TaskHandle": "t"}),
    ("ListMessageMoveTasks", {"SourceArn": ARN}),
    ("PurgeQueue", {"QueueUrl": NOWHERE}),
    ("DeleteQueue", {"QueueUrl": NOWHERE}),
]


def with_a_long_text(value: Any, long: str) -> Iterator[Any]:
    """``value`` again and again, each time with ``long`` in the place of another text or name."""
    if isinstance(value, str):
        yield long
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], changed, *value[at + 1 :]] for changed in with_a_long_text(item, long))
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from ({**value, name: changed} for changed in with_a_long_text(member, long))
            yield {long if other == name else other: inner for other, inner in value.items()}


@pytest.mark.parametrize("character", ["n", "~", "\u00e9"])
@pytest.mark.parametrize(("action", "members"), CALLS, ids=[f"{at} {call[0]}" for at, call in enumerate(CALLS)])
async def test_no_error_repeats_more_of_what_was_sent_than_it_may(
    action: str, members: dict[str, Any], character: str
) -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    fifo = {"QueueName": "orders.fifo", "Attributes": {"FifoQueue": "true"}}
    await desk.ask(json_request("CreateQueue", fifo))
    for changed in with_a_long_text(members, character * 2_000):
        answer = await desk.ask(json_request(action, changed))
        if answer.status != 200 or b'"Failed"' in answer.body:
            assert character * (QUOTED_CHARS_MAX + 1) not in answer.body.decode(), (action, answer.body[:400])
    await desk.close()


# --- clients that leave -----------------------------------------------------------


async def test_slow_requests_whose_clients_left_leave_nothing_behind() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    connections = sum(isinstance(each, SqsProtocol) for each in gc.get_objects())
    poll = chunked(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20}))
    for _ in range(5):
        protocol, line = desk.connect()
        protocol.data_received(poll)
        await until(lambda: desk.runtime.status().waiters == 1)
        line.close()
        await until(lambda: desk.runtime.status().waiters == 0)
        await settle()
    del protocol, line
    gc.collect()
    kept = Counter(type(each) for each in gc.get_objects())
    assert kept[SqsProtocol] - connections <= 1  # the last
    assert kept[BaseRequest] == kept[Asked] == 0
    await desk.close()
