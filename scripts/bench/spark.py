"""CPU time of a message in Spark's Python workers next to a plain loop with the same client.

    python scripts/bench spark [--messages 10000] [--large 40000] [--only consume,source,task] [--client light]
                                  [--tasks 200] [--fresh-tasks 16] [--conf spark.name=value]

The server runs in memory in a process of its own. Neither its CPU time nor the JVM's counts. The plain loop is one
process that receives and deletes, in pages of the same size; its imports do not count. It runs before and after Spark,
and the mean counts. Spark's figure is the CPU time (/proc) of the workers that read. An earlier job has started them,
so their start does not count. The columns are:

    loop us, Spark us   CPU time of a message in the large job: plain loop, Spark's workers
    ratio               messages for each CPU second in the large job: Spark's divided by the loop's
    small               the same for a job of --messages
    marginal            the same for the messages that only the large job has
    plan s              CPU time of the driver's own Python processes in the large job: one starts with each query,
                        imports pyspark and reads no message
    all                 the ratio in the large job including plan s
    msg/s               messages a second of the large job by the clock

"task" splits the fixed cost of a task by cause, next to a task of a source that yields nothing. Each task reads one
message. Under other load its wall times say little, but its CPU times hold.
Goals: "ratio" and "small" with boto3 >= 0.85, with light >= 0.6; pages of 1,000 >= 2x pages of 10.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticq.spark import consume, session
from elasticq.spark.clients import Client, connect
from elasticq.spark.options import Connection
from elasticq.spark.pages import batching
from scripts.bench.measure import ROOT, server_command, serving
from scripts.bench.spark_floor import Floor
from scripts.bench.spark_worker import CAUSES, VARIABLE

TICKS_S = os.sysconf("SC_CLK_TCK")
BODY = "x" * 200
PARTITIONS = 2
PAGES = {"boto3": [10], "light": [10, 1_000]}
WORKERS = "pyspark.daemon pyspark.worker"  # in the commands of the processes that run tasks
LOOP = """
import sys, time
from scripts.bench.spark import plain_loop
count, cpu_s = plain_loop(*sys.argv[1:])
print(count, cpu_s)
"""


@dataclass(frozen=True)
class Figure:
    """The cost of a run. ``planning_s``: CPU time of Python processes that read no message."""

    messages: int
    cpu_s: float
    wall_s: float
    planning_s: float = 0.0

    @property
    def us(self) -> float:
        """Return the CPU time of a message, in us."""
        return self.cpu_s * 1e6 / self.messages


# --- the plain loop -------------------------------------------------------------------------------


def plain_loop(endpoint: str, queue_url: str, client: str, page: str) -> tuple[int, float]:
    """Receive and delete until the queue is empty; return the messages and the CPU seconds, without the imports."""
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
    """A process in /proc, with its own CPU seconds and those of its children that ended and were reaped."""

    parent: int
    name: str
    command: str
    own_s: float
    reaped_s: float


def processes() -> dict[int, Process]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
                command = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            values = rest.split()
            own, reaped = sum(map(int, values[11:13])) / TICKS_S, sum(map(int, values[13:15])) / TICKS_S
            found[int(entry.name)] = Process(int(values[1]), name, command, own, reaped)
    return found


def python_cpu_s() -> tuple[float, float]:
    """Return the CPU seconds of the workers under the JVM, and of the JVM's other Python processes.

    A process that has ended counts at the parent that reaped it.
    """
    found = processes()
    jvms = {pid for pid, one in found.items() if one.name == "java" and is_below(found, pid, os.getpid())}
    workers_s, others_s = 0.0, sum(found[jvm].reaped_s for jvm in jvms)
    for pid, one in found.items():
        if one.name.startswith("python") and any(is_below(found, pid, jvm) for jvm in jvms):
            if WORKERS in one.command or (one.parent in found and WORKERS in found[one.parent].command):
                workers_s += one.own_s + one.reaped_s
            else:
                others_s += one.own_s + one.reaped_s
    return workers_s, others_s


def is_below(found: dict[int, Process], pid: int, root: int) -> bool:
    while pid in found and pid != root:
        pid = found[pid].parent
    return pid == root


def measure_spark(job: Callable[[], int]) -> Figure:
    (workers_s, others_s), started_s = python_cpu_s(), time.monotonic()
    messages = job()
    wall_s, after_s = time.monotonic() - started_s, python_cpu_s()
    return Figure(messages, after_s[0] - workers_s, wall_s, after_s[1] - others_s)


def consume_job(spark: Any, endpoint: str, queue_url: str, client: str, page: int) -> int:
    counts = consume(spark, queue_url, handle, PARTITIONS, client=client, pageSize=page, region="us-east-1")
    return sum(row.deleted for row in counts.collect())


def handle(message: dict[str, Any]) -> None:
    """Do nothing: the cost of Spark is measured, not that of a user's function."""


