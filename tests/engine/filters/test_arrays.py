"""Conditions that must hold in the same element of an array."""

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elasticq.engine.filters.document import Step, of_body
from elasticq.engine.filters.policy import MESSAGE_BODY, InvalidFilterPolicy, compile_policy, match_in_steps
from elasticq.engine.filters.values import Budget
from tests.engine import naive_filters
from tests.engine.filters.test_policy import by_body

names = st.sampled_from(["a", "b", "a.b", "b.a"])
scalars = st.sampled_from(["x", "y", 1, True, None])
lists = st.lists(scalars | st.sampled_from([{"prefix": "x"}, {"anything-but": ["x"]}]), min_size=1, max_size=2)
flat = st.dictionaries(names, lists, min_size=2, max_size=3)
policies = flat | st.dictionaries(names, flat, min_size=1, max_size=2)
elements = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, min_size=1, max_size=3),
    max_leaves=10,
)
CHOICES_MAX = 200


def choices(policy: dict[str, Any], event: dict[str, Any]) -> int:
    """How many the second match_in_steps tries."""
    keys = [leaf.key for leaf in naive_filters.leaves(event)]
    count = 1
    for key, _ in naive_filters.alternatives(policy)[0]:
        count *= max(1, keys.count(key))
    return count


def is_ambiguous(node: Any) -> bool:
    """Whether two names of an object lead to the same key, one of them to an array."""
    if isinstance(node, list):
        return any(is_ambiguous(each) for each in node)
    if not isinstance(node, dict):
        return False
    for name, value in node.items():
        others = {key: each for key, each in node.items() if key != name and key.split(".")[0] == name.split(".")[0]}
        if others and any(isinstance(each, list) for each in (value, *others.values())):
            return True
    return any(is_ambiguous(each) for each in node.values())


@settings(max_examples=200)
@given(policies, st.dictionaries(names, elements, min_size=1, max_size=3))
def test_one_choice_of_elements_fulfils_all_conditions(policy: dict[str, Any], event: dict[str, Any]) -> None:
    """Names with dots lead to the same keys as nested ones, in the message and in the policy.

    Where both lead to the same array, its elements and the other value are elements of one array.
    """
    try:
        compile_policy(json.dumps(policy), MESSAGE_BODY)
    except InvalidFilterPolicy:
        assume(False)
    assume(choices(policy, event) <= CHOICES_MAX)
    if not is_ambiguous(event):
        assert by_body(policy, event) is naive_filters.matches(policy, event)
    elif by_body(policy, event):
        assert naive_filters.matches(policy, event)


def test_names_with_dots_lead_to_the_same_key_as_nested_ones() -> None:
    policy = {"a": {"b": ["x"]}, "a.b": {"c": ["y"]}}
    forked = {"f": [1, 2]}
    assert by_body({"f": [1], **policy}, {"a": {"b": "x"}, "a.b": {"c": "y"}, **forked})
    assert by_body({"f": [1], **policy}, {"a.b": "x", "a": {"b.c": "y"}, **forked})
    assert not by_body({"f": [1], **policy}, {"a": {"b": "x"}, "a.b": {"c": "z"}, **forked})
    assert not by_body({"f": [1], **policy}, {"a": {"b": "z"}, "a.b": {"c": "y"}, **forked})


def test_a_key_that_a_policy_has_twice_must_hold_twice() -> None:
    policy = {"a": {"b": ["x"], "c": ["z"]}, "a.b": [{"suffix": "x"}]}
    assert by_body(policy, {"a": [{"b": "x", "c": "z"}, {}]})
    assert not by_body({**policy, "a.b": ["y"]}, {"a": [{"b": ["x", "y"], "c": "z"}, {}]})


def test_long_arrays_are_judged_in_slices() -> None:
    policy = compile_policy(json.dumps({"a": {"$or": [{"b": [n], "c": [n]} for n in range(37)]}}), MESSAGE_BODY)
    items: list[Any] = [{"b": n % 37, "c": (n + 1) % 37} for n in range(4_000)]
    for more, expected in (([], False), ([{"b": 5, "c": 5}], True), ([[], [[{"b": 36, "c": 36}]]], True)):
        document = of_body(json.dumps({"a": items + more}))
        assert document is not None
        wanted = Step()
        for key in ("a.b", "a.c"):
            wanted.add(key)
        for _ in document.read(wanted, Budget()):
            raise AssertionError("the budget is endless")
        budget, slices, found = Budget(1_000), 0, dict[int, None]()
        for _ in match_in_steps(document, [(0, each) for each in policy.alternatives], budget, found):
            budget.left = 1_000
            slices += 1
        assert slices > 100
        assert bool(found) is expected
