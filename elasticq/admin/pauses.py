"""Pauses in long work, so the event loop can serve others."""

import asyncio
from collections.abc import Callable, Iterable
from heapq import merge
from time import perf_counter
from typing import Any, Final, TypeVar

TURN_S: Final = 0.005
"""The time that work runs between two pauses."""
SORTED_AT_ONCE: Final = 2_000

Item = TypeVar("Item")


class Pause:
    """A pause that long work awaits often. It returns at once until TURN_S has passed since the last real pause."""

    def __init__(self) -> None:
        self._since_s = perf_counter()

    async def __call__(self) -> None:
        if perf_counter() - self._since_s > TURN_S:
            await asyncio.sleep(0)
            self._since_s = perf_counter()


async def in_order(items: list[Item], key: Callable[[Item], Any]) -> list[Item]:
    """Return the items sorted by a key."""
    pause, found = Pause(), list[Item]()
    parts = []
    for first in range(0, len(items), SORTED_AT_ONCE):
        parts.append(sorted(items[first : first + SORTED_AT_ONCE], key=key))
        await pause()
    if len(parts) < 2:
        return parts[0] if parts else []
    for number, item in enumerate(merge(*parts, key=key)):
        found.append(item)
        if number % 100 == 99:
            await pause()
    return found


async def first_in_order(items: list[Item], key: Callable[[Item], Any], count: int, *, reverse: bool) -> list[Item]:
    """Return the first ``count`` of the items, sorted by a key."""
    pause, found = Pause(), list[Item]()
    for first in range(0, len(items), SORTED_AT_ONCE):
        found = sorted(found + items[first : first + SORTED_AT_ONCE], key=key, reverse=reverse)[:count]
        await pause()
    return found


async def joined(parts: Iterable[str]) -> str:
    """Return the parts, which a generator may compute, as one text."""
    pause, found = Pause(), list[str]()
    for part in parts:
        found.append(part)
        await pause()
    return "".join(found)