def source_job(spark: Any, endpoint: str, queue_url: str, client: str, page: int) -> int:
    """Run a typical stream into a sink that costs the workers nothing; return the number of messages."""
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


def compare(
    spark: Any, endpoint: str, job: str, client: str, page: int, sizes: tuple[int, int]
) -> tuple[Figure, Figure, Figure]:
    """Measure both; return the figures of the loop's two runs as one, of the small job, and of the large job."""

    def loop(messages: int) -> Figure:
        return measure_loop(endpoint, fresh_queue(endpoint, messages), client, page)

    def spark_job(messages: int) -> Figure:
        queue_url = fresh_queue(endpoint, messages)
        return measure_spark(lambda: JOBS[job](spark, endpoint, queue_url, client, page))

    before = loop(sizes[0])
    spark_job(200)  # starts the workers and makes their clients
    small, large = (spark_job(size) for size in sizes)
    after = loop(sizes[0])
    assert (small.messages, large.messages) == sizes, (small, large)
    assert before.messages == after.messages == sizes[0], (before, after)
    return Figure(2 * sizes[0], before.cpu_s + after.cpu_s, before.wall_s + after.wall_s), small, large


def run(spark: Any, endpoint: str, sizes: tuple[int, int], jobs: list[str], clients: list[str]) -> None:
    print(f"{sizes[0]:,} and {sizes[1]:,} messages of {len(BODY)} bytes, local[{PARTITIONS}]")
    names = f"{'what':8} {'client':7} {'page':>5} {'loop us':>8} {'Spark us':>9}"
    print(f"{names} {'ratio':>6} {'small':>6} {'marginal':>9} {'plan s':>7} {'all':>5} {'msg/s':>8}", flush=True)
    for job in jobs:
        speeds: dict[int, Figure] = {}
        for client in clients:
            for page in PAGES[client]:
                loop, small, large = compare(spark, endpoint, job, client, page, sizes)
                speeds[page] = large
                marginal_us = (large.cpu_s - small.cpu_s) * 1e6 / (large.messages - small.messages)
                all_us = (large.cpu_s + large.planning_s) * 1e6 / large.messages
                print(
                    f"{job:8} {client:7} {page:5} {loop.us:8.1f} {large.us:9.1f} {loop.us / large.us:6.2f}"
                    f" {loop.us / small.us:6.2f} {loop.us / max(marginal_us, 0.01):9.2f} {large.planning_s:7.2f}"
                    f" {loop.us / all_us:5.2f} {large.messages / large.wall_s:8,.0f}",
                    flush=True,
                )
        if 1_000 in speeds:
            by_cpu, by_clock = speeds[10].us / speeds[1_000].us, speeds[10].wall_s / speeds[1_000].wall_s
            print(f"{job:8} light: pages of 1,000 are {by_cpu:.1f}x pages of 10 by CPU, {by_clock:.1f}x by the clock")


# --- the fixed cost of a task -----------------------------------------------------------------------


def columns() -> str:
    """Return the columns of our source as a text, for the source that yields nothing."""
    from elasticq.spark.schema import default_schema

    return default_schema("string", with_handles=False).simpleString()


def one_batch(frame: Any) -> float:
    """Run the one batch of a stream into a sink that drops all; return the seconds of its tasks."""
    with tempfile.TemporaryDirectory(prefix="bench-") as checkpoint:
        stream = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()
        return max(progress["durationMs"].get("addBatch", 0) for progress in query.recentProgress) / 1e3


def floor_tasks(spark: Any, tasks: int) -> float:
    return one_batch(spark.readStream.format("floor").option("columns", columns()).option("partitions", tasks).load())


def source_tasks(spark: Any, endpoint: str, tasks: int) -> float:
    """Run tasks that read one message each, as the last tasks of every batch do; return their seconds."""
    options = {"client": "light", "region": "us-east-1", "partitions": str(tasks)}
    return one_batch(spark.readStream.format("sqs").options(**options).load(fresh_queue(endpoint, tasks)))


@dataclass(frozen=True)
class Spent:
    """The mean cost of a task by cause: (wall, CPU) in milliseconds, and how often each cause occurred."""

    tasks: int
    by_cause: dict[str, tuple[float, float]]
    counts: dict[str, float]

    @property
    def total(self) -> tuple[float, float]:
        return sum(wall for wall, _ in self.by_cause.values()), sum(cpu for _, cpu in self.by_cause.values())


