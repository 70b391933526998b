"""The versions of PySpark: one sentence says what an older one lacks."""

import tempfile
from collections.abc import Callable
from typing import Any

import pyspark
import pytest

from elasticq.client import Sqs
from elasticq.spark import register
from elasticq.spark.options import OptionError
from elasticq.spark.versions import FORMAT, STREAMS, need
from tests.spark.servers import Server


def test_this_version_has_all() -> None:
    need(STREAMS, "reading a stream")


@pytest.mark.parametrize(
    ("version", "said"),
    [("4.1.4", "this is 4.1.4, on which writing, batch reads, consume and foreachPartition work"), ("3.5.9", "3.5.9")],
)
def test_an_older_version_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(OptionError, match=said):
        need(STREAMS, "reading a stream")
    with pytest.raises(OptionError, match=r"needs PySpark 9\.0 or newer"):
        need((9, 0), "reading")
    if version == "4.1.4":
        need(FORMAT, "writing")


@pytest.mark.spark
def test_spark_itself_refuses_what_this_version_lacks(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server)
    calls: list[tuple[tuple[int, int], Callable[[], object]]] = [
        (FORMAT, lambda: register(spark)),
        (FORMAT, lambda: spark.range(1).selectExpr("'a' body").write.format("sqs").mode("append").save(url)),
        (FORMAT, lambda: spark.read.format("sqs").load(url).collect()),
        (STREAMS, lambda: one_batch(spark.readStream.format("sqs").load(url).writeStream.format("noop"))),
    ]
    version = tuple(map(int, pyspark.__version__.split(".")[:2]))
    # Spark 3 has no data sources in Python, so nothing of ours runs there unless it is called.
    for needed, call in calls if version >= (4, 0) else calls[:1]:
        if version >= needed:
            call()
        else:
            with pytest.raises(Exception, match="needs PySpark"):
                call()


def one_batch(stream: Any) -> None:
    with tempfile.TemporaryDirectory() as checkpoint:
        query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()


@pytest.mark.spark
def test_each_partition_can_send(spark: Any, elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url, endpoint = make_queue(elasticq_server), elasticq_server.endpoint

    def send(rows: Any) -> None:
        with Sqs(endpoint, "us-east-1") as sqs:
            for row in rows:
                sqs.send_message(QueueUrl=url, MessageBody=str(row.id))

    spark.range(20).repartition(2).foreachPartition(send)
    assert sorted(int(message["Body"]) for message in elasticq_server.drain(url)) == list(range(20))
