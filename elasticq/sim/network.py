"""The simulated network between processes. It loses, delays, duplicates and reorders encoded frames.

Each frame gets its own random delay, so frames can overtake each other. A cut affects one direction. Cuts and bursts
of loss are counted: each must be ended as often as it was started.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

DELAY_MIN_US = 100
BURST_LOSS_SHARE = 0.4

Schedule = Callable[[int, Callable[[], None]], None]
"""Called as schedule(delay_us, action)."""


class Network:
    """The network. It calls ``deliver(sender, to, data)`` for a sent frame after a delay: once, twice or never."""

    def __init__(
        self,
        random: Random,
        schedule: Schedule,
        deliver: Callable[[str, str, bytes], None],
        *,
        loss_share: float = 0.0,
        duplicate_share: float = 0.0,
        jitter_us: int = 500,
        straggler_share: float = 0.0,
    ) -> None:
        self.random = random
        self.schedule = schedule
        self.deliver = deliver
        self.loss_share = loss_share
        self.duplicate_share = duplicate_share
        self.jitter_us = jitter_us
        self.straggler_share = straggler_share
        self.cuts: Counter[tuple[str, str]] = Counter()
        self.mended: Callable[[], None] = lambda: None  # called when a cut ends or a member is back
        self.bursts = 0
        self.frames = 0

    def send(self, sender: str, to: str, data: bytes) -> None:
        self.frames += 1
        if self.cuts[sender, to] > 0 or self.random.random() < self._loss_share():
            return
        self._dispatch(sender, to, data)
        if self.duplicate_share and self.random.random() < self.duplicate_share:
            self._dispatch(sender, to, data)

    def _loss_share(self) -> float:
        return BURST_LOSS_SHARE if self.bursts > 0 else self.loss_share

    def _dispatch(self, sender: str, to: str, data: bytes) -> None:
        delay_us = DELAY_MIN_US + int(self.random.random() * self.jitter_us)
        if self.straggler_share and self.random.random() < self.straggler_share:
            delay_us += self.random.randrange(5_000, 400_000)
        self.schedule(delay_us, lambda: self.deliver(sender, to, data))

    def cut(self, sender: str, to: str) -> None:
        self.cuts[sender, to] += 1

    def mend(self, sender: str, to: str) -> None:
        self.cuts[sender, to] = max(0, self.cuts[sender, to] - 1)
        self.mended()

    def mend_all(self) -> None:
        """End all faults: cuts, bursts, loss, duplicates and stragglers."""
        self.cuts.clear()
        self.bursts = 0
        self.loss_share = self.duplicate_share = self.straggler_share = 0.0
