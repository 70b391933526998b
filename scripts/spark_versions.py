"""The tests of Spark on each supported version of PySpark, in a virtual environment of its own.

    python scripts/spark_versions.py [VERSION ...] [--keep DIRECTORY] [--only EXPRESSION]

Each environment is in a temporary directory. It has the PySpark of the version, and for the rest the packages of the
environment that runs this. A version has the tests of what it can do: all (4.2, 4.3), all but streams that are read
(4.1), or consume and the refusals (3.5, 4.0).
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
OLD = ("test_consuming.py", "test_versions.py")
WITHOUT_STREAMS = (*OLD, "test_sink.py", "test_batch.py", "test_forever.py", "test_filters.py", "test_schema.py")
TESTS = {"3.5": OLD, "4.0": OLD, "4.1": WITHOUT_STREAMS, "4.2": (), "4.3": ()}
"""The files of tests/spark by version; () for all."""


def environment_of(version: str, place: Path) -> Path:
    """Return the Python of an environment with the newest PySpark of a version. Make it if it is not there."""
    python = place / version / "bin" / "python"
    if not python.exists():
        venv.create(place / version, with_pip=True, symlinks=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"pyspark=={version}.*", *CONNECT], check=True)
        # Packages of this environment come after those of the version.
        (packages,) = (place / version / "lib").glob("python*/site-packages")
        (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test(version: str, place: Path, only: str) -> bool:
    python = environment_of(version, place)
    started_s = time.monotonic()
    paths = [f"tests/spark/{name}" for name in TESTS[version]] or ["tests/spark"]
    command = [str(python), "-m", "pytest", "-q", "-n", "0", "-m", "spark and not chaos", *paths]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment |= {"PYTHONPATH": str(ROOT), "ELASTICQ_PURE": "1"}
    ran = subprocess.run([*command, *(["-k", only] if only else [])], cwd=ROOT, env=environment, check=False)
    print(
        f"{version}: {'passed' if ran.returncode == 0 else 'FAILED'} in {time.monotonic() - started_s:.0f} s",
        flush=True,
    )
    return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"versions to test ({', '.join(TESTS)})")
    parser.add_argument("--keep", type=Path, help="directory in which environments stay for the next run")
    parser.add_argument("--only", default="", help="an expression that selects tests, as pytest's -k")
    options = parser.parse_args()
    if unknown := set(options.versions) - set(TESTS):
        parser.error(f"unknown versions: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="spark-versions-") as temporary:
        place = options.keep or Path(temporary)
        failed = [each for each in options.versions or TESTS if not test(each, place, options.only)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
