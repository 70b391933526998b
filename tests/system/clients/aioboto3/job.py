"""aioboto3: fifty sends at once, batches, concurrent long polls through other members, one of them cancelled.

All of that plain and in our wrapper, whose own endpoint nobody serves.
"""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import aioboto3

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from elasticq.client import wrap_async

ENDPOINTS = os.environ["ENDPOINTS"].split(",")
SENT = 50
POLLS = 5


async def receive_all(client: Any, url: str, seen: set[str]) -> None:
    """Until there is nothing for two seconds."""
    while True:
        answer = await client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2)
        messages = answer.get("Messages", [])
        if not messages:
            return
        seen.update(message["Body"] for message in messages)
        entries = [{"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(messages)]
        deleted = await client.delete_message_batch(QueueUrl=url, Entries=entries)
        assert len(deleted["Successful"]) == len(messages), deleted


async def cancel_a_poll(one: Any, other: Any, url: str) -> None:
    """The message that comes after it goes to the next who asks."""
    left = asyncio.ensure_future(other.receive_message(QueueUrl=url, WaitTimeSeconds=20))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(left, 0.5)
    await one.send_message(QueueUrl=url, MessageBody="after the cancel")
    answer = await other.receive_message(QueueUrl=url, WaitTimeSeconds=10)
    assert [message["Body"] for message in answer["Messages"]] == ["after the cancel"], answer


async def work(clients: list[Any]) -> None:
    one, other = clients[0], clients[-1]
    url = (await one.create_queue(QueueName=f"aioboto3-{time.time_ns()}"))["QueueUrl"]
    bodies = [f"body {number}" for number in range(SENT)]
    await asyncio.gather(*(one.send_message(QueueUrl=url, MessageBody=body) for body in bodies))
    entries = [{"Id": str(number), "MessageBody": f"batch {number}"} for number in range(10)]
    assert len((await one.send_message_batch(QueueUrl=url, Entries=entries))["Successful"]) == 10
    seen: set[str] = set()
    await asyncio.gather(*(receive_all(clients[at % len(clients)], url, seen) for at in range(POLLS)))
    assert seen == {*bodies, *(f"batch {number}" for number in range(10))}, seen
    await cancel_a_poll(one, other, url)
    try:
        await other.get_queue_url(QueueName="nobody-made-it")
        raise AssertionError("a missing queue has a URL")
    except other.exceptions.QueueDoesNotExist:
        pass
    await other.delete_queue(QueueUrl=url)


async def work_patiently(sqs: Any) -> None:
    """Sends to one group in their order, and pages."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = (await sqs.create_queue(QueueName=f"patient-{time.time_ns()}.fifo", Attributes=attributes))["QueueUrl"]
    bodies = [str(number) for number in range(10)]
    await asyncio.gather(*(sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g") for body in bodies))
    answer = await sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    assert [message["Body"] for message in answer["Messages"]] == bodies, answer
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix="patient-")
    assert url.rpartition("/")[2] in [each.rpartition("/")[2] async for page in pages for each in page["QueueUrls"]]
    await sqs.delete_queue(QueueUrl=url)


async def main() -> None:
    async with contextlib.AsyncExitStack() as stack:
        session = aioboto3.Session(region_name="us-east-1")
        clients = [
            await stack.enter_async_context(session.client("sqs", endpoint_url=endpoint)) for endpoint in ENDPOINTS
        ]
        await work(clients)
        nowhere = await stack.enter_async_context(session.client("sqs", endpoint_url="http://127.0.0.1:9"))
        patient = wrap_async(nowhere, endpoints=ENDPOINTS, max_wait_s=60)
        await work([patient])
        await work_patiently(patient)
    print("aioboto3: 50 concurrent sends, batches, 5 concurrent long polls, a cancelled one, typed error")


asyncio.run(main())
