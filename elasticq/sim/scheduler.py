"""The virtual time and the randomness of a run. Actions run one after the other, each at its time.

Each part of the simulation has its own random stream, named after the part. So removing a fault does not change the
random numbers of the others.
"""

import heapq
from collections.abc import Callable
from random import Random

LATENCY_US = (50, 1_500)  # between a client and a member


class Scheduler:
    """The scheduler of a run. now_us: virtual time since the start. events: the number of actions that have run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.events = 0
        self.is_stopped = False
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._latency = self.random("latency")

    def random(self, name: str) -> Random:
        """Return the random stream for ``name``. It depends only on the seed and the name."""
        return Random(f"{self.seed}/{name}")

    def schedule(self, delay_us: int, action: Callable[[], None]) -> None:
        """Run ``action`` after ``delay_us``. Actions of the same time run in the order of these calls."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + delay_us, self._sequence, action))

    def schedule_at(self, at_us: int, action: Callable[[], None]) -> None:
        """Run ``action`` at ``at_us``, or now if that time has passed."""
        self.schedule(max(0, at_us - self.now_us), action)

    def after_latency(self, action: Callable[..., None], *arguments: object) -> None:
        """Run ``action`` after a random latency between a client and a member."""
        self.schedule(self._latency.randint(*LATENCY_US), lambda: action(*arguments))

    def run_until(self, until_us: int) -> None:
        """Run all actions that are due by ``until_us``, unless one of them stops the run."""
        heap = self._heap
        while heap and heap[0][0] <= until_us and not self.is_stopped:
            self.now_us, _, action = heapq.heappop(heap)
            self.events += 1
            action()
        if not self.is_stopped:
            self.now_us = until_us

    def stop(self) -> None:
        """Run no further actions."""
        self.is_stopped = True
