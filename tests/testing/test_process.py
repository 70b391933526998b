"""A server in a process of its own: where it listens, and what it said if it does not start."""

import socket
import urllib.request
from urllib.error import URLError

import pytest

from elasticq.testing.process import ServerProcess


def test_a_process_listens_until_it_is_stopped_and_takes_no_settings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICQ_CLUSTER__NODES", "none")
    process = ServerProcess({"http": {"port": 0}, "admin": {"port": -1}, "storage": {"memory": True}})
    with urllib.request.urlopen(f"{process.url}/health", timeout=10) as answer:
        assert answer.read().startswith(b"OK")
    process.stop()
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{process.url}/health", timeout=10)


def test_what_a_process_said_that_did_not_start_is_told() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(RuntimeError, match=r"did not start: .* is taken"),
    ):
        ServerProcess({"http": {"port": taken.getsockname()[1]}, "storage": {"memory": True}})
