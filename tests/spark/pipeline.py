"""The driver of scripts/chaos pipeline: queue to queue to Parquet, and a stateful aggregation, on a Spark cluster.

``python -m tests.spark.pipeline PLAN``: a JSON object of master, queues (inbox, outbox, events), options and directory.
Each of the three queries runs for ever in a thread of its own, from its checkpoint. Every directory of the checkpoint,
of the rows and of the counts has the name of its query.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from elasticq.spark import run_forever, session

TRIGGER = "200 milliseconds"
FAILURES_MAX = 1_000
BUCKETS = 10
QUERIES = ("copy", "store", "count")


def end_with_parent() -> None:
    """End all of this session when the program that started it is gone: its end closes the other end of stdin."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    directory, queues = Path(plan["directory"]), plan["queues"]
    spark = session(master=plan["master"], **plan["conf"])
    spark.sparkContext.setLogLevel("WARN")

    def read(queue: str) -> Any:
        return spark.readStream.format("sqs").options(**plan["options"]).load(queues[queue])

    def writer(frame: Any, name: str) -> Any:
        stream = frame.writeStream.queryName(name).trigger(processingTime=TRIGGER)
        return stream.option("checkpointLocation", str(directory / "checkpoint" / name))

    def copy() -> Any:
        stream = writer(read("inbox").select("body"), "copy").format("sqs")
        return stream.options(endpoints=plan["options"]["endpoints"], region="us-east-1").start(queues["outbox"])

    def store() -> Any:
        return writer(read("outbox").select("body"), "store").format("parquet").start(str(directory / "store"))

    def write_counts(frame: Any, batch: int) -> None:
        counts = {row.bucket: row["count"] for row in frame.collect()}
        made = directory / "count" / f".{batch}"
        made.write_text(json.dumps(counts))
        made.rename(directory / "count" / f"{batch}.json")

    def count() -> Any:
        buckets = read("events").selectExpr(f"cast(substring(body, 2) as bigint) % {BUCKETS} as bucket")
        return (
            writer(buckets.groupBy("bucket").count(), "count").outputMode("complete").foreachBatch(write_counts).start()
        )

    (directory / "count").mkdir(exist_ok=True)
    threads = [
        threading.Thread(target=run_forever, args=[build], kwargs={"failures_max": FAILURES_MAX}, name=build.__name__)
        for build in (copy, store, count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
