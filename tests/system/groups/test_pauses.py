"""Consumers as real processes, paused and killed. The long form: scripts/chaos groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster.cluster import Cluster, until
from tests.system.groups.crew import Crew

PAUSES = 8


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    cluster = Cluster(tmp_path / "cluster", 1, memory=True).start()
    made = Crew(tmp_path / "crew", cluster.endpoints())
    yield made
    made.end()
    cluster.end()


def test_paused_and_killed_consumers_write_nothing_stale(crew: Crew) -> None:
    for name in ("a", "b", "c"):
        crew.start(name)
    until(crew.is_even, "all is held, evenly")
    verdict = crew.judged(*crew.torment(PAUSES, seed=1, kill_each=4))
    assert verdict.findings == []
    assert verdict.stale == []
    assert (verdict.pauses, verdict.kills) == (PAUSES - 2, 2)
    assert verdict.accepted > 0
