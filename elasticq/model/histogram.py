"""A histogram of durations or other numbers."""

from bisect import bisect_left


class Histogram:
    """A histogram with fixed bounds and the sum of all values.

    ``counts[i]`` is the number of values up to ``bounds[i]`` and above the bound before it. The last count is of values
    above all bounds. Only one thread may call ``observe``. Another thread may read; it may then see the sum one value
    before or after the counts.
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
