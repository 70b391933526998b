"""Long work that lets others have their turn."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from time import perf_counter

import pytest

from elasticq.admin.pauses import SORTED_AT_ONCE, TURN_S, Pause, first_in_order, in_order, joined


@pytest.fixture
async def turns() -> AsyncIterator[list[None]]:
    """One entry for each turn that another task got."""
    found: list[None] = []

    async def count() -> None:
        while True:
            await asyncio.sleep(0)
            found.append(None)

    task = asyncio.create_task(count())
    await asyncio.sleep(0)
    yield found
    task.cancel()


def busy(seconds: float) -> None:
    until_s = perf_counter() + seconds
    while perf_counter() < until_s:
        pass


async def test_others_get_their_turn_when_work_has_lasted_for_a_while(turns: list[None]) -> None:
    pause = Pause()
    busy(2 * TURN_S)
    before = len(turns)
    await pause()
    assert len(turns) == before + 1
    await pause()
    assert len(turns) == before + 1


def shuffled(count: int) -> list[int]:
    found = list(range(count))
    random.Random(7).shuffle(found)
    return found


@pytest.mark.parametrize("count", [0, 1, SORTED_AT_ONCE, 20 * SORTED_AT_ONCE + 3])
async def test_items_are_sorted(turns: list[None], count: int) -> None:
    items = shuffled(count)
    assert await in_order(items, lambda each: -each) == sorted(items, reverse=True)
    assert count < SORTED_AT_ONCE or len(turns) > 1
    for reverse in (False, True):
        expected = sorted(items, reverse=reverse)[:1_000]
        assert await first_in_order(items, lambda each: each, 1_000, reverse=reverse) == expected


async def test_texts_are_joined_one_by_one(turns: list[None]) -> None:
    def slow() -> Iterator[str]:
        for text in "abc":
            busy(2 * TURN_S)
            yield text

    assert await joined(slow()) == "abc"
    assert len(turns) >= 3
