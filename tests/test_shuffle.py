"""``pytest --shuffle SEED``: an order that repeats, of all tests, and none of it is the order of the files."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import shuffled

ITEMS: list[Any] = [SimpleNamespace(path=Path(f"test_{file}.py"), name=name) for file in range(20) for name in range(9)]


def test_a_seed_names_an_order() -> None:
    assert shuffled(ITEMS, 7) == shuffled(ITEMS, 7) != shuffled(ITEMS, 8)


def test_each_test_runs_once() -> None:
    order = shuffled(ITEMS, 7)
    assert order != ITEMS
    assert sorted(map(id, order)) == sorted(map(id, ITEMS))


def test_a_file_is_not_left_before_its_end() -> None:
    order: list[Any] = shuffled(ITEMS, 7)
    files = [item.path for item in order]
    assert sum(before != after for before, after in pairwise(files)) == 19
    assert files != sorted(files)
    assert [item.name for item in order[:9]] != list(range(9))
