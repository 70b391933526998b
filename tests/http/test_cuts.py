"""TCP may cut a stream anywhere: the answers must not know."""

import random
from typing import Final

from tests.http.desk import (
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

SMUGGLED: Final = b'{"QueueUrl":"%b","MessageBody":"POST / HTTP/1.1\\r\\n"}' % QUEUE_URL.encode()


def sends() -> list[bytes]:
    """The first requests; their answers hold the handles that the others need."""
    return [
        json_request("CreateQueue", {"QueueName": "orders"}),
        json_request("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "a body with ümläuts"}),
        json_request("SendMessage", SMUGGLED),
        form_request(f"Action=SendMessage&QueueUrl={QUEUE_URL}&MessageBody=a%0Db%20c"),
        json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "MaxNumberOfMessages": 2}),
    ]


def whole_stream(handle: str) -> list[bytes]:
    """Every shape of request; among them bodies that look like requests."""
    inner = json_request("CreateQueue", {"QueueName": "smuggled"})
    return [
        *sends(),
        post(inner, "Content-Type: application/x-amz-json-1.0", "X-Amz-Target: AmazonSQS.ListQueues"),
        post(inner, "Content-Type: application/x-www-form-urlencoded"),
        json_request("ListQueues", b""),
        json_request(
            "ChangeMessageVisibility", {"QueueUrl": QUEUE_URL, "ReceiptHandle": handle, "VisibilityTimeout": 9}
        ),
        form_request("Action=GetQueueAttributes&AttributeName.1=All", path="/000000000000/orders"),
        json_request("DeleteMessage", {"QueueUrl": QUEUE_URL, "ReceiptHandle": handle}, "amz-sdk-invocation-id: 1-2-3"),
        json_request("NoSuchAction", {}),
        json_request("SendMessage", b"{"),
        json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "MaxNumberOfMessages": 10}),
    ]


async def first_handle() -> str:
    desk = Desk()
    answers = await desk.exchange(b"".join(sends()), replies=5)
    await desk.close()
    handle = answers[4].json()["Messages"][0]["ReceiptHandle"]
    assert isinstance(handle, str)
    return handle


async def answer(parts: list[bytes], replies: int) -> bytes:
    """What a fresh server writes when the stream arrives in ``parts``, each its own callback."""
    desk = Desk()
    protocol, line = desk.connect()
    for part in parts:
        protocol.data_received(part)
    await until(lambda: len(responses(line.received)) >= replies)
    await settle()
    assert not desk.failures
    await desk.close()
    return bytes(line.received)


async def test_cut_at_every_byte_changes_no_answer() -> None:
    requests = whole_stream(await first_handle())
    stream = b"".join(requests)
    whole = await answer([stream], len(requests))
    assert [one.status for one in responses(whole)] == [200] * 5 + [400, 400, 200, 200, 200, 200, 400, 400, 200]
    assert b"smuggled" not in whole
    for at in range(1, len(stream)):
        assert await answer([stream[:at], stream[at:]], len(requests)) == whole, f"cut at {at}"


async def test_many_random_cuts_change_no_answer() -> None:
    requests = whole_stream(await first_handle())
    stream = b"".join(requests)
    whole = await answer([stream], len(requests))
    for seed in range(60):
        cuts = sorted(random.Random(seed).sample(range(1, len(stream)), 1 + seed % 30))
        parts = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert await answer(parts, len(requests)) == whole, f"seed {seed}"


async def test_every_byte_alone_changes_no_answer() -> None:
    requests = whole_stream(await first_handle())
    stream = b"".join(requests)
    whole = await answer([stream], len(requests))
    assert await answer([stream[at : at + 1] for at in range(len(stream))], len(requests)) == whole


async def test_cuts_around_the_hand_over_to_aiohttp_change_no_answer() -> None:
    """Hot, then chunked (aiohttp's from there on), then POST and GET on the same connection."""
    requests = [
        *sends(),
        chunked(json_request("SendMessage", SMUGGLED)),
        json_request("SendMessage", SMUGGLED),
        b"GET /?Action=ListQueues HTTP/1.1\r\nHost: 127.0.0.1:9324\r\n\r\n",
        json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "MaxNumberOfMessages": 10}),
    ]
    stream = b"".join(requests)
    hot_bytes = sum(map(len, requests[:5]))
    whole = [one.essence() for one in responses(await answer([stream], len(requests)))]
    assert [one[0] for one in whole] == [200] * len(requests)
    for at in range(hot_bytes - 20, len(stream)):
        cut = responses(await answer([stream[:at], stream[at:]], len(requests)))
        assert [one.essence() for one in cut] == whole, f"cut at {at}"
