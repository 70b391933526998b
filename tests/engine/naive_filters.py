"""A second judge of filter policies, written from the SNS developer guide's text alone, slow and plain.

It shares no code with ``engine/filter_*.py``: it lists every scalar of a message with the elements of arrays that lead
to it, and tries every choice of one scalar for each key.
"""

import ipaddress
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple


class Leaf(NamedTuple):
    """key: the names that lead to it, with dots; elements: the chosen index of each array on the way, by its place."""

    key: str
    value: Any
    elements: dict[str, int]


def leaves(node: Any, key: str = "", place: str = "", elements: dict[str, int] | None = None) -> Iterator[Leaf]:
    elements = elements or {}
    if isinstance(node, dict):
        for name, child in node.items():
            yield from leaves(child, f"{key}.{name}" if key else name, f"{place}/{name}", elements)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from leaves(child, key, f"{place}/{index}", {**elements, place: index})
    else:
        yield Leaf(key, node, elements)


def alternatives(policy: dict[str, Any], above: str = "") -> list[list[tuple[str, list[Any]]]]:
    """Lists of (key, its list), one list for each way through the branches of every $or."""
    choices = []
    for key, value in policy.items():
        if isinstance(value, dict):
            choices.append(alternatives(value, f"{above}{key}."))
        elif key == "$or" and len(value) > 1 and all(isinstance(each, dict) for each in value):
            choices.append([one for branch in value for one in alternatives(branch, above)])
        else:
            choices.append([[(above + key, value)]])
    return [list(itertools.chain(*chosen)) for chosen in itertools.product(*choices)]


def kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def same(value: Any, wanted: Any) -> bool:
    return kind(value) == kind(wanted) and value == wanted


def like(text: str, pattern: str) -> bool:
    """Of letters and stars only."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    return text[:1] == pattern[0] and like(text[1:], pattern[1:])


def compare(value: Any, numeric: list[Any]) -> bool:
    tests = {
        "=": lambda number: value == number,
        "<": lambda number: value < number,
        "<=": lambda number: value <= number,
        ">": lambda number: value > number,
        ">=": lambda number: value >= number,
    }
    pairs = zip(numeric[::2], numeric[1::2], strict=True)
    return kind(value) == "number" and all(tests[operator](number) for operator, number in pairs)


def in_network(value: Any, network: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def fits(value: Any, wanted: Any) -> bool:
    """Whether a scalar of the message is what one entry of a key's list asks for."""
    if not isinstance(wanted, dict):
        return same(value, wanted)
    ((operator, argument),) = wanted.items()
    is_text = isinstance(value, str)
    match operator:
        case "prefix":
            return is_text and value[: len(argument)] == argument
        case "suffix":
            return is_text and value[max(len(value) - len(argument), 0) :] == argument
        case "equals-ignore-case":
            return is_text and value.upper() == argument.upper()
        case "wildcard":
            return is_text and like(value, argument)
        case "numeric":
            return compare(value, argument)
        case "exists":
            return argument is True and value is not None and value != ""
        case "cidr":
            return is_text and in_network(value, argument)
        case "anything-but" if isinstance(argument, dict):
            return not fits(value, argument)
        case "anything-but":
            return not any(same(value, each) for each in (argument if isinstance(argument, list) else [argument]))
    raise AssertionError(operator)


def agree(chosen: tuple[Leaf, ...]) -> bool:
    """Whether no array gave two different elements."""
    taken: dict[str, int] = {}
    return all(taken.setdefault(place, index) == index for leaf in chosen for place, index in leaf.elements.items())


def matches(policy: dict[str, Any], event: dict[str, Any], *, is_of_attributes: bool = False) -> bool:
    """is_of_attributes: each key's list asks for any element of a String.Array, whatever another list has found."""
    if not policy:
        return True
    found = list(leaves(event))
    if not found:
        return False
    for alternative in alternatives(policy):
        candidates = []
        for key, wanted in alternative:
            here = [leaf for leaf in found if leaf.key == key]
            if here:
                candidates.append([leaf for leaf in here if any(fits(leaf.value, each) for each in wanted)])
            elif {"exists": False} not in wanted:
                candidates.append([])
        if is_of_attributes and all(candidates):
            return True
        if any(agree(chosen) for chosen in itertools.product(*candidates)):
            return True
    return False
