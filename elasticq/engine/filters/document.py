"""What a filter policy sees of a message: for each key that policies ask about, the scalars that stand there.

A key is written with dots, ``store.city``, whether the policy nests its keys or writes the dots itself, and it means
any path through the message whose names, joined with dots, are the key: ``{"store": {"city": 1}}`` and
``{"store.city": 1}`` alike. An array stands for each of its elements.

A message is read once for all policies of a topic, along a tree of the keys that are wanted (``Step``), so that the
time is in proportion to the message and not to the number of policies. Reading is a generator: it yields where its
budget is spent.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec

from elasticq.engine.filters.values import PART, Budget, Values, scalar
from elasticq.model.commands import MessageAttributes, MessageAttributeValue


class Step:
    """A part of the keys that are wanted; ``key``: the one that ends here, if any does.

    below: the next parts; users: how many conditions of policies go through here.
    """

    __slots__ = ("below", "key", "users")

    def __init__(self) -> None:
        self.below: dict[str, Step] = {}
        self.key: str | None = None
        self.users = 0

    def add(self, key: str) -> None:
        """One more condition asks about this key."""
        step = self
        for part in key.split("."):
            following = step.below.get(part)
            if following is None:
                following = step.below[part] = Step()
            following.users += 1
            step = following
        step.key = key

    def remove(self, key: str) -> None:
        """Take back one ``add``."""
        step = self
        for part in key.split("."):
            following = step.below[part]
            following.users -= 1
            if not following.users:
                del step.below[part]
                return
            step = following

    def at(self, name: str) -> "Step | None":
        """The step after one name of a message, which may hold dots itself; None: nobody asks about it."""
        if "." not in name:
            return self.below.get(name)
        step: Step | None = self
        for part in name.split("."):
            if step is None:
                return None
            step = step.below.get(part)
        return step

    def children(self, node: dict[str, Any]) -> "list[tuple[object, Step]]":
        """The values of an object that somebody asks about, each with its step."""
        below = self.below
        if len(node) > 8 * len(below) and "." not in "".join(node):
            return [(node[name], step) for name, step in below.items() if name in node]
        return [(child, step) for name, child in node.items() if (step := self.at(name)) is not None]


class Document:
    """One message, or one set of attributes, as the policies see it.

    root: what ``read`` has decoded, or was given; None: no object, so that no policy matches. values: the scalars by
    key, of the wanted keys that have any; is_forked: an array with more than one element was passed, so that scalars
    of two keys may stand in different elements; has_scalars: False for a message without any; has_large: it takes long
    to look at all scalars of a key.
    """

    __slots__ = ("has_large", "has_scalars", "is_forked", "root", "values")

    def __init__(self, root: dict[str, Any] | None) -> None:
        self.root = root
        self.values: dict[str, Values] = {}
        self.is_forked = False
        self.has_scalars = False
        self.has_large = False

    def read(self, wanted: Step, budget: Budget) -> Iterator[None]:
        """Collect the scalars of the wanted keys; yield where the budget is spent."""
        todo: list[tuple[object, Step]] = [(self.root, wanted)]
        while todo:
            node, step = todo.pop()
            if isinstance(node, list):
                self.is_forked |= len(node) > 1
                for first in range(0, len(node), PART):
                    part = node[first : first + PART]
                    self._take(part, step, todo)
                    budget.left -= len(part)
                    if budget.left <= 0:
                        yield
            elif isinstance(node, dict):
                if step.below:
                    budget.left -= len(node)
                    todo += step.children(node)
            else:
                self._take([node], step, todo)
            budget.left -= 5
            if budget.left <= 0:
                yield
        self.has_scalars = bool(self.values) or (yield from _has_scalars(self.root, budget))
        self.has_large = any(values.is_large for values in self.values.values())

    def _take(self, part: list[Any], step: Step, todo: list[tuple[object, Step]]) -> None:
        """Take the elements of an array, or of a part of it."""
        kinds = set(map(type, part))
        if step.key is not None and not kinds <= _NESTED:
            values = self.values.get(step.key)
            if values is None:
                values = self.values[step.key] = Values()
            if kinds <= _PLAIN:
                values.all.update(part)
                return
            values.all.update([scalar(each) for each in part if not isinstance(each, (list, dict))])
        if not kinds.isdisjoint(_NESTED):
            todo += [(each, step) for each in part if each and isinstance(each, (list, dict))]


_NESTED: Final = frozenset((list, dict))
_PLAIN: Final = frozenset((str, float, type(None)))  # a scalar is the value itself


def _has_scalars(root: object, budget: Budget) -> Generator[None, None, bool]:
    todo: list[object] = [root]
    while todo:
        node = todo.pop()
        children = list(node.values()) if isinstance(node, dict) else node
        if not isinstance(children, list):
            return True
        if not set(map(type, children)) <= _NESTED:
            return True
        todo += [child for child in children if child]
        budget.left -= len(children)
        if budget.left <= 0:
            yield
    return False


def of_attributes(attributes: MessageAttributes | None) -> Document:
    """The document of a message's attributes, still to be read. Each list asks for any element of a String.Array."""
    root: dict[str, Any] = {}
    for name, attribute in (attributes or {}).items():
        value = _attribute(attribute)
        if value is not _IGNORED:
            root[name] = value
    return Document(root)


def of_body(body: str) -> Document | None:
    """The document of a body, still to be read; None where it is no JSON object, which no policy matches."""
    root = _decode(body)
    return Document(root) if isinstance(root, dict) else None


_IGNORED: Final = object()
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_INTEGER_CHARS_MAX: Final = 400  # Python's float has fewer digits, and its int of a long text takes long


def _attribute(attribute: MessageAttributeValue) -> Any:
    """A scalar or a list; _IGNORED for what no policy sees, such as Binary."""
    text = attribute.string_value
    kind, _, suffix = attribute.data_type.partition(".")
    if text is None or kind not in ("String", "Number"):
        return _IGNORED
    if kind == "Number":
        return _number(text)
    return _array(text) if suffix == "Array" else text


def _number(text: str) -> Any:
    text = text.strip()
    if _NUMBER.match(text) is None:
        return _IGNORED
    digits = text[1:] if text[0] in "+-" else text
    return int(text) if digits.isdigit() and len(digits) <= _INTEGER_CHARS_MAX else float(text)


def _array(text: str) -> Any:
    """String.Array: the scalars of a JSON list, or one that stands alone."""
    decoded = _decode(text)
    if isinstance(decoded, list):
        return [each for each in decoded if not isinstance(each, (list, dict))]
    return _IGNORED if decoded is _IGNORED or isinstance(decoded, dict) else decoded


def _decode(text: str) -> Any:
    """What the JSON says; _IGNORED for no JSON, and for what nests too deeply.

    Python reads the floats, as msgspec takes ten microseconds for one with many digits.
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _IGNORED


_DECODER: Final = msgspec.json.Decoder(float_hook=float)
