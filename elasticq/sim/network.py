"""The simulated network between members: loses, delays, duplicates and reorders encoded frames.

Delays are drawn per frame, so frames overtake each other. A cut is one way; two
make a two-way cut. Cuts and bursts nest: each has to be lifted as often as it was set.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

DELAY_MIN_US = 100
BURST_LOSS_SHARE = 0.4

Schedule = Callable[[int, Callable[[], None]], None]
"""Called as schedule(delay_us, action)."""


class Network:
    """Hands a frame that is sent to ``deliver(sender, to, data)`` after its delay, or never, or twice."""

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
        self.mended: Callable[[], None] = lambda: None  # told when a cut is over or a member is back
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
