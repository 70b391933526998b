"""The Python that Spark's workers run on."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from elasticq.spark.interpreter import worker_python
from elasticq.spark.starting import prepare


def test_workers_run_on_this_python_unless_told_otherwise(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("PYSPARK_PYTHON", "chosen")
    prepare("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == "chosen"
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == worker_python()


def test_workers_import_the_installed_pyspark_and_not_the_zip_before_it(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepare("local[2]")
    python = os.environ["PYSPARK_PYTHON"]
    assert Path(python).is_relative_to(tmp_path / "cache" / "elasticq" / "python")
    installed = Path(pyspark.__file__).parent
    zipped = str(installed / "python" / "lib" / "pyspark.zip")
    code = "import pyspark, sys; print(pyspark.__file__); print(sys.executable)"
    environment = os.environ | {"PYTHONPATH": zipped}
    said = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
    place, executable = said.splitlines()
    assert Path(place).resolve().parent == installed.resolve()
    assert executable == sys.executable


def test_workers_of_another_spark_run_on_this_python_as_it_is(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python() == sys.executable


def test_workers_run_on_this_python_where_nothing_can_be_kept(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bare.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert worker_python() == sys.executable


def test_workers_of_other_machines_keep_their_python(bare: pytest.MonkeyPatch) -> None:
    prepare("spark://elsewhere:7077")
    assert "PYSPARK_PYTHON" not in os.environ
