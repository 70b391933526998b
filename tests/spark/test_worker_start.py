"""What a fresh worker of Spark imports to read, and what a task asks of the server: the fixed cost of a task.

Figures are made by scripts/bench spark; here is what they rest on.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CPickleSerializer

import elasticq
from elasticq.spark.datasource import DefaultSource
from elasticq.spark.offsets import Share
from elasticq.spark.options import Read, parse_queue
from elasticq.spark.schema import default_schema
from elasticq.spark.source import StreamReader
from tests.spark.servers import Server

# Nothing of a server, of other clients, of other modes, of the driver; and no pandas, which is half of a start.
NOT_NEEDED = (
    "aiohttp", "asyncio", "boto3", "botocore", "configparser", "difflib", "email", "http.client", "msgspec", "pandas",
    "prometheus_client", "pyarrow.compute", "ssl", "urllib.request", "zeroconf",
    "elasticq.client.endpoints", "elasticq.client.group_", "elasticq.client.patient", "elasticq.client.sns",
    "elasticq.engine", "elasticq.spark.batch", "elasticq.spark.bodies", "elasticq.spark.consuming",
    "elasticq.spark.planner", "elasticq.spark.queues", "elasticq.spark.sink", "elasticq.spark.starting",
    "elasticq.spark.stores", "elasticq.spark.wal", "elasticq.wire",
)  # fmt: skip
PROGRAM = """
import json, pickle, sys
import pyarrow, pyspark.worker, pyspark.sql.pandas.types, pyspark.sql.worker.plan_data_source_read
from pyspark.sql.datasource import InputPartition
before = set(sys.modules)
reader, source, shares = pickle.loads(sys.stdin.buffer.read())
from elasticq.client.connection import Connection
counts = {"asked": 0, "opened": 0}

def counted(name, what):
    inner = getattr(Connection, name)

    def call(*values):
        counts[what] += 1
        return inner(*values)

    setattr(Connection, name, call)

counted("exchange", "asked")
counted("_open", "opened")
rows = [sum(batch.num_rows for batch in reader.read(InputPartition(share))) for share in shares]
import elasticq
print(json.dumps({"rows": rows, "new": sorted(set(sys.modules) - before), "build": elasticq.BUILD.name, **counts}))
"""
BYTES_MAX = 4_000  # of a reader with the source that Spark sends beside it


def sent(server: Server, make_queue: Callable[..., str], messages: int, tasks: int) -> tuple[bytes, list[Share]]:
    """What Spark would send to a worker: a reader, and shares of which each holds as much as it may."""
    url = make_queue(server)
    for start in range(0, messages, 10):
        entries = [{"Id": str(at), "MessageBody": f"body {at}"} for at in range(start, min(start + 10, messages))]
        server.sqs().send_message_batch(QueueUrl=url, Entries=entries)
    schema = default_schema("string", with_handles=False)
    reader = StreamReader(parse_queue(Read, {"path": url, "partitions": str(tasks)}), schema)
    start = reader.initialOffset()
    shares = [each.value for each in reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))]
    reader.stop()
    return CPickleSerializer().dumps((reader, DefaultSource({}), shares)), shares


def read_in_worker(pickled: bytes, **environment: str) -> dict[str, Any]:
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=pickled,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": root, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_reader_imports_what_it_uses_and_no_more(elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    pickled, _ = sent(elasticq_server, make_queue, 3, 1)
    told = read_in_worker(pickled)
    assert told["rows"] == [3]
    assert [name for name in told["new"] if name.startswith(NOT_NEEDED)] == []
    assert told["build"] == elasticq.BUILD.name, "a worker runs what the driver runs: compiled modules, or sources"


def test_a_task_makes_one_call_over_a_connection_that_is_kept(
    elasticq_server: Server, make_queue: Callable[..., str]
) -> None:
    pickled, shares = sent(elasticq_server, make_queue, 12, 4)
    told = read_in_worker(pickled)
    assert told["rows"] == [share.messages for share in shares] == [3, 3, 3, 3]
    assert (told["asked"], told["opened"]) == (4, 1)


def test_what_travels_to_each_task_is_small(elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    pickled, _ = sent(elasticq_server, make_queue, 1, 1)
    assert len(pickled) < BYTES_MAX


@pytest.mark.parametrize("module", ["elasticq.client", "elasticq.spark"])
def test_every_name_of_a_package_is_there_when_it_is_asked_for(module: str) -> None:
    """Also after its modules were imported: a package's attribute is its module then, where both have one name."""
    program = (
        "import importlib, pkgutil, sys\n"
        f"package = importlib.import_module({module!r})\n"
        "places = {name for _, name, _ in pkgutil.iter_modules(package.__path__)}\n"
        "assert not places & set(package.__all__), places & set(package.__all__)\n"
        "assert set(package._PLACES) == set(package.__all__) <= set(dir(package))\n"
        "for name in package.__all__:\n"
        "    assert name.isupper() or getattr(package, name).__name__ == name, name\n"
        "assert not hasattr(package, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
