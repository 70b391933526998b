"""The index of a topic's subscriptions by the conditions of their filter policies. A publish checks only a few
policies.

One condition of each alternative of a policy is its *anchor*. If the anchor is an equality, the alternative is stored
under each wanted value, and a message finds it by its own values. So values that the message does not have cost
nothing. With any other anchor, the alternative is stored under its key, and checked if the message has a value there.
Alternatives that only require keys to be absent are checked for every message.
"""

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from elasticq.engine.filters.document import Document, Step, of_attributes, of_body
from elasticq.engine.filters.patterns import Wanted
from elasticq.engine.filters.policy import Alternative, FilterPolicy, match_in_steps
from elasticq.engine.filters.values import Budget
from elasticq.model.commands import MessageAttributes

Key = TypeVar("Key", bound=Hashable)

Entries = dict[tuple[Key, int], Alternative]
"""Alternatives by subscription and index in its policy."""


class _AtKey(Generic[Key]):
    """The alternatives whose anchor is a condition on one key. ``others`` has those whose anchor is not an equality."""

    __slots__ = ("by_value", "others")

    def __init__(self) -> None:
        self.by_value: dict[object, Entries[Key]] = {}
        self.others: Entries[Key] = {}


class _Anchored(Generic[Key]):
    """The alternatives of all policies of one scope."""

    __slots__ = ("anchors", "at_keys", "policies", "unanchored", "wanted")

    def __init__(self) -> None:
        self.wanted = Step()
        self.policies: dict[Key, FilterPolicy] = {}
        self.at_keys: dict[str, _AtKey[Key]] = {}
        self.unanchored: Entries[Key] = {}
        self.anchors: dict[tuple[Key, int], tuple[str, Wanted] | None] = {}

    def add(self, key: Key, policy: FilterPolicy) -> None:
        self.policies[key] = policy
        for number, alternative in enumerate(policy.alternatives):
            for path, _ in alternative.conditions:
                self.wanted.add(path)
            anchor = self._best(alternative)
            self.anchors[key, number] = anchor
            if anchor is None:
                self.unanchored[key, number] = alternative
                continue
            path, condition = anchor
            at_key = self.at_keys.setdefault(path, _AtKey())
            if condition.is_equality:
                for value in condition.exact:
                    at_key.by_value.setdefault(value, {})[key, number] = alternative
            else:
                at_key.others[key, number] = alternative

    def remove(self, key: Key) -> None:
        policy = self.policies.pop(key)
        for number, alternative in enumerate(policy.alternatives):
            for path, _ in alternative.conditions:
                self.wanted.remove(path)
            anchor = self.anchors.pop((key, number))
            if anchor is None:
                del self.unanchored[key, number]
                continue
            path, condition = anchor
            at_key = self.at_keys[path]
            if condition.is_equality:
                for value in condition.exact:
                    entries = at_key.by_value[value]
                    del entries[key, number]
                    if not entries:
                        del at_key.by_value[value]
            else:
                del at_key.others[key, number]
            if not at_key.by_value and not at_key.others:
                del self.at_keys[path]

    def _best(self, alternative: Alternative) -> tuple[str, Wanted] | None:
        """Return the condition to use as anchor: an equality if there is one, then that with the fewest other
        alternatives.

        Return None if all conditions allow the key to be absent.
        """
        best: tuple[str, Wanted] | None = None
        fewest = (True, 0)
        for path, condition in alternative.conditions:
            if condition.allows_absent:
                continue
            crowd = (not condition.is_equality, self._crowd(path, condition))
            if best is None or crowd < fewest:
                best, fewest = (path, condition), crowd
        return best

    def _crowd(self, path: str, condition: Wanted) -> int:
        at_key = self.at_keys.get(path)
        if at_key is None:
            return 0
        if not condition.is_equality:
            return len(at_key.others)
        return sum([len(at_key.by_value.get(value, ())) for value in condition.exact])

    def collect(self, document: Document, budget: Budget, found: dict[Key, None]) -> Iterator[None]:
        """Add the subscriptions whose policies match the document. Yield when the budget is spent.

        Changes of subscriptions during the iteration have no effect on it.
        """
        if not self.policies:
            return
        yield from document.read(self.wanted, budget)
        yield from match_in_steps(document, self._candidates(document, budget), budget, found)

    def _candidates(self, document: Document, budget: Budget) -> list[tuple[Key, Alternative]]:
        """Return the alternatives whose anchors may hold, and those without an anchor."""
        found: list[tuple[Key, Alternative]] = []
        for path, values in document.values.items():
            at_key = self.at_keys.get(path)
            if at_key is None:
                continue
            for value in _common(at_key.by_value, values.all):
                found += [(key, alternative) for (key, _), alternative in at_key.by_value[value].items()]
            budget.left -= min(len(at_key.by_value), len(values.all))
            found += [(key, alternative) for (key, _), alternative in at_key.others.items()]
        found += [(key, alternative) for (key, _), alternative in self.unanchored.items()]
        budget.left -= 2 * len(found)
        return found


def _common(by_value: dict[object, Entries[Key]], values: set[Any]) -> list[object]:
    """Return the values that both have, in time proportional to the smaller one."""
    if len(by_value) < len(values):
        return [value for value in by_value if value in values]
    return [value for value in values if value in by_value]


class FilterIndex(Generic[Key]):
    """The subscriptions of a topic, with and without policies. ``Key`` is any type that identifies a subscription."""

    __slots__ = ("_by_attributes", "_by_body", "_takes_all")

    def __init__(self) -> None:
        self._takes_all: dict[Key, None] = {}
        self._by_attributes: _Anchored[Key] = _Anchored()
        self._by_body: _Anchored[Key] = _Anchored()

    def __len__(self) -> int:
        return len(self._takes_all) + len(self._by_attributes.policies) + len(self._by_body.policies)

    @property
    def is_empty(self) -> bool:
        """Return whether no subscription has a policy that filters."""
        return not (self._by_attributes.policies or self._by_body.policies)

    def set(self, key: Key, policy: FilterPolicy | None) -> None:
        """Add a subscription, or replace its policy. None, or a policy that matches everything, filters nothing."""
        self.remove(key)
        if policy is None or policy.takes_all:
            self._takes_all[key] = None
        elif policy.is_of_body:
            self._by_body.add(key, policy)
        else:
            self._by_attributes.add(key, policy)

    def remove(self, key: Key) -> None:
        """Remove a subscription if it is in the index."""
        if key in self._by_attributes.policies:
            self._by_attributes.remove(key)
        elif key in self._by_body.policies:
            self._by_body.remove(key)
        else:
            self._takes_all.pop(key, None)

    def collect(
        self, attributes: MessageAttributes | None, body: str, budget: Budget, found: dict[Key, None]
    ) -> Iterator[None]:
        """Add the subscriptions that get a message to ``found``, in any order. Yield when the budget is spent."""
        found.update(self._takes_all)
        if self._by_attributes.policies and attributes:
            yield from self._by_attributes.collect(of_attributes(attributes), budget, found)
        if self._by_body.policies:
            cost = len(body) // 4
            if cost > budget.left:
                yield  # decoding a long body is a slice of its own
            document = of_body(body)
            budget.left -= cost
            if budget.left <= 0:
                yield
            if document is not None:
                yield from self._by_body.collect(document, budget, found)

    def matching(self, attributes: MessageAttributes | None, body: str) -> list[Key]:
        """Return the subscriptions that get a message, without slices."""
        found: dict[Key, None] = {}
        for _ in self.collect(attributes, body, Budget(), found):
            pass
        return list(found)
