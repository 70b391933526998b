"""The values of a message at one key, in the orders in which patterns find them.

A filter policy may have 150 patterns at a key and a message 500,000 values, so no pattern looks at all of them. A
prefix, a suffix, a range of numbers, a network or a text in any case is a *span* of keys in one order of the values. An
order is made once for all subscriptions, if any of them asks for it.
"""

import ipaddress
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Any, Final

NUMBERS: Final = 0
TEXTS: Final = 1
ENDS: Final = 2
"""Texts by their characters from the last one to the first."""
LOWERED: Final = 3
ADDRESSES: Final = 4
"""Texts that are IP addresses, by their numbers; those of version 4 come first."""
ORDERS: Final = 5

PART: Final = 4_096  # values that are looked at at once
SORTED: Final = 16_384  # values that are sorted at once
LARGE: Final = 64  # values from which on orders are made in slices
ADDRESS_CHARS_MAX: Final = 64  # an IPv6 address has at most 45, without the name of a zone behind it
IPV6: Final = 1 << 128
"""What the keys of addresses of version 6 begin with."""
_INTEGER_END: Final = 1 << 64
_ENDLESS: Final = 1 << 62

Sorted = tuple[list[Any], list[Any]]
"""Sorted keys, and the values that they belong to in the same order."""
End = tuple[Any, int]
"""An end of a span: a key, and 0 for the place before it or 1 for the place behind it."""


class Budget:
    """How much may be done before others get their turn. A unit is about a tenth of a microsecond."""

    __slots__ = ("left",)

    def __init__(self, left: int = _ENDLESS) -> None:
        self.left = left


class Truth:
    """True or false in a message: Python's would be equal to 1 and 0, and AWS's are not."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE: Final = Truth(True)
FALSE: Final = Truth(False)


def scalar(value: Any) -> Any:
    """Return the scalar of a value that JSON decoded to, which is neither a list nor an object.

    A larger integer than 64 bits hold becomes a float: a client could choose many such integers with the same hash.
    """
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


@lru_cache(maxsize=64)  # all subscriptions of a topic look at the same few values
def address_of(text: str) -> int | None:
    """Return the key of a text that is an IP address; None for any other."""
    if len(text) > ADDRESS_CHARS_MAX:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return int(address) + IPV6 if address.version == 6 else int(address)


class Spans:
    """Spans of the keys of one order, none of which touches another, the first one first."""

    __slots__ = ("highs", "lows", "order")

    def __init__(self, order: int, ends: list[tuple[End, End | None]]) -> None:
        """``ends``: of each span, in any order, overlapping or empty; None: no upper end."""
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
        """Return whether one of some sorted keys is in one of the spans."""
        if len(keys) > len(self.lows):
            return bool(self.found(keys))
        return any(self.has(key) for key in keys)

    def found(self, keys: list[Any]) -> list[tuple[int, int]]:
        """Return where the keys in each span begin and where they end."""
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
    """The different scalars at one key.

    all: each once; scanned: by wildcard, the texts that it has found.
    """

    __slots__ = ("_is_large", "_orders", "all", "scanned")

    def __init__(self) -> None:
        self.all: set[Any] = set()
        self.scanned: dict[object, set[Any]] = {}
        self._orders: list[list[Sorted] | None] = [None] * ORDERS
        self._is_large: bool | None = None

    @property
    def is_large(self) -> bool:
        """Whether it takes long to look at all of them. They must be complete."""
        if self._is_large is None:
            chars = [len(value) for value in self.all if isinstance(value, str)] if len(self.all) <= LARGE else []
            self._is_large = len(self.all) > LARGE or sum(chars) > PART
        return self._is_large

    def texts(self) -> Iterator[str]:
        """The texts among them."""
        return chain.from_iterable([texts for texts, _ in self.sorted_by(TEXTS)])

    @property
    def text_count(self) -> int:
        return sum([len(texts) for texts, _ in self.sorted_by(TEXTS)])

    def sort(self, order: int, budget: Budget) -> Iterator[None]:
        """Make an order; yield where the budget is spent."""
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
        """Return the parts of an order, which is made first if need be."""
        made = self._orders[order]
        if made is None:
            for _ in self.sort(order, Budget()):
                pass
            made = self._orders[order]
            assert made is not None, "it was made"
        return made


_COSTS: Final[tuple[int, ...]] = (5, 5, 10, 10, 50)
"""The work for each value in the order with this number."""


def _add_keys(order: int, values: list[Any], keys: list[Any], pairs: list[tuple[Any, Any]]) -> None:
    """Add the keys of values: alone where they tell the value, else with it."""
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
