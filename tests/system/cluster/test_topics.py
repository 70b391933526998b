"""kill -9 of the master under publishes to five queues; scripts/chaos_topics.py kills fifty."""

from tests.system.cluster.cluster import Cluster
from tests.system.cluster.publishing import Publishing


def test_publishes_reach_all_queues_or_none_over_a_killed_master(cluster: Cluster) -> None:
    Publishing.prepare(cluster)
    with Publishing(cluster) as publishing:
        publishing.wait_for(100)
        master = cluster.master()
        cluster.kill9(master)
        publishing.wait_for(200)
        verdict = publishing.judge()
    print(verdict.line())
    assert (verdict.partial, verdict.lost, verdict.doubled) == ([], [], [])
    assert verdict.published >= 300
