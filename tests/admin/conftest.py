"""One real server for all tests of its admin port that leave it as they found it."""

from collections.abc import Iterator

import pytest

from tests.admin.operator import Operator
from tests.server.process import Server


@pytest.fixture(scope="session")
def operator() -> Iterator[Operator]:
    """An operator of a server that keeps its queues in memory; each test uses queue names of its own."""
    with Server() as server:
        yield Operator(server.admin())
