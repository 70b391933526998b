"""A Python command for Spark's processes that uses the compiled modules of pyspark.

Spark puts a zip of pyspark first on the path of each Python process, although the same pyspark is installed. A zip
holds no compiled modules, so each process compiles pyspark again. This costs 1.5 s of CPU for each query that starts.
The command puts the installed pyspark before the zip.
"""

import hashlib
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from elasticq.spark.kept import cache_directory, made_once, write_command

PACKAGES = ("pyspark", "py4j")
WRAPPER = """\
#!/bin/sh
# Spark's path begins with a zip of the pyspark that lies here compiled.
PYTHONPATH={packages}${{PYTHONPATH:+:$PYTHONPATH}}
export PYTHONPATH
exec {python} "$@"
"""


def worker_python() -> str:
    """Return the Python command for Spark's workers.

    It is sys.executable if Spark does not use the installed pyspark, or if the cache cannot be written.
    """
    places = {name: place for name in PACKAGES if (place := installed(name))}
    if len(places) != len(PACKAGES) or not is_spark_home(places["pyspark"]):
        return sys.executable
    try:
        return str(wrapped_python(places, cache_directory("python")))
    except OSError:  # without a cache, workers only start slower
        return sys.executable


def installed(name: str) -> Path | None:
    """Return the directory of a package, or None if it is not installed as a directory."""
    spec = find_spec(name)
    place = Path(spec.origin).parent if spec is not None and spec.origin else None
    return place if place is not None and place.is_dir() else None


def is_spark_home(pyspark: Path) -> bool:
    """Return whether Spark will start from this pyspark, and this pyspark has the zip."""
    named = os.environ.get("SPARK_HOME")
    return (pyspark / "python" / "lib" / "pyspark.zip").exists() and (
        not named or Path(named).resolve() == pyspark.resolve()
    )


def wrapped_python(places: dict[str, Path], cache: Path) -> Path:
    """Return a Python command that finds these packages before all others.

    It finds them through links. So the other packages in their directories do not come first, too.
    """
    key = repr((sys.executable, sorted(places.items())))
    home = cache / hashlib.sha256((WRAPPER + key).encode()).hexdigest()[:16]

    def fill(made: Path) -> None:
        for name, place in places.items():
            (made / name).symlink_to(place)
        script = WRAPPER.format(packages=shlex.quote(str(home)), python=shlex.quote(sys.executable))
        write_command(made / "python", script)

    return made_once(home, fill) / "python"
