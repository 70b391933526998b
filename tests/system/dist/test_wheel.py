"""The wheel, installed where nothing else is: what it brings, and the pytest plugin in somebody's project."""

import sys
import tarfile
import zipfile
from pathlib import Path

from tests.system.dist.conftest import ROOT, bare_environment, run, serving
from tests.system.docs.snippets import blocks_of

PROJECT = """\
import os

import pytest


@pytest.mark.parametrize("number", range(4))
def test_a_test_sees_only_its_own_messages(sqs, number):
    url = sqs.create_queue(QueueName="same-name")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody=str(number))
    assert [each["Body"] for each in sqs.receive_message(QueueUrl=url)["Messages"]] == [str(number)]


def test_it_runs_beside_others():
    assert os.environ["PYTEST_XDIST_WORKER_COUNT"] == "2"
"""


def test_plugin_serves_tests_that_run_at_the_same_time(programs: Path, tmp_path: Path) -> None:
    shown = [block for block in blocks_of(ROOT / "docs" / "testing.md") if block.code.startswith("# test_orders.py")]
    (tmp_path / "test_orders.py").write_text(shown[0].code)
    (tmp_path / "test_apart.py").write_text(PROJECT)
    said = run(str(programs / "python"), "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "7 passed" in said


def test_command_serves_and_tells_its_health(programs: Path, tmp_path: Path) -> None:
    command = str(programs / "elasticq")
    with serving(command, "--memory", cwd=tmp_path, environment=bare_environment(tmp_path)) as url:
        run(command, "health", url, cwd=tmp_path)
        run(command, "queues", "create", "jobs", "--url", url, cwd=tmp_path)
        assert "jobs" in run(command, "queues", "ls", "--url", url, cwd=tmp_path)


def test_without_extras_for_spark_and_traces_all_but_those_is_there(programs: Path, tmp_path: Path) -> None:
    program = """\
import importlib.util, elasticq.client, elasticq.testing
missing = ("pyspark", "pyarrow", "opentelemetry", "moto", "mypy")
assert importlib.util.find_spec("pyspark_elasticq")
print([name for name in missing if importlib.util.find_spec(name)], elasticq.client.__file__)
"""
    found = run(str(programs / "python"), "-c", program, cwd=tmp_path)
    assert found.startswith(f"[] {programs.parent}")


def test_wheel_has_no_tests_and_sdist_has_all(made: Path) -> None:
    (wheel,) = made.glob("*-none-any.whl")
    (sdist,) = made.glob("*.tar.gz")
    packed = zipfile.ZipFile(wheel).namelist()
    assert not any(name.startswith("tests/") for name in packed)
    assert "elasticq/py.typed" in packed
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("Makefile", "tests/system/dist/conftest.py", "docs/index.md", "deploy/systemd/elasticq.service"):
        assert name in names


def test_sparks_zip_is_imported_without_any_package(made: Path, tmp_path: Path) -> None:
    environment = bare_environment(tmp_path, PYTHONPATH=str(made / "elasticq_spark.zip"))
    program = "import elasticq.client, elasticq.spark; print(elasticq.client.__file__)"
    found = run(sys.executable, "-S", "-c", program, cwd=tmp_path, environment=environment)
    assert found.startswith(str(made))
    assert "pyspark_elasticq.py" in zipfile.ZipFile(made / "elasticq_spark.zip").namelist()
