"""``format("sqs-marked")``: format sqs with slow reads that say when they are on, so that a kill can hit inside one.

While a process is inside ``read()`` of a share, from before the first receive until the last row is handed to Spark,
a file named by its process id, its mark, lies in a directory. Beside it a file tells of all reads in their order, as
``begin BATCH/PARTITION`` and ``end BATCH/PARTITION``; a killed one does not end. All else is the product's.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticq.spark.clients import connect
from elasticq.spark.datasource import DefaultSource
from elasticq.spark.environment import Environment
from elasticq.spark.options import Connection, Read, parse_queue
from elasticq.spark.source import StreamReader

# Spark's processes inherit the environment of the driver.
MARKS = "ELASTICQ_TEST_MARKS"
PACE_S = "ELASTICQ_TEST_PACE_S"
STRAGGLER_S = "ELASTICQ_TEST_STRAGGLER_S"  # how long a first attempt at partition 0 waits for a second one, at most
LOOK_S = 0.05
READS = "reads"


class Paced:
    """A client that takes its time after each receive: its messages are leased and not yet with Spark."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, method: str) -> Any:
        return getattr(self._client, method)

    def receive_message(self, **members: Any) -> Any:
        answer = self._client.receive_message(**members)
        threading.Event().wait(float(os.environ[PACE_S]))
        return answer


def paced(connection: Connection) -> Paced:
    return Paced(connect(connection))


class MarkedReader(StreamReader):
    def __init__(self, options: Read, schema: Any) -> None:
        super().__init__(options, schema, Environment(connect=paced))

    def read(self, partition: Any) -> Iterator[Any]:
        share = partition.value
        mark = Path(os.environ[MARKS], str(os.getpid()))
        mark.touch()
        tell(f"begin {share.batch}/{share.partition}")
        try:
            yield from super().read(partition)
            if share.partition == 0 and STRAGGLER_S in os.environ and is_first_attempt():
                wait_for_another(f"begin {share.batch}/{share.partition}")
        finally:
            tell(f"end {share.batch}/{share.partition}")
            mark.unlink(missing_ok=True)


def tell(line: str) -> None:
    """In one write, which the kernel does not mix with those of other processes."""
    with Path(os.environ[MARKS], READS).open("ab", buffering=0) as reads:
        reads.write(f"{line}\n".encode())


def wait_for_another(line: str) -> None:
    """Until the share is read a second time, as Spark's speculation does with a task that takes too long."""
    reads = Path(os.environ[MARKS], READS)
    end_s = time.monotonic() + float(os.environ[STRAGGLER_S])
    while reads.read_text().splitlines().count(line) < 2 and time.monotonic() < end_s:
        threading.Event().wait(LOOK_S)


def is_first_attempt() -> bool:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0


class MarkedSource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return "sqs-marked"

    def streamReader(self, schema: Any) -> MarkedReader:
        return MarkedReader(parse_queue(Read, self.options), schema)
