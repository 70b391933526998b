"""What requests leave behind: of those that failed nothing, and no more of the others than bounds say."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from elasticq.model.errors import SqsError
from elasticq.wire.operations import OPERATIONS
from tests.http.desk import QUEUE_URL, Desk, chunked, form_request, json_request, responses, settle

NOWHERE = QUEUE_URL.replace("orders", "nowhere")
ARN = "arn:aws:sqs:us-east-1:000000000000:nowhere"
NAMED: dict[str, Any] = {"QueueUrl": NOWHERE, "QueueName": "no name", "SourceArn": ARN, "TaskHandle": "none"}


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What is left then is left because something holds it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def kept_errors() -> list[SqsError]:
    return [each for each in gc.get_objects() if isinstance(each, SqsError)]


def failing() -> Iterator[bytes]:
    """A call of each action that the engine refuses, in both protocols, and some that fail on the way to it."""
    for action in OPERATIONS:
        members = NAMED if action != "ListQueues" else {"MaxResults": 0}
        yield json_request(action, {**members, "WaitTimeSeconds": 20} if action == "ReceiveMessage" else members)
        query = "&".join(f"{name}={value}" for name, value in members.items())
        yield form_request(f"Action={action}&{query}")
        yield chunked(json_request(action, members))
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x" * (1 << 20) + "x"})
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": {"not": "a text"}})
    yield json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": None, "DelaySeconds": "soon"})
    yield json_request("SendMessage", b"{")
    yield json_request("NoAction", {})
    yield form_request("Action=SendMessage&MessageBody=%FF")


@pytest.mark.usefixtures("without_collector")
async def test_a_call_that_fails_leaves_nothing_behind() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    for request in failing():
        assert (await desk.ask(request)).status in (400, 404), request[:300]
    await settle()
    assert kept_errors() == []
    await desk.close()


@pytest.mark.usefixtures("without_collector")
async def test_a_wait_that_ends_in_an_error_leaves_nothing_behind() -> None:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    protocol, line = desk.connect()
    protocol.data_received(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 20}))
    await desk.ask(json_request("DeleteQueue", {"QueueUrl": QUEUE_URL}))
    assert [each.status for each in responses(line.received)] == [400]
    assert kept_errors() == []
    await desk.close()
