"""The matching of several conditions within the same elements of a message's arrays.

In ``{"lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 9}]}`` no line has sku a and count 9. All alternatives
of a policy are checked at once. Each has a bit, and a *mask* marks the alternatives that fail. The message is traversed
twice: down to find the elements at the keys, and up with the masks.
"""

from collections.abc import Generator, Iterator
from itertools import repeat
from typing import Any, Final

from elasticq.engine.filters.document import Document
from elasticq.engine.filters.patterns import Wanted
from elasticq.engine.filters.values import PART, Budget, scalar

Conditions = list[tuple[str, Wanted]]
_COST: Final = 10  # the cost of an element


class _Part:
    """One part of the keys of conditions, with the elements of the message at this place.

    - wanted: The conditions whose key ends here, by the bit of their alternative.
    - involved: The mask of alternatives with a key that ends here or continues below.
    - elements: Scalars and objects. A tuple of them is one element: names with dots can lead to the same key twice.
    - parents: For each element, the index of its parent among the elements of ``above``.
    - seen: For each element, the mask of the parts below that it has.
    - failed: For each element, the mask of the alternatives that fail below it.
    """

    __slots__ = ("above", "below", "elements", "failed", "involved", "parents", "place", "seen", "wanted")

    def __init__(self, above: "_Part | None", place: int) -> None:
        self.above = above
        self.place = place
        self.below: dict[str, _Part] = {}
        self.wanted: dict[int, tuple[Wanted, ...]] = {}
        self.involved = 0
        self.elements: list[Any] = []
        self.parents: list[int] = []
        self.seen: list[int] = []
        self.failed: list[int] = []

    def add(self, key: str, wanted: Wanted, bit: int) -> "_Part":
        """Add a condition of an alternative. Return the part at which its key ends."""
        part = self
        part.involved |= bit
        for name in key.split("."):
            following = part.below.get(name)
            if following is None:
                following = part.below[name] = _Part(part, len(part.below))
            part = following
            part.involved |= bit
        part.wanted[bit] = (*part.wanted.get(bit, ()), wanted)
        return part

    def lacking(self, seen: int) -> int:
        """Return the mask of alternatives with a condition below of which an element has nothing.

        ``seen`` is the mask of the parts that the element has.
        """
        found = 0
        for part in self.below.values():
            if not seen >> part.place & 1:
                found |= part.involved
        return found


def hold_together(document: Document, alternatives: list[Conditions], budget: Budget) -> Generator[None, None, bool]:
    """Return whether one of the alternatives is fulfilled. Yield when the budget is spent.

    Each of their conditions holds by itself, on a key that the document has.
    """
    root = _Part(None, 0)
    keys: dict[_Part, str] = {}
    for number, conditions in enumerate(alternatives):
        for key, wanted in conditions:
            keys[root.add(key, wanted, 1 << number)] = key
    root.elements, root.parents = [document.root], [0]
    parts = [root]
    for part in parts:  # the loop adds to it
        yield from _go_down(part, budget)
        parts += part.below.values()
    for part in reversed(parts):
        yield from _go_up(part, document, keys.get(part), budget)
    return root.failed[0] != root.involved


def _go_down(part: _Part, budget: Budget) -> Iterator[None]:
    """Find the elements below those of a part."""
    part.seen, part.failed = [0] * len(part.elements), [0] * len(part.elements)
    if not part.below:
        return
    for at, element in enumerate(part.elements):
        if isinstance(element, (dict, tuple)):
            for following, sources in _sources(element, part.below, budget):
                before = len(following.elements)
                yield from _add(following, sources, budget)
                added = len(following.elements) - before
                if added:
                    following.parents += repeat(at, added)
                    part.seen[at] |= 1 << following.place
            budget.left -= _COST
            if budget.left <= 0:
                yield


def _sources(
    element: dict[str, Any] | tuple[Any, ...], below: dict[str, _Part], budget: Budget
) -> list[tuple[_Part, list[Any]]]:
    """Return the parts below an object that it has, each with its values."""
    found: dict[str, list[Any]] = {}
    for each in (element,) if isinstance(element, dict) else element:
        if not isinstance(each, dict):
            continue
        budget.left -= 2 * len(each)
        for name, value in each.items():
            first, dot, rest = name.partition(".")
            if first in below:
                found.setdefault(first, []).append({rest: value} if dot else value)
    return [(below[name], sources) for name, sources in found.items()]


def _add(part: _Part, sources: list[Any], budget: Budget) -> Iterator[None]:
    """Add the elements of the values at a key. An array adds each of its elements. All other values form
    one element.
    """
    plain = [each for each in sources if not isinstance(each, list)]
    if plain:
        part.elements.append(plain[0] if len(plain) == 1 else tuple(plain))
    todo: list[Any] = [each for each in sources if isinstance(each, list)]
    while todo:
        node = todo.pop()
        for first in range(0, len(node), PART):
            some = node[first : first + PART]
            nested = [each for each in some if isinstance(each, list)]
            if nested:
                todo += nested
                some = [each for each in some if not isinstance(each, list)]
            part.elements += some
            budget.left -= len(some)
            if budget.left <= 0:
                yield


def _go_up(part: _Part, document: Document, key: str | None, budget: Budget) -> Iterator[None]:
    """Mark, in the elements above, the alternatives that fail in all elements of this part."""
    fulfilled: dict[Any, int] = {}
    ending = 0
    if key is not None:
        yield from _prepare(part, document, key, fulfilled, budget)
        for bit in part.wanted:
            ending |= bit
    deeper = 0
    for following in part.below.values():
        deeper |= following.involved
    above = part.above
    lacking: dict[int, int] = {}
    failed, parent = 0, -1
    for at, element in enumerate(part.elements):
        if isinstance(element, (dict, tuple)):
            seen = part.seen[at]
            missing = lacking.get(seen)
            if missing is None:
                missing = lacking[seen] = part.lacking(seen)
            fails = ending
            for each in element if isinstance(element, tuple) else ():
                if not isinstance(each, dict):
                    fails &= ~fulfilled.get(scalar(each), 0)
            fails |= missing | part.failed[at]
        else:
            fails = deeper | (ending & ~fulfilled.get(scalar(element), 0))
        if above is None:
            part.failed[at] = fails
        elif part.parents[at] == parent:
            failed &= fails
        else:
            if parent >= 0:
                above.failed[parent] |= failed
            failed, parent = fails, part.parents[at]
        budget.left -= _COST
        if budget.left <= 0:
            yield
    if above is not None and parent >= 0:
        above.failed[parent] |= failed


def _prepare(part: _Part, document: Document, key: str, fulfilled: dict[Any, int], budget: Budget) -> Iterator[None]:
    """Compute for each value at a key the mask of alternatives that it fulfils."""
    values = document.values[key]
    together: dict[tuple[Wanted, ...], int] = {}
    for bit, lists in part.wanted.items():
        together[lists] = together.get(lists, 0) | bit
    for lists, bits in together.items():
        found = values.all
        for wanted in lists:
            yield from wanted.prepare(values, budget)
            found = found & wanted.of(values)
        for value in found:
            fulfilled[value] = fulfilled.get(value, 0) | bits
        budget.left -= 5 * len(found)
        if budget.left <= 0:
            yield
