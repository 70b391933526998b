"""What is counted of requests."""

from time import perf_counter

import pytest

from elasticq.model.commands import Command, DeleteMessage, DeleteMessageBatch, DeleteQueue, ReceiveMessage, SendMessage
from elasticq.model.commands import SendMessageBatch as Batch
from elasticq.model.group_commands import ElasticqHeartbeat
from elasticq.model.results import (
    BatchResult,
    EmptyResult,
    ReceivedMessage,
    ReceiveMessageResult,
    SendMessageBatchResult,
    SentEntry,
)
from elasticq.model.topic_commands import DeleteTopic, Publish, PublishBatch
from elasticq.model.topic_results import PublishBatchResult, PublishCounts, PublishedEntry, PublishResult, TopicDone
from elasticq.runtime import meter as meters
from elasticq.runtime.meter import Meter
from elasticq.wire.operations import OPERATIONS, SNS

URL = "http://127.0.0.1:9324/000000000000/orders"
KEY = ("000000000000", "orders")


def count(meter: Meter, command: Command, result: object, *, took_s: float = 0.0, account: str = KEY[0]) -> bool:
    return meter.counts[type(command).__name__](command, account, result, perf_counter() - took_s)


def test_messages_are_counted_by_queue_however_its_url_is_written() -> None:
    meter = Meter(OPERATIONS)
    two = ReceiveMessageResult([ReceivedMessage("a", "h", "x"), ReceivedMessage("b", "h", "x")])
    for url in (URL, "https://other/000000000000/orders/", "orders", "orders"):
        count(meter, SendMessage(queue_url=url), EmptyResult())
    sent = SendMessageBatchResult([SentEntry("1", 0, "m"), SentEntry("2", 1, "m")])
    count(meter, Batch(queue_url=URL), sent)
    count(meter, ReceiveMessage(queue_url=URL), two)
    count(meter, ReceiveMessage(queue_url=URL), ReceiveMessageResult())
    count(meter, DeleteMessage(queue_url=URL), EmptyResult())
    count(meter, DeleteMessageBatch(queue_url=URL), BatchResult(["1", "2", "3"]))
    [(key, found)] = meter.by_queue().items()
    assert key == KEY
    assert (found.sent, found.received, found.empty, found.deleted) == (6, 2, 1, 4)


def test_a_bare_name_is_the_callers_queue() -> None:
    meter = Meter(OPERATIONS)
    count(meter, SendMessage(queue_url="orders"), EmptyResult(), account="111111111111")
    count(meter, SendMessage(queue_url="orders"), EmptyResult(), account="222222222222")
    assert {key: found.sent for key, found in meter.by_queue().items()} == {
        ("111111111111", "orders"): 1,
        ("222222222222", "orders"): 1,
    }


@pytest.mark.parametrize(
    ("command", "result"),
    [
        (SendMessage(queue_url=URL), EmptyResult()),
        (DeleteMessage(queue_url=URL), EmptyResult()),
        (ReceiveMessage(queue_url=URL, wait_time_seconds=0), ReceiveMessageResult()),
        (Batch(queue_url=URL), SendMessageBatchResult()),
        (DeleteMessageBatch(queue_url=URL), BatchResult()),
    ],
)
def test_every_call_is_in_the_histogram_once_and_slow_ones_are_told(command: Command, result: object) -> None:
    meter = Meter(OPERATIONS)
    assert not count(meter, command, result)
    assert not count(meter, command, result, took_s=0.5)
    assert count(meter, command, result, took_s=1.5)
    times = meter.read()[type(command).__name__]
    assert sum(times.counts) == 3
    assert times.counts[0] <= 1
    assert times.sum == pytest.approx(2.0, abs=0.3)


def test_a_long_poll_may_take_as_long_as_it_waits() -> None:
    meter = Meter(OPERATIONS)
    assert not count(meter, ReceiveMessage(queue_url=URL, wait_time_seconds=10), ReceiveMessageResult(), took_s=10.5)
    assert count(meter, ReceiveMessage(queue_url=URL, wait_time_seconds=10), ReceiveMessageResult(), took_s=11.5)
    assert not count(meter, ReceiveMessage(queue_url=URL), ReceiveMessageResult(), took_s=20.5)


@pytest.mark.pure
def test_urls_and_queues_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "QUEUES_MAX", 4)
    monkeypatch.setattr(meters, "SPELLINGS_MAX", 3)
    meter = Meter(OPERATIONS)
    for number in range(10):
        for host in range(5):
            count(meter, SendMessage(queue_url=f"http://host{host}/000000000000/queue-{number}"), EmptyResult())
    counted = {name: found.sent for (_, name), found in meter.by_queue().items()}
    assert counted == {"queue-0": 5, "queue-1": 5, "queue-2": 5, "queue-3": 5, "": 30}
    meter.forget(lambda key: key[1] == "queue-2")
    assert list(meter.by_queue()) == [("000000000000", "queue-2")]
    count(meter, SendMessage(queue_url="http://host0/000000000000/queue-9"), EmptyResult())
    assert meter.by_queue()[("000000000000", "queue-9")].sent == 1


def test_a_queue_that_is_deleted_counts_no_more_and_anew_when_it_is_made_again() -> None:
    meter = Meter(OPERATIONS)
    spellings = [URL, URL.replace("http", "https")]
    for url in [*spellings, *spellings]:
        count(meter, SendMessage(queue_url=url), EmptyResult())
    assert [found.sent for found in meter.by_queue().values()] == [4]
    count(meter, DeleteQueue(queue_url=spellings[1]), EmptyResult())
    assert meter.by_queue() == {}
    count(meter, SendMessage(queue_url=URL), EmptyResult())
    assert [found.sent for found in meter.by_queue().values()] == [1]


def test_publishes_are_counted_by_topic_until_it_is_deleted() -> None:
    meter = Meter([*OPERATIONS, *SNS.operations])
    arn = "arn:aws:sns:us-east-1:000000000000:news"
    counts = PublishCounts(delivered=3, dead_lettered=1, filtered=2, failed=4)
    count(meter, Publish(topic_arn=arn), PublishResult("m", counts=counts))
    count(meter, Publish(target_arn=arn), PublishResult("m"))
    batch = PublishBatchResult([PublishedEntry("1", "m"), PublishedEntry("2", "m")], counts=PublishCounts(filtered=1))
    count(meter, PublishBatch(topic_arn=arn), batch)
    [(key, found)] = meter.by_topic().items()
    assert key == ("000000000000", "news")
    assert (found.published, found.delivered, found.filtered, found.failed) == (4, 4, 3, 5)
    count(meter, DeleteTopic(topic_arn=arn), TopicDone())
    assert meter.by_topic() == {}


def test_a_heartbeat_of_a_healthy_consumer_is_not_slow() -> None:
    meter = Meter([*OPERATIONS])
    view = EmptyResult()
    assert not count(meter, ElasticqHeartbeat(wait_time_seconds=10), view, took_s=10.5)
    assert count(meter, ElasticqHeartbeat(wait_time_seconds=10), view, took_s=11.5)
    assert count(meter, ElasticqHeartbeat(), view, took_s=1.5)
