"""The rate limit of notifications to one endpoint: the maxReceivesPerSecond of its DeliveryPolicy."""


class Pace:
    """A schedule that spaces posts evenly. Times are in seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def wait_s(self, now_s: float, per_second: int | None) -> float:
        """Return how many seconds the next post must wait, and count that post. per_second None: no limit."""
        if per_second is None:
            return 0.0
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + 1 / per_second
        return at_s - now_s
