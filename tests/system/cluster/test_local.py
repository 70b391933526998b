"""make cluster: members in one terminal, whose lines say which of them speaks."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from tests.system.cluster.cluster import HOST, PATIENCE_S, ROOT


def three_ports() -> int:
    """The first of three that are free, one after another."""
    for first in count(20_000, 3):
        with ExitStack() as stack:
            try:
                for port in range(first, first + 3):
                    stack.enter_context(socket.socket()).bind((HOST, port))
            except OSError:
                continue
            return first
    raise AssertionError("all ports are taken")


def test_lines_name_their_member_and_its_end_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/cluster.py", "--members", "1", "--first-port", str(three_ports())]
    with subprocess.Popen(
        [*command, "--directory", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as script:  # fmt: skip
        assert script.stdout is not None
        assert script.stdout.readline().startswith("n1  SQS http://127.0.0.1:")
        script.send_signal(signal.SIGTERM)
        _, told = script.communicate(timeout=PATIENCE_S)
    lines = told.splitlines()
    assert any("mastership_gained: " in line for line in lines), told
    assert [line for line in lines if not line.startswith("n1  ")] == ["stopping"]
    assert lines[-1] == "n1  ended with status 0"
