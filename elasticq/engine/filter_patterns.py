"""What a value in a filter policy's list asks of a message's value: equality, or one of the operators.

AWS's texts of errors are those of its open-source matcher, event-ruler, so its meaning holds wherever the SNS
developer guide is silent. Nothing here is a regular expression and nothing tries twice: each test of a value takes
time in proportion to the value's length.

A message's value, or *scalar*, is a text, a number, None for JSON's null, TRUE or FALSE.
"""

import ipaddress
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Final

from elasticq.model import limits
from elasticq.model.errors import quoted


class InvalidFilterPolicy(ValueError):
    """The policy is refused. The text is AWS's, without "Invalid parameter: " and without a place in the source."""


class Truth:
    """True or false in a message: Python's would be equal to 1 and 0, and AWS's are not."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE: Final = Truth(True)
FALSE: Final = Truth(False)


def scalar(value: object) -> object:
    """The scalar of a value that JSON decoded to, which is neither a list nor an object."""
    if value is True:
        return TRUE
    return FALSE if value is False else value


def is_number(value: object) -> bool:
    """True for a number, and not for a boolean of Python's."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Pattern(ABC):
    """Base of all patterns but equality."""

    __slots__ = ()

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Whether this value is what the pattern asks for."""


class Prefix(Pattern):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def holds(self, value: object) -> bool:
        return isinstance(value, str) and value.startswith(self.text)


class Suffix(Pattern):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def holds(self, value: object) -> bool:
        return isinstance(value, str) and value.endswith(self.text)


class EqualsIgnoreCase(Pattern):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text.lower()

    def holds(self, value: object) -> bool:
        return isinstance(value, str) and value.lower() == self.text


class Wildcard(Pattern):
    """``parts``: the literal texts between the pattern's stars. Each is taken where it first fits; none is better."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def holds(self, value: object) -> bool:
        if not isinstance(value, str):
            return False
        parts = self.parts
        first, last = parts[0], parts[-1]
        if len(parts) == 1:
            return value == first
        end = len(value) - len(last)
        if not value.startswith(first) or end < len(first) or not value.endswith(last):
            return False
        at = len(first)
        for part in parts[1:-1]:
            at = value.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True


class NotAmong(Pattern):
    """anything-but of texts or numbers."""

    __slots__ = ("values",)

    def __init__(self, values: frozenset[object]) -> None:
        self.values = values

    def holds(self, value: object) -> bool:
        return value not in self.values


class Not(Pattern):
    """anything-but of another pattern."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def holds(self, value: object) -> bool:
        return not self.pattern.holds(value)


class Bound:
    """An end of a range: the number, and whether it belongs to the range."""

    __slots__ = ("includes", "number")

    def __init__(self, number: Any, includes: bool) -> None:
        self.number = number
        self.includes = includes


class Range(Pattern):
    """Numbers above ``bottom`` and below ``top``; None: no such end."""

    __slots__ = ("bottom", "top")

    def __init__(self, bottom: Bound | None, top: Bound | None) -> None:
        self.bottom = bottom
        self.top = top

    def holds(self, value: Any) -> bool:
        if not isinstance(value, (int, float)):
            return False
        bottom, top = self.bottom, self.top
        if bottom is not None and not (value > bottom.number or (bottom.includes and value == bottom.number)):
            return False
        return top is None or value < top.number or (top.includes and value == top.number)


class Exists(Pattern):
    """exists: true. SNS developer guide: the value is "non-null and non-empty"."""

    __slots__ = ()

    def holds(self, value: object) -> bool:
        return value is not None and value != ""


class Cidr(Pattern):
    """Texts that are an address of the network."""

    __slots__ = ("network",)

    def __init__(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> None:
        self.network = network

    def holds(self, value: object) -> bool:
        if not isinstance(value, str) or len(value) > _ADDRESS_CHARS_MAX:
            return False
        address = _address(value)
        return address is not None and address in self.network


_ADDRESS_CHARS_MAX: Final = 64  # an IPv6 address has at most 45, without the name of a zone behind it


@lru_cache(maxsize=64)  # all subscriptions of a topic look at the same few values
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


class Wanted:
    """What one list of a policy asks for: one of its patterns must hold.

    exact: scalars that are equal to what is wanted; patterns: all others but exists: false; allows_absent:
    exists: false is among them, so that a message without any value fulfils the list.
    """

    __slots__ = ("allows_absent", "exact", "patterns")

    def __init__(self, exact: frozenset[object], patterns: list[Pattern], allows_absent: bool) -> None:
        self.exact = exact
        self.patterns = patterns
        self.allows_absent = allows_absent

    def holds(self, values: list[object]) -> bool:
        """Whether one of a message's values at the key is; of none of them, whether none is wanted."""
        if not values:
            return self.allows_absent
        exact, patterns = self.exact, self.patterns
        for value in values:
            if value in exact:
                return True
            for pattern in patterns:
                if pattern.holds(value):
                    return True
        return False


# --- reading ----------------------------------------------------------------------


def refused(text: str) -> InvalidFilterPolicy:
    """The error for a policy whose fault AWS tells with this text."""
    return InvalidFilterPolicy(f"FilterPolicy: {text}")


TOO_COMPLEX: Final = "Filter policy is too complex"


