"""Queues read as streams by real Spark: what was sent comes out once, and what Spark has committed is gone."""

import json
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.process import Server as Process
from tests.spark.servers import Server

pytestmark = pytest.mark.spark
WAIT_S = 120


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Callable[..., list[Any]]:
    """Runs a query over all that waits, from the checkpoint of the runs before; the rows of all runs."""

    def run(url: str, schema: str = "", **options: Any) -> list[Any]:
        reader = spark.readStream.format("sqs").options(**options)
        frame = (reader.schema(schema) if schema else reader).load(url)
        query = (
            frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(WAIT_S)
        return list(spark.read.parquet(str(tmp_path / "out")).collect())

    return run


def failure(run: Callable[[], object]) -> str:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - Spark's own classes differ from version to version
        run()
    return str(raised.value)


def test_a_stream_reads_each_message_once_and_leaves_nothing_in_flight(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(250)])
    rows = stream(url, maxMessagesPerTrigger=100, queryName="jobs", minPartitions=4)
    assert Counter(row.body for row in rows) == Counter(map(str, range(250)))
    assert {row.batch for row in rows} == {1, 2, 3}
    assert {row.partition for row in rows} == {0, 1, 2, 3}
    assert elasticq_server.counts(url) == (0, 0)


def test_a_query_that_starts_again_goes_on_with_another_client(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a", "b"])
    assert {row.body for row in stream(url, client="boto3", partitions=2)} == {"a", "b"}
    elasticq_server.fill(url, ["c"])
    assert Counter(row.body for row in stream(url)) == Counter("abc")
    assert elasticq_server.counts(url) == (0, 0)


@pytest.mark.parametrize("mode", ["wal", "driver"])
def test_a_write_ahead_log_serves_any_sqs(
    moto_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]], mode: str, tmp_path: Path
) -> None:
    url = make_queue(moto_server)
    moto_server.fill(
        url, ["a", "b", "c"], MessageAttributes={"raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
    )
    log = tmp_path / "log"
    rows = stream(url, mode=mode, walLocation=str(log), partitions=2, waitTimeSeconds=0)
    assert Counter(row.body for row in rows) == Counter("abc")
    assert {bytes(row.attributes["raw"]["binary"]) for row in rows} == {b"\x00\xff"}
    assert moto_server.counts(url) == (0, 0)
    assert [file.suffix for file in log.rglob("*.*")] == [".ids"]


def test_a_fifo_queue_keeps_the_order_of_its_groups(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server, ".fifo", ContentBasedDeduplication="true")
    for number in range(40):
        elasticq_server.fill(url, [f"{number:02d}"], MessageGroupId=f"g{number % 4}")
    rows = stream(url, maxMessagesPerTrigger=16)
    assert Counter(row.batch for row in rows) == {1: 16, 2: 16, 3: 8}
    groups: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row.batch, int(row.sequenceNumber))):
        groups.setdefault(row.messageGroupId, []).append(row.body)
    assert groups == {f"g{n}": [f"{i:02d}" for i in range(40) if i % 4 == n] for n in range(4)}
    assert elasticq_server.counts(url) == (0, 0)


