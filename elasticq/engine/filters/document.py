"""The filterable view of a message: for each key in a policy, the scalars at this key.

A key is written with dots, such as ``store.city``. It is the same key if the policy nests objects, or has the dots in a
name. It means every path through the message whose names, joined with dots, are the key.
So it matches ``{"store": {"city": 1}}`` as well as ``{"store.city": 1}``. An array counts as each of its elements.

A message is read once for all policies of a topic, along a tree of wanted keys, whose nodes are ``Step`` objects. So
the time depends on the message, not on the number of policies. ``Document.read`` is a generator that yields when its
budget is spent.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec

from elasticq.engine.filters.values import PART, Budget, Values, scalar
from elasticq.model.commands import MessageAttributes, MessageAttributeValue


class Step:
    """A node in the tree of wanted keys, after one part of a key.

    - key: The key that ends here; None if none does.
    - below: The nodes after the next part.
    - users: The number of conditions with a key through this node.
    """

    __slots__ = ("below", "key", "users")

    def __init__(self) -> None:
        self.below: dict[str, Step] = {}
        self.key: str | None = None
        self.users = 0

    def add(self, key: str) -> None:
        """Add a condition on this key."""
        step = self
        for part in key.split("."):
            following = step.below.get(part)
            if following is None:
                following = step.below[part] = Step()
            following.users += 1
            step = following
        step.key = key

    def remove(self, key: str) -> None:
        """Undo one ``add`` of this key."""
        step = self
        for part in key.split("."):
            following = step.below[part]
            following.users -= 1
            if not following.users:
                del step.below[part]
                return
            step = following

    def at(self, name: str) -> "Step | None":
        """Return the node after a name in a message, which may contain dots; None if no condition needs it."""
        if "." not in name:
            return self.below.get(name)
        step: Step | None = self
        for part in name.split("."):
            if step is None:
                return None
            step = step.below.get(part)
        return step

    def children(self, node: dict[str, Any]) -> "list[tuple[object, Step]]":
        """Return the values of an object that conditions need, each with its node."""
        below = self.below
        if len(node) > 8 * len(below) and "." not in "".join(node):
            return [(node[name], step) for name, step in below.items() if name in node]
        return [(child, step) for name, child in node.items() if (step := self.at(name)) is not None]


class Document:
    """The filterable view of one message or one set of attributes.

    - root: The decoded object.
    - values: The scalars by wanted key, for keys that have any.
    - is_forked: Whether an array with several elements was read, so scalars of two keys may be in different elements.
    - has_scalars: Whether the message has any scalar.
    - has_large: Whether checking all scalars of some key takes long.
    """

    __slots__ = ("has_large", "has_scalars", "is_forked", "root", "values")

    def __init__(self, root: dict[str, Any] | None) -> None:
        self.root = root
        self.values: dict[str, Values] = {}
        self.is_forked = False
        self.has_scalars = False
        self.has_large = False

    def read(self, wanted: Step, budget: Budget) -> Iterator[None]:
        """Collect the scalars of the wanted keys. Yield when the budget is spent."""
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
        """Collect the scalars among the elements of an array or of a part of it. Add the nested ones to ``todo``."""
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
_PLAIN: Final = frozenset((str, type(None)))  # such a value is its own scalar


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
    """Return the unread document of a message's attributes. A String.Array counts as each of its elements."""
    root: dict[str, Any] = {}
    for name, attribute in (attributes or {}).items():
        value = _attribute(attribute)
        if value is not _IGNORED:
            root[name] = value
    return Document(root)


def of_body(body: str) -> Document | None:
    """Return the unread document of a body; None if it is not a JSON object, which no policy matches."""
    root = _decode(body)
    return Document(root) if isinstance(root, dict) else None


_IGNORED: Final = object()
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_INTEGER_CHARS_MAX: Final = 400  # a float has fewer digits, and Python reads long integers slowly


def _attribute(attribute: MessageAttributeValue) -> Any:
    """Return a scalar or a list; _IGNORED for values that policies cannot match, such as Binary."""
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
    """Return the scalars of a String.Array: those of a JSON list, or a single one."""
    decoded = _decode(text)
    if isinstance(decoded, list):
        return [each for each in decoded if not isinstance(each, (list, dict))]
    return _IGNORED if decoded is _IGNORED or isinstance(decoded, dict) else decoded


def _decode(text: str) -> Any:
    """Return the decoded JSON; _IGNORED if it is invalid or nested too deeply.

    Python parses floats, because msgspec needs ten microseconds for one with many digits.
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _IGNORED


_DECODER: Final = msgspec.json.Decoder(float_hook=float)
