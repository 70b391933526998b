"""A streaming job of real Spark, what kills its processes, and what compares its output with what was sent.

The job's driver leads a session of its own (setsid), which all that it starts belongs to: the JVMs, the Python
workers, which leave its process group. So a job is found and ended as a whole, whatever its test did.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final

from elasticq.client import Sqs
from tests.spark.conftest import KEYS
from tests.spark.marked import MARKS, PACE_S, READS, STRAGGLER_S
from tests.system.durability.server import pause

ROOT = Path(__file__).resolve().parents[2]
PROC = Path("/") / "proc"
PATIENCE_S = 240
LOOK_S = 0.02
LOOK_CLOSELY_S = 0.0005
SHOWN_BYTES = 4_000
SEND_BATCH = 10
BACKLOG_MAX = 600  # the sender waits above it: a job that is killed all the time is slow
RETRY_S = 120.0
CONF: Final = {
    "name": "killed",
    "spark_sql_shuffle_partitions": 2,
    "spark_driver_memory": "512m",
    "spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark_executor_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark_task_maxFailures": 1_000,
    "spark_deploy_maxExecutorRetries": -1,
    "spark_sql_streaming_minBatchesToRetain": 10,
}

# A second attempt as soon as the others are done and the first is a little slow, whatever it has done till then.
SPECULATION: Final = {
    "spark_speculation": True,
    "spark_speculation_interval": "100ms",
    "spark_speculation_quantile": 0.5,
    "spark_speculation_multiplier": 1.1,
    "spark_speculation_minTaskRuntime": "100ms",
    "spark_speculation_efficiency_enabled": False,
}


def until(condition: Callable[[], Any], what: str | Callable[[], str], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``."""
    deadline_s = time.monotonic() + patience_s
    while not (value := condition()):
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {patience_s} s: {what if isinstance(what, str) else what()}")
        pause(LOOK_S)
    return value


# --- processes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    state: str
    command: str


def session_of(leader: int) -> list[Process]:
    """All living processes of the session."""
    looks = (_look(int(entry.name), leader) for entry in PROC.iterdir() if entry.name.isdigit())
    return [process for process in looks if process is not None]


def _look(pid: int, leader: int) -> Process | None:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        if int(fields[3]) != leader or fields[0] in "ZX":
            return None
        command = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return Process(pid, int(fields[1]), fields[0], command)


def send_signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def freeze(pid: int, leader: int) -> bool:
    """SIGSTOP, and wait for its effect; False when it has ended."""
    send_signal(pid, signal.SIGSTOP)

    def is_over() -> bool:
        process = _look(pid, leader)
        return process is None or process.state == "T"

    until(is_over, f"{pid} stops")
    return _look(pid, leader) is not None


