"""The patterns of filter policies: what one list of a policy requires of the values at its key.

AWS's error texts are those of its open-source matcher, event-ruler. So event-ruler decides where the SNS developer
guide is silent. Nothing here is a regular expression, and nothing backtracks. Most operators become spans in an order
of the values (values.py); a few patterns need other checks.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from math import inf
from typing import Any, Final

from elasticq.engine.filters.values import (
    ADDRESSES,
    ENDS,
    IPV6,
    LOWERED,
    NUMBERS,
    TEXTS,
    Budget,
    End,
    Spans,
    Values,
    address_of,
    scalar,
)
from elasticq.model import limits
from elasticq.model.errors import quoted


class InvalidFilterPolicy(ValueError):
    """The error for an invalid policy. Its text is AWS's, without "Invalid parameter: " and without a
    source position.
    """


def is_number(value: object) -> bool:
    """Return whether the value is a number. Python's booleans are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Pattern(ABC):
    """The base of patterns that do not need an order of the values."""

    __slots__ = ()

    @abstractmethod
    def among(self, values: Values) -> bool:
        """Return whether the pattern holds for one of the values."""

    @abstractmethod
    def of(self, values: Values) -> set[Any]:
        """Return the values for which the pattern holds."""


class NotAmong(Pattern):
    """The anything-but pattern with texts or numbers."""

    __slots__ = ("refused",)

    def __init__(self, refused: frozenset[object]) -> None:
        self.refused = refused

    def among(self, values: Values) -> bool:
        return not values.all <= self.refused

    def of(self, values: Values) -> set[Any]:
        return values.all - self.refused


class NoText(Pattern):
    """The pattern for all values that are not texts. It is part of anything-but with a pattern of texts."""

    __slots__ = ()

    def among(self, values: Values) -> bool:
        return values.text_count < len(values.all)

    def of(self, values: Values) -> set[Any]:
        return {value for value in values.all if not isinstance(value, str)}


class Exists(Pattern):
    """The pattern exists: true. SNS developer guide: the value is "non-null and non-empty"."""

    __slots__ = ()

    def among(self, values: Values) -> bool:
        return not values.all <= _EMPTY

    def of(self, values: Values) -> set[Any]:
        return values.all - _EMPTY


_EMPTY: Final[frozenset[object]] = frozenset((None, ""))


class Wildcard(Pattern):
    """The pattern of texts with literal parts between stars. Each part is matched at its first place, which is always
    enough.

    ``is_opposite`` means anything-but with the wildcard. Values that are not texts are not checked.
    """

    __slots__ = ("is_opposite", "parts")

    def __init__(self, parts: list[str], is_opposite: bool) -> None:
        self.parts = parts
        self.is_opposite = is_opposite

    def among(self, values: Values) -> bool:
        return bool(self.of(values))

    def of(self, values: Values) -> set[Any]:
        if self not in values.scanned:
            for _ in self.scan(values, Budget()):
                pass
        return values.scanned[self]

    def scan(self, values: Values, budget: Budget) -> Iterator[None]:
        """Compute the result of ``of``. Yield when the budget is spent."""
        if self in values.scanned:
            return
        found = set()
        for value in values.texts():
            budget.left -= 10
            fits = yield from self.search(value, budget)
            if fits is not self.is_opposite:
                found.add(value)
        if len(values.scanned) >= _SCANNED_MAX:
            values.scanned.clear()
        values.scanned[self] = found

    def search(self, text: str, budget: Budget) -> Generator[None, None, bool]:
        """Return whether the text matches. Yield when the budget is spent."""
        parts = self.parts
        first, last = parts[0], parts[-1]
        end = len(text) - len(last)
        if not text.startswith(first) or end < len(first) or not text.endswith(last):
            return False
        at = len(first)
        for part in parts[1:-1]:
            found = -1
            while found < 0:
                stop = min(end, at + max(_WINDOW, len(part)) + len(part))
                found = text.find(part, at, stop)
                budget.left -= (stop - at) // 4
                if found < 0 and stop == end:
                    return False
                at = stop - len(part) + 1 if found < 0 else found + len(part)
                if budget.left <= 0:
                    yield
        return True


_SCANNED_MAX: Final = 4_096  # wildcards whose matching texts are cached
_WINDOW: Final = 16_384  # characters that one step searches


class Wanted:
    """The requirement of one list of a policy: one of its parts must hold.

    - exact: The scalars that are wanted by equality.
    - spans: The wanted spans of each order.
    - patterns: All other parts, except exists: false.
    - allows_absent: Whether the list has exists: false, so a message without a value fulfils it.
    """

    __slots__ = ("allows_absent", "exact", "patterns", "spans")

    def __init__(
        self, exact: frozenset[object], spans: list[Spans], patterns: list[Pattern], allows_absent: bool
    ) -> None:
        self.exact = exact
        self.spans = spans
        self.patterns = patterns
        self.allows_absent = allows_absent

    @property
    def is_equality(self) -> bool:
        """Return whether all parts are equalities."""
        return not (self.spans or self.patterns or self.allows_absent)

    def prepare(self, values: Values, budget: Budget) -> Iterator[None]:
        """Do the slow work of ``holds`` and ``of`` in advance. Yield when the budget is spent."""
        for spans in self.spans:
            yield from values.sort(spans.order, budget)
            budget.left -= 5 * len(spans.lows) * len(values.sorted_by(spans.order))
        if self.patterns:
            yield from values.sort(TEXTS, budget)
        for pattern in self.patterns:
            if isinstance(pattern, Wildcard):
                yield from pattern.scan(values, budget)

    def holds(self, values: Values) -> bool:
        """Return whether one of a message's values at the key is wanted."""
        if not self.exact.isdisjoint(values.all):
            return True
        for spans in self.spans:
            for keys, _ in values.sorted_by(spans.order):
                if spans.meet(keys):
                    return True
        return any(pattern.among(values) for pattern in self.patterns)

    def of(self, values: Values) -> set[Any]:
        """Return the values that are wanted."""
        found: set[Any] = values.all & self.exact
        for spans in self.spans:
            for keys, sorted_values in values.sorted_by(spans.order):
                for first, behind in spans.found(keys):
                    found.update(sorted_values[first:behind])
        for pattern in self.patterns:
            found |= pattern.of(values)
        return found


# --- reading ----------------------------------------------------------------------


def refused(text: str) -> InvalidFilterPolicy:
    """Return the error for a faulty policy, with AWS's text for the fault."""
    return InvalidFilterPolicy(f"FilterPolicy: {text}")


TOO_COMPLEX: Final = "Filter policy is too complex"


def read_list(given: list[Any]) -> Wanted:
    """Return the requirement of a key's list. Raise InvalidFilterPolicy if it is invalid."""
    asked = _Asked()
    points = _WildcardPoints()
    for each in given:
        if isinstance(each, list):
            raise refused("Match value must be String, number, true, false, or null")
        if not isinstance(each, dict):
            asked.exact.add(scalar(each))
            continue
        name, argument = _only_member(each)
        _read_operator(name, argument, asked, points)
    points.check()
    return asked.wanted()


class _Asked:
    """The parts of a list read so far. ``spans`` has pairs of ends by order; an upper end of None means no
    upper end.
    """

    __slots__ = ("allows_absent", "exact", "patterns", "spans", "wildcards")

    def __init__(self) -> None:
        self.exact: set[object] = set()
        self.spans: dict[int, list[tuple[End, End | None]]] = {}
        self.patterns: dict[type, Pattern] = {}
        self.wildcards: list[Wildcard] = []
        self.allows_absent = False

    def add_span(self, order: int, low: End, high: End | None) -> None:
        self.spans.setdefault(order, []).append((low, high))

    def add_beginning(self, order: int, text: str) -> None:
        self.add_span(order, (text, 0), _end_after(text))

    def add_other_beginnings(self, order: int, text: str) -> None:
        self.patterns[NoText] = NoText()
        self.add_span(order, ("", 0), (text, 0))
        behind = _end_after(text)
        if behind is not None:
            self.add_span(order, behind, None)

    def add_not_among(self, values: frozenset[object]) -> None:
        """Add an anything-but list. Several lists together exclude only the values that all of them exclude."""
        known = self.patterns.get(NotAmong)
        if isinstance(known, NotAmong):
            values &= known.refused
        self.patterns[NotAmong] = NotAmong(values)

    def wanted(self) -> Wanted:
        spans = [Spans(order, ends) for order, ends in self.spans.items()]
        patterns = [*self.patterns.values(), *self.wildcards]
        return Wanted(frozenset(self.exact), spans, patterns, self.allows_absent)


def _end_after(text: str) -> End | None:
    """Return the end behind all texts that begin with this one; None if there are no texts behind it."""
    stem = text.rstrip(_LAST)
    return (stem[:-1] + chr(ord(stem[-1]) + 1), 0) if stem else None


_LAST: Final = chr(0x10FFFF)


def _only_member(given: dict[str, Any]) -> tuple[str, Any]:
    if not given:
        raise refused("Match expression name not found")
    name = next(iter(given))
    if name not in OPERATORS:
        raise refused(f"Unrecognized match type {quoted(name)}")
    if len(given) > 1:
        raise refused("Only one key allowed in match expression")
    return name, given[name]


OPERATORS: Final = frozenset(
    ("prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "exists", "cidr", "wildcard")
)

RESERVED_IN_OR: Final = OPERATORS | {"exact", "=", "<", "<=", ">", ">="}
"""If a branch of a $or has one of these keys, the $or is an ordinary key."""


def _read_operator(name: str, argument: Any, asked: _Asked, points: "_WildcardPoints") -> None:
    if name == "prefix":
        asked.add_beginning(TEXTS, _text(argument, name))
    elif name == "suffix":
        asked.add_beginning(ENDS, _text(argument, name)[::-1])
    elif name == "equals-ignore-case":
        text = _text(argument, name).lower()
        asked.add_span(LOWERED, (text, 0), (text, 1))
    elif name == "wildcard":
        _add_wildcard(_wildcard(_text(argument, name), points), asked)
    elif name == "cidr":
        first, last = _network(_text(argument, "prefix"))
        asked.add_span(ADDRESSES, (first, 0), (last, 1))
    elif name == "numeric":
        _read_numeric(argument, asked)
    elif name == "anything-but":
        _anything_but(argument, asked, points)
    elif argument is True:
        asked.patterns[Exists] = Exists()
    elif argument is False:
        asked.allows_absent = True
    else:
        raise refused("exists match pattern must be either true or false.")


def _text(argument: Any, name: str) -> str:
    if not isinstance(argument, str):
        raise refused(f"{name} match pattern must be a string")
    return argument


def _anything_but(argument: Any, asked: _Asked, points: "_WildcardPoints") -> None:
    if isinstance(argument, dict):
        _anything_but_pattern(argument, asked, points)
        return
    values = argument if isinstance(argument, list) else [argument]
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if is_number(value)]
    if len(texts) + len(numbers) < len(values):
        raise refused(
            "Inside anything but list, start|null|boolean is not supported."
            if isinstance(argument, list)
            else "Value of anything-but must be an array or single string/number value."
        )
    if texts and numbers:
        raise refused("Inside anything but list, either all values are number or string, mixed type is not supported")
    asked.add_not_among(frozenset([scalar(value) for value in values]))


def _anything_but_pattern(argument: dict[str, Any], asked: _Asked, points: "_WildcardPoints") -> None:
    if not argument:
        raise refused("Match expression name not found")
    name = next(iter(argument))
    if name not in ("prefix", "wildcard"):
        raise refused(f"Unsupported anything-but pattern: {quoted(name)}")
    if len(argument) > 1:
        raise refused("Only one key allowed in match expression")
    text = _text(argument[name], name)
    if name == "prefix":
        asked.add_other_beginnings(TEXTS, text)
        return
    parts = _wildcard(text, points)
    if len(parts) == 1:
        asked.add_not_among(frozenset(parts))
        return
    asked.patterns[NoText] = NoText()
    asked.wildcards.append(Wildcard(parts, is_opposite=True))


def _add_wildcard(parts: list[str], asked: _Asked) -> None:
    """Add a wildcard, or an equivalent faster pattern."""
    if len(parts) == 1:
        asked.exact.add(parts[0])
    elif len(parts) == 2 and not parts[1]:
        asked.add_beginning(TEXTS, parts[0])
    elif len(parts) == 2 and not parts[0]:
        asked.add_beginning(ENDS, parts[1][::-1])
    else:
        asked.wildcards.append(Wildcard(parts, is_opposite=False))


# --- wildcards --------------------------------------------------------------------


class _WildcardPoints:
    """The cost of one list's wildcards: the sum of their points, times their number."""

    __slots__ = ("count", "points")

    def __init__(self) -> None:
        self.count = self.points = 0

    def add(self, stars: int) -> None:
        if stars > limits.FILTER_WILDCARDS_MAX:
            raise refused(TOO_COMPLEX)
        self.count += 1
        self.points += stars if stars <= 1 else 3 * stars

    def check(self) -> None:
        if self.count * self.points > limits.FILTER_WILDCARD_POINTS_MAX:
            raise refused(TOO_COMPLEX)


