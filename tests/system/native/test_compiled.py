"""What only the compiled modules can show: that they run, all of them, and do to the byte what their sources do."""

import os
import subprocess
import sys
import urllib.request
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from elasticq import BUILD
from elasticq.testing.process import ServerProcess
from tests.system.native.lists import ROOT, listed
from tests.system.native.traces import PARTS, traces

pytestmark = pytest.mark.compiled
PATIENCE_S = 120


def test_this_process_runs_compiled() -> None:
    assert str(BUILD) == "compiled"


@pytest.mark.parametrize("path", listed())
def test_module_is_compiled(path: str) -> None:
    module = import_module(path.removesuffix(".py").replace("/", "."))
    assert str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES))


def pure(*arguments: str) -> str:
    """What a process says that runs the sources."""
    environment = os.environ | {"ELASTICQ_PURE": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return done.stdout


@pytest.mark.parametrize("part", range(PARTS))
def test_simulated_clusters_do_the_same_both_ways(part: int) -> None:
    """The hash is of every event of the run. The first seed that differs is named by its line."""
    expected = pure("tests.system.native.traces", str(part)).splitlines()
    for compiled, interpreted in zip(traces(part), expected, strict=True):
        assert compiled == interpreted


def test_command_tells_that_it_is_compiled_and_when_it_is_asked_not_to_be() -> None:
    command = [sys.executable, "-m", "elasticq", "--version"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.endswith(", compiled\n")
    assert pure("elasticq", "--version").endswith(", pure Python (ELASTICQ_PURE)\n")


def test_server_tells_that_it_is_compiled() -> None:
    server = ServerProcess({"http": {"port": 0}, "admin": {"port": -1}, "storage": {"memory": True}})
    try:
        with urllib.request.urlopen(f"{server.url}/health", timeout=PATIENCE_S) as answer:
            assert answer.read() == b"OK build=compiled"
    finally:
        server.stop()
