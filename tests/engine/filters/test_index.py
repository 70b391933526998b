"""The index of a topic's subscriptions: it finds what asking each policy would find, and asks few."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.filters.document import Document
from elasticq.engine.filters.index import FilterIndex
from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES, MESSAGE_BODY, Alternative, FilterPolicy, compile_policy
from elasticq.engine.filters.values import Budget
from tests.engine.filters.test_policy import attributes_of
from tests.engine.ordering.shelf import lines_run

values = st.sampled_from(["x", "y", 1, 2])
wanted = values | st.sampled_from([{"prefix": "x"}, {"exists": True}, {"exists": False}, {"anything-but": ["y"]}])
names = st.sampled_from("abc")
flat = st.dictionaries(names, st.lists(wanted, min_size=1, max_size=2), min_size=1, max_size=2)
policies = st.just({}) | flat | st.builds(lambda one, other: {"$or": [one, other]}, flat, flat)
read = st.builds(
    lambda policy, scope: compile_policy(json.dumps(policy), scope),
    policies,
    st.sampled_from([MESSAGE_ATTRIBUTES, MESSAGE_BODY]),
)
changes = st.lists(st.tuples(st.integers(0, 5), st.none() | read | st.just("remove")), max_size=12)
messages = st.dictionaries(names, values, max_size=3)


@settings(max_examples=100)
@given(changes, st.lists(st.tuples(messages, messages), min_size=1, max_size=4))
def test_the_index_finds_what_every_policy_says_for_itself(
    changes: list[tuple[int, Any]], published: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    index: FilterIndex[int] = FilterIndex()
    subscriptions: dict[int, FilterPolicy | None] = {}
    for key, policy in changes:
        if policy == "remove":
            index.remove(key)
            subscriptions.pop(key, None)
        else:
            index.set(key, policy)
            subscriptions[key] = policy
    assert len(index) == len(subscriptions)
    for in_attributes, in_body in published:
        attributes, body = attributes_of(in_attributes), json.dumps(in_body)
        expected = [key for key, policy in subscriptions.items() if policy is None or policy.matches(attributes, body)]
        found = index.matching(attributes, body)
        assert sorted(found) == sorted(expected)


def test_what_was_removed_leaves_nothing() -> None:
    index: FilterIndex[int] = FilterIndex()
    texts = [
        '{"a": ["x", 1], "b": [{"prefix": "y"}]}',
        '{"a": [{"exists": false}]}',
        '{"$or": [{"a.b": [1]}, {"b": [2]}]}',
    ]
    for key, text in enumerate(texts * 2):
        index.set(key, compile_policy(text, MESSAGE_BODY if key < len(texts) else MESSAGE_ATTRIBUTES))
    for key in range(2 * len(texts)):
        index.remove(key)
    assert len(index) == 0
    for side in (index._by_attributes, index._by_body):
        assert not side.at_keys
        assert not side.unanchored
        assert not side.anchors
        assert not side.wanted.below


class _Counted(Alternative):
    """Counts how often it is asked."""

    __slots__ = ("asked",)

    def __init__(self, alternative: Alternative) -> None:
        super().__init__(alternative.conditions)
        self.asked = 0

    def holds(self, document: Document) -> bool:
        self.asked += 1
        return super().holds(document)


def counted(policy: dict[str, Any], scope: str = MESSAGE_ATTRIBUTES) -> FilterPolicy:
    compiled = compile_policy(json.dumps(policy), scope)
    return FilterPolicy([_Counted(each) for each in compiled.alternatives], compiled.is_of_body)


def asked(policies: list[FilterPolicy]) -> int:
    return sum(each.asked for policy in policies for each in policy.alternatives if isinstance(each, _Counted))


def index_of(policies: list[FilterPolicy]) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for key, policy in enumerate(policies):
        index.set(key, policy)
    return index


@pytest.mark.pure
def test_of_ten_thousand_subscriptions_only_those_that_match_are_asked() -> None:
    for scope in (MESSAGE_ATTRIBUTES, MESSAGE_BODY):
        policies = [counted({"customer": [f"c{number % 3_333}"]}, scope) for number in range(10_000)]
        found = index_of(policies).matching(attributes_of({"customer": "c7"}), '{"customer": "c7"}')
        assert sorted(found) == [7, 3_340, 6_673]
        assert asked(policies) == 3


@pytest.mark.pure
def test_the_key_that_tells_subscriptions_apart_is_the_one_they_are_found_by() -> None:
    policies = [counted({"kind": ["order"], "customer": [f"c{number}"]}) for number in range(1_000)]
    assert index_of(policies).matching(attributes_of({"kind": "order", "customer": "c7"}), "") == [7]
    assert asked(policies) <= 2


@pytest.mark.pure
def test_a_filter_on_a_key_that_the_message_has_not_is_not_asked() -> None:
    policies = [counted({f"k{number}": [{"prefix": "x"}]}) for number in range(1_000)]
    assert index_of(policies).matching(attributes_of({"k7": "xy"}), "") == [7]
    assert asked(policies) == 1


@pytest.mark.pure
def test_decoding_a_long_body_is_all_that_its_slice_does() -> None:
    index: FilterIndex[int] = FilterIndex()
    index.set(1, compile_policy('{"a": ["x", "1"], "b": [1]}', MESSAGE_BODY))
    body = json.dumps({"a": [str(at) for at in range(100_000)], "b": 1})
    budget, found = Budget(50_000), dict[int, None]()
    steps = index.collect(None, body, budget, found)
    next(steps)
    budget.left = 50_000
    assert lines_run(next, steps) < 100, "it decodes"
    slices = 0
    for _ in steps:
        slices += 1
        budget.left = 50_000
    assert (slices > 1, found) == (True, {1: None})
