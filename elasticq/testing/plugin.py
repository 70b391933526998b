"""The pytest plugin: fixtures elasticq, sqs, sns, topic, elasticq_clock, elasticq_server and elasticq_cluster.

pytest loads this file in each project that has elasticq installed. So it imports only pytest until a fixture is used.
One server runs for the whole session, and each test has its own account there. With xdist, each worker has a server.
"""

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from elasticq.testing.clock import Clock
    from elasticq.testing.cluster import Cluster
    from elasticq.testing.server import ElasticQ
    from elasticq.testing.view import Topic, View

_FIRST_ACCOUNT = 100_000_000_000
_accounts = count(_FIRST_ACCOUNT)


@pytest.fixture(scope="session")
def elasticq_server() -> "Iterator[ElasticQ]":
    """Yield a server in memory, in a thread of this process, for all tests."""
    from elasticq.testing.server import ElasticQ

    with ElasticQ() as server:
        yield server


@pytest.fixture
def elasticq(elasticq_server: "ElasticQ") -> "Iterator[View]":
    """Yield a view of the server for an account of this test alone, which has no queues yet."""
    view = elasticq_server.view(str(next(_accounts)))
    yield view
    view.reset()
    view.close()


@pytest.fixture
def sqs(elasticq: "View") -> Any:
    """Return a boto3 client of SQS for this test's account."""
    return elasticq.client()


@pytest.fixture
def sns(elasticq: "View") -> Any:
    """Return a boto3 client of SNS for this test's account."""
    return elasticq.client("sns")


@pytest.fixture
def topic(elasticq: "View") -> "Topic":
    """Return a topic of this test's account. It exists, and its name is "topic"."""
    return elasticq.topic("topic").create()


@pytest.fixture
def elasticq_clock(elasticq: "View") -> "Clock":
    """Return the server's clock. ``advance(seconds)`` moves it forward for good, so for later tests, too."""
    return elasticq.clock


@pytest.fixture
def elasticq_cluster() -> "Iterator[Cluster]":
    """Yield a cluster of three members for this test alone, with kill_master(), partition(...) and heal()."""
    from elasticq.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster
