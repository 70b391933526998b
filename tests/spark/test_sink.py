"""Frames and streams written to queues of ours and of moto, by real Spark."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.spark.servers import Server

pytestmark = pytest.mark.spark
ATTRIBUTES = "map<string,struct<type:string,string:string,binary:binary>>"


def write(frame: Any, queue_url: str, **options: str) -> None:
    frame.write.format("sqs").mode("append").options(**options).save(queue_url)


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


@pytest.mark.parametrize("client", ["boto3", "light"])
def test_a_frame_becomes_messages_once_each(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], client: str
) -> None:
    url = make_queue(elasticq_server)
    write(spark.range(205).repartition(2).selectExpr("cast(id as string) body"), url, client=client)
    assert Counter(bodies(elasticq_server.drain(url))) == Counter(map(str, range(205)))


def test_attributes_and_delay_arrive_on_moto(spark: Any, moto_server: Server, make_queue: Callable[..., str]) -> None:
    url = make_queue(moto_server)
    picture = {"picture": {"type": "Binary.png", "string": None, "binary": bytearray(b"\x00\xff")}}
    rows = [("ä", {"colour": {"type": "String", "string": "grün", "binary": None}} | picture, 0), ("late", None, 900)]
    write(spark.createDataFrame(rows, f"value string, attributes {ATTRIBUTES}, delaySeconds int"), url)
    (message,) = moto_server.drain(url)
    assert message["Body"] == "ä"
    assert message["MessageAttributes"]["colour"] == {"DataType": "String", "StringValue": "grün"}
    assert message["MessageAttributes"]["picture"] == {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"}


@pytest.mark.parametrize("kind", ["timestamp", "long"])
def test_rows_say_how_urgent_they_are_and_when_they_come(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], kind: str
) -> None:
    url = make_queue(elasticq_server, ElasticqOrder="priority", ElasticqDefaultPriority="3")
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    times = {"never": None, "later": later, "past": later - timedelta(days=1)}
    given = {
        name: time and (time if kind == "timestamp" else int(time.timestamp() * 1_000)) for name, time in times.items()
    }
    rows = [
        ("usual", None, given["never"]),
        ("late", -(2**63), given["later"]),
        ("last", 2**63 - 1, given["past"]),
        ("first", -7, given["never"]),
    ]
    write(spark.createDataFrame(rows, f"body string, priority long, deliver_at {kind}").coalesce(1), url)
    assert bodies(elasticq_server.drain(url)) == ["first", "usual", "last"], "lower numbers come first"
    with elasticq_server.sqs() as sqs:
        (left,) = sqs.peek(QueueUrl=url)["Messages"]
    assert (left["Body"], left["State"], left["Priority"]) == ("late", "delayed", -(2**63))
    assert left["DeliverAt"] == int(later.timestamp() * 1_000)


def test_a_fifo_queue_keeps_the_order_of_groups_and_equal_bodies(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server, ".fifo")
    frame = spark.range(60).selectExpr("concat('g', id % 3) messageGroupId", "cast(id div 6 as string) body")
    frame = frame.coalesce(1)
    write(frame, url, writeId="backfill")
    write(frame, url, writeId="backfill")  # the same task again: every message is known
    groups: dict[str, list[str]] = {}
    for message in elasticq_server.drain(url):
        groups.setdefault(message["Attributes"]["MessageGroupId"], []).append(message["Body"])
    assert groups == {f"g{n}": [str(i // 6) for i in range(60) if i % 3 == n] for n in range(3)}


def test_a_standard_queue_with_a_window_knows_a_write_that_runs_again(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    url = make_queue(elasticq_server, ElasticqIdempotencyWindow="300")
    frame = spark.range(30).selectExpr("cast(id % 10 as string) body").coalesce(1)
    for _ in range(2):
        write(frame, url, writeId="twice")
    assert sorted(bodies(elasticq_server.drain(url))) == sorted(str(n % 10) for n in range(30))


def test_rows_name_their_queues_and_what_cannot_be_sent_is_in_the_rejects(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], tmp_path: Path
) -> None:
    one, other = make_queue(elasticq_server), make_queue(elasticq_server)
    name = other.rpartition("/")[2]
    rows = [("a", one), ("b", name), ("\x01", one), (None, one), ("c", "nowhere"), ("d", one)]
    frame = spark.createDataFrame(rows, "body string, queue string").coalesce(1)
    frame.write.format("sqs").mode("append").options(
        endpoint=elasticq_server.endpoint, rejectPath=str(tmp_path / "rejects")
    ).save()
    assert bodies(elasticq_server.drain(one)) == ["a", "d"]
    assert bodies(elasticq_server.drain(other)) == ["b"]
    lines = [json.loads(line) for file in (tmp_path / "rejects").glob("*") for line in file.read_text().splitlines()]
    rejected = {line["row"]["body"]: (line["error"], line["message"]) for line in lines}
    assert rejected.keys() == {"\x01", None, "c"}
    assert rejected["\x01"][0] == "InvalidMessageContents"
    assert "NonExistentQueue" in rejected["c"][1]


def test_rows_of_a_fifo_queue_go_to_a_standard_queue(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    fifo, standard = make_queue(elasticq_server, ".fifo"), make_queue(elasticq_server)
    write(spark.createDataFrame([("a", "g")], "body string, messageGroupId string"), fifo)
    write(spark.read.format("sqs").load(fifo), standard)
    assert bodies(elasticq_server.drain(standard)) == ["a"]


def test_a_message_that_cannot_be_sent_fails_the_write_when_there_is_no_reject_path(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    frame = spark.createDataFrame([("\x01",)], "body string")
    with pytest.raises(Exception, match="cannot be sent: InvalidMessageContents"):
        write(frame, make_queue(elasticq_server))


def test_a_stream_sends_each_row_once_though_its_last_batch_runs_again(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], tmp_path: Path
) -> None:
    url = make_queue(elasticq_server, ".fifo")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    rows = [{"body": f"{n % 40}", "messageGroupId": f"g{n % 2}"} for n in range(80)]
    source.mkdir()
    (source / "rows.json").write_text("\n".join(map(json.dumps, rows)))

    def run() -> None:
        frame = spark.readStream.schema("body string, messageGroupId string").json(str(source))
        stream = frame.writeStream.format("sqs").option("checkpointLocation", str(checkpoint))
        query = stream.trigger(availableNow=True).outputMode("append").queryName("to_sqs").start(url)
        query.awaitTermination()
        assert query.exception() is None

    run()
    # As if the driver had died between the sink and the commit log.
    for commit in (checkpoint / "commits").glob("*0*"):
        commit.unlink()
    run()
    assert sorted(bodies(elasticq_server.drain(url))) == sorted(row["body"] for row in rows)


@pytest.mark.parametrize(
    ("columns", "queue", "options", "said"),
    [
        ("1 as number", "known", {}, "one column body or value is needed"),
        ("'a' as body, 1 as number", "known", {}, "column number has no meaning"),
        ("1 as body", "known", {}, "column body must be a string, not int"),
        ("'a' as body", "missing", {}, "NonExistentQueue"),
        ("'a' as body", "known.fifo", {}, "FIFO queue needs a column or an option messageGroupId"),
        ("'a' as body", "known", {"rejectpaht": "x"}, "did you mean rejectPath"),
        ("'a' as body", "known", {"queuePrefix": "x"}, "one of queueUrl, queueName and queuePrefix"),
    ],
)
def test_what_cannot_work_is_told_by_the_driver(
    spark: Any,
    elasticq_server: Server,
    make_queue: Callable[..., str],
    columns: str,
    queue: str,
    options: dict[str, str],
    said: str,
) -> None:
    url = make_queue(elasticq_server, ".fifo" if queue.endswith(".fifo") else "")
    with pytest.raises(Exception, match=said):
        write(spark.sql(f"select {columns}"), url + ("-missing" if queue == "missing" else ""), **options)
