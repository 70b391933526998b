"""A supervisor holds the port: clients with one address see no exception while the serving process is replaced."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.system.cluster.cluster import ask, until
from tests.system.cluster.plain import Plain

PATIENCE_S = 30
ACTIVATED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, "-m", "elasticq", "--memory", "--admin-port", "-1"])
"""


class Supervised:
    """``python -m elasticq --supervise`` on a port from the kernel."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq", "--supervise", "--port", "0", "--admin-port", "-1", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.fullmatch(r"elasticq listening on http://127.0.0.1:(\d+)\n", self.process.stdout.readline())
        assert found, self.process.stderr and self.process.stderr.read()
        self.port = int(found[1])

    def boto3(self) -> Any:
        return boto3.client(
            "sqs",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )

    def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        return dict(self.boto3()._make_api_call(action, parameters))

    @property
    def serving_pid(self) -> int:
        """Of the one child of the supervisor; 0 while there is none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def until_replaced(self, pid: int) -> None:
        """The serving process is another one than ``pid`` and answers."""
        until(lambda: self.serving_pid not in (0, pid), "it is started again")
        until(lambda: ask(self.port, "GET", "/health").status == 200, "it answers")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    made = Supervised("--data-dir", str(tmp_path / "data"))
    yield made
    made.end()


def test_program_with_one_address_notices_neither_restarts_nor_kills(supervised: Supervised) -> None:
    with Plain(supervised, "one-address") as plain:
        for number in (signal.SIGHUP, signal.SIGKILL, signal.SIGHUP, signal.SIGKILL):
            plain.wait_for(100)
            pid = supervised.serving_pid
            if number == signal.SIGKILL:
                os.kill(pid, number)
            else:
                supervised.process.send_signal(number)
            supervised.until_replaced(pid)
        plain.wait_for(100)
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


def test_health_tells_who_serves_and_who_holds_the_port(supervised: Supervised) -> None:
    told = ask(supervised.port, "GET", "/health").body["text"].split()
    assert f"pid={supervised.serving_pid}" in told
    assert f"supervisor={supervised.process.pid}" in told


def test_sighup_restarts_by_the_supervisor_and_only_reads_anew_by_the_serving_process(supervised: Supervised) -> None:
    assert supervised.process.stderr is not None
    pid = supervised.serving_pid
    until(lambda: ask(supervised.port, "GET", "/health").status == 200, "it answers")
    os.kill(pid, signal.SIGHUP)
    assert any("renewed: SIGHUP came" in line for line in supervised.process.stderr)
    assert supervised.serving_pid == pid
    supervised.process.send_signal(signal.SIGHUP)
    supervised.until_replaced(pid)
    supervised.process.send_signal(signal.SIGTERM)
    told = supervised.process.stderr.read()
    assert told.count("SIGHUP came: the serving process is being restarted") == 1, told
    assert supervised.process.wait(PATIENCE_S) == 0


def test_supervisor_stops_the_serving_process_and_ends_as_it_does(supervised: Supervised) -> None:
    pid = supervised.serving_pid
    supervised.process.send_signal(signal.SIGTERM)
    assert supervised.process.wait(PATIENCE_S) == 0
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(OSError, match="refused"):
        ask(supervised.port, "GET", "/health")


def test_serving_process_ends_with_a_supervisor_that_was_killed(supervised: Supervised) -> None:
    pid = supervised.serving_pid
    supervised.process.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), "nobody serves without a supervisor")


def test_serving_process_that_is_killed_again_and_again_is_given_up(supervised: Supervised) -> None:
    killed = set()
    while supervised.process.poll() is None:
        pid = supervised.serving_pid
        if pid and pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert supervised.process.returncode == 128 + signal.SIGKILL
    assert len(killed) == 6
    _, said = supervised.process.communicate()
    assert "it was restarted 5 times within 30 s already, so the supervisor ends" in said


def test_other_exits_of_the_serving_process_are_the_supervisors(tmp_path: Path, supervised: Supervised) -> None:
    command = [sys.executable, "-m", "elasticq", "--supervise", "--port", "0", "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 4
    assert "is used by another process" in done.stderr


def test_taken_port_is_told_at_once(supervised: Supervised) -> None:
    command = [sys.executable, "-m", "elasticq", "--supervise", "--memory", "--port", str(supervised.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 3
    assert "is taken by another process" in done.stderr


def test_systemd_may_hold_the_port(tmp_path: Path) -> None:
    """Its socket activation: the socket is file 3, and LISTEN_PID names the process that it is for."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = [sys.executable, "-c", ACTIVATED, str(listener.fileno())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(listener.fileno(),)) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == f"elasticq listening on http://127.0.0.1:{port}\n".encode()
                assert ask(port, "GET", "/health").status == 200
            finally:
                process.terminate()
                assert process.wait(PATIENCE_S) == 0
