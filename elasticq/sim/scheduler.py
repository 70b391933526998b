"""Virtual time: actions run one after the other, each at its moment, and chance comes from the seed.

Each source of chance draws from a stream of its own, named after it, so that leaving a fault out leaves the
others as they are.
"""

import heapq
from collections.abc import Callable
from random import Random

LATENCY_US = (50, 1_500)  # between a client and a member


class Scheduler:
    """``now_us``: virtual time since the beginning; ``events``: how many actions have run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.events = 0
        self.is_stopped = False
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._latency = self.random("latency")

    def random(self, name: str) -> Random:
        """A stream of chance of its own for ``name``."""
        return Random(f"{self.seed}/{name}")

    def schedule(self, delay_us: int, action: Callable[[], None]) -> None:
        """Run ``action`` after ``delay_us``; actions of the same moment run in the order of these calls."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + delay_us, self._sequence, action))

    def schedule_at(self, at_us: int, action: Callable[[], None]) -> None:
        """Run ``action`` at that moment; if it is over, at this one."""
        self.schedule(max(0, at_us - self.now_us), action)

    def after_latency(self, action: Callable[..., None], *arguments: object) -> None:
        """Run ``action`` when what passes between a client and a member has arrived."""
        self.schedule(self._latency.randint(*LATENCY_US), lambda: action(*arguments))

    def run_until(self, until_us: int) -> None:
        """Run what is due by then; less if an action stops the run."""
        heap = self._heap
        while heap and heap[0][0] <= until_us and not self.is_stopped:
            self.now_us, _, action = heapq.heappop(heap)
            self.events += 1
            action()
        if not self.is_stopped:
            self.now_us = until_us

    def stop(self) -> None:
        """Run nothing more."""
        self.is_stopped = True
