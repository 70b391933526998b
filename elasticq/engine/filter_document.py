"""What a filter policy sees of a message: for each key that policies ask about, the scalars that stand there.

A key is written with dots, ``store.city``, whether the policy nests its keys or writes the dots itself, and it means
any path through the message whose names, joined with dots, are the key: ``{"store": {"city": 1}}`` and
``{"store.city": 1}`` alike. An array stands for each of its elements.

A message is walked once for all policies of a topic, along a tree of the keys that are wanted (``Step``), so that the
time is in proportion to the message and not to the number of policies.
"""

import re
from typing import Any, Final

import msgspec

from elasticq.engine.filter_patterns import Wanted, scalar
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


class Document:
    """One message, or one set of attributes, as the policies see it.

    values: the scalars by key, of the wanted keys that have any; is_forked: an array with more than one element was
    passed, so that scalars of two keys may stand in different elements.
    """

    __slots__ = ("is_forked", "root", "values")

    def __init__(self, root: dict[str, Any], wanted: Step) -> None:
        self.root = root
        self.values: dict[str, list[object]] = {}
        self.is_forked = False
        todo: list[tuple[object, Step]] = [(root, wanted)]
        while todo:
            node, step = todo.pop()
            if isinstance(node, dict):
                if step.below:
                    for name, child in node.items():
                        following = step.at(name)
                        if following is not None:
                            todo.append((child, following))
            elif isinstance(node, list):
                self.is_forked |= len(node) > 1
                todo += [(child, step) for child in node]
            elif step.key is not None:
                self.values.setdefault(step.key, []).append(scalar(node))

    def is_empty(self) -> bool:
        """True if there is no scalar at all. SNS developer guide: exists: false does not hold for an empty message."""
        if self.values:
            return False
        todo: list[object] = [self.root]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                todo += node.values()
            elif isinstance(node, list):
                todo += node
            else:
                return False
        return True

    def holds_together(self, conditions: list[tuple[str, Wanted]]) -> bool:
        """Whether one choice of an element of each array fulfils all these conditions, each of which holds alone.

        In ``{"lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 9}]}`` no line has sku a and count 9.
        """
        return _holds_together(self.root, [Pending(key, wanted) for key, wanted in conditions])


def of_attributes(attributes: MessageAttributes | None, wanted: Step) -> Document:
    """The document of a message's attributes."""
    root: dict[str, Any] = {}
    for name, attribute in (attributes or {}).items():
        value = _attribute(attribute)
        if value is not _IGNORED:
            root[name] = value
    return Document(root, wanted)


def of_body(body: str, wanted: Step) -> Document | None:
    """The document of a body; None where it is no JSON object, which no policy matches."""
    root = _decode(body)
    return Document(root, wanted) if isinstance(root, dict) else None


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
    """What the JSON says; _IGNORED for no JSON, and for what nests too deeply or has an endless number."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _IGNORED


class Pending:
    """A condition on its way into a message: its key's parts from ``start`` on are still to be found."""

    __slots__ = ("ends", "key", "start", "wanted")

    def __init__(self, key: str, wanted: Wanted, ends: list[int] | None = None, start: int = 0) -> None:
        self.key = key
        self.wanted = wanted
        self.ends = _ends(key) if ends is None else ends
        self.start = start

    def routes(self, node: dict[str, Any]) -> list[tuple[str, "Pending"]]:
        """The names of this object by which the key goes on; mostly one, and more where names hold dots."""
        found = []
        for end in self.ends:
            if end >= self.start:
                name = self.key[self.start : end]
                if name in node:
                    found.append((name, Pending(self.key, self.wanted, self.ends, end + 1)))
        return found

    @property
    def is_at_end(self) -> bool:
        return self.start > len(self.key)


def _ends(key: str) -> list[int]:
    """Where the parts of a key end."""
    ends = [at for at, char in enumerate(key) if char == "."]
    ends.append(len(key))
    return ends


def _holds_together(node: object, conditions: list[Pending]) -> bool:
    """Go down the message with all conditions at once. No deeper than keys have parts: arrays in arrays are one."""
    if isinstance(node, list):
        todo = list(node)
        while todo:
            element = todo.pop()
            if isinstance(element, list):
                todo += element
            elif _holds_together(element, conditions):
                return True
        return False
    if not isinstance(node, dict):
        value = scalar(node)
        return all(condition.is_at_end and condition.wanted.holds([value]) for condition in conditions)
    shared: dict[str, list[Pending]] = {}
    for condition in conditions:
        if condition.is_at_end:
            return False
        routes = condition.routes(node)
        if len(routes) == 1:
            name, following = routes[0]
            shared.setdefault(name, []).append(following)
        elif not any(_holds_together(node[name], [following]) for name, following in routes):
            # A key that two names of one object lead to is judged alone, so that nothing is tried in turns.
            return False
    return all(_holds_together(node[name], followings) for name, followings in shared.items())
