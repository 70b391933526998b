"""The deletion of a frame's messages by their receipt handles, for reads with ackMode=none.

``ack`` is for batch reads. ``for_each_batch_delete`` is for streams with foreachBatch.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticq.spark.clients import connect
from elasticq.spark.consuming import computed
from elasticq.spark.options import Connection, OptionError, Queue, parse_queue
from elasticq.spark.pages import batching, pages_for

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

COUNTS_SCHEMA = "queue string, deleted long, failed long, firstError string"
NEEDED = ("queue", "receiptHandle")


def ack(frame: "DataFrame", **options: Any) -> "DataFrame":
    """Delete the messages of a frame at once. Return a row of counts for each queue and task (``COUNTS_SCHEMA``).

    The frame needs the columns queue and receiptHandle; else raise OptionError. Persist the frame before: otherwise
    Spark computes it again, and a second read gives other messages. A handle whose visibility timeout has ended may
    count as failed. options: those of the connection.
    """
    if missing := sorted(set(NEEDED) - set(frame.columns)):
        raise OptionError(f"column {missing[0]} is needed: read with ackMode=none and keep queue and receiptHandle")
    given = {name.replace("_", ""): str(value) for name, value in options.items() if value is not None}
    connection = parse_queue(Queue, {**given, "queueName": "-"}).connection  # no queue is named: the rows do that
    return computed(frame.sparkSession, frame.select(*NEEDED).mapInArrow(Deleting(connection), COUNTS_SCHEMA))


def for_each_batch_delete(
    handle: "Callable[[DataFrame, int], object]", **options: Any
) -> "Callable[[DataFrame, int], None]":
    """Return a function for ``writeStream.foreachBatch``. It calls ``handle``, then deletes the batch's messages.

    If ``handle`` raises an error, it deletes nothing.
    """

    def handle_and_delete(frame: "DataFrame", batch_id: int) -> None:
        frame.persist()
        try:
            handle(frame, batch_id)
            ack(frame, **options)
        finally:
            frame.unpersist()

    return handle_and_delete


@dataclass(frozen=True)
class Deleting:
    """The function that mapInArrow runs in each task. It deletes messages and yields counts for each queue."""

    connection: Connection

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow

        counts: dict[str, dict[str, Any]] = {}
        client, size_max = connect(self.connection), pages_for(self.connection).size_max
        urls: dict[str, str] = {}
        for batch in batches:
            handles: dict[str, list[str]] = {}
            for queue, handle in zip(*(batch.column(name).to_pylist() for name in NEEDED), strict=True):
                handles.setdefault(queue, []).append(handle)
            for queue, some in handles.items():
                if queue not in urls:
                    urls[queue] = queue if "://" in queue else client.get_queue_url(QueueName=queue)["QueueUrl"]
                count = counts.setdefault(queue, {"queue": queue, "deleted": 0, "failed": 0, "firstError": None})
                for start in range(0, len(some), size_max):
                    self._delete(client, urls[queue], some[start : start + size_max], count)
        names = {"queue": "string", "deleted": "int64", "failed": "int64", "firstError": "string"}
        schema = pyarrow.schema([pyarrow.field(name, kind) for name, kind in names.items()])
        yield pyarrow.RecordBatch.from_pylist(list(counts.values()), schema)

    def _delete(self, client: Any, queue_url: str, handles: list[str], count: dict[str, Any]) -> None:
        entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)]
        answer = client.delete_message_batch(QueueUrl=queue_url, Entries=entries, **batching(len(entries)))
        failed = answer.get("Failed") or []
        count["deleted"] += len(answer.get("Successful", ()))
        count["failed"] += len(failed)
        if failed and count["firstError"] is None:
            count["firstError"] = json.dumps({name: failed[0].get(name) for name in ("Code", "Message")})