def spent_in(folder: Path, first_of_worker: bool) -> Spent:
    """Return the mean cost of the middle half of the tasks, ordered by wall time. Remove the workers' files."""
    records = [json.loads(line) for file in folder.iterdir() for line in file.read_text().splitlines()]
    for file in folder.iterdir():
        file.unlink()
    records = [each for each in records if (each["task"] == 0) == first_of_worker]
    records.sort(key=lambda each: sum(wall for wall, _ in each["ms"].values()))
    middle = records[len(records) // 4 : len(records) - len(records) // 4] or records
    causes = {cause for each in middle for cause in each["ms"]}

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(middle)

    by_cause = {
        cause: (
            mean(each["ms"].get(cause, (0, 0))[0] for each in middle),
            mean(each["ms"].get(cause, (0, 0))[1] for each in middle),
        )
        for cause in causes
    }
    return Spent(
        len(records), by_cause, {cause: mean(each["counts"].get(cause, 0) for each in middle) for cause in causes}
    )


def run_tasks(endpoint: str, tasks: int, fresh: int, conf: dict[str, str]) -> None:
    """Print the cost of a task by cause, next to a task of a source that yields nothing, in kept and in fresh workers.

    Each source has workers of its own. Else the garbage collection of one would also scan the imports of the other.
    """
    with tempfile.TemporaryDirectory(prefix="bench-clocks-") as clocks:
        os.environ[VARIABLE] = clocks  # the JVM passes it on to its workers
        for keeps, count in ((True, tasks), (False, fresh)):
            if not count:
                continue
            best = []
            for job in ("floor", "source"):
                rounds = measure_tasks(job, endpoint, count, Path(clocks), keeps, conf)
                best.append(min(rounds, key=lambda each: each[1].total))
            print_tasks("kept" if keeps else "fresh", count, best[0], best[1])


def measure_tasks(
    job: str, endpoint: str, tasks: int, clocks: Path, keeps: bool, conf: dict[str, str]
) -> list[tuple[float, Spent]]:
    """Return the wall seconds and the cost by cause of three rounds of tasks in one session.

    A round before them starts the workers and warms up the JVM.
    """
    own = {"spark.python.daemon.module": "scripts.bench.spark_worker", "spark.python.worker.reuse": keeps}
    spark = session(master=f"local[{PARTITIONS}]", name="bench", spark_driver_memory="2g", **own, **conf)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Floor)
    rounds = []
    for _ in range(4):
        wall_s = floor_tasks(spark, tasks) if job == "floor" else source_tasks(spark, endpoint, tasks)
        rounds.append((wall_s, spent_in(clocks, first_of_worker=not keeps)))
    spark.stop()
    return rounds[1:]


def print_tasks(worker: str, tasks: int, floor: tuple[float, Spent], source: tuple[float, Spent]) -> None:
    print(f"a task in a {worker} worker, ms, {tasks} tasks, local[{PARTITIONS}], one message each")
    print(f"  {'':26} {'floor':>7} {'CPU':>7} {'source':>8} {'CPU':>7} {'times':>6}")
    for cause in CAUSES:
        of_floor, of_source = (each[1].by_cause.get(cause, (0.0, 0.0)) for each in (floor, source))
        times = source[1].counts.get(cause, 0)
        print(
            f"  {cause:26} {of_floor[0]:7.2f} {of_floor[1]:7.2f} {of_source[0]:8.2f} {of_source[1]:7.2f} {times:6.1f}"
        )
    of_floor, of_source = floor[1].total, source[1].total
    print(f"  {'all in the worker':26} {of_floor[0]:7.2f} {of_floor[1]:7.2f} {of_source[0]:8.2f} {of_source[1]:7.2f}")
    by_clock = [each[0] * 1e3 * PARTITIONS / tasks for each in (floor, source)]
    print(f"  {'of the job by the clock':26} {by_clock[0]:7.2f} {'':7} {by_clock[1]:8.2f}", flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the small job (10000)")
    parser.add_argument("--large", type=int, default=40_000, help="messages of the large job (40000)")
    parser.add_argument("--only", default="source,consume,task", help="parts to run (%(default)s)")
    parser.add_argument("--client", default="boto3,light", help="clients (%(default)s)")
    parser.add_argument("--tasks", type=int, default=200, help="tasks of the break-down in kept workers (200)")
    parser.add_argument("--fresh-tasks", type=int, default=16, help="tasks of the break-down in fresh workers (16)")
    parser.add_argument("--conf", action="append", default=[], help="spark.name=value for the break-down's sessions")


def main(arguments: argparse.Namespace) -> int:
    conf = dict(each.split("=", 1) for each in arguments.conf)
    keys = {"AWS_ACCESS_KEY_ID": "000000000000", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in keys.items():
        os.environ.setdefault(name, value)
    with serving(server_command("--memory")) as (_, endpoint):
        wanted = arguments.only.split(",")
        if jobs := [job for job in wanted if job in JOBS]:
            spark = session(master=f"local[{PARTITIONS}]", name="bench", spark_driver_memory="2g")
            spark.sparkContext.setLogLevel("ERROR")
            run(spark, endpoint, (arguments.messages, arguments.large), jobs, arguments.client.split(","))
            spark.stop()
        if "task" in wanted:
            run_tasks(endpoint, arguments.tasks, arguments.fresh_tasks, conf)
    return 0
