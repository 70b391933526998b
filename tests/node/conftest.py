"""What most tests of a node begin with: one member alone, or a cluster of three, with the queue "jobs"."""

import pytest

from elasticq.model import commands as c
from tests.node.cluster import Cluster, Solo


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    made.create()
    return made


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.introduce_all()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    made.advance(300)
    return made
