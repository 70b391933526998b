"""Counts events of a queue in windows of five minutes, and writes them to Parquet.

    python examples/spark/events_to_parquet.py [--queue-url URL] [--output DIRECTORY]

An event counts if it is at most ten minutes late. Without --queue-url the example starts a server and sends events to
it three times. Each run of the query reads the events in the queue and ends (availableNow). The next run continues from
the checkpoint, as it would after a crash.
"""

import argparse
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local_server import local_server

from elasticq.client import Sqs
from elasticq.spark import session

SCHEMA = "at timestamp, page string, amount double"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# The events that arrive before each run of the query, in minutes after noon.
ARRIVALS = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [20, 21, 22, 23, 24, 25, 4],  # 12:04 is late, but within ten minutes of the newest event before: it counts
    [60, 2],  # 12:02 arrives after its window was written: it is dropped
]


def event(minute: int) -> str:
    return json.dumps({
        "at": (NOON + timedelta(minutes=minute)).isoformat(),
        "page": "/home" if minute % 2 else "/cart",
        "amount": 1.5,
    })  # fmt: skip


def run_once(spark: Any, queue_url: str, output: Path) -> int:
    """Process the events that are in the queue. Return how many were too late."""
    events = spark.readStream.format("sqs").schema(SCHEMA).option("valueFormat", "json").load(queue_url)
    query = (
        windowed(events)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(output / "checkpoint"))
        .option("path", str(output / "windows"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(
        operator["numRowsDroppedByWatermark"]
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    )


def windowed(events: Any) -> Any:
    from pyspark.sql import functions

    return (
        events.withWatermark("at", "10 minutes")
        .groupBy(functions.window("at", "5 minutes").alias("window"), "page")
        .agg(functions.count("*").alias("events"), functions.sum("amount").alias("amount"))
        .select(functions.col("window.start").alias("start"), "page", "events", "amount")
    )


def feed(endpoint: str, queue_url: str, minutes: list[int]) -> None:
    with Sqs(endpoint) as sqs:
        for minute in minutes:
            sqs.send_message(QueueUrl=queue_url, MessageBody=event(minute))


def demonstrate(spark: Any, endpoint: str, output: Path) -> Any:
    """Send the events of each arrival and run the query after it. Return the windows written."""
    with Sqs(endpoint) as sqs:
        queue_url = sqs.create_queue(QueueName="events")["QueueUrl"]
    for number, minutes in enumerate(ARRIVALS, start=1):
        feed(endpoint, queue_url, minutes)
        dropped = run_once(spark, queue_url, output)
        print(f"run {number}: {len(minutes)} events, {dropped} too late")
    return spark.read.parquet(str(output / "windows")).orderBy("start", "page")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue-url", help="a queue with such events; without it, the example starts a server")
    parser.add_argument("--output", type=Path, help="a directory; by default a new temporary one")
    arguments = parser.parse_args()
    output = arguments.output or Path(tempfile.mkdtemp(prefix="events-"))
    if arguments.queue_url:
        spark = session(name="events", spark_sql_session_timeZone="UTC")
        print(run_once(spark, arguments.queue_url, output), "events came too late")
        return
    with local_server() as endpoint:
        spark = session(
            name="events", master="local[2]", spark_sql_shuffle_partitions=2, spark_sql_session_timeZone="UTC"
        )
        spark.sparkContext.setLogLevel("ERROR")
        demonstrate(spark, endpoint, output).show(truncate=False)
        spark.stop()
    print(f"the windows are in {output / 'windows'}")


if __name__ == "__main__":
    main()
