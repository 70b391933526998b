"""A simulated operator of the clock: advances cluster time when a fault says so, with retries like any client."""

from __future__ import annotations

from elasticq.checks.history import Advance
from elasticq.model.extensions import AdvanceClock
from elasticq.sim.client import Client


class Timekeeper(Client):
    def start(self) -> None:
        """Do nothing: faults set it to work."""

    def advance(self, advance_ms: int) -> bool:
        """Advance cluster time; False, and nothing is done, while an earlier advance is under way."""
        if self.running is not None:
            return False
        event = Advance(client=self.name, queue="", invoke_us=self.scheduler.now_us, advance_ms=advance_ms)
        self.begin(AdvanceClock(advance_ms=advance_ms), event, lambda _: None)
        return True
