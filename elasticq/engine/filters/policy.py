"""Filter policies: they decide which messages of a topic a subscription gets.

A policy is JSON. All of its keys must match the message (and); one value in the list of a key is enough (or).
``compile_policy`` reads the text once. A ``FilterIndex`` then checks the ``FilterPolicy`` against each message that it
may match. Sources: the SNS developer guide, "Amazon SNS subscription filter policies", recordings of the service, and
event-ruler, AWS's matcher, where both are silent.

``$or`` is expanded: a policy is a list of alternatives, and each alternative is a list of conditions, one for each key.
AWS's limit of complexity bounds their number.
"""

from collections.abc import Iterator
from typing import Any, Final

from elasticq.engine.filters.arrays import Conditions, hold_together
from elasticq.engine.filters.document import Document, Step, of_attributes, of_body
from elasticq.engine.filters.patterns import (
    RESERVED_IN_OR,
    TOO_COMPLEX,
    InvalidFilterPolicy,
    read_list,
    refused,
)
from elasticq.engine.filters.values import Budget
from elasticq.model import documents, limits
from elasticq.model.commands import MessageAttributes
from elasticq.model.errors import quoted

MESSAGE_ATTRIBUTES: Final = "MessageAttributes"
MESSAGE_BODY: Final = "MessageBody"
"""The two scopes of filter policies."""

__all__ = ["MESSAGE_ATTRIBUTES", "MESSAGE_BODY", "Alternative", "FilterPolicy", "InvalidFilterPolicy", "compile_policy"]


class Alternative:
    """The conditions of one alternative with their keys. All of them must hold."""

    __slots__ = ("conditions",)

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions

    def prepare(self, document: Document, budget: Budget) -> Iterator[None]:
        """Do the slow work of ``holds`` in advance. Yield when the budget is spent."""
        for key, wanted in self.conditions:
            values = document.values.get(key)
            if values is not None:
                yield from wanted.prepare(values, budget)

    def holds(self, document: Document) -> bool:
        """Return whether each condition holds. They may hold in different elements of arrays."""
        for key, wanted in self.conditions:
            values = document.values.get(key)
            if values is None:
                if not wanted.allows_absent:
                    return False
            elif not wanted.holds(values):
                return False
        return True

    def joint(self, document: Document) -> Conditions:
        """Return the conditions that must hold in the same elements of arrays; empty if there is nothing to check."""
        if not document.is_forked or len(self.conditions) < 2:
            return []
        present = [(key, wanted) for key, wanted in self.conditions if key in document.values]
        return present if len(present) > 1 else []


class FilterPolicy:
    """A compiled policy. It never changes, so subscriptions with the same text may share one.

    - alternatives: One of them must hold.
    - is_of_body: Whether the scope is MessageBody.
    - takes_all: Whether it is ``{}``, which matches every message.
    """

    __slots__ = ("alternatives", "is_of_body", "takes_all")

    def __init__(self, alternatives: list[Alternative], is_of_body: bool) -> None:
        self.alternatives = alternatives
        self.is_of_body = is_of_body
        self.takes_all = any(not each.conditions for each in alternatives)

    def matches(self, attributes: MessageAttributes | None, body: str) -> bool:
        """Return whether a message with these attributes and this body matches."""
        found: dict[Any, None] = {}
        for _ in self.match_in_steps(attributes, body, Budget(), found):
            pass
        return bool(found)

    def match_in_steps(
        self, attributes: MessageAttributes | None, body: str, budget: Budget, found: dict[Any, None]
    ) -> Iterator[None]:
        """Do the work of ``matches`` in slices. Yield when the budget is spent. Add True to ``found`` if the message
        matches.
        """
        if self.takes_all:
            found[True] = None
            return
        wanted = Step()
        for each in self.alternatives:
            for key, _ in each.conditions:
                wanted.add(key)
        document = of_body(body) if self.is_of_body else of_attributes(attributes)
        if document is not None:
            yield from document.read(wanted, budget)
            yield from match_in_steps(document, [(True, each) for each in self.alternatives], budget, found)


def match_in_steps(
    document: Document, asked: list[tuple[Any, Alternative]], budget: Budget, found: dict[Any, None]
) -> Iterator[None]:
    """Find which of many policies match one message. Yield when the budget is spent.

    asked: pairs of an id that the caller chose, such as a subscription, and one alternative of its policy. An id may
    occur in several pairs. found: gets the ids that have an alternative which holds for the message.
    """
    if not document.has_scalars:
        return
    together: dict[Any, list[Conditions]] = {}
    for key, alternative in asked:
        budget.left -= _COST
        if budget.left <= 0:
            yield
        if key in found:
            continue
        if document.has_large:
            yield from alternative.prepare(document, budget)
        if alternative.holds(document):
            joint = alternative.joint(document)
            if joint:
                together.setdefault(key, []).append(joint)
            else:
                found[key] = None
    for key, alternatives in together.items():
        if key not in found and (yield from hold_together(document, alternatives, budget)):
            found[key] = None


_COST: Final = 10  # the cost of checking an alternative


