"""A server of its own for the tests of a module: a process, which they kill and start again."""

from collections.abc import Iterator

import pytest

from tests.system.cluster.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), 1)
    made.start()
    yield made
    made.end()
