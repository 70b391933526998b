"""One Spark for all tests of this directory, a server of ours and moto beside it; and a machine without Java."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from elasticq.spark.starting import session
from tests.spark.servers import Moto, Server, SqsServer

# What clients find in the environment: the driver's and, as Spark starts with it, that of its workers.
KEYS = {"AWS_ACCESS_KEY_ID": "000000000000", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
# What a start of Spark reads of the environment, and sets in it.
STARTS = {"JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "SPARK_LOCAL_IP"}


@pytest.fixture(scope="session")
def keys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark(keys: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2]; small, for the tests' frames are."""
    scratch = str(tmp_path_factory.mktemp("spark"))
    started = session(
        master="local[2]",
        name="elasticq-tests",
        spark_sql_shuffle_partitions=2,
        spark_driver_memory="1g",
        # A test's JVM does not live long enough for the better compiler to pay.
        spark_driver_extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        spark_sql_warehouse_dir=scratch,
        spark_local_dir=scratch,
    )
    started.sparkContext.setLogLevel("ERROR")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def elasticq_server(keys: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with SqsServer(tmp_path_factory.mktemp("elasticq")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(keys: None) -> Iterator[Server]:
    with Moto() as server:
        yield server


@pytest.fixture
def make_queue() -> Callable[..., str]:
    """Makes a queue of a fresh name on a server, with the attributes given; returns its URL."""

    def make(server: Server, suffix: str = "", **attributes: str) -> str:
        name = f"spark-{uuid4().hex}{suffix}"
        if suffix == ".fifo":
            attributes["FifoQueue"] = "true"
        return str(server.sqs().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    return make


def commands_without_java(directory: Path) -> str:
    """A PATH with every command there is but java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            if command.name != "java" and not (directory / command.name).is_symlink():
                (directory / command.name).symlink_to(command)
    return str(directory)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.setenv("PATH", commands_without_java(tmp_path / "commands"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in STARTS:
        # So that what prepare sets is undone as well.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch
