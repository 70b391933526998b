"""The patient client of asyncio keeps the promises of the one that blocks, whichever kind of client it wraps."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ParamValidationError

from elasticq.client import wrap_async
from tests.client import scripted
from tests.client.scripted import CUT, Scripted, answer, failure
from tests.system.cluster.cluster import LOOK_S, PATIENCE_S, Cluster, let_pass

NOBODY = "http://127.0.0.1:9"
BUSY = failure("ServiceUnavailable", "503 Service Unavailable")
FIFO = "http://127.0.0.1:9/000000000000/orders.fifo"
Patient = Callable[..., Any]


def boto3_client(url: str) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 0}),
    )


class Coroutines:
    """A client whose operations are coroutines, as aiobotocore's are; scripts/clients.py runs that one."""

    def __init__(self, url: str) -> None:
        self._client = boto3_client(url)
        self.meta, self.exceptions = self._client.meta, self._client.exceptions

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def operation(**members: Any) -> Any:
            return await asyncio.to_thread(method, **members)

        return operation


def in_threads(url: str, **options: Any) -> Any:
    return wrap_async(boto3_client(url), threads=8, **options)


def of_coroutines(url: str, **options: Any) -> Any:
    return wrap_async(Coroutines(url), **options)


@pytest.fixture(params=[in_threads, of_coroutines])
def patient(request: pytest.FixtureRequest) -> Patient:
    made: Patient = request.param
    return made


async def until(condition: Callable[[], Any], what: str) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_S
    while not condition():
        assert loop.time() < deadline_s, f"not within {PATIENCE_S} s: {what}"
        await asyncio.sleep(LOOK_S)


def ids(server: Scripted) -> list[str]:
    return [scripted.headers(each)["amz-sdk-invocation-id"] for each in server.requests]


def bodies(server: Scripted) -> list[str]:
    return [json.loads(each.partition(b"\r\n\r\n")[2])["MessageBody"] for each in server.requests]


async def send(sqs: Any, body: str, group: str = "g") -> Any:
    return await sqs.send_message(
        QueueUrl=FIFO, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=f"{body}-id"
    )


async def test_all_tries_of_a_call_are_one_call_to_the_server(patient: Patient) -> None:
    with Scripted(BUSY, BUSY, CUT, BUSY, answer({})) as server:
        sqs = patient(server.endpoint)
        await sqs.list_queues()
        await sqs.list_queues()
    found = ids(server)
    assert len(found) == 6
    assert len(set(found[:5])) == 1
    assert found[5] != found[0], "the next call is another one"


async def test_what_cannot_become_better_is_raised_at_once(patient: Patient) -> None:
    with Scripted(failure("QueueDoesNotExist", "400 Bad Request")) as server:
        sqs = patient(server.endpoint)
        with pytest.raises(sqs.exceptions.QueueDoesNotExist):
            await sqs.get_queue_url(QueueName="none")
        with pytest.raises(ParamValidationError):
            await sqs.get_queue_url()
        assert len(server.requests) == 1
        assert sqs.meta.endpoint_url == server.endpoint, "all else is the client's"


async def test_call_whose_time_is_up_raises_what_it_met_last(patient: Patient) -> None:
    with Scripted(BUSY) as server:
        with pytest.raises(ClientError, match="ServiceUnavailable"):
            await patient(server.endpoint, max_wait_s=2).list_queues()
        assert len(set(ids(server))) == 1
        assert len(server.requests) > 1
    with pytest.raises(EndpointConnectionError):
        await patient(NOBODY, max_wait_s=0).list_queues()


async def test_entries_of_a_batch_that_the_server_could_not_take_are_sent_again(patient: Patient) -> None:
    late = answer(
        {"Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": False, "Code": "InternalFailure"}]}
    )
    with Scripted(late, answer({"Successful": [{"Id": "b"}]})) as server:
        entries = [{"Id": each, "ReceiptHandle": each} for each in "ab"]
        made = await patient(server.endpoint).delete_message_batch(QueueUrl=FIFO, Entries=entries)
    assert (made["Successful"], made.get("Failed", [])) == ([{"Id": "a"}, {"Id": "b"}], [])


async def test_client_whose_calls_block_is_refused_where_no_threads_are_given() -> None:
    with Scripted(answer({})) as server, pytest.raises(TypeError, match="how many threads"):
        await wrap_async(boto3_client(server.endpoint)).list_queues()


async def test_pages_in_threads_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="NextToken"):
        in_threads(NOBODY).get_paginator("list_queues")


async def test_cancelled_call_is_tried_no_more(patient: Patient) -> None:
    with Scripted(BUSY) as server:
        sqs = patient(server.endpoint, max_wait_s=2)
        cancelled = asyncio.create_task(send(sqs, "cancelled"))
        await until(lambda: len(server.requests) > 2, "it is tried")
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        with pytest.raises(ClientError):
            await send(sqs, "next")
        found = bodies(server)
    first = found.index("next")
    assert set(found[:first]) == {"cancelled"}
    assert found[first:].count("cancelled") <= 1, "none but the try that was under way"
    assert found[first:].count("next") > 1


async def test_timeout_of_the_caller_ends_a_call(patient: Patient) -> None:
    with Scripted(BUSY) as server, pytest.raises(TimeoutError):
        await asyncio.wait_for(patient(server.endpoint).list_queues(), 0.5)


