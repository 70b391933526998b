"""A pipeline on a standalone Spark cluster next to a cluster of elasticq, with a fault of either every few seconds.

Three queries run in one driver, on three Spark workers: from queue to queue, from that queue to Parquet, and a stateful
aggregation of a third queue. The queues are on three durable members. A sender sends each message to the first and the
third queue. Every 5 to 20 s one fault happens:

- executor, python: an executor with its Python workers, or one Python worker, is killed
- worker: a Spark worker is killed with its executor, and starts again
- driver: the driver is killed, and a new one goes on from the checkpoints
- source: the driver-side Python process of a source is killed, and its query starts again
- master, follower: a member of elasticq is killed, and starts again
- cut: a member is cut off the others for some seconds
- full: the disk of a member is full for some seconds

A fault met a running batch if a query had a batch in its offset log and not in its commit log. In the end the queues
are drained. Each message must be in Parquet once and in the counts once, and nothing may be left in a queue.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from elasticq.spark.clients import connect
from elasticq.spark.interpreter import worker_python
from elasticq.spark.options import Connection
from elasticq.spark.starting import java_home
from tests.spark.conftest import KEYS
from tests.spark.kills import ROOT, Process, counts, newest, send_signal, session_of, spark_home, until
from tests.spark.pipeline import BUCKETS, QUERIES
from tests.system.cluster.cluster import Cluster, let_pass

BETWEEN_S = (5.0, 20.0)
FAULT_S = (1.0, 6.0)
PATIENCE_S = 600.0
SEND_BATCH = 10
BACKLOG_MAX = 400
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "name": "pipeline",
    "spark_sql_shuffle_partitions": 2,
    "spark_driver_memory": "512m",
    "spark_driver_host": "127.0.0.1",
    "spark_driver_bindAddress": "127.0.0.1",
    "spark_ui_enabled": False,
    "spark_executor_memory": "512m",
    "spark_executor_cores": 1,
    "spark_driver_extraJavaOptions": SMALL_JVM,
    "spark_executor_extraJavaOptions": SMALL_JVM,
    "spark_scheduler_mode": "FAIR",
    "spark_task_maxFailures": 1_000,
    "spark_deploy_maxExecutorRetries": -1,
    "spark_python_authenticate_socketTimeout": "120s",
    "spark_sql_streaming_minBatchesToRetain": 10,
}
OPTIONS = {"maxMessagesPerTrigger": 200, "partitions": 3, "pollInterval": 0.2, "pageSize": 50, "region": "us-east-1"}


class SparkCluster:
    """A standalone master, its workers and a driver. Each is the leader of a session, to which its children belong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.home = spark_home(directory / "spark")
        self.environment = {
            name: each for name, each in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))
        }
        self.environment |= KEYS | {
            "PYTHONPATH": str(ROOT),
            "SPARK_HOME": str(self.home),
            "PYSPARK_PYTHON": worker_python(),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_WORKER_DIR": str(directory / "work"),
            "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        if home := java_home():
            self.environment["JAVA_HOME"] = str(home)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""
        self.plan = directory / "plan.json"

    def start(self) -> "SparkCluster":
        self._daemon("master", "Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = until(lambda: STARTED.search(self.said("master")), "Spark's master is up", PATIENCE_S)[1]
        for host in HOSTS:
            self.start_worker(host)
        return self

    def _daemon(self, name: str, kind: str, *arguments: str, **environment: str) -> None:
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
        self._start(name, command, environment)

    def start_worker(self, host: str) -> None:
        arguments = ["--host", host, "--webui-port", "0", "--cores", "1", "--memory", "600m", self.url]
        self._daemon(host, "Worker", *arguments, SPARK_LOCAL_IP=host)

    def start_driver(self) -> None:
        """Start a driver. Its JVM does not find elasticq by itself, as with an editable install."""
        self._start("driver", [sys.executable, "-m", "tests.spark.pipeline", str(self.plan)], {"PYTHONPATH": ""})

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment | environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self, name: str) -> str:
        path = self.directory / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, name: str) -> None:
        """Kill a process with all of its session."""
        process = self.processes.pop(name)
        while living := session_of(process.pid):
            for each in living:
                send_signal(each.pid, signal.SIGKILL)
            process.poll()
            let_pass(0.02)
        process.wait()

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def find(self, word: str) -> list[Process]:
        return [each for one in self.processes.values() for each in session_of(one.pid) if word in each.command]

    def is_running(self, query: str) -> bool:
        """Return whether a batch of a query is planned and not committed."""
        place = self.directory / "checkpoint" / query
        return newest(place / "offsets") > newest(place / "commits")