def test_json_bodies_are_columns_and_bad_ones_go_where_they_are_told(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url, bad = make_queue(elasticq_server), make_queue(elasticq_server)
    colour = {"colour": {"DataType": "String", "StringValue": "red"}}
    elasticq_server.fill(url, ['{"id": 1, "name": "one"}', "{", '{"id": "x"}'], MessageAttributes=colour)
    rows = stream(
        url, "id bigint, name string, queue string", valueFormat="json", onParseError="deadletter", deadLetterQueue=bad
    )
    assert [(row.id, row.name, row.queue) for row in rows] == [(1, "one", url.rpartition("/")[2])]
    dead = elasticq_server.drain(bad)
    assert {message["Body"] for message in dead} == {"{", '{"id": "x"}'}
    assert all("message " in message["MessageAttributes"].pop("reason")["StringValue"] for message in dead)
    assert [message["MessageAttributes"].pop("source")["StringValue"] for message in dead] == [url, url]
    assert [message["MessageAttributes"] for message in dead] == [colour, colour]
    assert elasticq_server.counts(url) == (0, 0)


def test_a_bad_body_fails_the_query_and_stays_in_the_queue(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["{"])
    said = failure(lambda: stream(url, "id bigint", valueFormat="json"))
    assert "the body is no JSON" in said
    assert "see option onParseError" in said
    assert sum(elasticq_server.counts(url)) == 1


def test_several_queues_are_one_stream(
    elasticq_server: Server, stream: Callable[..., list[Any]], tmp_path: Path, spark: Any
) -> None:
    with elasticq_server.sqs() as sqs:
        urls = [sqs.create_queue(QueueName=f"many-{name}")["QueueUrl"] for name in ("a", "b")]
    for url in urls:
        elasticq_server.fill(url, [url.rpartition("/")[2]] * 3)
    frame = spark.readStream.format("sqs").options(queuePrefix="many-", endpoint=elasticq_server.endpoint).load()
    query = (
        frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(WAIT_S)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter((row.queue, row.body) for row in rows) == {("many-a", "many-a"): 3, ("many-b", "many-b"): 3}


def test_an_idle_query_holds_nothing_and_reports_its_backlog(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], tmp_path: Path
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a", "b", "c"])
    reader = spark.readStream.format("sqs").options(pollInterval="100ms", maxMessagesPerTrigger=2)
    query = (
        reader.load(url)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"))
    )
    try:
        query.processAllAvailable()  # returns one trigger after the last batch
        assert elasticq_server.counts(url) == (0, 0)
        told = [
            json.loads(progress.sources[0].latestOffset) for progress in query.recentProgress if progress.numInputRows
        ]
        assert [report["backlog"] for report in told] == [3, 1]
        assert all(report["oldestAgeSeconds"] >= 0 for report in told)
        assert not query.exception()
    finally:
        query.stop()


def test_two_actions_on_one_batch_see_the_same_rows(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], tmp_path: Path
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, [str(number) for number in range(60)])
    seen: list[tuple[set[str], set[str]]] = []

    def twice(frame: Any, batch: int) -> None:
        first, second = ({row.messageId for row in frame.select("messageId").collect()} for _ in range(2))
        seen.append((first, second))

    query = (
        spark.readStream.format("sqs").load(url)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(twice).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(WAIT_S)
    assert sum(len(first) for first, _ in seen) == 60
    assert all(first == second for first, second in seen)


def test_without_acknowledgement_messages_come_again(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a"])
    (row,) = stream(url, ackMode="none")
    assert row.receiptHandle
    assert elasticq_server.counts(url) == (0, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"maxMessagePerTrigger": "5"}, "did you mean maxMessagesPerTrigger?"),
        ({"mode": "fast"}, "is not auto, lease, wal or driver"),
        ({"valueFormat": "json"}, "needs a schema"),
        ({"queueName": "other"}, "one of queueUrl, queueName and queuePrefix"),
        ({"maxOffsetsPerTrigger": "5"}, "use maxMessagesPerTrigger"),
    ],
)
def test_a_wrong_option_fails_where_the_stream_is_loaded(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], options: dict[str, str], said: str
) -> None:
    url = make_queue(elasticq_server)
    assert said in failure(lambda: spark.readStream.format("sqs").options(queueUrl=url, **options).load())


def test_a_missing_queue_is_named(elasticq_server: Server, stream: Callable[..., list[Any]]) -> None:
    said = failure(lambda: stream(f"{elasticq_server.endpoint}/000000000000/nobody"))
    assert "nobody' does not exist at http://127.0.0.1" in said


def test_a_server_that_is_not_there_is_named(stream: Callable[..., list[Any]]) -> None:
    with socket.socket() as bound:  # and nobody listens
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        said = failure(lambda: stream(f"http://{address}/000000000000/jobs", retrySeconds="1"))
    assert address in said


def test_a_query_goes_on_while_another_member_answers(
    elasticq_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    url = make_queue(elasticq_server)
    elasticq_server.fill(url, ["a", "b"])
    with socket.socket() as bound:  # and nobody listens
        bound.bind(("127.0.0.1", 0))
        down = url.replace(elasticq_server.endpoint, f"http://127.0.0.1:{bound.getsockname()[1]}")
        rows = stream(down, endpoints=elasticq_server.endpoint, retrySeconds="2", region="us-east-1")
    assert {row.body for row in rows} == {"a", "b"}
    assert elasticq_server.counts(url) == (0, 0)


@pytest.mark.parametrize("client", ["boto3", "light"])
def test_wrong_credentials_are_told_from_the_driver(
    stream: Callable[..., list[Any]], tmp_path: Path, client: str
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('[[keys]]\naccess_key_id = "AKIDOWNER"\nsecret_access_key = "right"\naccount = "111111111111"\n')
    keys.chmod(0o600)
    given = {"accessKeyId": "AKIDOWNER", "secretAccessKey": "wrong", "region": "us-east-1", "client": client}
    with Process("--auth", "strict", "--keys-file", str(keys)) as server:
        said = failure(lambda: stream(f"{server.url}/111111111111/jobs", **given))
    assert "refuses the credentials for queue" in said
    assert "SignatureDoesNotMatch" in said
    assert "see options accessKeyId, secretAccessKey and profile" in said


def test_another_sqs_without_a_log_location_says_what_to_give(
    moto_server: Server, make_queue: Callable[..., str], stream: Callable[..., list[Any]]
) -> None:
    assert "give walLocation" in failure(lambda: stream(make_queue(moto_server)))
