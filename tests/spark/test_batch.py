"""Queues read as frames: a look that changes nothing, or a receive."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from elasticq.spark import ack
from elasticq.spark.batch import ending_count
from elasticq.spark.options import OptionError
from tests.spark.servers import Server


def test_an_ending_is_a_word_or_a_count() -> None:
    assert [ending_count(word) for word in ("empty", "snapshot", "count:5")] == [None, None, 5]
    for word in ("count:0", "count:", "five", "empty:1"):
        with pytest.raises(OptionError, match="endingMode"):
            ending_count(word)


@pytest.mark.spark
def test_a_look_at_a_queue_changes_nothing(spark: Any, elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(1_200)])
    with elasticq_server.sqs() as sqs:
        sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=5, VisibilityTimeout=3_600)
        sqs.send_message(QueueUrl=url, MessageBody="late", DelaySeconds=600)
    frame = spark.read.format("sqs").schema(
        "body string, receiveCount int, firstReceiveTimestamp timestamp, state string"
    )
    rows = frame.load(url).collect()
    assert Counter(row.body for row in rows) == Counter(["late", *map(str, range(1_200))])
    assert Counter(row.state for row in rows) == {"visible": 1_195, "inflight": 5, "delayed": 1}
    assert {(row.receiveCount, row.firstReceiveTimestamp is None) for row in rows} == {(0, True), (1, False)}
    assert elasticq_server.counts(url) == (1_195, 5)


@pytest.mark.spark
def test_a_look_with_filters_sees_what_spark_would_see(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server, ".fifo", ContentBasedDeduplication="true")
    for group in ("a", "b"):
        elasticq_server.fill(url, [f"{group}{number}" for number in range(5)], MessageGroupId=group)
    wanted = "messageGroupId = 'b' and sentTimestamp > timestamp'2020-01-01' and body <> 'b0'"
    before = spark.conf.get("spark.sql.python.filterPushdown.enabled")
    try:
        for pushed in ("true", "false"):
            spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
            rows = spark.read.format("sqs").load(url).where(wanted).collect()
            assert sorted(row.body for row in rows) == ["b1", "b2", "b3", "b4"]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", before)


@pytest.mark.spark
def test_a_receive_hides_messages_until_they_are_acknowledged(
    spark: Any, moto_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(moto_server)
    moto_server.fill(url, ["a", "b", "c"])
    reader = spark.read.format("sqs").options(ackMode="none", partitions=2, waitTimeSeconds=0, visibilityTimeout="10m")
    frame = reader.load(url).persist()
    try:
        assert sorted(row.body for row in frame.collect()) == ["a", "b", "c"]
        assert moto_server.counts(url) == (0, 3)
        ack(frame, endpoint=moto_server.endpoint).collect()
    finally:
        frame.unpersist()
    assert moto_server.counts(url) == (0, 0)


@pytest.mark.spark
def test_a_receive_may_end_by_count(spark: Any, elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(30)])
    reader = spark.read.format("sqs").options(ackMode="onRead", endingMode="count:12", partitions=2)
    assert len(reader.load(url).collect()) == 12
    assert elasticq_server.counts(url) == (18, 0)


@pytest.mark.spark
def test_a_missing_queue_is_named(spark: Any, elasticq_server: Server) -> None:
    with pytest.raises(Exception, match="queue 'nobody' does not exist at http://127"):
        spark.read.format("sqs").options(queueName="nobody", endpoint=elasticq_server.endpoint).load().collect()