class Faults:
    """The faults by name. After each fault all processes run again, or will by themselves."""

    def __init__(self, spark: SparkCluster, members: Cluster, random: Random) -> None:
        self.spark, self.members, self.random = spark, members, random
        self.kinds: dict[str, Callable[[], None]] = {
            name: getattr(self, name)
            for name in ("executor", "python", "worker", "driver", "source", "master", "follower", "cut", "full")
        }

    def last(self) -> None:
        let_pass(self.random.uniform(*FAULT_S))

    def _kill_one(self, word: str) -> None:
        found = until(lambda: self.spark.find(word), f"a process with {word} lives", PATIENCE_S)
        send_signal(self.random.choice(found).pid, signal.SIGKILL)

    def executor(self) -> None:
        self._kill_one("CoarseGrainedExecutorBackend")

    def python(self) -> None:
        self._kill_one("pyspark.daemon pyspark.worker")

    def source(self) -> None:
        self._kill_one("python_streaming_source_runner")

    def worker(self) -> None:
        host = self.random.choice(HOSTS)
        self.spark.kill(host)
        self.last()
        self.spark.start_worker(host)

    def driver(self) -> None:
        self.spark.kill("driver")
        self.spark.start_driver()

    def _member(self, name: str) -> None:
        self.members.kill9(name)
        self.last()
        self.members.restart(name)

    def master(self) -> None:
        self._member(self.members.master())

    def follower(self) -> None:
        self._member(self.random.choice(self.members.followers()))

    def cut(self) -> None:
        self.members.isolate(self.random.choice(self.members.names()))
        self.last()
        self.members.heal()

    def full(self) -> None:
        mark = full_mark(self.members, self.random.choice(self.members.names()))
        mark.touch()
        self.last()
        mark.unlink()


def full_mark(members: Cluster, name: str) -> Path:
    """Return the file that makes the disk of a member full while it is there."""
    return members.directory / f"{name}.full"


class Sender:
    """A thread that sends each message to two queues, while both backlogs are small."""

    def __init__(self, endpoints: list[str], urls: list[str], watched: list[str]) -> None:
        self.connection = Connection(endpoint=endpoints[0], endpoints=",".join(endpoints), retry_seconds=PATIENCE_S)
        self._urls, self._watched = urls, watched
        self.sent = 0
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def __enter__(self) -> "Sender":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            sqs = connect(self.connection)
            while not self._stop.is_set():
                if max(sum(counts(sqs, url)) for url in self._watched) < BACKLOG_MAX:
                    bodies = [f"m{self.sent + number}" for number in range(SEND_BATCH)]
                    entries = [{"Id": body, "MessageBody": body} for body in bodies]
                    for url in self._urls:
                        self._send_all(sqs, url, entries)
                    self.sent += SEND_BATCH
                self._stop.wait(0.05)
        except BaseException as failure:  # the thread that waits for this one raises it
            self.failure = failure

    def _send_all(self, sqs: Any, url: str, entries: list[dict[str, str]]) -> None:
        left = entries
        while left:
            failed = sqs.send_message_batch(QueueUrl=url, Entries=left).get("Failed") or []
            assert not any(each["SenderFault"] for each in failed), failed
            left = [each for each in left if each["Id"] in {one["Id"] for one in failed}]


@contextmanager
def three(directory: Path) -> Iterator[Cluster]:
    members = Cluster(directory / "members")
    try:
        for name in members.names():
            members[name].module = f"tests.system.durability.faulty full {full_mark(members, name)}"
        yield members.start()
    finally:
        members.end()


def stored(directory: Path) -> Counter[str]:
    """Return how often each body is in the Parquet files that Spark's log names."""
    import pyarrow.parquet

    names = {
        json.loads(line)["path"].rpartition("/")[2]
        for entry in (directory / "store" / "_spark_metadata").glob("[0-9]*")
        for line in entry.read_text().splitlines()[1:]
    }
    return Counter(
        body for name in names for body in pyarrow.parquet.read_table(directory / "store" / name)["body"].to_pylist()
    )


