"""A set of integers that is stored as ranges: ten million neighbouring numbers cost one pair."""

from bisect import bisect_right
from collections.abc import Iterator


class Ranges:
    """A set of integers. Adding at the end and removing at the front is O(1), elsewhere O(log n) plus a list move."""

    __slots__ = ("_firsts", "_head", "_lasts", "count")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._head = 0  # ranges before it are gone; trimmed in bulk so that the front costs O(1)
        self.count = 0

    def first(self) -> int | None:
        return self._firsts[self._head] if self._head < len(self._firsts) else None

    def __contains__(self, number: int) -> bool:
        firsts, lasts, head = self._firsts, self._lasts, self._head
        if head < len(firsts) and firsts[head] <= number <= lasts[head]:  # likely, near the front
            return True
        at = bisect_right(firsts, number, head) - 1
        return at >= head and number <= lasts[at]

    def __iter__(self) -> Iterator[int]:
        for at in range(self._head, len(self._firsts)):
            yield from range(self._firsts[at], self._lasts[at] + 1)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return (first, last) of each range, in order."""
        return zip(self._firsts[self._head :], self._lasts[self._head :], strict=True)

    def pairs_above(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield (first, last) of each range, without the numbers up to ``number``. Nothing may change meanwhile."""
        start = max(bisect_right(self._firsts, number, self._head) - 1, self._head)
        for at in range(start, len(self._firsts)):
            if self._lasts[at] > number:
                yield max(self._firsts[at], number + 1), self._lasts[at]

    def between(self, first: int, last: int) -> Iterator[int]:
        """Yield the numbers from ``first`` to ``last`` that are in the set. Nothing may change during the iteration."""
        start = max(bisect_right(self._firsts, first, self._head) - 1, self._head)
        for at in range(start, len(self._firsts)):
            if self._firsts[at] > last:
                return
            yield from range(max(first, self._firsts[at]), min(last, self._lasts[at]) + 1)

    def first_above(self, number: int) -> int | None:
        """Return the smallest number in the set that is larger than ``number``; None if there is none."""
        at = max(bisect_right(self._firsts, number, self._head) - 1, self._head)
        if at < len(self._firsts) and self._lasts[at] <= number:
            at += 1
        return max(number + 1, self._firsts[at]) if at < len(self._firsts) else None

    def count_above(self, number: int) -> int:
        """Return how many numbers in the set are larger than ``number``."""
        start = max(bisect_right(self._firsts, number, self._head) - 1, self._head)
        pairs = zip(self._firsts[start:], self._lasts[start:], strict=True)
        return sum(last - max(first, number + 1) + 1 for first, last in pairs if last > number)

    def add_range(self, first: int, last: int) -> None:
        """Add all numbers from ``first`` to ``last``, which must be larger than all in the set."""
        firsts, lasts = self._firsts, self._lasts
        assert first <= last
        if self._head < len(lasts):
            assert first > lasts[-1], "ranges are added at the end"
            if first == lasts[-1] + 1:
                lasts[-1] = last
                self.count += last - first + 1
                return
        firsts.append(first)
        lasts.append(last)
        self.count += last - first + 1

    def add(self, number: int) -> bool:
        """Add a number. Return False if it was in the set."""
        firsts, lasts = self._firsts, self._lasts
        if self._head < len(lasts) and number == lasts[-1] + 1:
            lasts[-1] = number
            self.count += 1
            return True
        if self._head == len(lasts) or number > lasts[-1]:
            firsts.append(number)
            lasts.append(number)
            self.count += 1
            return True
        return self._insert(number)

    def _insert(self, number: int) -> bool:
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, number, self._head)
        if at > self._head and number <= lasts[at - 1]:
            return False
        self.count += 1
        joins_left = at > self._head and lasts[at - 1] == number - 1
        joins_right = at < len(firsts) and firsts[at] == number + 1
        if joins_left and joins_right:
            lasts[at - 1] = lasts[at]
            del firsts[at], lasts[at]
        elif joins_left:
            lasts[at - 1] = number
        elif joins_right:
            firsts[at] = number
        else:
            firsts.insert(at, number)
            lasts.insert(at, number)
        return True

    def discard(self, number: int) -> bool:
        """Remove a number. Return False if it was not in the set."""
        firsts, lasts, head = self._firsts, self._lasts, self._head
        if head < len(firsts) and firsts[head] == number:
            self._drop_first()
            return True
        at = bisect_right(firsts, number, head) - 1
        if at < head or number > lasts[at]:
            return False
        self.count -= 1
        if firsts[at] == lasts[at]:
            del firsts[at], lasts[at]
        elif number == firsts[at]:
            firsts[at] += 1
        elif number == lasts[at]:
            lasts[at] -= 1
        else:
            firsts.insert(at + 1, number + 1)
            lasts.insert(at + 1, lasts[at])
            lasts[at] = number - 1
        return True

    def _drop_first(self) -> None:
        head = self._head
        self.count -= 1
        if self._firsts[head] < self._lasts[head]:
            self._firsts[head] += 1
            return
        self._head += 1
        if self._head > 64 and self._head * 2 > len(self._firsts):
            del self._firsts[: self._head], self._lasts[: self._head]
            self._head = 0

    def copy(self) -> "Ranges":
        """Return a set of the same numbers. It costs two copies of memory."""
        other = Ranges()
        other._firsts, other._lasts = self._firsts[self._head :], self._lasts[self._head :]
        other.count = self.count
        return other

    def clear(self) -> None:
        self._firsts, self._lasts, self._head, self.count = [], [], 0, 0
