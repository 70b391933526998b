"""The compilation that make run starts in the background: who starts it, what it prints, and what a killed one leaves.

Each test compiles a copy of the package whose list has one small module.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elasticq import __version__
from tests.system.native.lists import ROOT, scripts_native

PATIENCE_S = 300
MODULE = "elasticq/model/names.py"

needs_compiler = pytest.mark.skipif(bool(scripts_native().missing()), reason="no C compiler here")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("elasticq", "scripts"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "_native", "*.sha256")
        )
    start, _, rest = (ROOT / "setup.cfg").read_text().partition("[elasticq:native]")
    assert MODULE in rest
    (tmp_path / "setup.cfg").write_text(f"{start}[elasticq:native]\nmodules =\n    {MODULE}\ninterpreted =\n")
    return tmp_path


def run(clone: Path, *arguments: str, **more: str) -> str:
    """Run Python in the copy; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("ELASTICQ_PURE", "PYTHONPATH")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=clone, env=environment | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=True, timeout=PATIENCE_S,
    ).stdout  # fmt: skip


def start(clone: Path, **more: str) -> str:
    return run(clone, "scripts/native.py", "--start", **more)


def version(clone: Path) -> str:
    return run(clone, "-m", "elasticq", "--version")


def wait_for(holds: Callable[[], bool], log: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, log.read_text()
        time.sleep(0.05)


def builders(clone: Path) -> list[int]:
    """Return the processes that compile in this copy."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and (folder / "cwd").resolve() == clone and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


@needs_compiler
@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds processes by /proc")
def test_killed_build_leaves_the_sources_and_the_next_start_finishes_it(clone: Path) -> None:
    log = clone / "build" / "native" / "log"
    assert (
        start(clone)
        == "elasticq is being compiled in the background, for about two minutes; the next start is faster.\n"
    )
    wait_for(lambda: (clone / "build" / "native" / "unfinished").is_dir(), log)
    assert "until the compilation in the background ends" in start(clone)
    for process in builders(clone):
        os.kill(process, signal.SIGKILL)
    wait_for(lambda: not builders(clone), log)
    assert version(clone) == f"elasticq {__version__}, pure Python\n"

    assert "is being compiled" in start(clone)
    wait_for(lambda: (clone / "elasticq" / "native.sha256").is_file(), log)
    wait_for(lambda: not builders(clone), log)
    assert version(clone) == f"elasticq {__version__}, compiled\n"
    assert start(clone) == ""
    with (clone / MODULE).open("a") as source:
        source.write("# edited\n")
    assert f"{MODULE} is not what was compiled" in version(clone)


@needs_compiler
def test_compilation_that_failed_is_not_tried_again_by_itself(clone: Path) -> None:
    compiler = clone / "cc"
    compiler.write_text('#!/bin/sh\ncase "$1" in --version) echo 1;; *) echo broken >&2; exit 1;; esac\n')
    compiler.chmod(0o755)
    assert "is being compiled" in start(clone, CC=str(compiler))
    wait_for((clone / "build" / "native" / "failed").is_file, clone / "build" / "native" / "log")
    assert "broken" in (clone / "build" / "native" / "log").read_text()
    assert "its compilation failed" in start(clone, CC=str(compiler))
    assert version(clone) == f"elasticq {__version__}, pure Python\n"


def test_without_a_compiler_one_line_tells_what_is_missing(clone: Path) -> None:
    line = start(clone, CC="no-such-compiler")
    assert line.startswith(
        "elasticq runs as pure Python, which takes up to twice the CPU time: there is no C compiler (no-"
    )
    assert line.count("\n") == 1
    assert not (clone / "build").exists()


def test_folder_that_cannot_be_written_costs_one_line(clone: Path) -> None:
    (clone / "build").write_text("a file in the place of the folder")
    line = start(clone)
    assert line.startswith("elasticq runs as pure Python, ")
    assert line.count("\n") == 1
