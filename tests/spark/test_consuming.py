"""``consume``: the loop of a task against a server without Spark, and the whole of it on real Spark."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from elasticq.client import Sqs
from elasticq.spark import ack, consume
from elasticq.spark.clients import connect
from elasticq.spark.consuming import Consume, Task, TaskCounts, Until, Work, settings_of
from elasticq.spark.options import OptionError
from elasticq.spark.pages import pages_for
from tests.spark.servers import Server

PATIENCE_S = 60


def run_task(url: str, fn: Callable[[dict[str, Any]], object], until: str = "empty", **options: Any) -> TaskCounts:
    settings: Consume = settings_of(url, options)
    return Work(settings, url, fn, Until.parse(until), 1).run(0)


@pytest.mark.parametrize("client", ["boto3", "light"])
@pytest.mark.parametrize("prefetch", ["true", "false"])
def test_each_message_is_handled_and_deleted(
    elasticq_server: Server, make_queue: Callable[..., str], client: str, prefetch: str
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(95)])
    seen: list[str] = []
    counts = run_task(url, lambda message: seen.append(message["Body"]), client=client, prefetch=prefetch)
    assert sorted(map(int, seen)) == list(range(95))
    assert (counts.received, counts.processed, counts.deleted, counts.failed) == (95, 95, 95, 0)
    assert elasticq_server.counts(url) == (0, 0)


def test_the_light_client_takes_and_deletes_larger_pages(
    elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(1_000)])
    calls = dict.fromkeys(("light", "boto3"), 0)
    for client in calls:
        counts = run_task(url, lambda message: None, client=client, until="count:500")
        assert counts.deleted == 500
        calls[client] = counts.calls
    assert calls["boto3"] == 100
    assert calls["light"] <= 10


def test_what_failed_is_given_back_at_once_and_tried_once_in_a_task(
    elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server, VisibilityTimeout="600")
    elasticq_server.fill(url, [str(number) for number in range(30)])
    tried: list[str] = []

    def fail_on_7(message: dict[str, Any]) -> None:
        tried.append(message["Body"])
        if message["Body"] == "7":
            raise ValueError("I do not like 7")

    counts = run_task(url, fail_on_7)
    assert tried.count("7") == 1
    assert (counts.processed, counts.failed, counts.deleted) == (29, 1, 29)
    assert counts.first_error == "ValueError: I do not like 7"
    assert elasticq_server.counts(url) == (1, 0)


def test_a_failed_message_of_a_fifo_queue_takes_the_rest_of_its_group_along(
    elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server, ".fifo", ContentBasedDeduplication="true")
    elasticq_server.fill(url, ["a1", "a2", "a3"], MessageGroupId="a")
    elasticq_server.fill(url, ["b1", "b2", "b3"], MessageGroupId="b")
    seen: list[str] = []

    def fail_on_a2(message: dict[str, Any]) -> None:
        seen.append(message["Body"])
        if message["Body"] == "a2":
            raise ValueError

    run_task(url, fail_on_a2)
    assert [body for body in seen if body.startswith("a")] == ["a1", "a2"]
    assert [body for body in seen if body.startswith("b")] == ["b1", "b2", "b3"]
    assert [message["Body"] for message in elasticq_server.drain(url)] == ["a2", "a3"]


def test_a_slow_function_keeps_its_messages_by_heartbeats(
    elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["slow", "behind it"])
    others: list[Any] = []

    def as_slow_as_two_timeouts(message: dict[str, Any]) -> None:
        with Sqs(elasticq_server.endpoint, "us-east-1") as sqs:
            others.append(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2).get("Messages"))

    counts = run_task(url, as_slow_as_two_timeouts, visibility_timeout=1)
    assert others == [None, None]
    assert counts.renewed > 0
    assert counts.deleted == 2


class Flaky:
    """A client whose renewals fail until they have been tried twice."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.renewals = 0
        self.renewed = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def change_message_visibility_batch(self, **members: Any) -> Any:
        self.renewals += 1
        if self.renewals <= 2:
            from elasticq.client import Unreachable

            raise Unreachable("not now")
        answer = self._client.change_message_visibility_batch(**members)
        self.renewed.set()
        return answer


def test_a_heartbeat_that_fails_is_tried_again(elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a"])
    settings = settings_of(url, {"visibilityTimeout": "3"})
    flaky = Flaky(connect(settings.connection))
    work = Work(settings, url, lambda message: flaky.renewed.wait(PATIENCE_S), Until(), 1)
    counts = Task(work, flaky, pages_for(settings.connection), 0, Until(), 0).run()
    assert flaky.renewals >= 3
    assert counts.deleted == 1


def test_until_a_count_is_shared_and_a_deadline_ends_all() -> None:
    assert [Until.parse("count:10").share(number, 3).count for number in range(3)] == [4, 3, 3]
    assert Until.parse(datetime(2030, 1, 1, tzinfo=UTC)) == Until(False, None, 1_893_456_000.0)
    for wrong in ("full", "count:x", "seconds:"):
        with pytest.raises(OptionError, match="is not empty, count:N, seconds:S or a datetime"):
            Until.parse(wrong)


def test_a_deadline_that_has_passed_receives_nothing(elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a"])
    assert run_task(url, lambda message: None, until="seconds:-1").calls == 0


@pytest.mark.spark
def test_two_tasks_empty_a_queue_and_tell_their_counts(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url, out = make_queue(elasticq_server), make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(300)])
    endpoint = elasticq_server.endpoint

    def forward(message: dict[str, Any]) -> None:
        body = message["Body"]
        if body == "13":
            raise RuntimeError("unlucky")
        Sqs(endpoint, "us-east-1").send_message(QueueUrl=out, MessageBody=body)

    counts = consume(spark, url.rpartition("/")[2], forward, partitions=2, endpoint=endpoint)
    rows = counts.orderBy("partition").collect()
    assert [row.partition for row in rows] == [0, 1]
    assert sum(row.processed for row in rows) == sum(row.deleted for row in rows) == 299
    assert {row.firstError for row in rows} <= {None, "RuntimeError: unlucky"}
    assert sorted(int(message["Body"]) for message in elasticq_server.drain(out)) == [n for n in range(300) if n != 13]
    assert elasticq_server.counts(url) == (1, 0)


@pytest.mark.spark
def test_consume_takes_from_any_sqs(spark: Any, moto_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(moto_server)
    moto_server.fill(url, list("abcdefghijklmno"))
    (row,) = consume(spark, url, lambda message: None, partitions=1).collect()
    assert (row.received, row.deleted) == (15, 15)


@pytest.mark.spark
def test_a_missing_queue_is_told_by_the_driver(spark: Any, elasticq_server: Server) -> None:
    with pytest.raises(OptionError, match="NonExistentQueue"):
        consume(spark, "missing", lambda message: None, endpoint=elasticq_server.endpoint)


@pytest.mark.spark
def test_ack_deletes_what_a_frame_names(spark: Any, elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, list("abcde"))
    with elasticq_server.sqs() as sqs:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    rows = [(url, message["ReceiptHandle"]) for message in messages if message["Body"] != "c"]
    frame = spark.createDataFrame([*rows, (url, "no handle")], "queue string, receiptHandle string")
    counts = ack(frame, endpoint=elasticq_server.endpoint).groupBy().sum("deleted", "failed").first()
    assert tuple(counts) == (4, 1)
    assert elasticq_server.counts(url) == (0, 1)
