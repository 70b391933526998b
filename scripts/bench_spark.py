"""Spark's cost of a message beside that of a plain loop with the same client, in CPU time of the Python workers.

    python scripts/bench_spark.py [--messages 20000] [--only consume,source] [--client light]

One server in memory, in a process of its own; neither it nor the JVM is counted. A plain loop is one process that
receives and deletes. Spark's figure is the CPU time of all Python processes under the JVM, those that ended during
the run included (user + system of each and of its reaped children, from /proc), with a warm-up job before, so that
starting workers is not counted; planning, the driver's own source process and Arrow are. The ratio is messages for
each CPU second, Spark's over the loop's; "fixed s" is the CPU time of the same job on a queue of ten messages, and
"beyond" the ratio without it. Goals: boto3 >= 0.85, light >= 0.6, and pages of 1,000 >= 2x pages of 10.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticq.spark import consume, session
from elasticq.spark.clients import Client, connect
from elasticq.spark.options import Connection
from elasticq.spark.pages import batching

ROOT = Path(__file__).resolve().parent.parent
LISTENING = re.compile(r"listening on (http://\S+)")
TICKS_S = os.sysconf("SC_CLK_TCK")
BODY = "x" * 200
PARTITIONS = 2
LOOP = """
import sys, time
from scripts.bench_spark import plain_loop
count, cpu_s = plain_loop(*sys.argv[1:])
print(count, cpu_s)
"""


@dataclass(frozen=True)
class Figure:
    """What a run took."""

    messages: int
    cpu_s: float
    wall_s: float

    @property
    def per_cpu_s(self) -> float:
        return self.messages / self.cpu_s


# --- the plain loop -------------------------------------------------------------------------------


def plain_loop(endpoint: str, queue_url: str, client: str, page: str) -> tuple[int, float]:
    """Receives and deletes until the queue is empty; messages and CPU seconds, without the imports."""
    sqs, size = connection_of(endpoint, client), int(page)
    asked = {"ElasticqPageSize": size} if size > 10 else {"MaxNumberOfMessages": size}
    sqs.receive_message(QueueUrl=queue_url, VisibilityTimeout=0, MaxNumberOfMessages=1)  # connects
    count, started_s = 0, time.process_time()
    while messages := sqs.receive_message(
        QueueUrl=queue_url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"], **asked
    ).get("Messages"):
        entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
        sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries, **batching(len(entries)))
        count += len(messages)
    return count, time.process_time() - started_s


def connection_of(endpoint: str, client: str) -> Client:
    return connect(Connection(endpoint=endpoint, region="us-east-1", client=client))


def measure_loop(endpoint: str, queue_url: str, client: str, page: int) -> Figure:
    started_s = time.monotonic()
    command = [sys.executable, "-c", LOOP, endpoint, queue_url, client, str(page)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return Figure(int(said[0]), float(said[1]), time.monotonic() - started_s)


# --- Spark ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """Of /proc: CPU seconds of its own, and those of its children that ended and were reaped."""

    parent: int
    name: str
    own_s: float
    reaped_s: float


def processes() -> dict[int, Process]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
            except OSError:
                continue
            values = rest.split()
            own, reaped = sum(map(int, values[11:13])) / TICKS_S, sum(map(int, values[13:15])) / TICKS_S
            found[int(entry.name)] = Process(int(values[1]), name, own, reaped)
    return found


def workers_cpu_s() -> float:
    """Of all Python processes under the JVM, dead ones included: a parent that reaped them has their figure."""
    found = processes()
    jvms = [pid for pid, one in found.items() if one.name == "java" and is_below(found, pid, os.getpid())]
    total_s = sum(found[jvm].reaped_s for jvm in jvms)
    for pid, one in found.items():
        if one.name.startswith("python") and any(is_below(found, pid, jvm) for jvm in jvms):
            total_s += one.own_s + one.reaped_s
    return total_s


def is_below(found: dict[int, Process], pid: int, root: int) -> bool:
    while pid in found and pid != root:
        pid = found[pid].parent
    return pid == root


def measure_spark(job: Callable[[], int]) -> Figure:
    cpu_s, started_s = workers_cpu_s(), time.monotonic()
    messages = job()
    return Figure(messages, workers_cpu_s() - cpu_s, time.monotonic() - started_s)


def consume_job(spark: Any, endpoint: str, queue_url: str, client: str, page: int) -> int:
    counts = consume(spark, queue_url, handle, PARTITIONS, client=client, pageSize=page, region="us-east-1")
    return sum(row.deleted for row in counts.collect())


def handle(message: dict[str, Any]) -> None:
    """Nothing: the cost of Spark is asked for, not that of somebody's function."""


