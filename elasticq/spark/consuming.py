"""Consumes a queue with a function on Spark's executors: each message is deleted when the function has returned.

A task receives a page, calls the function on each message and deletes those for which it returned, a batch at a
time. While it works on one page the next is already being received, and a thread renews the visibility of all that
it holds every third of the timeout, so that a slow function keeps its messages. A message for which the function
raised is given back at once (visibility 0) for others to try; if it comes to the same task again it is set aside
until the task ends: otherwise one message that always fails would keep a task for ever. On a FIFO queue the rest of
its group goes the same way, so that no group gets out of order.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from elasticq.client.errors import ClientError, SqsError
from elasticq.spark.arrays import numbers, strings
from elasticq.spark.clients import connect, on_elasticq
from elasticq.spark.collector import settle
from elasticq.spark.options import OptionError, Queue, flag, option, parse_queue, seconds, whole
from elasticq.spark.pages import Pages, batching, pages_for

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

Message = dict[str, Any]
Function = Callable[[Message], object]

SET_ASIDE_MAX = 10_000  # messages that failed twice and are held by a task
WAIT_S_MAX = 20  # of a receive, the bound of AWS
PARTITIONS_MAX = 10_000
PAGE_WORK_S = 1.0  # a task fetches about this much work at once, so that the others find some too
FAILED_MAX = 100_000  # ids that a task remembers of messages that failed; an older one is only tried again
COLUMNS = {
    "partition": "int", "received": "long", "processed": "long", "failed": "long", "givenBack": "long",
    "deleted": "long", "renewed": "long", "calls": "long", "seconds": "double", "firstError": "string",
}  # fmt: skip
ARROW = {"int": ("int32", "i"), "long": ("int64", "q"), "double": ("float64", "d")}


@dataclass(frozen=True)
class Consume(Queue):
    """The options of ``consume``, besides its arguments."""

    visibility_timeout: float = option(seconds(1, 43_200), 60.0, "of received messages; renewed every third of it")
    wait_time_seconds: float = option(seconds(0, 20), -1.0, "wait of a receive; else 0 on elasticq, 1 elsewhere")
    page_size: int = option(whole(1, 1000), 0, "messages of a receive at most; else a second's work, 10 to 1000")
    include_attributes: bool = option(flag, True, "whether messages come with their attributes")
    prefetch: bool = option(flag, True, "whether the next page is received while one is worked on")


@dataclass(frozen=True, slots=True)
class Until:
    """When a task ends: at the first empty receive, after so many messages, or at a time, as far as these are set."""

    empty: bool = True
    count: int | None = None
    deadline_s: float | None = None  # since the epoch: tasks may start much later than the driver asked

    @classmethod
    def parse(cls, until: "str | int | datetime") -> "Until":
        """Parses ``empty``, ``count:N`` or N, ``seconds:S``, or a datetime. Raises OptionError."""
        kind, _, value = str(until).partition(":")
        try:
            if isinstance(until, datetime):
                return cls(empty=False, deadline_s=until.timestamp())
            if isinstance(until, int):
                return cls(empty=False, count=until)
            if kind == "count":
                return cls(empty=False, count=int(value))
            if kind == "seconds":
                return cls(empty=False, deadline_s=time.time() + float(value))
        except ValueError:
            kind = ""
        if until != "empty":
            raise OptionError(f"until={until!r} is not empty, count:N, seconds:S or a datetime")
        return cls()

    def share(self, partition: int, partitions: int) -> "Until":
        """Returns the part of one task: its share of a count, everything else unchanged."""
        if self.count is None:
            return self
        return Until(self.empty, self.count // partitions + (partition < self.count % partitions), self.deadline_s)


@dataclass(slots=True)
class TaskCounts:
    """The counts of one task: a row of the frame that ``consume`` returns, in the order of ``COLUMNS``."""

    partition: int
    received: int = 0
    processed: int = 0
    failed: int = 0
    given_back: int = 0
    deleted: int = 0
    renewed: int = 0
    calls: int = 0
    seconds: float = 0.0
    first_error: str | None = None


def consume(
    spark: "SparkSession",
    queue: str,
    fn: Function,
    partitions: int = 0,
    until: "str | int | datetime" = "empty",
    **options: Any,
) -> "DataFrame":
    """Calls ``fn`` on each message of a queue (name or URL) and deletes it when fn returned; counts per partition.

    fn gets the message as boto3's receive_message shows it and runs on the executors. partitions: how many tasks; 0 for
    the default parallelism. Options are those of ``Consume``, as visibilityTimeout=60 or visibility_timeout=60.
    Delivery is at least once: a message may come again after its task died. Raises OptionError.
    """
    settings = settings_of(queue, options)
    partitions = partitions or min(spark.sparkContext.defaultParallelism, PARTITIONS_MAX)
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise OptionError(f"partitions={partitions} is not from 1 to {PARTITIONS_MAX}")
    work = Work(settings, queue_url_of(settings), fn, Until.parse(until), partitions)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    table = spark.range(0, partitions, 1, partitions).mapInArrow(work, schema).toArrow()
    return spark.createDataFrame(table)  # from rows, Spark would start workers again to show them


def settings_of(queue: str, options: dict[str, Any]) -> Consume:
    given = {name.replace("_", ""): str(value) for name, value in options.items() if value is not None}
    return parse_queue(Consume, {**given, "queueUrl" if "://" in queue else "queueName": queue})


def queue_url_of(settings: Queue) -> str:
    """Returns the URL of the one queue named. Raises OptionError if it does not exist."""
    client = connect(settings.connection)
    try:
        if settings.queue_name:
            return str(client.get_queue_url(QueueName=settings.queue_name)["QueueUrl"])
        client.get_queue_attributes(QueueUrl=settings.queue_url, AttributeNames=["QueueArn"])
    except SqsError as error:
        if "AccessDenied" not in error.code:
            raise OptionError(f"queue {settings.queue_url or settings.queue_name}: {error}") from error
    return settings.queue_url


@dataclass(frozen=True)
class Work:
    """The whole job, as it is sent to each task."""

    settings: Consume
    queue_url: str
    fn: Function
    until: Until
    partitions: int

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """The function for mapInArrow: it takes one row (the partition's number) and yields one row of counts."""
        import pyarrow

        settle()
        for batch in batches:
            for partition in batch.column(0).to_pylist():
                counts = astuple(self.run(partition))
                columns = [column_of(kind, value) for kind, value in zip(COLUMNS.values(), counts, strict=True)]
                yield pyarrow.RecordBatch.from_arrays(columns, names=list(COLUMNS))
        settle()

    def run(self, partition: int) -> TaskCounts:
        connection = self.settings.connection
        client = connect(connection)
        pages = pages_for(connection, self.settings.page_size)
        wait_s = self.settings.wait_time_seconds
        if wait_s < 0:
            wait_s = 0 if on_elasticq(connection) else 1
        task = Task(self, client, pages, int(wait_s), self.until.share(partition, self.partitions), partition)
        return task.run()


def column_of(kind: str, value: Any) -> Any:
    """Returns the Arrow array of one value."""
    import pyarrow

    if kind == "string":
        return strings([value])
    name, code = ARROW[kind]
    return numbers(getattr(pyarrow, name)(), code, [value])


class Task:
    """One task's loop. Only ``_renew`` and the receives run in threads besides it."""

    def __init__(self, work: Work, client: Any, pages: Pages, wait_s: int, until: Until, partition: int) -> None:
        self._work = work
        self._client = client
        self._pages = pages
        self._wait_s = wait_s
        self._until = until
        self._visibility_s = int(work.settings.visibility_timeout)
        self._is_fifo = work.queue_url.endswith(".fifo")
        self._page = min(10, pages.size_max)
        self._failed_before: dict[str, None] = {}
        self._set_aside: list[str] = []
        self._held: dict[str, None] = {}  # receipt handles whose visibility this task renews
        self._lock = threading.Lock()  # guards _held and counts.calls, which the renewing thread changes too
        self._done = threading.Event()
        self.counts = TaskCounts(partition)

    def run(self) -> TaskCounts:
        """Runs the task; returns its counts. Raises the client's error once retrySeconds are over without an answer."""
        started_s = time.monotonic()
        renewing = threading.Thread(target=self._renew, name="sqs-heartbeat", daemon=True)
        renewing.start()
        try:
            with ThreadPoolExecutor(1, "sqs-prefetch") as receiver:
                self._loop(receiver)
        finally:
            self._done.set()
            renewing.join()
        self._give_back(self._set_aside)
        self.counts.seconds = time.monotonic() - started_s
        return self.counts

    def _loop(self, receiver: ThreadPoolExecutor) -> None:
        coming = self._ask(receiver)
        while coming is not None:
            messages = coming.result()
            self.counts.received += len(messages)
            if not messages and self._until.empty:
                return
            # The next page is asked for before the work on this one begins, so that it is there when that ends.
            coming = self._ask(receiver) if self._work.settings.prefetch else None
            self._page_done(messages)
            if not self._work.settings.prefetch:
                coming = self._ask(receiver)

    def _ask(self, receiver: ThreadPoolExecutor) -> "Future[list[Message]] | None":
        """Starts to receive the next page; None if the task has to end."""
        wanted, wait_s = self._page, self._wait_s
        if self._until.count is not None:
            wanted = min(wanted, self._until.count - self.counts.received)
        if not self._until.empty:
            wait_s = WAIT_S_MAX
        if self._until.deadline_s is not None:
            left_s = self._until.deadline_s - time.time()
            wait_s = min(wait_s, int(left_s) + 1)
            if left_s <= 0:
                return None
        if wanted <= 0 or len(self._set_aside) >= SET_ASIDE_MAX:
            return None
        return receiver.submit(self._receive, wanted, wait_s)

    def _receive(self, wanted: int, wait_s: int) -> list[Message]:
        members: dict[str, Any] = self._pages.receiving(wanted)
        if self._work.settings.include_attributes:
            members |= {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
        elif self._is_fifo:
            members["MessageSystemAttributeNames"] = ["MessageGroupId"]
        self._called()
        answer = self._client.receive_message(
            QueueUrl=self._work.queue_url, VisibilityTimeout=self._visibility_s, WaitTimeSeconds=wait_s, **members
        )
        messages: list[Message] = answer.get("Messages") or []
        with self._lock:
            self._held.update((message["ReceiptHandle"], None) for message in messages)
        return messages

    def _page_done(self, messages: list[Message]) -> None:
        started_s = time.monotonic()
        done: list[str] = []
        back: list[str] = []
        groups: dict[str, list[str]] = {}  # handles of the messages behind a failed one, by group of a FIFO queue
        batch = self._pages.size_max
        for message in messages:
            handle = message["ReceiptHandle"]
            group = message["Attributes"]["MessageGroupId"] if self._is_fifo else ""
            if group in groups:
                groups[group].append(handle)
            elif message["MessageId"] in self._failed_before:
                self._set_aside.append(handle)
                groups |= {group: self._set_aside} if self._is_fifo else {}
            elif self._try(message):
                done.append(handle)
                if len(done) == batch:
                    self._delete(done)
                    done = []
            else:
                back.append(handle)
                groups |= {group: back} if self._is_fifo else {}
                if not self._is_fifo:
                    self._give_back(back)
                    back = []
        self._delete(done)
        self._give_back(back)
        self._resize(len(messages), time.monotonic() - started_s)

    def _try(self, message: Message) -> bool:
        try:
            self._work.fn(message)
        except Exception as error:
            self.counts.failed += 1
            self._failed_before[message["MessageId"]] = None
            if len(self._failed_before) > FAILED_MAX:
                del self._failed_before[next(iter(self._failed_before))]
            if self.counts.first_error is None:
                self.counts.first_error = f"{type(error).__name__}: {error}"
            return False
        self.counts.processed += 1
        return True

    def _resize(self, messages: int, work_s: float) -> None:
        per_second = messages / max(work_s / PAGE_WORK_S, 1e-6)
        self._page = min(self._pages.size_max, max(10, int(per_second))) if messages else self._page

    def _delete(self, handles: list[str]) -> None:
        for entries in self._batches(handles):
            size = batching(len(entries))
            answer = self._client.delete_message_batch(QueueUrl=self._work.queue_url, Entries=entries, **size)
            self.counts.deleted += len(answer.get("Successful", ()))

    def _give_back(self, handles: list[str]) -> None:
        for entries in self._batches(handles):
            self._change_visibility(entries, 0)
            self.counts.given_back += len(entries)

    def _batches(self, handles: list[str]) -> Iterator[list[dict[str, Any]]]:
        """Yields the entries of one call after another; their messages are no longer renewed."""
        with self._lock:
            for handle in handles:
                self._held.pop(handle, None)
        yield from self._entries(handles)

    def _entries(self, handles: list[str]) -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(handles), self._pages.size_max):
            self._called()
            some = handles[start : start + self._pages.size_max]
            yield [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(some)]

    def _change_visibility(self, entries: list[dict[str, Any]], visibility_s: int) -> int:
        for entry in entries:
            entry["VisibilityTimeout"] = visibility_s
        answer = self._client.change_message_visibility_batch(
            QueueUrl=self._work.queue_url, Entries=entries, **batching(len(entries))
        )
        return len(answer.get("Successful", ()))

    def _renew(self) -> None:
        """Runs the heartbeat. A renewal that fails is tried again at the next beat; a lost message only comes twice."""
        while not self._done.wait(self._visibility_s / 3):
            with self._lock:
                handles = list(self._held)
            try:
                for entries in self._entries(handles):
                    self.counts.renewed += self._change_visibility(entries, self._visibility_s)
            except ClientError:
                continue

    def _called(self) -> None:
        with self._lock:
            self.counts.calls += 1
