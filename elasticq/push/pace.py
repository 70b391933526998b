"""How fast notifications may be posted to one endpoint: the maxReceivesPerSecond of its DeliveryPolicy."""


class Pace:
    """Gives each post its time, evenly apart. Times are seconds of any clock that only grows."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def wait_s(self, now_s: float, per_second: int | None) -> float:
        """How long the next post must wait, which counts as made; None: there is no bound."""
        if per_second is None:
            return 0.0
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + 1 / per_second
        return at_s - now_s