def counted(directory: Path) -> dict[int, int]:
    """Return the newest counts of the aggregation by bucket."""
    last = newest(directory / "count")
    found: dict[str, int] = json.loads((directory / "count" / f"{last}.json").read_text()) if last >= 0 else {}
    return {int(bucket): count for bucket, count in found.items()}


def run(seed: int, minutes: float, directory: Path, read: dict[str, str]) -> list[str]:
    """Run the pipeline under faults; print the counts and return the findings. read: more options of the source."""
    random = Random(seed)
    spark = SparkCluster(directory / "cluster")
    happened: Counter[str] = Counter()
    met: Counter[str] = Counter()
    try:
        with three(directory) as members:
            names = {"inbox": {}, "outbox": {"ElasticqIdempotencyWindow": "3600"}, "events": {}}
            first = members["n1"]
            urls = {
                name: first.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]
                for name, attributes in names.items()
            }
            endpoints = members.endpoints()
            options = OPTIONS | {"endpoints": ",".join(endpoints), "retrySeconds": 120} | read
            spark.start()
            plan = {"master": spark.url, "queues": urls, "options": options, "directory": str(spark.directory)}
            spark.plan.write_text(json.dumps(plan | {"conf": CONF}))
            spark.start_driver()
            with Sender(endpoints, [urls["inbox"], urls["events"]], list(urls.values())) as sender:
                for query in QUERIES:
                    until(
                        lambda query=query: newest(spark.directory / "checkpoint" / query / "commits") >= 0,
                        lambda: spark.said("driver")[-4_000:],
                        PATIENCE_S,
                    )
                faults = Faults(spark, members, random)
                end_s = time.monotonic() + minutes * 60
                while time.monotonic() < end_s:
                    let_pass(random.uniform(*BETWEEN_S))
                    kind = random.choice(list(faults.kinds))
                    met[kind] += any(map(spark.is_running, QUERIES))
                    faults.kinds[kind]()
                    happened[kind] += 1
                members.wait_ready(patience_s=PATIENCE_S)
            sqs = connect(sender.connection)
            with suppress(AssertionError):  # the findings report it
                until(
                    lambda: (
                        not any(sum(counts(sqs, url)) for url in urls.values())
                        and not any(map(spark.is_running, QUERIES))
                    ),
                    "all queues are drained",
                    PATIENCE_S,
                )
            left = {name: counts(sqs, url) for name, url in urls.items()}
            rows, buckets = stored(spark.directory), counted(spark.directory)
            members.same_rows()
    finally:
        spark.end()
    expected = {f"m{number}" for number in range(sender.sent)}
    lost, doubled = expected - rows.keys(), [body for body, times in rows.items() if times > 1]
    right = dict(Counter(number % BUCKETS for number in range(sender.sent)))
    for kind in sorted(happened):
        print(f"{kind}: {happened[kind]} faults, {met[kind]} met a running batch")
    print(
        f"seed {seed}: {happened.total()} faults, {met.total()} met a running batch; {sender.sent} messages to each of"
        f" two queues; Parquet: {len(lost)} lost, {len(doubled)} doubled, {len(rows.keys() - expected)} strange;"
        f" aggregation {'right' if buckets == right else 'WRONG'}; left (waiting, in flight): {left};"
        f" {sum(newest(spark.directory / 'checkpoint' / query / 'commits') + 1 for query in QUERIES)} batches",
        flush=True,
    )
    findings = [f"{name} holds {each}" for name, each in left.items() if any(each)]
    findings += [f"lost {sorted(lost)[:20]}"] if lost else []
    findings += [f"doubled {doubled[:20]}"] if doubled else []
    findings += [f"strange {sorted(rows.keys() - expected)[:20]}"] if rows.keys() - expected else []
    return findings + ([f"the counts are {buckets}, not {right}"] if buckets != right else [])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60, help="time during which faults happen (60)")
    parser.add_argument("--seed", type=int, help="seed of the faults (random)")
    parser.add_argument(
        "--read",
        action="append",
        default=[],
        help="name=value of a reading option; ackMode=onRead must be found to lose",
    )


def main(options: argparse.Namespace) -> int:
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the exit runs every cleanup
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-pipeline-"))
    try:
        findings = run(seed, options.minutes, directory, dict(each.split("=", 1) for each in options.read))
    except (AssertionError, OSError) as failure:
        findings = [f"failed: {failure}"]
    for finding in findings:
        print(f"  {finding}")
    if findings:
        print(f"  all files are in {directory}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return int(bool(findings))
