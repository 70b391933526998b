"""One server for this folder, and views of fresh accounts."""

from collections.abc import Iterator
from itertools import count

import pytest

from elasticq.testing import ElasticQ
from elasticq.testing.view import View

_accounts = count(200_000_000_000)


@pytest.fixture(scope="session")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def view(server: ElasticQ) -> Iterator[View]:
    view = server.view(str(next(_accounts)))
    yield view
    view.close()
