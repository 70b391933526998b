"""The batch and streaming writers of ``format("sqs")``, which send rows to queues.

Each task sends its rows in their order. Some queues recognise a repeated message by its id: FIFO queues for 5 minutes,
and standard queues of elasticq for their ElasticqIdempotencyWindow. For these queues a task computes an id for each
message. A retried task computes the same ids, so within the window the queue stores nothing twice.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from elasticq.client.errors import SqsError
from elasticq.spark.clients import connect, may_pass
from elasticq.spark.entries import (
    BODY_COLUMNS,
    SINK_COLUMNS,
    SOURCE_COLUMNS,
    BadRow,
    Batch,
    Identity,
    Ids,
    Outgoing,
    Row,
    outgoing,
)
from elasticq.spark.options import OptionError, Queue, option, parse_queue, text, whole
from elasticq.spark.pages import LIGHT_PAGE, pages_for
from elasticq.spark.rejects import Rejects, file_system
from elasticq.spark.sending import Counts, Failed, Failure, Pace, Sender

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

log = logging.getLogger("elasticq.spark")

QUEUES_MAX = 1_000  # queues to which one task sends; it holds a batch of up to 1 MiB for each
WINDOW = "ElasticqIdempotencyWindow"
QUERY_ID = "sql.streaming.queryId"  # stays the same after a restart from the checkpoint
BATCH_ID = "streaming.sql.batchId"
WHOLE = ("int", "bigint", "smallint", "tinyint")
TEXTUAL = ("string", "binary", "void")


@dataclass(frozen=True)
class Write(Queue):
    """The options of ``write`` and ``writeStream``."""

    message_group_id: str = option(text, "", "message group of rows without one, on FIFO queues")
    reject_path: str = option(
        text, "", "folder (path or URL) for rows that can never be sent; without it they fail the task"
    )
    max_rate_per_second: int = option(whole(1, 10_000_000), 0, "messages a second of each task; 0: no limit")
    write_id: str = option(
        text, "", "of a batch write: a repeated write with this id sends nothing twice within the window"
    )


def writer(options: Mapping[str, str], schema: "StructType", overwrite: bool = False) -> "SqsWriter":
    """Return the writer of ``df.write``. Raise OptionError for options or columns that cannot work."""
    return SqsWriter(plan_of(options, schema, overwrite))


def stream_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool = False) -> "SqsStreamWriter":
    """Return the writer of ``df.writeStream``. Raise OptionError as ``writer`` does."""
    return SqsStreamWriter(plan_of(options, schema, overwrite))


@dataclass(frozen=True)
class Plan:
    """What the driver sends to each task. queue: a URL, or empty if each row names its own queue."""

    settings: Write
    write_id: str
    body_column: str
    columns: tuple[str, ...]
    queue: str


def plan_of(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> Plan:
    if overwrite:
        raise OptionError('a queue cannot be overwritten: use mode("append")')
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    body_column = check_columns(types)
    settings = settings_of(options, "queue" in types)
    # As with Kafka's topic, the option wins over the column. So a frame from one queue can go to another.
    queue = settings.queue_url or settings.queue_name
    if queue:
        queue = Target.find(settings, queue).url
        if queue.endswith(".fifo") and "messageGroupId" not in types and not settings.message_group_id:
            raise OptionError("a FIFO queue needs a column or an option messageGroupId")
    if settings.reject_path:
        files, directory = file_system(settings.reject_path)
        files.create_dir(directory, recursive=True)
    columns = tuple(name for name in types if name in SINK_COLUMNS)
    return Plan(settings, settings.write_id or uuid4().hex, body_column, columns, queue)


def check_columns(types: Mapping[str, str]) -> str:
    """Return the name of the body's column. Raise OptionError if the columns and their types do not fit a queue.

    types: Spark's type names by column.
    """
    bodies = [name for name in BODY_COLUMNS if name in types]
    if len(bodies) != 1:
        raise OptionError(f"one column body or value is needed, the columns are {', '.join(types)}")
    if unknown := sorted(set(types) - SINK_COLUMNS - SOURCE_COLUMNS):
        raise OptionError(
            f"column {unknown[0]} has no meaning for a queue: drop it, or put it into body (to_json) or attributes"
        )
    for name in (bodies[0], "messageGroupId", "deduplicationId", "queue"):
        if types.get(name, "string") not in TEXTUAL:
            raise OptionError(f"column {name} must be a string, not {types[name]}: cast it, or use to_json")
    for name in ("delaySeconds", "priority"):
        if types.get(name, "int") not in WHOLE:
            raise OptionError(f"column {name} must be whole numbers, not {types[name]}")
    if types.get("deliver_at", "timestamp") not in (*WHOLE, "timestamp"):
        raise OptionError(f"column deliver_at must be a timestamp or milliseconds, not {types['deliver_at']}")
    if not types.get("attributes", "map<string,").startswith("map<string,"):
        raise OptionError("column attributes must be map<string,string> or map<string,struct<type,string,binary>>")
    return bodies[0]


def settings_of(options: Mapping[str, str], rows_name_queues: bool) -> Write:
    given = {name.lower() for name, value in options.items() if value}
    if rows_name_queues and not given & {"path", "queueurl", "queuename", "queueprefix"}:
        # parse_queue also finds the endpoint, but needs the name of a queue.
        settings = parse_queue(Write, {**options, "queueName": "-"})
        return replace(settings, queue_name="")
    settings = parse_queue(Write, options)
    if settings.queue_prefix:
        raise OptionError("queuePrefix is for reading: use a column queue, which names the queue of each row")
    return settings


@dataclass(frozen=True, slots=True)
class Target:
    """A queue to send to.

    takes_ids: whether it recognises a repeated message by its deduplication id; None: the key may not read that.
    """

    url: str
    takes_ids: bool | None

    @classmethod
    def find(cls, settings: Queue, queue: str) -> "Target":
        """Return the queue with a URL or name. Raise OptionError if it does not exist or the server refuses the key.

        Raise SqsError for an error that may pass, such as 503.
        """
        sqs = connect(settings.connection)
        try:
            url = queue if "://" in queue else sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        except SqsError as error:
            if may_pass(error):
                raise
            raise OptionError(f"queue {queue}: {error.code}: {error.message}") from error
        if url.endswith(".fifo"):
            return cls(url, True)
        try:
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]).get("Attributes", {})
        except SqsError as error:
            if may_pass(error):
                raise
            if "AccessDenied" not in error.code:
                raise OptionError(f"queue {queue}: {error.code}: {error.message}") from error
            return cls(url, None)  # the key may have the right to send only
        return cls(url, int(attributes.get(WINDOW, "0")) > 0)


@dataclass
class Sent(WriterCommitMessage):
    """The counts of a finished task. Spark sends them to the driver."""

    counts: Counts


class Task:
    """The write of one task: it sends the task's rows."""

    def __init__(self, plan: Plan, identity: Identity) -> None:
        self._plan = plan
        self._settings = plan.settings
        self._ids = Ids(identity)
        self._pace = Pace(float(plan.settings.max_rate_per_second))
        self._counts = Counts()
        rate = plan.settings.max_rate_per_second
        # A page holds at most the messages of a second.
        self._page = min(pages_for(plan.settings.connection).size_max, rate or LIGHT_PAGE)
        self._queues: dict[str, tuple[Target, Sender, Batch]] = {}
        self._rejects: Rejects | None = None
        if plan.settings.reject_path:
            name = re.sub(r"[^\w.-]", "_", f"{identity.query_id}-{identity.batch_id}-{identity.partition}")
            self._rejects = Rejects(plan.settings.reject_path, name)

    def run(self, rows: Iterable[Row]) -> Sent:
        """Send the rows, and return the counts once each row is sent or rejected.

        Raise Failed if a row can be neither sent nor rejected.
        """
        plan, settings, ids = self._plan, self._settings, self._ids
        for row in rows:
            try:
                target, sender, batch = self._queue(plan.queue or row.get("queue"))
                message = outgoing(row, plan.body_column, settings.message_group_id or None)
                if target.url.endswith(".fifo") and "MessageGroupId" not in message.entry:
                    raise BadRow("a FIFO queue needs messageGroupId")
                if target.takes_ids and "MessageDeduplicationId" not in message.entry:
                    message.entry["MessageDeduplicationId"] = ids.of(message.entry)
                elif target.takes_ids is False:  # for example, a row that was read from a FIFO queue
                    message.entry.pop("MessageDeduplicationId", None)
            except BadRow as error:
                self._bad(row, error)
                continue
            if full := batch.add(message):
                sender.send(full)
        for _, sender, batch in self._queues.values():
            if rest := batch.take():
                sender.send(rest)
        if self._rejects is not None:
            self._rejects.close()
        return Sent(self._counts)

    def _queue(self, queue: Any) -> tuple[Target, Sender, Batch]:
        if found := self._queues.get(queue):
            return found
        if not queue:
            raise BadRow("queue is null")
        if len(self._queues) >= QUEUES_MAX:
            raise Failed(f"a task can send to {QUEUES_MAX} queues: repartition by queue")
        try:
            target = Target.find(self._settings, queue)
        except OptionError as error:
            if queue == self._plan.queue:
                raise
            raise BadRow(str(error)) from error
        sqs = connect(self._settings.connection)
        reject = self._reject if self._rejects is not None else None
        sender = Sender(sqs, target.url, self._settings.retry_seconds, self._pace, self._counts, reject)
        self._queues[queue] = target, sender, Batch(self._page)
        return self._queues[queue]

    def _reject(self, message: Outgoing, failure: Failure) -> None:
        assert self._rejects is not None
        self._rejects.add(message.row, failure.code, failure.message)

    def _bad(self, row: Row, error: BadRow) -> None:
        if self._rejects is None:
            raise Failed(f"a row cannot be sent: {error}") from error
        self._rejects.add(row, "BadRow", str(error))
        self._counts.rejected += 1


