"""Consumption of a queue by a user's function on Spark's executors.

A task receives a page of messages, calls the function on each, and deletes the messages for which it returned.
Meanwhile the task receives the next page. A thread renews the visibility of all messages of the task every third of the
timeout, so a slow function keeps its messages.

If the function raises an error, the task makes the message visible again at once. If the same task gets that message
again, it sets the message aside until the task ends. Otherwise one message that always fails would keep the task
running for ever. On a FIFO queue, the later messages of the group are treated like the failed one, which
keeps the group in order.
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

SET_ASIDE_MAX = 10_000  # messages that a task keeps invisible after their second failure
WAIT_S_MAX = 20  # the longest wait of a receive on AWS
PARTITIONS_MAX = 10_000
PAGE_WORK_S = 1.0  # a task receives about one second's work at once and leaves messages for other tasks
FAILED_MAX = 100_000  # failed message ids that a task remembers; a forgotten message is tried once more
COLUMNS = {
    "partition": "int", "received": "long", "processed": "long", "failed": "long", "givenBack": "long",
    "deleted": "long", "renewed": "long", "calls": "long", "seconds": "double", "firstError": "string",
}  # fmt: skip
ARROW = {"int": ("int32", "i"), "long": ("int64", "q"), "double": ("float64", "d")}


@dataclass(frozen=True)
class Consume(Queue):
    """The options of ``consume``, in addition to its arguments."""

    visibility_timeout: float = option(seconds(1, 43_200), 60.0, "of received messages, renewed every third of it")
    wait_time_seconds: float = option(seconds(0, 20), -1.0, "wait of a receive; by default 0 on elasticq, else 1")
    page_size: int = option(whole(1, 1000), 0, "most messages of a receive; by default a second's work, 10 to 1000")
    include_attributes: bool = option(flag, True, "whether messages come with their attributes")
    prefetch: bool = option(flag, True, "whether a task receives the next page while it works on one")


@dataclass(frozen=True, slots=True)
class Until:
    """When a task ends: at its first empty receive, after a count of messages, or at a time. Exactly one is set."""

    empty: bool = True
    count: int | None = None
    deadline_s: float | None = None  # since the epoch, because tasks may start much later than the call

    @classmethod
    def parse(cls, until: "str | int | datetime") -> "Until":
        """Parse ``empty``, ``count:N`` or N, ``seconds:S``, or a datetime. Raise OptionError for anything else."""
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
        """Return the end of one of several tasks: its part of a count, everything else unchanged."""
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
    """Call ``fn`` on each message of a queue and delete the message when fn has returned.

    Return one row of counts for each partition (``COLUMNS``). Raise OptionError for a wrong option or a missing queue.
    queue: a name or a URL. fn: runs on the executors and gets the message in the shape of boto3's receive_message.
    partitions: the number of tasks; 0: Spark's default parallelism. options: the fields of ``Consume``, written
    visibilityTimeout=60 or visibility_timeout=60. Delivery is at least once: a message may come again after its task
    died.
    """
    settings = settings_of(queue, options)
    partitions = partitions or min(parallelism(spark), PARTITIONS_MAX)
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise OptionError(f"partitions={partitions} is not from 1 to {PARTITIONS_MAX}")
    work = Work(settings, queue_url_of(settings), fn, Until.parse(until), partitions)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return computed(spark, spark.range(0, partitions, 1, partitions).mapInArrow(work, schema))


def parallelism(spark: "SparkSession") -> int:
    """Return Spark's default number of tasks. Spark Connect does not report it, so a job counts tasks there."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except AttributeError:
        from pyspark.sql.functions import spark_partition_id

        return int(spark.range(PARTITIONS_MAX).select(spark_partition_id()).distinct().count())


def computed(spark: "SparkSession", frame: "DataFrame") -> "DataFrame":
    """Compute a frame now, once, and return its rows as a frame."""
    if hasattr(frame, "toArrow"):
        # A frame of Python rows would start the workers again when it is shown; a frame of Arrow data does not.
        return spark.createDataFrame(frame.toArrow())
    return spark.createDataFrame(frame.collect(), frame.schema)  # before Spark 4.0


def settings_of(queue: str, options: dict[str, Any]) -> Consume:
    given = {name.replace("_", ""): str(value) for name, value in options.items() if value is not None}
    return parse_queue(Consume, {**given, "queueUrl" if "://" in queue else "queueName": queue})


def queue_url_of(settings: Queue) -> str:
    """Return the URL of the queue that the options name. Raise OptionError if it does not exist."""
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
    """The whole job, which Spark pickles and sends to each task."""

    settings: Consume
    queue_url: str
    fn: Function
    until: Until
    partitions: int

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """Run a task for each row of the batches, a partition's number. Yield one row of counts for each."""
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
    """Return an Arrow array that holds one value."""
    import pyarrow

    if kind == "string":
        return strings([value])
    name, code = ARROW[kind]
    return numbers(getattr(pyarrow, name)(), code, [value])


class Task:
    """A task of ``consume``. Only ``_renew`` and the receives run in other threads."""

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
        self._lock = threading.Lock()  # guards _held and counts.calls, which several threads use
        self._done = threading.Event()
        self.counts = TaskCounts(partition)

    def run(self) -> TaskCounts:
        """Run the task and return its counts. Raise the client's error if there was no answer for retrySeconds."""
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
            # With prefetch, this receive runs during the work on the current page.
            coming = self._ask(receiver) if self._work.settings.prefetch else None
            self._page_done(messages)
            if not self._work.settings.prefetch:
                coming = self._ask(receiver)

    def _ask(self, receiver: ThreadPoolExecutor) -> "Future[list[Message]] | None":
        """Start a receive and return its future. Return None if the task has to end."""
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
        groups: dict[str, list[str]] = {}  # FIFO: group with a failed message -> list for later ones
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
        """Stop the renewal of the messages, then yield the entries of one batch call after another."""
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
        """Renew the held messages every third of the timeout, until the task ends.

        A failed renewal is tried again at the next beat. A message whose timeout ends is only delivered twice.
        """
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
