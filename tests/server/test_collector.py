"""How much the garbage collector looks at, and what it still collects."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from elasticq.server import collector
from elasticq.server.collector import OLD_MAX, THRESHOLDS


@pytest.fixture
def tamed() -> Iterator[None]:
    before = gc.get_threshold()
    collector.tame()
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(collector._collected)
    gc.unfreeze()


@pytest.fixture
def sizes(tamed: None) -> Iterator[list[int]]:
    """How many objects each collection has looked at."""
    found: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(len(gc.get_objects(generation=each)) for each in range(info["generation"] + 1)))

    gc.callbacks.append(look)
    yield found
    gc.callbacks.remove(look)


class Node:
    """An object in a cycle with itself."""

    living = 0

    def __init__(self) -> None:
        self.me = self
        Node.living += 1

    def __del__(self) -> None:
        Node.living -= 1


def test_no_collection_looks_at_a_state_that_grows(sizes: list[int]) -> None:
    state: list[Any] = [[[]] for _ in range(500_000)]
    assert len(state) == 500_000
    most = THRESHOLDS[0] * (THRESHOLDS[1] + 2) * (THRESHOLDS[2] + 2)
    assert len(sizes) > 50
    assert max(sizes) < most + OLD_MAX
    assert gc.get_freeze_count() > 800_000


def test_frozen_objects_are_freed_all_the_same(tamed: None) -> None:
    state: list[Any] = [[[]] for _ in range(500_000)]
    frozen = gc.get_freeze_count()
    del state
    assert gc.get_freeze_count() < frozen - 800_000


def test_garbage_in_cycles_does_not_pile_up(tamed: None) -> None:
    for _ in range(300_000):
        Node()
    assert Node.living < THRESHOLDS[0] + 1
    kept = [Node() for _ in range(20_000)]  # they are old by the time that they are garbage
    for _ in range(200_000):
        Node()
    assert len(kept) == 20_000
    del kept
    for _ in range(20):
        waste: list[Any] = [[] for _ in range(20_000)]
        assert waste
    for _ in range(300_000):
        Node()
    assert Node.living < 2 * OLD_MAX


def test_it_is_tamed_once(tamed: None) -> None:
    collector.tame()
    assert gc.callbacks.count(collector._collected) == 1
