"""The values of a message at one key, sorted in the orders that patterns search.

A filter policy may have 150 patterns at a key, and a message 500,000 values, so no pattern checks all of them. A
prefix, a suffix, a range of numbers, a network or an equality without case is a *span* of keys in one order of the
values. An order is created once for all subscriptions, when the first one needs it.
"""

import ipaddress
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from math import floor, inf
from typing import Any, Final

NUMBERS: Final = 0
TEXTS: Final = 1
ENDS: Final = 2
"""The order of texts by their reversed characters."""
LOWERED: Final = 3
ADDRESSES: Final = 4
"""The order of texts that are IP addresses, by number; IPv4 comes first."""
ORDERS: Final = 5

PART: Final = 4_096  # values that one step reads
SORTED: Final = 16_384  # values that one step sorts
LARGE: Final = 64  # from this number of values on, orders are created in slices
ADDRESS_CHARS_MAX: Final = 64  # an IPv6 address has at most 45, without a zone name
IPV6: Final = 1 << 128
"""The number that is added to IPv6 addresses to form their keys."""
_INTEGER_END: Final = 1 << 64
_ENDLESS: Final = 1 << 62

Sorted = tuple[list[Any], list[Any]]
"""Sorted keys, and their values in the same order."""
End = tuple[Any, int]
"""An end of a span: a key, and 0 for the position before it or 1 for the position behind it."""


class Budget:
    """The work that may be done before other tasks run. A unit is about a tenth of a microsecond."""

    __slots__ = ("left",)

    def __init__(self, left: int = _ENDLESS) -> None:
        self.left = left


class Truth:
    """True or false in a message. Python's booleans are equal to 1 and 0, but AWS's are not."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE: Final = Truth(True)
FALSE: Final = Truth(False)


def _five_digits(number: float) -> float:
    """Return the number without the sixth and later digits after the decimal point.

    Source: the SNS developer guide, "Numeric value matching". A float has no such digits from 1e10 on. The small
    addend makes up for the rounding of the product: 0.00029 * 1e5 is just below 29.
    """
    return floor(number * 1e5 + 1e-3) / 1e5 if -1e10 < number < 1e10 else number


def scalar(value: Any) -> Any:
    """Return the scalar for a decoded JSON value that is neither a list nor an object.

    Numbers keep five digits after the decimal point. An integer of more than 64 bits becomes a float, because a client
    could choose many such integers with the same hash.
    """
    if isinstance(value, float):
        return _five_digits(value)
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    if not isinstance(value, int) or -_INTEGER_END < value < _INTEGER_END:
        return value
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


@lru_cache(maxsize=64)  # all subscriptions of a topic check the same few values
def address_of(text: str) -> int | None:
    """Return the key of a text that is an IP address, else None."""
    if len(text) > ADDRESS_CHARS_MAX:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return int(address) + IPV6 if address.version == 6 else int(address)


class Spans:
    """Separate spans of the keys of one order, in ascending order."""

    __slots__ = ("highs", "lows", "order")

    def __init__(self, order: int, ends: list[tuple[End, End | None]]) -> None:
        """Merge the spans with these ends, which may overlap, be empty, and be in any order. None means no
        upper end.
        """
        self.order = order
        self.lows: list[End] = []
        self.highs: list[End | None] = []
        for low, high in sorted(ends, key=_by_low):
            last = self.highs[-1] if self.highs else None
            if not self.lows or (last is not None and low > last):
                self.lows.append(low)
                self.highs.append(high)
            elif last is not None and (high is None or high > last):
                self.highs[-1] = high

    def has(self, key: Any) -> bool:
        """Return whether a key is in one of the spans."""
        at = bisect_right(self.lows, (key, 0)) - 1
        if at < 0:
            return False
        high = self.highs[at]
        return high is None or (key, 0) < high

    def meet(self, keys: list[Any]) -> bool:
        """Return whether one of these sorted keys is in one of the spans."""
        if len(keys) > len(self.lows):
            return bool(self.found(keys))
        return any(self.has(key) for key in keys)

    def found(self, keys: list[Any]) -> list[tuple[int, int]]:
        """Return, for each span with keys, the index of its first key and the index behind its last key."""
        found = []
        for low, high in zip(self.lows, self.highs, strict=True):
            first = _place(keys, low)
            behind = len(keys) if high is None else _place(keys, high)
            if first < behind:
                found.append((first, behind))
        return found


def _by_low(ends: tuple[End, End | None]) -> End:
    return ends[0]


def _place(keys: list[Any], end: End) -> int:
    key, side = end
    return bisect_right(keys, key) if side else bisect_left(keys, key)


class Values:
    """The distinct scalars at one key.

    - all: The scalars.
    - scanned: The matching texts by wildcard, as a cache.
    """

    __slots__ = ("_is_large", "_orders", "all", "scanned")

    def __init__(self) -> None:
        self.all: set[Any] = set()
        self.scanned: dict[object, set[Any]] = {}
        self._orders: list[list[Sorted] | None] = [None] * ORDERS
        self._is_large: bool | None = None

    @property
    def is_large(self) -> bool:
        """Return whether checking all values takes long. The values must be complete."""
        if self._is_large is None:
            chars = [len(value) for value in self.all if isinstance(value, str)] if len(self.all) <= LARGE else []
            self._is_large = len(self.all) > LARGE or sum(chars) > PART
        return self._is_large

    def texts(self) -> Iterator[str]:
        """Return an iterator over the values that are texts."""
        return chain.from_iterable([texts for texts, _ in self.sorted_by(TEXTS)])

    @property
    def text_count(self) -> int:
        return sum([len(texts) for texts, _ in self.sorted_by(TEXTS)])

    def sort(self, order: int, budget: Budget) -> Iterator[None]:
        """Create an order. Yield when the budget is spent."""
        if self._orders[order] is not None:
            return
        made: list[Sorted] = []
        values = list(self.all)
        for first in range(0, len(values), SORTED):
            pairs: list[tuple[Any, Any]] = []
            keys: list[Any] = []
            for start in range(first, min(first + SORTED, len(values)), PART // 4):
                part = values[start : min(start + PART // 4, first + SORTED)]
                _add_keys(order, part, keys, pairs)
                budget.left -= _COSTS[order] * len(part)
                if budget.left <= 0:
                    yield
            if pairs:
                pairs.sort()
                made.append(([key for key, _ in pairs], [value for _, value in pairs]))
            elif keys:
                keys.sort()
                made.append((keys, keys if order != ENDS else [key[::-1] for key in keys]))
        self._orders[order] = made

    def sorted_by(self, order: int) -> list[Sorted]:
        """Return the parts of an order, each sorted by itself. Create it if necessary."""
        made = self._orders[order]
        if made is None:
            for _ in self.sort(order, Budget()):
                pass
            made = self._orders[order]
            assert made is not None, "``sort`` creates it"
        return made


_COSTS: Final[tuple[int, ...]] = (5, 5, 10, 10, 50)
"""The cost of a value in each order."""


def _add_keys(order: int, values: list[Any], keys: list[Any], pairs: list[tuple[Any, Any]]) -> None:
    """Add the keys of values. If a key determines its value, add it to ``keys``, else add both to ``pairs``."""
    if order == NUMBERS:
        keys += [value for value in values if isinstance(value, (int, float))]
        return
    texts = [value for value in values if isinstance(value, str)]
    if order == TEXTS:
        keys += texts
    elif order == ENDS:
        keys += [text[::-1] for text in texts]
    elif order == LOWERED:
        pairs += [(text.lower(), text) for text in texts]
    else:
        pairs += [(key, text) for text in texts if (key := address_of(text)) is not None]