MATCHES_NOTHING: Final = FilterPolicy([], is_of_body=False)


def compile_policy(text: str, scope: str) -> FilterPolicy:
    """Return the compiled policy for the scope MESSAGE_ATTRIBUTES or MESSAGE_BODY. Raise InvalidFilterPolicy if
    invalid.
    """
    if len(text.encode("utf-8", "replace")) > limits.FILTER_POLICY_BYTES_MAX:
        raise refused(f"Filter policy can not be longer than {limits.FILTER_POLICY_BYTES_MAX} bytes")
    try:
        policy = documents.read(text, limits.FILTER_DOCUMENT_DEPTH_MAX)
    except documents.Unreadable as error:
        raise refused(f"failed to parse JSON. {error}") from None
    if not isinstance(policy, dict):
        raise refused("Filter is not an object")
    if len(policy) > limits.FILTER_POLICY_KEYS_MAX:
        raise refused(f"Filter policy can not have more than {limits.FILTER_POLICY_KEYS_MAX} keys")
    is_of_body = scope == MESSAGE_BODY
    _measured(policy, is_of_body, depth=1, parts=0)
    alternatives = _multiplied_out(policy, "") if policy else [[]]
    return FilterPolicy([Alternative(conditions) for conditions in alternatives], is_of_body)


# --- size -------------------------------------------------------------------------


class _Size:
    """The size of a policy.

    - complexity: As AWS counts it.
    - alternatives: Their number after the expansion of $or.
    - terms: The number of conditions of all alternatives.
    """

    __slots__ = ("alternatives", "complexity", "terms")

    def __init__(self, complexity: int, alternatives: int, terms: int) -> None:
        self.complexity = complexity
        self.alternatives = alternatives
        self.terms = terms

    def times(self, other: "_Size") -> "_Size":
        """Return the size of two parts that must both hold. Raise InvalidFilterPolicy if it is too large."""
        terms = self.terms * other.alternatives + other.terms * self.alternatives
        return _Size(self.complexity * other.complexity, self.alternatives * other.alternatives, terms).checked()

    def plus(self, other: "_Size") -> "_Size":
        """Return the size of two parts of which one must hold. Raise InvalidFilterPolicy if it is too large."""
        return _Size(
            self.complexity + other.complexity, self.alternatives + other.alternatives, self.terms + other.terms
        ).checked()

    def checked(self) -> "_Size":
        if self.complexity > limits.FILTER_POLICY_COMPLEXITY_MAX or self.terms > limits.FILTER_TERMS_MAX:
            raise refused(TOO_COMPLEX)
        return self


def _measured(policy: dict[str, Any], is_of_body: bool, depth: int, parts: int) -> _Size:
    """Return the size of an object, before it is expanded. Raise InvalidFilterPolicy if it is too large or has a wrong
    shape.

    ``depth`` is that of its keys: 1 at the top, and the same for the branches of a $or. ``parts`` is the number of
    parts of the keys above it. Each dot adds a part, and so does a $or.
    """
    size = _Size(1, 1, 0)
    for key, value in policy.items():
        parts_here = parts + 1 + key.count(".")
        if parts_here > limits.FILTER_DEPTH_MAX:
            raise refused(TOO_COMPLEX)
        if isinstance(value, dict):
            if not value:
                raise refused("Empty objects are not allowed")
            size = size.times(_measured(value, is_of_body, depth + 1, parts_here))
            if not is_of_body:  # AWS refuses the members of the object first
                raise InvalidFilterPolicy("Filter policy scope MessageAttributes does not support nested filter policy")
        elif not isinstance(value, list):
            raise refused(f'"{quoted(key)}" must be an object or an array')
        elif not value:
            raise refused("Empty arrays are not allowed")
        elif _is_or(key, value):
            branches = _Size(0, 0, 0)
            for branch in value:
                branches = branches.plus(_measured(branch, is_of_body, depth, parts_here))
            size = size.times(branches)
        else:
            size = size.times(_Size(len(value) * depth, 1, 1).checked())
    return size


def _is_or(key: str, value: list[Any]) -> bool:
    """Return whether it is the $or operator: a list of at least two objects, none with a key that is an operator's
    name.
    """
    if key != "$or" or len(value) < 2:
        return False
    for branch in value:
        if not isinstance(branch, dict) or not branch or not RESERVED_IN_OR.isdisjoint(branch):
            return False
    return True


# --- alternatives -----------------------------------------------------------------


def _multiplied_out(policy: dict[str, Any], path: str) -> list[Conditions]:
    """Return the alternatives of an object whose keys begin with ``path``. Raise InvalidFilterPolicy if it
    is invalid.
    """
    alternatives: list[Conditions] = [[]]
    for key, value in policy.items():
        if isinstance(value, dict):
            more = _multiplied_out(value, f"{path}{key}.")
        elif _is_or(key, value):
            more = []
            for branch in value:
                more += _multiplied_out(branch, path)
        else:
            more = [[(path + key, read_list(value))]]
        alternatives = [one + other for one in alternatives for other in more]
    return alternatives
