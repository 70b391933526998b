"""Clusters of a test, each in a directory of its own; none outlives its test, also when it fails."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster.cluster import Cluster

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """A cluster that is not started yet; takes what Cluster takes, less the directory."""
    made: list[Cluster] = []

    def make(count: int = 3, **more: Any) -> Cluster:
        made.append(Cluster(tmp_path / f"cluster{len(made)}", count, **more))
        return made[-1]

    yield make
    for cluster in made:
        cluster.end()


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Cluster:
    """Three that serve."""
    return make_cluster().start()


@pytest.fixture(scope="module")
def formed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three that serve, for tests that break nothing but their own connections."""
    cluster = Cluster(tmp_path_factory.mktemp("formed"))
    try:
        yield cluster.start()
    finally:
        cluster.end()
