"""Consumers that join and leave all the time while the master is killed. The long form: scripts/chaos groups."""

from pathlib import Path

from tests.system.cluster.cluster import Cluster
from tests.system.groups import soak


def test_joins_leaves_and_a_killed_master_make_no_two_holders(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster", 3)
    try:
        figures = soak.soak(cluster.start(), tmp_path / "soak", 8, seed=1, kill_each_s=8, session_ms=6_000)
    finally:
        cluster.end()
    assert figures.findings == []
    assert figures.stale == []
    assert figures.masters_killed == 1
    assert figures.holds >= soak.RESOURCES
