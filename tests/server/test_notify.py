"""What systemd hears of a server's life."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.server.notify import READY, SOCKET_VARIABLE, notify
from tests.server.process import PATIENCE_S, Server


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket that NOTIFY_SOCKET names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind("")  # the kernel gives it a free abstract name
        monkeypatch.setenv(SOCKET_VARIABLE, "@" + listening.getsockname()[1:].decode())
        yield listening


def test_server_tells_when_it_serves_and_when_it_stops(supervisor: socket.socket) -> None:
    with Server() as server:
        assert supervisor.recv(100) == b"READY=1"
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S):
            pass
        assert server.stop() == 0
        assert supervisor.recv(100) == b"STOPPING=1"


def test_socket_may_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("notify")
        monkeypatch.setenv(SOCKET_VARIABLE, "notify")
        notify(READY)
        assert listening.recv(100) == b"READY=1"


def test_supervisor_that_is_gone_is_logged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "gone"))
    with caplog.at_level(logging.WARNING):
        notify(READY)
    assert "not_notified READY=1" in caplog.text
