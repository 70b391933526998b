"""Counts how often something took how long."""

from bisect import bisect_left


class Histogram:
    """``counts[i]`` values were at most ``bounds[i]``, and above the bound before; the last ones were above all.

    One thread observes; another one may read, and may then see the sum one value ahead of the counts or behind.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
