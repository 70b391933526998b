"""Spark's Python workers with clocks in them, which show scripts/bench spark where the time of a task goes.

Spark starts this module in place of pyspark.daemon: the setting ``spark.python.daemon.module`` names it. For each task
a worker appends a line of JSON to its own file in BENCH_SPARK_CLOCKS: wall and CPU milliseconds by cause. A moment
counts for the innermost cause, so the causes add up to the task. A task begins when Spark has sent it; the first task
of a worker begins with the fork. A task ends after the garbage collection with which Spark follows it.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import _bootstrap  # type: ignore[attr-defined]
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import get_ident
from types import ModuleType, SimpleNamespace
from typing import Any

from pyspark import daemon
from pyspark.serializers import CPickleSerializer

VARIABLE = "BENCH_SPARK_CLOCKS"
WAITING = "waiting for Spark"
SPARK = "Spark's own"
SPARK_IMPORTS = "imports of Spark"
IMPORTS = "imports of elasticq"
UNPICKLING = "unpickling"
CLIENT = "making the client"
CONNECTING = "connecting"
ANSWERS = "waiting for answers"
CALLS = "writing and reading calls"
ROWS = "rows to Arrow"
READER = "the reader's own"
COLLECTING = "garbage collection"
CAUSES = (
    SPARK, SPARK_IMPORTS, UNPICKLING, COLLECTING, IMPORTS, CLIENT, CONNECTING, ANSWERS, CALLS, ROWS, READER
)  # fmt: skip
SPARKS_PACKAGES = frozenset(["pyspark", "py4j", "pyarrow", "pandas", "numpy"])


class Clocks:
    """The clocks of a worker's main thread."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}
        self.counts: dict[str, int] = {}
        self._causes = [SPARK]
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()
        self._thread = get_ident()
        self._task = 0

    def restart(self) -> None:
        """Restart the clocks in a forked worker, whose CPU time begins at zero."""
        self.__init__()  # type: ignore[misc]
        self._cpu_s = 0.0

    @contextmanager
    def cause(self, name: str) -> Iterator[None]:
        if get_ident() != self._thread:
            yield
            return
        self._note()
        self._causes.append(name)
        self.counts[name] = self.counts.get(name, 0) + 1
        try:
            yield
        finally:
            self._note()
            self._causes.pop()

    @property
    def current(self) -> str:
        return self._causes[-1]

    def _note(self) -> None:
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        spent = self.spent.setdefault(self._causes[-1], [0.0, 0.0])
        spent[0] += wall_s - self._wall_s
        spent[1] += cpu_s - self._cpu_s
        self._wall_s, self._cpu_s = wall_s, cpu_s

    def task_done(self) -> None:
        self._note()
        waited = self.spent.pop(WAITING, [0.0, 0.0])
        self.spent.setdefault(SPARK, [0.0, 0.0])[1] += waited[1]  # CPU time of reading what Spark sent
        record = {"task": self._task, "ms": {name: [1e3 * each for each in two] for name, two in self.spent.items()}}
        record["counts"] = self.counts
        with Path(os.environ[VARIABLE], f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.spent, self.counts = {}, {}
        self._task += 1
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()


clocks = Clocks()


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, **members: Any) -> Any:
        with clocks.cause(name):
            return function(*values, **members)

    return call


def timed_iterator(name: str, function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return the function with each step of its iterator timed."""

    def call(*values: Any, **members: Any) -> Iterator[Any]:
        with clocks.cause(name):
            steps = iter(function(*values, **members))
        end = object()
        while True:
            with clocks.cause(name):
                step = next(steps, end)
            if step is end:
                return
            yield step

    return call


# Module: what is timed in it after its import, as (class or "", attribute, cause, wrapper).
TIMED: dict[str, list[tuple[str, str, str, Callable[..., Any]]]] = {
    "pyspark.messages.spark_message_receiver": [("SparkMessageReceiver", "get_init_message", WAITING, timed)],
    "elasticq.spark.clients": [("", "connect", CLIENT, timed)],
    "elasticq.client.connection": [
        ("Connection", "_open", CONNECTING, timed),
        ("Connection", "exchange", ANSWERS, timed),
    ],
    "elasticq.client.calls": [("Client", "_call", CALLS, timed)],
    "elasticq.spark.schema": [("Rows", "batch", ROWS, timed)],
    "elasticq.spark.source": [("StreamReader", "read", READER, timed_iterator)],
    "elasticq.spark.batch": [("BatchReader", "read", READER, timed_iterator)],
}  # fmt: skip


def put_clocks(module: ModuleType) -> None:
    for owner, attribute, cause, how in TIMED.get(module.__name__, ()):
        place = getattr(module, owner) if owner else module
        setattr(place, attribute, how(cause, getattr(place, attribute)))


class TimedLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        put_clocks(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class Finder:
    """An import hook that puts the clocks into modules."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in TIMED:
            return None
        for finder in sys.meta_path:
            if not isinstance(finder, Finder) and (spec := finder.find_spec(name, path, target)) is not None:
                spec.loader = TimedLoader(spec.loader)  # type: ignore[arg-type]
                return spec
        return None


def importing(find_and_load: Callable[..., Any]) -> Callable[..., Any]:
    """Return the import function with clocks.

    A module of the standard library counts for the package that imported it first.
    """

    def call(name: str, import_: Any) -> Any:
        package = name.partition(".")[0]
        if package == "elasticq":
            cause = IMPORTS
        elif package in SPARKS_PACKAGES or clocks.current not in (IMPORTS, SPARK_IMPORTS):
            cause = SPARK_IMPORTS
        else:
            cause = clocks.current
        with clocks.cause(cause):
            return find_and_load(name, import_)

    return call


def worker(sock: Any, authenticated: bool) -> int:
    if not authenticated:
        clocks.restart()
    code: int = spark_worker(sock, authenticated)
    if "SPARK_REUSE_WORKER" not in os.environ:
        clocks.task_done()
    return code


def collect() -> int:
    with clocks.cause(COLLECTING):
        found = gc.collect()
    clocks.task_done()
    return found


if __name__ == "__main__":
    spark_worker = daemon.worker
    daemon.worker = worker
    daemon.gc = SimpleNamespace(collect=collect)  # type: ignore[assignment]
    CPickleSerializer.loads = timed(UNPICKLING, CPickleSerializer.loads)
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    _bootstrap._find_and_load = importing(_bootstrap._find_and_load)
    daemon.manager()
