"""Spark without a JVM: its micro-batch loop, tasks, checkpoint and sinks, in which every step is a place to die.

What is modelled of Spark, all seen with 4.3: the offset log is written before a
batch runs and the commit log after it; a restarted query runs the last batch of
the offset log again unless it is in the commit log, then asks latestOffset;
initialOffset is asked for the start of the first batch each time; a task is
tried four times, then the query fails and its supervisor starts it again; two
attempts of one task may run at once (speculation), a task of a lost executor
may start late, its requests may arrive late; a batch may be read twice
(foreachBatch with two actions). A sink that is idempotent by batch id leaves a
batch that it has alone, as the file sink and Delta do.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from elasticq.client import SqsError
from elasticq.spark.environment import Environment
from elasticq.spark.lease import LeaseLost
from elasticq.spark.offsets import Offset, Share
from elasticq.spark.options import Read
from elasticq.spark.source import StreamReader
from elasticq.spark.wal import LogMissing, TooSlow
from tests.spark.model.world import Client, Clock, Engine, Killed, MemoryStore, pick

SCHEMA = StructType().add("body", "string")
TASK_ATTEMPTS = 4
SHARES_REMEMBERED = 64
FAILED = (SqsError, LeaseLost, LogMissing, TooSlow)


class QueryFailed(Exception):
    """A task failed four times, or the driver-side process did: the supervisor starts the query again."""


@dataclass(frozen=True)
class Faults:
    """Chances at each step, and times."""

    driver_kill: float = 0.02
    task_kill: float = 0.03
    overlap: float = 0.02  # another attempt of a share of the batch runs while this one waits for an answer
    late_request: float = 0.01  # the executor is lost, its request arrives later
    late_task: float = 0.02  # a task of an old batch starts on a lost executor
    second_action: float = 0.1
    latency_ms: tuple[int, ...] = (2,)
    restart_ms: tuple[int, int] = (1_000, 10_000)


QUIET = Faults(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Setup:
    """One run."""

    messages: int = 300
    sent_at_once: int = 40
    fifo_groups: int = 0  # 0: a standard queue
    sink: str = "idempotent"
    two_actions: bool = False
    faults: Faults = field(default_factory=Faults)
    options: dict[str, Any] = field(default_factory=dict)
    reader: Callable[..., StreamReader] = StreamReader
    client: Callable[..., Any] = Client
    store: Callable[..., Any] = MemoryStore


@dataclass
class Outcome:
    """lost: sent, gone from the queue, never in the sink; stuck: in flight though the query was idle."""

    lost: int = 0
    duplicates: int = 0
    stuck: int = 0
    driver_kills: int = 0
    task_kills: int = 0
    batches: int = 0
    differing_reads: int = 0

    @property
    def kills(self) -> int:
        return self.driver_kills + self.task_kills


class VirtualHeartbeat:
    """Beats when the model says so."""

    def __init__(self, interval_ms: int, renew: Callable[[Offset], None]) -> None:
        self.interval_ms = interval_ms
        self.renew = renew
        self.offset: Offset | None = None
        self.due_ms = 0

    def cover(self, offset: Offset | None) -> None:
        self.offset = offset

    def stop(self) -> None:
        self.offset = None


class World:
    """A queue, a checkpoint, a sink, and what goes wrong between them."""

    def __init__(self, seed: int, setup: Setup) -> None:
        self.draw = random.Random(seed)
        self.setup = setup
        self.faults = setup.faults
        self.outcome = Outcome()
        self.clock = Clock()
        self.engine = Engine(self.clock, b"%d" % seed)
        self.files: dict[str, bytes] = {}
        self.offsets: list[str] = []
        self.commits: set[int] = set()
        self.sink: dict[int, list[str]] = {}
        self.appended: Counter[str] = Counter()
        self.in_task = 0
        self.running: list[Share] = []
        self.past: list[Share] = []
        self.late: list[Callable[[], Any]] = []
        self.names = 0
        self.sent = 0
        self.queue = self.make_queue()
        self.reader: StreamReader | None = None
        self.heartbeat: VirtualHeartbeat | None = None
        self.is_beating = False

    # --- the queue ----------------------------------------------------------------------------------

    def make_queue(self) -> str:
        attributes = {"FifoQueue": "true"} if self.setup.fifo_groups else {}
        name = "jobs.fifo" if attributes else "jobs"
        return str(self.plain().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def plain(self) -> Client:
        """A client to which nothing happens."""
        return Client(self.engine, lambda step, act: act())

    def send(self) -> None:
        entries = []
        for number in range(self.sent, min(self.sent + 10, self.setup.messages)):
            entry = {"Id": str(number), "MessageBody": str(number)}
            if self.setup.fifo_groups:
                entry["MessageGroupId"] = f"g{number % self.setup.fifo_groups}"
                entry["MessageDeduplicationId"] = str(number)
            entries.append(entry)
        if entries:
            self.plain().send_message_batch(QueueUrl=self.queue, Entries=entries)
            self.sent += len(entries)

    def counts(self) -> tuple[int, int]:
        """Visible and in flight."""
        found = self.plain().get_queue_attributes(QueueUrl=self.queue, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    # --- what goes wrong ----------------------------------------------------------------------------

    def around(self, step: str, act: Callable[[], Any]) -> Any:
        """A step that reaches out: time passes, somebody may die before or after it, others may come between."""
        self.clock.now_ms += self.draw.choice(self.faults.latency_ms)
        if self.is_beating:
            return act()
        self.beat()
        self.may_die()
        if self.in_task and pick(self.draw, self.faults.late_request):
            self.late.append(act)
            raise self.kill()
        result = act()
        self.may_die()
        self.others()
        return result

    def may_die(self) -> None:
        if pick(self.draw, self.faults.task_kill if self.in_task else self.faults.driver_kill):
            raise self.kill()

    def kill(self) -> Killed:
        if self.in_task:
            self.outcome.task_kills += 1
        else:
            self.outcome.driver_kills += 1
        return Killed()

    def others(self) -> None:
        """What lost executors still do, and what runs at the same time."""
        if self.late and pick(self.draw, 0.3):
            act = self.late.pop(self.draw.randrange(len(self.late)))
            self.ignoring(act)
        if self.in_task == 1 and self.running and pick(self.draw, self.faults.overlap):
            share = self.draw.choice(self.running)
            self.ignoring(lambda: self.attempt(share))
        if self.in_task < 2 and self.past and pick(self.draw, self.faults.late_task):
            share = self.draw.choice(self.past)
            self.ignoring(lambda: self.attempt(share))

    def ignoring(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except (Killed, *FAILED):
            return

    def beat(self) -> None:
        """The driver-side process's thread runs beside everything, as long as its process lives."""
        beating = self.heartbeat
        if beating is None or beating.offset is None or self.clock.now_ms < beating.due_ms or self.is_beating:
            return
        beating.due_ms = self.clock.now_ms + beating.interval_ms
        self.is_beating = True
        try:
            self.ignoring(lambda: beating.renew(beating.offset))
        finally:
            self.is_beating = False

    # --- Spark --------------------------------------------------------------------------------------

    def environment(self) -> Environment:
        client = self.setup.client(self.engine, self.around)
        store = self.setup.store(self.files, self.around)
        return Environment(
            connect=lambda connection: client,
            on_elasticq=lambda connection: self.setup.options.get("mode", "lease") == "lease",
            now_s=self.clock.now_s,
            sleep=self.clock.sleep,
            open_store=lambda location: store,
            random_part=self.random_part,
            for_each=lambda call, items: [call(item) for item in items],
            heartbeat=self.new_heartbeat,
        )

    def new_heartbeat(self, interval_s: float, renew: Callable[[Offset], None]) -> Any:
        """Only the driver's reader makes one."""
        self.heartbeat = VirtualHeartbeat(int(interval_s * 1000), renew)
        return self.heartbeat

    def random_part(self) -> str:
        self.names += 1
        return f"{self.names:06x}"

    def new_reader(self) -> StreamReader:
        options = {
            "client": "boto3",
            "queue_name": self.queue.rpartition("/")[2],
            "endpoint": "http://127.0.0.1:9324",
            "max_messages_per_trigger": self.setup.sent_at_once,
            "partitions": 3,
            "retry_seconds": 0.0,
            "poll_interval": 0.1,
            "wal_location": "memory",
            **self.setup.options,
        }
        return self.setup.reader(Read(**options), SCHEMA, self.environment())

    def attempt(self, share: Share) -> list[str]:
        """One attempt of a task, on an executor of its own."""
        self.in_task += 1
        try:
            reader = self.new_reader()
            self.may_die()
            bodies: list[str] = []
            for batch in reader.read(InputPartition(share)):
                bodies += batch.column("body").to_pylist()
                self.may_die()
            return bodies
        finally:
            self.in_task -= 1

    def task(self, share: Share) -> list[str]:
        for _ in range(TASK_ATTEMPTS):
            try:
                return self.attempt(share)
            except (Killed, *FAILED):
                self.clock.now_ms += self.draw.randint(10, 500)
        raise QueryFailed

    def job(self, shares: list[Share]) -> list[str]:
        order = list(shares)
        self.draw.shuffle(order)
        self.running = order
        try:
            return [body for share in order for body in self.task(share)]
        finally:
            self.running = []

    def batch(self, number: int, start: Any, end: Any) -> None:
        reader = self.reader
        assert reader is not None
        shares = [partition.value for partition in reader.partitions(start, end)]
        self.may_die()
        rows = self.job(shares)
        if self.setup.two_actions and pick(self.draw, 0.5):
            self.outcome.differing_reads += sorted(self.job(shares)) != sorted(rows)
        self.may_die()
        self.write(number, rows)
        self.may_die()
        self.commits.add(number)
        self.past = [*self.past, *shares][-SHARES_REMEMBERED:]
        self.outcome.batches += 1
        self.may_die()

    def write(self, number: int, rows: list[str]) -> None:
        self.appended.update(rows)
        self.sink.setdefault(number, rows)

    def life(self, steps: int) -> bool:
        """A driver from its start until it dies, or has been idle with everything sent. True: it was idle."""
        self.reader = reader = self.new_reader()
        if len(self.offsets) and len(self.offsets) - 1 not in self.commits:
            number = len(self.offsets) - 1
            self.batch(number, self.start_of(number), json.loads(self.offsets[number]))
        idle = 0
        for _ in range(steps):
            if self.sent < self.setup.messages:
                self.send()
            start = self.start_of(len(self.offsets))
            self.may_die()
            limit = reader.getDefaultReadLimit()
            end = reader.latestOffset(start, limit)
            self.may_die()
            if json.dumps(end) == json.dumps(start):
                idle += 1
                if idle > 2 and self.sent >= self.setup.messages:
                    return True
                continue
            idle = 0
            number = len(self.offsets)
            self.offsets.append(json.dumps(end))
            self.may_die()
            self.batch(number, start, end)
            if number:
                reader.commit(json.loads(self.offsets[number - 1]))
        return False

    def start_of(self, number: int) -> Any:
        assert self.reader is not None
        return json.loads(self.offsets[number - 1]) if number else self.reader.initialOffset()

    def restart(self) -> None:
        self.in_task = 0
        self.heartbeat = None
        self.clock.now_ms += self.draw.randint(*self.faults.restart_ms)

    # --- a run --------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Until all is sent and read; then the queue has to be empty, and the sink full."""
        for _ in range(400):
            if self.lived():
                break
        self.faults = QUIET
        self.late.clear()
        for _ in range(12):
            self.lived()
            visible, in_flight = self.counts()
            if not visible and not in_flight:
                break
            self.outcome.stuck = max(self.outcome.stuck, in_flight)
            self.clock.now_ms += 43_200_000
        self.judge()
        return self.outcome

    def lived(self) -> bool:
        try:
            return self.life(200)
        except (Killed, QueryFailed, *FAILED):
            self.restart()
            return False

    def judge(self) -> None:
        found = Counter(body for rows in self.sink.values() for body in rows)
        if self.setup.sink == "append":
            found = self.appended
        left = sum(self.counts())
        missing = sum(1 for number in range(self.sent) if str(number) not in found)
        self.outcome.lost = max(0, missing - left)
        self.outcome.stuck = max(self.outcome.stuck, left)
        self.outcome.duplicates = sum(count - 1 for count in found.values())


def total(outcomes: list[Outcome]) -> Outcome:
    summed = Outcome()
    for outcome in outcomes:
        for name in vars(summed):
            setattr(summed, name, getattr(summed, name) + getattr(outcome, name))
    return summed