def rows_of(batches: Iterable["RecordBatch"], columns: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of record batches. Reading by column costs a third of what Spark's own rows cost."""
    for batch in batches:
        values = [batch.column(name).to_pylist() for name in columns]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def report(messages: Iterable[Any], **about: Any) -> None:
    """Log the counts of a write, summed over its tasks, as a line of JSON with the fields of ``about``."""
    total = Counts()
    for message in messages:
        if isinstance(message, Sent):
            for name, value in asdict(message.counts).items():
                setattr(total, name, getattr(total, name) + value)
    line = json.dumps({"event": "sqs_write", **about, **asdict(total)})
    log.log(logging.WARNING if total.rejected else logging.INFO, line)


class SqsWriter(DataSourceArrowWriter):
    """The writer of a batch. Its message ids derive from the write's id, which the driver makes once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator["RecordBatch"]) -> Sent:
        from pyspark import TaskContext

        context = TaskContext.get()
        identity = Identity(self.plan.write_id, "0", context.partitionId() if context else 0)
        return Task(self.plan, identity).run(rows_of(iterator, self.plan.columns))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        report(messages)


class SqsStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a stream. Its message ids derive from the query's id and the batch's number."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator["RecordBatch"]) -> Sent:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query_id is None or batch_id is None:
            raise Failed("Spark gives no id of the query or the batch, so a repeated batch would be sent twice")
        identity = Identity(query_id, batch_id, context.partitionId())
        return Task(self.plan, identity).run(rows_of(iterator, self.plan.columns))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        report(messages, batch=batchId)