def source_job(spark: Any, endpoint: str, queue_url: str, client: str, page: int) -> int:
    """The stream as most write it, into a sink that costs the workers nothing."""
    options = {"client": client, "pageSize": str(page), "region": "us-east-1", "partitions": str(PARTITIONS)}
    frame = spark.readStream.format("sqs").options(**options, maxMessagesPerTrigger="1000000").load(queue_url)
    with tempfile.TemporaryDirectory(prefix="bench-") as checkpoint:
        stream = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


JOBS = {"consume": consume_job, "source": source_job}


# --- the run --------------------------------------------------------------------------------------


def fill(endpoint: str, queue_url: str, messages: int) -> None:
    sqs = connection_of(endpoint, "light")
    for start in range(0, messages, 1_000):
        entries = [{"Id": str(n), "MessageBody": BODY} for n in range(min(1_000, messages - start))]
        assert not sqs.send_message_batch(QueueUrl=queue_url, Entries=entries, ElasticqPageSize=1_000).get("Failed")


def fresh_queue(endpoint: str, messages: int) -> str:
    name = f"bench-{time.monotonic_ns()}"
    queue_url = str(connection_of(endpoint, "light").create_queue(QueueName=name)["QueueUrl"])
    fill(endpoint, queue_url, messages)
    return queue_url


def run(spark: Any, endpoint: str, messages: int, jobs: list[str], clients: list[str]) -> None:
    pages = {"boto3": [10], "light": [10, 1_000]}
    names = f"{'what':8} {'client':7} {'page':>5} {'loop msg/CPU s':>15} {'Spark msg/CPU s':>16}"
    head = f"{names} {'ratio':>6} {'fixed s':>8} {'beyond':>7} {'msg/s':>8}"
    print(head)
    for job in jobs:
        speeds: dict[int, Figure] = {}
        for client in clients:
            for page in pages[client]:
                loop = measure_loop(endpoint, fresh_queue(endpoint, messages), client, page)
                JOBS[job](spark, endpoint, fresh_queue(endpoint, 200), client, page)  # warm: workers live, clients made
                small = fresh_queue(endpoint, 10)
                fixed = measure_spark(lambda: JOBS[job](spark, endpoint, small, client, page))  # noqa: B023
                queue_url = fresh_queue(endpoint, messages)
                ours = measure_spark(lambda: JOBS[job](spark, endpoint, queue_url, client, page))  # noqa: B023
                assert loop.messages == ours.messages == messages, (loop, ours)
                speeds[page] = ours
                print(
                    f"{job:8} {client:7} {page:5} {loop.per_cpu_s:15,.0f} {ours.per_cpu_s:16,.0f}"
                    f" {ours.per_cpu_s / loop.per_cpu_s:6.2f} {fixed.cpu_s:8.2f}"
                    f" {loop.cpu_s / max(ours.cpu_s - fixed.cpu_s, 0.01):7.2f} {ours.messages / ours.wall_s:8,.0f}",
                    flush=True,
                )
        if 1_000 in speeds:
            by_cpu = speeds[1_000].per_cpu_s / speeds[10].per_cpu_s
            by_clock = speeds[10].wall_s / speeds[1_000].wall_s
            print(f"{job:8} light: pages of 1,000 are {by_cpu:.1f}x pages of 10 by CPU, {by_clock:.1f}x by the clock")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--only", default="source,consume")
    parser.add_argument("--client", default="boto3,light")
    arguments = parser.parse_args()
    keys = {"AWS_ACCESS_KEY_ID": "000000000000", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in keys.items():
        os.environ.setdefault(name, value)
    command = [sys.executable, "-m", "elasticq", "server", "--memory", "--host", "127.0.0.1", "--port", "0"]
    environment = os.environ | {"ELASTICQ_ADMIN__PORT": "0"}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        endpoint = next(match.group(1) for line in server.stdout if (match := LISTENING.search(line)))
        spark = session(master=f"local[{PARTITIONS}]", name="bench", spark_driver_memory="2g")
        spark.sparkContext.setLogLevel("ERROR")
        run(spark, endpoint, arguments.messages, arguments.only.split(","), arguments.client.split(","))
        spark.stop()
    finally:
        server.terminate()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
