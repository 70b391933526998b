"""The simulated client that advances cluster time when a fault orders it. It retries like other clients."""

from __future__ import annotations

from elasticq.checks.history import Advance
from elasticq.model.extensions import AdvanceClock
from elasticq.sim.client import Client


class Timekeeper(Client):
    def start(self) -> None:
        """Do nothing: faults call ``advance``."""

    def advance(self, advance_ms: int) -> bool:
        """Advance cluster time and return True. While an earlier advance is in progress, only return False."""
        if self.running is not None:
            return False
        event = Advance(client=self.name, queue="", invoke_us=self.scheduler.now_us, advance_ms=advance_ms)
        self.begin(AdvanceClock(advance_ms=advance_ms), event, lambda _: None)
        return True
