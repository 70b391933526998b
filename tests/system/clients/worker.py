"""A worker process of a task library, what its tasks have done so far, and its sudden end; for the jobs beside this.

Runs in the environment of the job, so it imports nothing but the standard library.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

PATIENCE_S = 60  # for what takes a fraction of it on a quiet machine
LOOK_S = 0.05

ENDPOINTS = os.environ["ENDPOINTS"].split(",")
"""One server's address, or those of all members of a cluster."""

WORK = Path(os.environ["WORK"])
"""An empty directory of this run."""


def until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for a true value. That of tests.system.cluster cannot be imported here."""
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {patience_s} s: {what}; done: {done()}; {said()}"
        time.sleep(LOOK_S)  # what foreign workers have done is seen in their files alone, and nothing announces it


def note(text: str) -> None:
    """In a task: remember that it came this far."""
    with (WORK / "notes").open("a") as notes:
        notes.write(f"{text}\n")


def done() -> list[str]:
    """What all tasks noted so far."""
    path = WORK / "notes"
    return path.read_text().splitlines() if path.exists() else []


def said() -> str:
    """The end of what the workers wrote."""
    path = WORK / "worker.log"
    return path.read_text(errors="replace")[-3_000:] if path.exists() else ""


class Worker:
    """``python -m MODULE ARGUMENTS`` in a process group of its own, killed whole at the end. It polls ``endpoint``."""

    def __init__(self, endpoint: str, *command: str) -> None:
        with (WORK / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=Path(sys.argv[0]).resolve().parent,
                env=os.environ | {"ENDPOINTS": endpoint},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type | None, failure: BaseException | None, trace: TracebackType | None) -> None:
        self.kill9()

    def kill9(self) -> None:
        """All of its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
