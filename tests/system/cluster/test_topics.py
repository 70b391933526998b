"""kill -9 of the master under publishes to five queues; scripts/chaos topics kills fifty."""

from tests.system.cluster.cluster import Cluster
from tests.system.cluster.publishing import Publishing, kill_master


def test_publishes_reach_all_queues_or_none_over_a_killed_master(cluster: Cluster) -> None:
    Publishing.prepare(cluster)
    _, verdict = kill_master(cluster)
    print(verdict.line())
    assert (verdict.partial, verdict.lost, verdict.doubled) == ([], [], [])
    assert verdict.published >= 300
