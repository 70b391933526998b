"""Which requests are told of, and what is told of them."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from elasticq.http.admission import request_log as watches
from elasticq.http.admission.request_log import RequestLog, Seen, queue_of
from elasticq.model.commands import CreateQueue, ListQueues, SendMessage
from elasticq.model.limits import RELAXED
from elasticq.runtime.meter import Meter
from elasticq.wire.operations import OPERATIONS
from tests.http.desk import QUEUE_URL, Desk, chunked, form_request, json_request

SEND = {"QueueUrl": QUEUE_URL, "MessageBody": "canary"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append((record.getMessage(), record.__dict__["fields"]))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("elasticq.requests")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)  # not by the attribute: what is enabled is remembered
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def open_desk(request_log: RequestLog, slow_s: float = 1.0) -> Desk:
    """With the queue; what watches comes afterwards."""
    desk = Desk()
    await desk.ask(json_request("CreateQueue", {"QueueName": "orders"}))
    desk.context.request_log, desk.context.meter = request_log, Meter(OPERATIONS, slow_s)
    return desk


@pytest.mark.parametrize("is_slow_path", [False, True])
async def test_a_failed_request_is_told_with_its_id_and_its_queue(lines: Lines, is_slow_path: bool) -> None:
    desk = await open_desk(RequestLog("failed"))
    wrong = json_request("SendMessage", SEND | {"QueueUrl": QUEUE_URL + "x"})
    answer = await desk.ask(chunked(wrong) if is_slow_path else wrong)
    await desk.ask(json_request("SendMessage", SEND))
    [(event, fields)] = lines.told
    assert event == "request"
    assert fields.pop("duration_ms") >= 0
    assert fields == {
        "request_id": answer.headers["x-amzn-requestid"],
        "action": "SendMessage",
        "account": "000000000000",
        "queue": "000000000000/ordersx",
        "status": 400,
        "code": "AWS.SimpleQueueService.NonExistentQueue",
    }
    assert desk.context.meter.errors == {("SendMessage", "AWS.SimpleQueueService.NonExistentQueue"): 1}
    await desk.close()


@pytest.mark.parametrize(
    "broken", [json_request("SendMessage", b"{canary"), json_request("Canary", b"{}"), form_request("Action=Canary")]
)
async def test_what_could_not_be_read_is_told_without_its_words(lines: Lines, broken: bytes) -> None:
    desk = await open_desk(RequestLog("failed"))
    await desk.ask(broken)
    [(_, fields)] = lines.told
    assert "canary" not in str(fields).lower()
    assert fields["queue"] == ""
    await desk.close()


@pytest.mark.parametrize("is_slow_path", [False, True])
async def test_an_access_log_has_every_request(lines: Lines, is_slow_path: bool) -> None:
    desk = await open_desk(RequestLog("all"))
    for request in (json_request("SendMessage", SEND), form_request("Action=ListQueues")):
        await desk.ask(chunked(request) if is_slow_path else request)
    assert [(fields["action"], fields["code"], fields["queue"]) for _, fields in lines.told] == [
        ("SendMessage", "OK", "000000000000/orders"),
        ("ListQueues", "OK", ""),
    ]
    await desk.close()


async def test_a_slow_request_is_told_and_a_quick_one_is_not(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await open_desk(RequestLog("failed"))
    await desk.ask(json_request("SendMessage", SEND))
    assert lines.told == []
    monkeypatch.setitem(desk.context.meter.counts, "SendMessage", lambda *_: True)
    await desk.ask(json_request("SendMessage", SEND))
    [(_, fields)] = lines.told
    assert (fields["status"], fields["code"]) == (200, "OK")
    await desk.close()


async def test_nothing_is_told_where_nobody_asks(lines: Lines) -> None:
    desk = await open_desk(RequestLog("off"))
    await desk.ask(json_request("SendMessage", SEND | {"QueueUrl": "none"}))
    assert lines.told == []
    await desk.close()


async def test_lines_of_a_second_are_bounded_and_the_rest_is_a_number(lines: Lines) -> None:
    request_log = RequestLog("failed")
    desk = await open_desk(request_log)
    for _ in range(watches.LINES_A_SECOND_MAX + 3):
        await desk.ask(json_request("SendMessage", SEND | {"QueueUrl": "none"}))
    assert len(lines.told) == watches.LINES_A_SECOND_MAX
    request_log.tick()
    assert lines.told[-1] == ("requests_not_logged", {"requests": 3})
    await desk.ask(json_request("SendMessage", SEND | {"QueueUrl": "none"}))
    assert lines.told[-1][0] == "request"
    await desk.close()


@pytest.mark.parametrize("is_slow_path", [False, True])
async def test_an_observer_gets_each_request_and_its_callers_trace(is_slow_path: bool) -> None:
    seen: list[Seen] = []
    desk = await open_desk(RequestLog("off", seen.append))
    request = json_request("SendMessage", SEND, f"TraceParent: {TRACE}", "X-Amzn-Trace-Id: Root=1-a-b", "X-Other: 1")
    await desk.ask(chunked(request) if is_slow_path else request)
    await desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL}))
    assert seen[0].parents == {"traceparent": TRACE, "x-amzn-trace-id": "Root=1-a-b"}
    assert [(each.action, each.parents != {}) for each in seen] == [("SendMessage", True), ("ReceiveMessage", False)]
    await desk.close()


async def test_a_long_poll_is_counted_when_it_is_answered() -> None:
    desk = await open_desk(RequestLog("off"))
    waiting = asyncio.create_task(
        desk.ask(json_request("ReceiveMessage", {"QueueUrl": QUEUE_URL, "WaitTimeSeconds": 5}))
    )
    await asyncio.sleep(0)
    assert desk.context.meter.by_queue() == {}
    await desk.ask(json_request("SendMessage", SEND))
    await waiting
    found = desk.context.meter.by_queue()[("000000000000", "orders")]
    assert (found.sent, found.received, found.empty) == (1, 1, 0)
    await desk.close()


def test_only_what_may_be_a_name_is_a_name() -> None:
    assert queue_of(CreateQueue(queue_name="jobs.fifo"), "000000000000") == "000000000000/jobs.fifo"
    assert queue_of(SendMessage(queue_url="http://h/111111111111/jobs"), "000000000000") == "111111111111/jobs"
    assert queue_of(SendMessage(queue_url="a secret!"), "000000000000") == ""
    assert queue_of(CreateQueue(queue_name="x" * 200), "000000000000") == ""
    assert queue_of(ListQueues(), "000000000000") == ""
    assert queue_of(None, "") == ""


async def test_an_unknown_attribute_that_was_ignored_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.node.journal.context.limits = RELAXED
    for name in ("jobs", "more"):
        request = json_request("CreateQueue", {"QueueName": name, "Attributes": {"QueueName": name}})
        assert (await desk.ask(request)).status == 200
        desk.pass_ms(2_000)
    told = [record for record in caplog.records if record.message == "unknown_attribute_ignored"]
    assert [record.__dict__["fields"] for record in told] == [{"attribute": "QueueName"}]
    await desk.close()
