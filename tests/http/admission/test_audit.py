"""Who deleted or purged a queue is logged once, with the caller, whichever way the request took."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.desk import Desk, chunked, form_request, json_request, until

URL = "http://127.0.0.1:9324/000000000000/jobs"
CREDENTIAL = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append((record.levelno, record.getMessage()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("elasticq.audit")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def with_queue() -> Desk:
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}))
    return desk


@pytest.mark.parametrize("is_slow_path", [False, True])
@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("PurgeQueue", "queue_purged: The queue 000000000000/jobs was purged by"),
        ("DeleteQueue", "queue_deleted: The queue 000000000000/jobs was deleted by"),
    ],
)
async def test_purge_and_delete_are_told_with_their_caller(
    lines: Lines, action: str, told: str, is_slow_path: bool
) -> None:
    desk = await with_queue()
    request = json_request(action, {"QueueUrl": URL}, f"Authorization: {CREDENTIAL}")
    answer = await desk.ask(chunked(request) if is_slow_path else request)
    assert answer.status == 200
    assert lines.told == [(logging.INFO, f"{told} AKIDEXAMPLE of account 000000000000 from 127.0.0.1.")]
    await desk.close()


async def test_unsigned_form_is_told_as_anonymous(lines: Lines) -> None:
    desk = await with_queue()
    assert (await desk.ask(form_request(f"Action=PurgeQueue&QueueUrl={URL}"))).status == 200
    text = "queue_purged: The queue 000000000000/jobs was purged by anonymous of account 000000000000 from 127.0.0.1."
    assert lines.told == [(logging.INFO, text)]
    await desk.close()


async def test_other_actions_and_failures_are_not_told(lines: Lines) -> None:
    desk = await with_queue()
    await desk.ask(json_request("SendMessage", {"QueueUrl": URL, "MessageBody": "x"}))
    await desk.ask(json_request("ListQueues", {}))
    for request in (
        json_request("DeleteQueue", {"QueueUrl": URL + "x"}),
        chunked(json_request("PurgeQueue", {"QueueUrl": URL + "x"})),
    ):
        assert (await desk.ask(request)).status == 400
    assert lines.told == []
    await desk.close()


async def test_client_that_left_before_its_answer_is_told_too(lines: Lines) -> None:
    desk = await with_queue()
    submitted: list[tuple[Any, Any]] = []
    protocol, line = desk.connect("10.0.0.7")
    protocol.submit_by(lambda call, ticket: submitted.append((call, ticket)))
    protocol.data_received(json_request("DeleteQueue", {"QueueUrl": URL}))
    await until(lambda: bool(submitted))
    line.close()
    desk.runtime.submit(*submitted[0])
    assert [text.rpartition(" from ")[2] for _, text in lines.told] == ["10.0.0.7."]
    await desk.close()