async def test_call_that_is_cancelled_while_it_waits_for_its_turn_is_never_tried(patient: Patient) -> None:
    gate = threading.Event()
    with Scripted([gate, BUSY], answer({"MessageId": "m"})) as server:
        sqs = patient(server.endpoint)
        tasks = [asyncio.create_task(send(sqs, body)) for body in ("first", "second", "third")]
        await until(lambda: server.requests, "the first one is under way")
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        gate.set()
        await asyncio.gather(tasks[0], tasks[2])
        assert bodies(server) == ["first", "first", "third"]


async def test_sends_behind_one_that_gives_up_fail_with_it_untried(patient: Patient) -> None:
    with Scripted(BUSY) as server:
        sqs = patient(server.endpoint, max_wait_s=0)
        met = await asyncio.gather(*(send(sqs, body) for body in ("first", "second", "third")), return_exceptions=True)
        assert bodies(server) == ["first"]
    first, second, third = met
    assert isinstance(first, ClientError)
    for behind in (second, third):
        assert isinstance(behind, ClientError)
        assert behind.__cause__ is first
        assert "not tried" in behind.__notes__[0]


async def test_send_waits_for_a_cancelled_one_that_a_thread_still_makes() -> None:
    gate = threading.Event()
    done = answer({"MessageId": "m"})
    with Scripted([gate, done], done) as server:
        sqs = in_threads(server.endpoint)
        cancelled = asyncio.create_task(send(sqs, "cancelled"))
        await until(lambda: server.requests, "it is under way")
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        behind = asyncio.create_task(send(sqs, "behind"))
        await send(sqs, "apart", "another group")
        assert not behind.done()
        gate.set()
        await behind
        assert bodies(server) == ["cancelled", "apart", "behind"]


def test_client_of_threads_serves_one_loop_after_the_other() -> None:
    with Scripted(BUSY, answer({}), BUSY, answer({})) as server:
        sqs = in_threads(server.endpoint)
        for _ in range(2):
            asyncio.run(sqs.list_queues())
        assert len(server.requests) == 4


async def test_server_that_is_gone_for_a_while_is_waited_for(cluster: Cluster, patient: Patient) -> None:
    """Killed under calls: each send is there once, and none saw an exception."""
    member = cluster["n1"]
    sqs = patient(f"http://127.0.0.1:{member.port}")
    url = (await sqs.create_queue(QueueName=f"gone-{uuid4().hex}"))["QueueUrl"]
    is_over, sent = False, list[str]()

    async def produce(number: int) -> None:
        count = 0
        while not is_over:
            count += 1
            await sqs.send_message(QueueUrl=url, MessageBody=f"{number}-{count}")
            sent.append(f"{number}-{count}")

    producers = [asyncio.create_task(produce(number)) for number in range(5)]

    async def go_on() -> None:
        reached = len(sent) + 30
        await until(lambda: len(sent) >= reached or any(each.done() for each in producers), "sends go on")

    await go_on()
    await asyncio.to_thread(member.kill9)
    await asyncio.to_thread(let_pass, 1.5)
    member.start()
    await go_on()
    is_over = True
    await asyncio.gather(*producers)
    found: list[str] = []
    ask = {"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 600}
    while messages := (await sqs.receive_message(**ask)).get("Messages"):
        found += [message["Body"] for message in messages]
    assert sorted(found) == sorted(sent)


async def test_sends_to_a_group_stay_in_order_while_the_server_is_gone(cluster: Cluster, patient: Patient) -> None:
    member = cluster["n1"]
    sqs = patient(f"http://127.0.0.1:{member.port}")
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = (await sqs.create_queue(QueueName=f"order-{uuid4().hex}.fifo", Attributes=attributes))["QueueUrl"]
    await asyncio.to_thread(member.kill9)

    async def put(number: int) -> None:
        if number % 2:
            await sqs.send_message(QueueUrl=url, MessageBody=str(number), MessageGroupId="g")
        else:
            entries = [{"Id": "a", "MessageBody": str(number), "MessageGroupId": "g"}]
            await sqs.send_message_batch(QueueUrl=url, Entries=entries)

    tasks = [asyncio.create_task(put(number)) for number in range(9)]
    await asyncio.to_thread(let_pass, 0.5)
    assert not any(task.done() for task in tasks)
    member.start()
    await asyncio.gather(*tasks)
    messages = (await sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10))["Messages"]
    assert [message["Body"] for message in messages] == [str(number) for number in range(9)]


async def test_other_members_are_learnt_and_stay_known(tmp_path: Path) -> None:
    """First the member dies whose addresses were given, and later, when it is back, another one."""
    cluster = Cluster(tmp_path, 3)
    try:
        await asyncio.to_thread(cluster.start)
        known = cluster["n1"]
        sqs = of_coroutines(f"http://127.0.0.1:{known.port}", admin=[NOBODY, f"http://127.0.0.1:{known.admin_port}"])
        url = (await sqs.create_queue(QueueName="learnt"))["QueueUrl"]
        sent: list[str] = []
        for name in ("n1", "n2"):
            await asyncio.to_thread(cluster[name].kill9)
            made = await asyncio.gather(*(sqs.send_message(QueueUrl=url, MessageBody="b") for _ in range(10)))
            sent += [each["MessageId"] for each in made]
            cluster[name].start()
            await asyncio.to_thread(cluster.wait_ready)
        found: list[str] = []
        while len(found) < len(sent):
            got = await sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=20, VisibilityTimeout=600
            )
            found += [message["MessageId"] for message in got.get("Messages", ())]
        assert sorted(found) == sorted(sent)
    finally:
        await asyncio.to_thread(cluster.end)
