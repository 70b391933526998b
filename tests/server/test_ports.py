"""Where the socket of the SQS port comes from, or why it cannot be had. It outlives processes: test_supervisor.py."""

import errno
import os
import socket

import pytest

from elasticq.server.ports import EXIT_FAILURE, EXIT_PORT_TAKEN, not_listening, sqs_listener


def test_without_anybody_who_holds_the_port_it_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))  # of a process that started this one
    monkeypatch.setenv("LISTEN_FDS", "1")
    with sqs_listener("127.0.0.1", 0, 5) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        with socket.create_connection((host, port)):
            pass
        with pytest.raises(OSError, match="in use"):
            sqs_listener("127.0.0.1", port, 5)


def test_reason_is_told_with_the_option_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert not_listening("h", 5, "--port", OSError(errno.EADDRINUSE, "")) == EXIT_PORT_TAKEN
    assert "h:5 is taken by another process; choose another with --port" in capsys.readouterr().err
    assert not_listening("h", 5, "--port", OSError(errno.EACCES, "Permission denied")) == EXIT_FAILURE
    assert "cannot listen on h:5: Permission denied" in capsys.readouterr().err
