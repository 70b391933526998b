"""A durable server process that tests start, kill and start again on the same directory and port."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.system.durability.connection import Connection

ROOT = Path(__file__).resolve().parents[3]
FAULTY = Path(__file__).resolve().with_name("faulty.py")
LISTENING = re.compile(r"listening on http://\S+:(\d+)")
PATIENCE_S = 60  # for what takes a fraction of it on a quiet machine


class Ended(Exception):
    """The server ended before it listened."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(f"the server ended with {status}: {output[-2_000:]}")
        self.status = status
        self.output = output


class Server:
    """``fault``: arguments for faulty.py, which then runs the server. ``before``: a command that runs it."""

    def __init__(
        self,
        directory: Path,
        log: Path,
        *,
        fault: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
        memory: bool = False,
    ) -> None:
        self.directory = directory
        self.log = log
        self.fault = fault
        self.environment = environment or {}
        self.before = before
        self.storage = ["--memory"] if memory else ["--data-dir", str(directory)]
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def command(self) -> list[str]:
        module = [str(FAULTY), *self.fault] if self.fault else ["-m", "elasticq"]
        where = [*self.storage, "--host", "127.0.0.1", "--port", str(self.port)]
        return [*self.before, sys.executable, *module, "server", *where]

    def start(self) -> None:
        """Returns when it serves. Raises Ended."""
        self._start()
        deadline_s = time.monotonic() + PATIENCE_S
        with closing(self.connect()) as connection:
            # It listens before its first record is durable, and says 503 until then.
            while (answer := connection.call("ListQueues", {})).status == 503:
                assert time.monotonic() < deadline_s, answer
                pause(0.001)

    def _start(self) -> None:
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                self.command(),
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | self.environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdout
        for line in self.process.stdout:
            if match := LISTENING.search(line):
                self.port = int(match.group(1))
                return
        raise Ended(self.process.wait(PATIENCE_S), self.log.read_text())

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout:
                self.process.stdout.close()
            self.process = None

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        self.kill()
        return status

    def wait(self) -> int:
        """The status of a server that ends by itself."""
        assert self.process
        return self.process.wait(PATIENCE_S)

    def restart(self) -> None:
        """As after kill -9."""
        self.kill()
        self.start()

    def connect(self) -> Connection:
        return Connection(self.port)

    def call(self, action: str, guid: str = "", **parameters: Any) -> dict[str, Any]:
        """One call on a connection of its own; fails unless the answer is 200."""
        with closing(self.connect()) as connection:
            answer = connection.call(action, parameters, guid)
        assert answer.status == 200, answer
        return dict(json.loads(answer.body or b"{}"))

    def create(self, name: str, **attributes: str) -> str:
        return str(self.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])


def pause(seconds: float) -> None:
    """Between two looks at a condition that nothing announces."""
    time.sleep(seconds)
