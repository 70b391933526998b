"""CPU time of reading and writing with Spark, next to boto3 in foreachPartition and in a plain loop.

    python scripts/bench spark_speed [--sizes 1000,20000,200000] [--boto3-max 20000] [--batches 20]
                                     [--only read,write,batch] [--conf spark.name=value]

The server runs in memory in a process of its own, and its CPU time does not count in the first two tables. All other
CPU time does: the JVM, its Python processes, or the loop. The JVM is warm: a run of 2,000 messages comes first.

    us          CPU time of a message
    x boto3     how many times cheaper a message is than in the plain boto3 loop of the same size
    msg/s       messages a second by the clock

boto3 does not run for more than --boto3-max messages; larger sizes are compared with its cost for that many. "batch"
shows the CPU time of a micro-batch of 1,000 messages by process: the difference between a query of --batches batches
and one of three times as many. Under other load the CPU times are too high, but the ratios hold.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value

from elasticq.spark import session
from scripts.bench.measure import ROOT, server_command, serving
from scripts.bench.spark import BODY, PARTITIONS, fill, fresh_queue, is_below, processes

PAGE = 10
BATCH = 1_000
WARM = 2_000
SOURCE = "python_streaming_source_runner"
LOOP = """
import sys, time
from scripts.bench.spark_speed import boto3_read, boto3_write
endpoint, queue_url, kind, count = sys.argv[1:]
started_s = time.process_time()
boto3_read(endpoint, queue_url) if kind == "read" else boto3_write(endpoint, queue_url, int(count))
print(time.process_time() - started_s)
"""


def boto3_read(endpoint: str, queue_url: str) -> None:
    """Receive and delete until the queue is empty."""
    sqs = boto3_client(endpoint)
    while messages := sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=PAGE).get("Messages"):
        entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
        sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)


def boto3_write(endpoint: str, queue_url: str, count: int) -> None:
    sqs = boto3_client(endpoint)
    for start in range(0, count, PAGE):
        entries = [{"Id": str(n), "MessageBody": BODY} for n in range(min(PAGE, count - start))]
        sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)


def boto3_client(endpoint: str) -> Any:
    import boto3

    return boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")


@dataclass(frozen=True)
class Spent:
    """CPU seconds by kind of process: jvm (with what it reaped), source, workers, driver."""

    jvm: float
    source: float
    workers: float
    driver: float
    server: float

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*(getattr(self, name) - getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def clients(self) -> float:
        return self.jvm + self.source + self.workers + self.driver


def spent(server: int) -> Spent:
    found = processes()
    by_kind = dict.fromkeys(("jvm", "source", "workers"), 0.0)
    for pid, one in found.items():
        if pid == server or pid == os.getpid() or not is_below(found, pid, os.getpid()):
            continue
        kind = "jvm" if one.name == "java" else "source" if SOURCE in one.command else "workers"
        by_kind[kind] += one.own_s + one.reaped_s
    return Spent(**by_kind, driver=time.process_time(), server=found[server].own_s)


class Bench:
    """A session, a server and the runs. Each run gets a fresh queue."""

    def __init__(self, spark: Any, endpoint: str, server: int) -> None:
        self.spark, self.endpoint, self.server = spark, endpoint, server

    def timed(self, job: Callable[[], Any]) -> tuple[Spent, float]:
        before, started_s = spent(self.server), time.monotonic()
        job()
        return spent(self.server) - before, time.monotonic() - started_s

    def stream(self, queue_url: str, **options: Any) -> None:
        """Read all that waits into a sink that drops it."""
        frame = self.spark.readStream.format("sqs").options(region="us-east-1", **options).load(queue_url)
        with tempfile.TemporaryDirectory(prefix="bench-") as checkpoint:
            stream = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = stream.trigger(availableNow=True).start()
            query.awaitTermination()
            assert query.exception() is None

    def frame(self, count: int) -> Any:
        return self.spark.range(0, count, 1, PARTITIONS).selectExpr(f"'{BODY}' body")

    def read(self, how: str, count: int) -> tuple[float, float]:
        """Return CPU and wall seconds of reading. how: sqs, foreachPartition or loop."""
        endpoint, queue_url = self.endpoint, fresh_queue(self.endpoint, count)
        if how == "loop":
            return self.loop(queue_url, "read", count)
        if how == "sqs":
            used, wall_s = self.timed(lambda: self.stream(queue_url, maxMessagesPerTrigger=max(count, BATCH)))
        else:
            tasks = self.spark.range(0, PARTITIONS, 1, PARTITIONS)
            used, wall_s = self.timed(lambda: tasks.foreachPartition(lambda _: boto3_read(endpoint, queue_url)))
        return used.clients, wall_s

    def write(self, how: str, count: int) -> tuple[float, float]:
        endpoint, queue_url = self.endpoint, fresh_queue(self.endpoint, 0)
        if how == "loop":
            return self.loop(queue_url, "write", count)
        frame = self.frame(count)
        if how == "sqs":
            writer = frame.write.format("sqs").mode("append").option("region", "us-east-1")
            used, wall_s = self.timed(lambda: writer.save(queue_url))
        else:

            def send(rows: Any) -> None:
                boto3_write(endpoint, queue_url, sum(1 for _ in rows))

            used, wall_s = self.timed(lambda: frame.foreachPartition(send))
        return used.clients, wall_s

    def loop(self, queue_url: str, kind: str, count: int) -> tuple[float, float]:
        started_s = time.monotonic()
        command = [sys.executable, "-c", LOOP, self.endpoint, queue_url, kind, str(count)]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return float(said), time.monotonic() - started_s

    def table(self, kind: str, sizes: list[int], boto3_max: int) -> None:
        run: Callable[[str, int], tuple[float, float]] = getattr(self, kind)
        run("sqs", WARM)
        base_us = 0.0
        print(f"{kind:6} {'messages':>9} {'us':>8} {'x boto3':>8} {'msg/s':>9}")
        for size in sizes:
            for how in ("loop", "foreachPartition", "sqs"):
                if how != "sqs" and size > boto3_max:
                    continue
                cpu_s, wall_s = run(how, size)
                us = cpu_s * 1e6 / size
                base_us = us if how == "loop" else base_us
                print(f"{size:16,} {us:8.1f} {base_us / us:8.1f} {size / wall_s:9,.0f}  {how}", flush=True)

    def batch(self, batches: int) -> None:
        """Print the CPU time of a micro-batch of 1,000 messages by process."""
        used = []
        for count in (batches, batches, 3 * batches):  # the first one warms the JVM
            queue_url = fresh_queue(self.endpoint, 0)
            fill(self.endpoint, queue_url, count * BATCH)
            used.append(self.timed(lambda url=queue_url: self.stream(url, maxMessagesPerTrigger=BATCH)))
        more, wall_s = used[2][0] - used[1][0], used[2][1] - used[1][1]
        print(f"a batch of {BATCH:,} messages, ms of CPU (the source's process ends with its query: see jvm)")
        for name in more.__dataclass_fields__:
            print(f"  {name:8} {getattr(more, name) * 1e3 / (2 * batches):8.1f}")
        print(f"  {'wall':8} {wall_s * 1e3 / (2 * batches):8.1f}", flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", default="1000,20000,200000", help="numbers of messages (%(default)s)")
    parser.add_argument("--boto3-max", type=int, default=20_000, help="most messages for boto3 (20000)")
    parser.add_argument("--batches", type=int, default=20, help="batches of the smaller query (20)")
    parser.add_argument("--only", default="read,write,batch", help="tables (%(default)s)")
    parser.add_argument("--conf", action="append", default=[], help="spark.name=value")


def main(options: argparse.Namespace) -> int:
    for name, value in {"AWS_ACCESS_KEY_ID": "000000000000", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        os.environ.setdefault(name, value)
    with serving(server_command("--memory")) as (process, endpoint):
        register_pickle_by_value(sys.modules[__name__])  # the workers do not find this module
        conf = dict(each.split("=", 1) for each in options.conf)
        spark = session(master=f"local[{PARTITIONS}]", name="bench", spark_driver_memory="2g", **conf)
        spark.sparkContext.setLogLevel("ERROR")
        bench = Bench(spark, endpoint, process.pid)
        wanted = options.only.split(",")
        for kind in ("read", "write"):
            if kind in wanted:
                bench.table(kind, [int(size) for size in options.sizes.split(",")], options.boto3_max)
        if "batch" in wanted:
            bench.batch(options.batches)
        spark.stop()
    return 0
