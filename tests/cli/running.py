"""Runs a command of elasticq against a server of the test's process."""

from collections.abc import Callable

import pytest

from elasticq.cli import main
from elasticq.testing import ElasticQ

Run = Callable[..., tuple[int, str, str]]


def runner(group: str, server: ElasticQ, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """What runs a command of ``elasticq group``, and returns its exit status, stdout and stderr."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    def run(command: str, *arguments: str) -> tuple[int, str, str]:
        status = main([group, command, "--url", server.endpoint_url, "--region", server.region, *arguments])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run
