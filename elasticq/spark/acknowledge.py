"""Deletes the messages of a frame by their receipt handles: for reads with ackMode=none.

``ack`` is for a batch read, ``for_each_batch_delete`` makes the function of a stream's foreachBatch out of one that
only handles the frame.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticq.spark.clients import connect
from elasticq.spark.options import Connection, OptionError, Queue, parse_queue
from elasticq.spark.pages import batching, pages_for

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

COUNTS_SCHEMA = "queue string, deleted long, failed long, firstError string"
NEEDED = ("queue", "receiptHandle")


def ack(frame: "DataFrame", **options: Any) -> "DataFrame":
    """Delete each message of the frame (columns queue, receiptHandle) at once. Return counts per queue.

    A message whose visibility timeout has ended may be somebody else's again: its handle counts as failed.
    The frame is computed again if it is not persisted, and a queue read again gives other messages: persist it.
    """
    if missing := sorted(set(NEEDED) - set(frame.columns)):
        raise OptionError(f"column {missing[0]} is needed: read with ackMode=none and keep queue and receiptHandle")
    given = {name.replace("_", ""): str(value) for name, value in options.items() if value is not None}
    connection = parse_queue(Queue, {**given, "queueName": "-"}).connection  # no queue is named: the rows do that
    deleted = frame.select(*NEEDED).mapInArrow(Deleting(connection), COUNTS_SCHEMA)
    return frame.sparkSession.createDataFrame(deleted.toArrow())


def for_each_batch_delete(
    handle: "Callable[[DataFrame, int], object]", **options: Any
) -> "Callable[[DataFrame, int], None]":
    """Return a function for ``writeStream.foreachBatch``: it calls ``handle``, then deletes the batch's messages."""

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
    """The function for mapInArrow: it takes receipt handles and yields the counts of each queue."""

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
