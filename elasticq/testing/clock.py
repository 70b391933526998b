"""The clock that tests turn: the time of a whole cluster."""

from collections.abc import Callable
from typing import Any


class Clock:
    """The clock of the whole cluster. It only moves forward, and for all accounts."""

    def __init__(self, order: Callable[..., dict[str, Any]]) -> None:
        """Prepare a clock. order: sends a request of a method to a path, with members, and returns the answer."""
        self._order = order

    def advance(self, seconds: float) -> float:
        """Move the time forward by so many seconds. Return the new time in seconds since the epoch."""
        return float(self._order("POST", "/_elasticq/clock", advance=seconds)["time"])

    def now(self) -> float:
        """Return the time of the cluster in seconds since the epoch."""
        return float(self._order("GET", "/_elasticq/clock")["time"])
