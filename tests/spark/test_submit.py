"""The zip for --py-files: it stands on the standard library, and a real spark-submit needs nothing else."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from elasticq.spark.starting import java_home
from scripts.spark_zip import make
from tests.spark.conftest import KEYS
from tests.spark.servers import Server

SUBMITTED = Path(__file__).with_name("submitted.py")
SUBMIT_S_MAX = 300
# Without site, neither site-packages nor what its .pth files name (a source tree installed for editing) is there.
BARE_PYTHON = '#!/bin/sh\nPYTHONPATH="{packages}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{python}" -S "$@"\n'
OURS = ("elasticq", "pyspark_elasticq", "__editable__")  # what an installed elasticq puts there
IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
import elasticq.client, elasticq.spark
for name in ("acknowledge", "clients", "consuming", "entries", "forever", "options", "rejects", "sending", "starting"):
    __import__("elasticq.spark." + name)
print(elasticq.spark.__file__)
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "elasticq_spark.zip"
    names = make(path)
    assert "pyspark_elasticq.py" in names
    return path


def bare_python(directory: Path) -> Path:
    """A Python with the packages installed here, but not elasticq, however it is installed."""
    packages = directory / "packages"
    packages.mkdir()
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(place).iterdir():
            if not entry.name.startswith(OURS):
                (packages / entry.name).symlink_to(entry)
    path = directory / "python-without-elasticq"
    path.write_text(BARE_PYTHON.format(packages=packages, python=sys.executable))
    path.chmod(0o755)
    return path


def test_the_same_sources_make_the_same_zip(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    make(again)
    assert again.read_bytes() == archive.read_bytes()


def test_the_zip_needs_nothing_but_python(archive: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", IMPORTS, str(archive)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert str(archive) in ran.stdout


@pytest.mark.spark
def test_spark_submit_reads_writes_and_consumes_with_nothing_but_the_zip(
    elasticq_server: Server, archive: Path, tmp_path: Path
) -> None:
    work, output = tmp_path / "work", tmp_path / "output"
    work.mkdir()
    output.mkdir()
    python = bare_python(tmp_path)
    # The session of other tests puts this tree on the path.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | KEYS
    absent = subprocess.run(
        [python, "-c", "import elasticq"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError" in absent.stderr
    import pyspark

    home = java_home()
    environment |= {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({"JAVA_HOME": str(home)} if home else {}),
    }
    command = [
        f"{environment['SPARK_HOME']}/bin/spark-submit",
        *("--master", "local[2]", "--driver-memory", "1g", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.driver.host=127.0.0.1"),
        *("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        *("--py-files", str(archive), str(SUBMITTED), elasticq_server.endpoint, str(archive), str(output)),
    ]
    ran = subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, timeout=SUBMIT_S_MAX, check=False
    )
    assert ran.returncode == 0, ran.stdout[-5_000:] + ran.stderr[-2_000:]
    assert (output / "counts").read_text() == "25 25 None"