def read_list(given: list[Any]) -> Wanted:
    """What a key's list asks for. Raises InvalidFilterPolicy."""
    exact: set[object] = set()
    patterns: list[Pattern] = []
    allows_absent = False
    points = _WildcardPoints()
    for each in given:
        if isinstance(each, list):
            raise refused("Match value must be String, number, true, false, or null")
        if not isinstance(each, dict):
            exact.add(scalar(each))
            continue
        name, argument = _only_member(each)
        if name == "exists" and argument is False:
            allows_absent = True
        elif name == "numeric" and isinstance(argument, list) and argument[:1] == ["="]:
            exact.add(_equal_number(argument))
        else:
            patterns.append(_pattern(name, argument, points))
    points.check()
    return Wanted(frozenset(exact), patterns, allows_absent)


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
"""A $or that has one of these keys in a branch is an ordinary key."""


def _pattern(name: str, argument: Any, points: "_WildcardPoints") -> Pattern:
    if name == "prefix":
        return Prefix(_text(argument, name))
    if name == "suffix":
        return Suffix(_text(argument, name))
    if name == "equals-ignore-case":
        return EqualsIgnoreCase(_text(argument, name))
    if name == "wildcard":
        return _wildcard(_text(argument, name), points)
    if name == "cidr":
        return Cidr(_network(_text(argument, "prefix")))
    if name == "numeric":
        return _range(argument)
    if name == "anything-but":
        return _anything_but(argument, points)
    if argument is not True:
        raise refused("exists match pattern must be either true or false.")
    return Exists()


def _text(argument: Any, name: str) -> str:
    if not isinstance(argument, str):
        raise refused(f"{name} match pattern must be a string")
    return argument


def _anything_but(argument: Any, points: "_WildcardPoints") -> Pattern:
    if isinstance(argument, dict):
        return _anything_but_pattern(argument, points)
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
    return NotAmong(frozenset(values))


def _anything_but_pattern(argument: dict[str, Any], points: "_WildcardPoints") -> Pattern:
    if not argument:
        raise refused("Match expression name not found")
    name = next(iter(argument))
    if name not in ("prefix", "wildcard"):
        raise refused(f"Unsupported anything-but pattern: {quoted(name)}")
    if len(argument) > 1:
        raise refused("Only one key allowed in match expression")
    return Not(_pattern(name, argument[name], points))


# --- wildcards --------------------------------------------------------------------


class _WildcardPoints:
    """Counts the cost of one list's wildcards: the points of all of them, times how many they are."""

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


def _wildcard(text: str, points: _WildcardPoints) -> Wildcard:
    r"""Cut the pattern at its stars; ``\*`` and ``\\`` are the characters themselves."""
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
    return Wildcard(parts)


# --- numbers ----------------------------------------------------------------------


def _equal_number(argument: list[Any]) -> object:
    if len(argument) < 2 or not is_number(argument[1]):
        raise refused("Value of equals must be numeric")
    if len(argument) > 2:
        raise refused("Too many elements in numeric expression")
    return _in_range(argument[1])


def _range(argument: Any) -> Range:
    """["<", 9], [">", 0] or [">=", 0, "<", 9]."""
    if not isinstance(argument, list):
        raise refused("Value of numeric must be an array.")
    if not argument or not isinstance(argument[0], str):
        raise refused(f"Invalid member in numeric match: {_token(argument, 0)}")
    operator = argument[0]
    if operator not in ("<", "<=", ">", ">="):
        raise refused(f"Unrecognized numeric range operator: {quoted(operator)}")
    first = _bound(argument, 0)
    if operator in ("<", "<="):
        if len(argument) > 2:
            raise refused("Too many elements in numeric expression")
        return Range(None, first)
    if len(argument) == 2:
        return Range(first, None)
    second = argument[2]
    if not isinstance(second, str):
        raise refused(f"Bad value in numeric range: {_token(argument, 2)}")
    if second not in ("<", "<="):
        raise refused(f"Bad numeric range operator: {quoted(second)}")
    top = _bound(argument, 2)
    if len(argument) > 4:
        raise refused("Too many terms in numeric range expression")
    if first.number >= top.number:
        raise refused("Bottom must be less than top")
    return Range(first, top)


def _bound(argument: list[Any], at: int) -> Bound:
    """The number behind the operator that stands at this place."""
    operator = argument[at]
    number = argument[at + 1] if len(argument) > at + 1 else None
    if not is_number(number):
        raise refused(f"Value of {operator} must be numeric")
    return Bound(_in_range(number), operator.endswith("="))


def _in_range(number: Any) -> Any:
    if not -limits.FILTER_NUMBER_MAX <= number <= limits.FILTER_NUMBER_MAX:
        raise refused(f"Value must be between {-limits.FILTER_NUMBER_MAX} and {limits.FILTER_NUMBER_MAX}, inclusive")
    return number


def _token(argument: list[Any], at: int) -> str:
    """A member as AWS's parser names it, or the end of the list."""
    if at >= len(argument):
        return "]"
    member = argument[at]
    if isinstance(member, bool):
        return "true" if member else "false"
    if isinstance(member, (list, dict)):
        return "[" if isinstance(member, list) else "{"
    return "null" if member is None else quoted(str(member))


# --- networks ---------------------------------------------------------------------


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """10.0.0.0/24 or the like; bits behind the mask may be set and do not count."""
    address_text, slash, bits = text.partition("/")
    if not slash or "/" in bits:
        raise refused("Malformed CIDR, one '/' required")
    if not (bits.isascii() and bits.isdigit()):
        raise refused("Malformed CIDR, mask bits must be an integer")
    address = _address(address_text) if len(address_text) <= _ADDRESS_CHARS_MAX and "%" not in address_text else None
    if address is None:
        raise refused(f"Nonstandard IP address: {quoted(address_text)}")
    if len(bits) > 3 or int(bits) >= address.max_prefixlen:
        raise refused(f"IPv{address.version} mask bits must be < {address.max_prefixlen}")
    return ipaddress.ip_network(f"{address_text}/{int(bits)}", strict=False)
