"""Durable servers of a test, each in a directory of its own; none outlives its test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.durability.server import Server

MakeServer = Callable[..., Server]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """A server that is not started yet; takes what Server takes, and ``directory`` for another than the usual."""
    made: list[Server] = []

    def make(directory: Path | None = None, **more: Any) -> Server:
        made.append(Server(directory or tmp_path / "data", tmp_path / f"stderr{len(made)}", **more))
        return made[-1]

    yield make
    for server in made:
        server.kill()


@pytest.fixture
def server(make_server: MakeServer) -> Server:
    """A running one."""
    server = make_server()
    server.start()
    return server