class Job:
    """``sink``: files or actions, see killed.py. ``pace_s``: after each receive of ``page`` messages."""

    def __init__(
        self,
        directory: Path,
        url: str,
        *,
        master: str = "local[2,1000]",
        sink: str = "files",
        pace_s: float = 0.03,
        straggler_s: float = 0.0,
        options: dict[str, Any] | None = None,
        conf: dict[str, Any] | None = None,
    ) -> None:
        self.directory = directory
        self.url = url
        self.sink = sink
        self.out, self.checkpoint = directory / "out", directory / "checkpoint"
        self.marks, self.log = directory / "marks", directory / "job.log"
        self.spread_s = 3 * pace_s
        self.is_cluster = not master.startswith("local[")
        self.marks.mkdir(parents=True)
        plan = {
            "url": url,
            "out": str(self.out),
            "checkpoint": str(self.checkpoint),
            "sink": sink,
            "options": {"pageSize": 10, "maxMessagesPerTrigger": 200, "pollInterval": 0.1, "retrySeconds": RETRY_S}
            | {"partitions": 4}
            | (options or {}),
            "conf": CONF
            | {"master": master, "spark_local_dir": str(directory / "scratch")}
            | {"spark_sql_warehouse_dir": str(directory / "warehouse")}
            | (conf or {}),
        }
        self.plan = directory / "plan.json"
        self.plan.write_text(json.dumps(plan))
        self.environment = {MARKS: str(self.marks), PACE_S: str(pace_s), "PYTHONPATH": str(ROOT)}
        if straggler_s:
            self.environment[STRAGGLER_S] = str(straggler_s)
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    # Life.

    def __enter__(self) -> "Job":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> "Job":
        """Returns at once."""
        assert self.process is None
        self.starts += 1
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
        environment |= KEYS | self.environment
        if self.is_cluster:
            environment["SPARK_HOME"] = str(spark_home(self.directory / "spark"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.killed", str(self.plan)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,  # by its end it knows that this process is gone, and goes too
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def end(self) -> None:
        """kill -9 of all that it started; returns when nothing of it is left. Harmless when it does not run."""
        if self.process is None:
            return
        leader = self.process.pid
        while processes := session_of(leader):
            for process in processes:
                send_signal(process.pid, signal.SIGKILL)
            if self.process.poll() is None:
                self.process.wait(PATIENCE_S)
            pause(LOOK_S)
        self.process.wait(PATIENCE_S)
        if self.process.stdin:
            self.process.stdin.close()
        self.process = None
        for mark in self.marks.glob("[0-9]*"):
            mark.unlink()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-SHOWN_BYTES:] if self.log.exists() else ""

    # Its processes.

    @property
    def leader(self) -> int:
        assert self.process is not None
        assert self.process.poll() is None, f"the driver ended with {self.process.poll()}: {self.said()}"
        return self.process.pid

    def find(self, word: str) -> list[Process]:
        return [process for process in session_of(self.leader) if word in process.command]

    def workers(self) -> list[Process]:
        """Python workers of tasks: what the daemons forked."""
        daemons = self.find("pyspark.daemon pyspark.worker")
        pids = {process.pid for process in daemons}
        return [process for process in daemons if process.parent in pids]

    def reading(self) -> list[Process]:
        """Workers that are inside a read."""
        marked = {entry.name for entry in self.marks.iterdir()}
        return [process for process in self.workers() if str(process.pid) in marked] if marked else []

    def sources(self) -> list[Process]:
        return self.find("python_streaming_source_runner")

    def executors(self) -> list[Process]:
        return self.find("CoarseGrainedExecutorBackend")

    def descendants(self, pid: int) -> list[Process]:
        processes = session_of(self.leader)
        found, pids = [], {pid}
        while more := [one for one in processes if one.parent in pids and one not in found]:
            found += more
            pids |= {one.pid for one in more}
        return found

    # Kills. Each returns whether a process died inside a read.

    def kill(self, pids: Iterable[int]) -> bool:
        """They stop first, so that it is sure which of them are inside a read as they die."""
        leader = self.leader
        frozen = [pid for pid in pids if freeze(pid, leader)]
        marks = [mark for pid in frozen if (mark := self.marks / str(pid)).exists()]
        for pid in frozen:
            send_signal(pid, signal.SIGKILL)
        for mark in marks:
            mark.unlink()
        return bool(marks)

    def kill_worker(self, random: Random) -> bool:
        workers = until(self.workers, lambda: f"a Python worker lives: {self.said()}")
        return self.kill([random.choice(workers).pid])

    def kill_reader(self, random: Random) -> bool:
        """A worker inside a read; tried until it is one."""
        leader = self.leader
        while True:
            until(self.reading, lambda: f"a worker reads: {self.said()}")
            pause(random.uniform(0, self.spread_s))  # not always as it begins
            reading = until(self.reading, lambda: f"a worker reads: {self.said()}")
            pid = random.choice(reading).pid
            if freeze(pid, leader) and (self.marks / str(pid)).exists():
                return self.kill([pid])
            send_signal(pid, signal.SIGCONT)

    def kill_source(self, random: Random) -> bool:
        """The process in which the driver plans and commits: the query fails and starts again."""
        sources = until(self.sources, lambda: f"a source lives: {self.said()}")
        return self.kill([random.choice(sources).pid])

    def kill_executor(self, random: Random) -> bool:
        """A JVM with its Python workers."""
        executors = until(self.executors, lambda: f"an executor lives: {self.said()}")
        executor = random.choice(executors).pid
        return self.kill([executor, *(process.pid for process in self.descendants(executor))])

    def kill_driver(self) -> bool:
        """All of it, and a new one from its checkpoint."""
        leader = self.leader
        inside = self.kill([process.pid for process in session_of(leader)])
        self.end()
        self.start()
        return inside

    def kill_between_sink_and_log(self) -> bool:
        """The driver, as soon as the sink has a batch and the commit log has not."""
        self.catch_uncommitted()
        return self.kill_driver()

    def catch_uncommitted(self) -> int:
        """Stops the JVM between the end of a batch in the sink and in the commit log; the batch."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            leader = self.leader
            jvm = until(lambda: self.find("deploy.SparkSubmit"), lambda: f"a driver's JVM lives: {self.said()}")[0].pid
            known = self.sunk()
            until(lambda known=known: self.sunk() > known, lambda: f"a batch ends: {self.said()}", PATIENCE_S)
            freeze(jvm, leader)
            if self.sunk() > self.committed():
                return self.sunk()
            send_signal(jvm, signal.SIGCONT)
        raise AssertionError(f"no batch was caught before its commit in {PATIENCE_S} s")

    def sunk(self) -> int:
        """The last batch that the sink has whole; -1: none."""
        if self.sink == "files":
            return newest(self.out / "_spark_metadata")
        return max((int(done.parent.name) for done in self.out.glob("*/_SUCCESS")), default=-1)

    def committed(self) -> int:
        """The last batch in the commit log."""
        return newest(self.checkpoint / "commits")

    def is_idle(self) -> bool:
        """All that is planned is in the commit log."""
        return newest(self.checkpoint / "offsets") == self.committed()

    # What came out.

    def reads(self) -> "Reads":
        reads = Reads()
        on: Counter[str] = Counter()
        begun: set[str] = set()
        path = self.marks / READS
        for line in path.read_text().splitlines() if path.exists() else []:
            word, share = line.split()
            if word == "begin":
                reads.begun += 1
                reads.again += share in begun
                reads.together += on[share] > 0
                begun.add(share)
            on[share] += 1 if word == "begin" else -1
        return reads

    def rows(self) -> list[list[str]]:
        """body, message id, batch, partition, receive count of each row in the sink."""
        return [line.split() for file in self.files() for line in file.read_text().splitlines()]

    def files(self) -> list[Path]:
        """What a reader of the sink takes: for Spark's own, what its log names."""
        if self.sink == "actions":
            return sorted(file for done in self.out.glob("*/_SUCCESS") for file in done.parent.glob("part-*"))
        names: set[str] = set()
        for entry in (self.out / "_spark_metadata").glob("[0-9]*"):
            for line in entry.read_text().splitlines()[1:]:
                names.add(json.loads(line)["path"].rpartition("/")[2])
        return [self.out / name for name in sorted(names)]


@dataclass
class Reads:
    """``again``: of a share that was read before; ``together``: while another read of it was on, or had been killed."""

    begun: int = 0
    again: int = 0
    together: int = 0


def newest(directory: Path) -> int:
    """The highest number that is the name of a whole file."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return -1
    return max((int(name.partition(".")[0]) for name in names if name[0].isdigit()), default=-1)


def spark_home(directory: Path) -> Path:
    """pyspark's own, with a place for the executors' work that is not among the installed packages."""
    import pyspark

    if not directory.exists():
        directory.mkdir(parents=True)
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (directory / entry.name).symlink_to(entry)
    return directory


# --- what was sent, what came ----------------------------------------------------------------------


@dataclass
class Verdict:
    """Of one job."""

    sent: int
    lost: list[str] = field(default_factory=list)
    doubled: dict[str, int] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)  # came and was not sent
    left: tuple[int, int] = (0, 0)  # waiting and in flight, one trigger after the last batch
    redelivered: int = 0  # rows that were received before: not an error by itself

    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.strange or any(self.left))

    def line(self) -> str:
        return (
            f"{self.sent} sent, {len(self.lost)} lost, {len(self.doubled)} duplicated, {len(self.strange)} strange,"
            f" {self.left[0]} left waiting, {self.left[1]} left in flight"
        )


class Sender:
    """Sends numbered bodies, in a thread of its own while ``entered``; ``sent`` holds what was acknowledged."""

    def __init__(self, endpoint: str, url: str, *, backlog_max: int = BACKLOG_MAX) -> None:
        self._endpoint, self._url, self._backlog_max = endpoint, url, backlog_max
        self.sent: list[str] = []
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def __enter__(self) -> "Sender":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the sender does not end"
        if self._failure is not None:
            raise self._failure

    def send(self, count: int) -> None:
        with self._client() as sqs:
            for _ in range(0, count, SEND_BATCH):
                self._send(sqs, min(SEND_BATCH, count))

    def _client(self) -> Sqs:
        return Sqs(self._endpoint, "us-east-1", retry_s=RETRY_S)

    def _send(self, sqs: Sqs, count: int) -> None:
        bodies = [f"m{len(self.sent) + number}" for number in range(count)]
        entries = [{"Id": body, "MessageBody": body} for body in bodies]
        answer = sqs.send_message_batch(QueueUrl=self._url, Entries=entries)
        assert not answer.get("Failed"), answer
        self.sent += bodies

    def _run(self) -> None:
        try:
            with self._client() as sqs:
                while not self._stop.is_set():
                    if sum(counts(sqs, self._url)) < self._backlog_max:
                        for _ in range(5):
                            self._send(sqs, SEND_BATCH)
                    self._stop.wait(LOOK_S)
        except BaseException as failure:  # told by the thread that waits for this one
            self._failure = failure


def counts(sqs: Sqs, url: str) -> tuple[int, int]:
    """Waiting and in flight."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    values = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return int(values[names[0]]), int(values[names[1]])


def judge(job: Job, endpoint: str, sent: list[str], patience_s: float = PATIENCE_S) -> Verdict:
    """When the queue is empty and nothing in flight, or that does not come about any more."""
    with Sqs(endpoint, "us-east-1", retry_s=RETRY_S) as sqs:
        with suppress(AssertionError):  # the verdict tells it
            until(lambda: not any(counts(sqs, job.url)) and job.is_idle(), "the queue is drained", patience_s)
        left = counts(sqs, job.url)
    rows = job.rows()
    came = Counter(row[0] for row in rows)
    known = set(sent)
    return Verdict(
        sent=len(sent),
        lost=[body for body in sent if body not in came],
        doubled={body: count for body, count in came.items() if count > 1},
        strange=[body for body in came if body not in known],
        left=left,
        redelivered=sum(int(row[4]) > 1 for row in rows),
    )