def _wildcard(text: str, points: _WildcardPoints) -> list[str]:
    r"""Return the parts of the pattern between its stars. ``\*`` and ``\\`` are the characters themselves."""
    parts = [""]
    literal: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "*":
            if text[at + 1 : at + 2] == "*":
                raise refused(f"Consecutive wildcard characters at pos {at}")
            parts[-1] = "".join(literal)
            parts.append("")
            literal = []
        elif char == "\\":
            at += 1
            if text[at : at + 1] not in ("*", "\\"):
                raise refused(f"Invalid escape character at pos {at - 1}")
            literal.append(text[at])
        else:
            literal.append(char)
        at += 1
    parts[-1] = "".join(literal)
    points.add(len(parts) - 1)
    return parts


# --- numbers ----------------------------------------------------------------------


def _read_numeric(argument: Any, asked: _Asked) -> None:
    """Add ["=", 9], ["<", 9], [">", 0] or [">=", 0, "<", 9]."""
    if not isinstance(argument, list):
        raise refused("Value of numeric must be an array.")
    if argument[:1] == ["="]:
        asked.exact.add(_equal_number(argument))
        return
    if not argument or not isinstance(argument[0], str):
        raise refused(f"Invalid member in numeric match: {_token(argument, 0)}")
    operator = argument[0]
    if operator not in ("<", "<=", ">", ">="):
        raise refused(f"Unrecognized numeric range operator: {quoted(operator)}")
    first = _bound(argument, 0)
    if operator in ("<", "<="):
        if len(argument) > 2:
            raise refused("Too many elements in numeric expression")
        asked.add_span(NUMBERS, (-inf, 0), first)
    elif len(argument) == 2:
        asked.add_span(NUMBERS, first, (inf, 1))
    else:
        asked.add_span(NUMBERS, first, _second_bound(argument, first))


def _equal_number(argument: list[Any]) -> object:
    if len(argument) < 2 or not is_number(argument[1]):
        raise refused("Value of equals must be numeric")
    if len(argument) > 2:
        raise refused("Too many elements in numeric expression")
    return _in_range(argument[1])


def _second_bound(argument: list[Any], first: End) -> End:
    second = argument[2]
    if not isinstance(second, str):
        raise refused(f"Bad value in numeric range: {_token(argument, 2)}")
    if second not in ("<", "<="):
        raise refused(f"Bad numeric range operator: {quoted(second)}")
    top = _bound(argument, 2)
    if len(argument) > 4:
        raise refused("Too many terms in numeric range expression")
    if argument[1] >= argument[3]:
        raise refused("Bottom must be less than top")
    return top


def _bound(argument: list[Any], at: int) -> End:
    """Return the number after the operator at this index, as an end: 1 (behind it) for <= and >, 0 (before it) for <
    and >=.
    """
    operator = argument[at]
    number = argument[at + 1] if len(argument) > at + 1 else None
    if not is_number(number):
        raise refused(f"Value of {operator} must be numeric")
    return _in_range(number), int(operator in ("<=", ">"))


def _in_range(number: Any) -> Any:
    if not -limits.FILTER_NUMBER_MAX <= number <= limits.FILTER_NUMBER_MAX:
        raise refused(f"Value must be between {-limits.FILTER_NUMBER_MAX} and {limits.FILTER_NUMBER_MAX}, inclusive")
    return scalar(number)


def _token(argument: list[Any], at: int) -> str:
    """Return the member in the notation of AWS's error texts; "]" for the end of the list."""
    if at >= len(argument):
        return "]"
    member = argument[at]
    if isinstance(member, bool):
        return "true" if member else "false"
    if isinstance(member, (list, dict)):
        return "[" if isinstance(member, list) else "{"
    return "null" if member is None else quoted(str(member))


# --- networks ---------------------------------------------------------------------


def _network(text: str) -> tuple[int, int]:
    """Return the first and the last address of a network such as 10.0.0.0/24. Bits after the mask may be set."""
    address_text, slash, bits = text.partition("/")
    if not slash or "/" in bits:
        raise refused("Malformed CIDR, one '/' required")
    if not (bits.isascii() and bits.isdigit()):
        raise refused("Malformed CIDR, mask bits must be an integer")
    address = address_of(address_text) if "%" not in address_text else None
    if address is None:
        raise refused(f"Nonstandard IP address: {quoted(address_text)}")
    version, length = (6, 128) if address >= IPV6 else (4, 32)
    if len(bits) > 3 or int(bits) >= length:
        raise refused(f"IPv{version} mask bits must be < {length}")
    rest = (1 << length - int(bits)) - 1
    return address & ~rest, address | rest
