"""What filter policies see of a message."""

import json
from typing import Any

from elasticq.engine.filters.document import Document, Step, of_attributes, of_body
from elasticq.engine.filters.values import TRUE, Budget
from elasticq.model.commands import MessageAttributeValue


def steps(*keys: str) -> Step:
    wanted = Step()
    for key in keys:
        wanted.add(key)
    return wanted


def read(document: Document | None, *keys: str) -> Document:
    assert document is not None
    for _ in document.read(steps(*keys), Budget()):
        raise AssertionError("the budget is endless")
    return document


def test_only_wanted_keys_are_kept() -> None:
    document = read(of_body('{"a": {"b": [1, [true, {"c": 2}]], "x": 3}, "y": 4}'), "a.b", "a.b.c", "z")
    assert {key: found.all for key, found in document.values.items()} == {"a.b": {1, TRUE}, "a.b.c": {2}}
    assert document.is_forked


def test_a_name_with_dots_is_a_path() -> None:
    for more in ({}, {f"n{each}": each for each in range(100)}):
        body = {"a.b": {"c": 1}, "a": {"b.c": 2}, "a.b.c": 3, "a.x": 4, **more}
        document = read(of_body(json.dumps(body)), "a.b.c")
        assert document.values["a.b.c"].all == {1, 2, 3}
        assert not document.is_forked


def test_of_many_names_those_are_found_that_are_asked_for() -> None:
    document = read(of_body(json.dumps({f"n{each}": each for each in range(100)})), "n7", "other")
    assert {key: found.all for key, found in document.values.items()} == {"n7": {7}}


def test_a_key_is_forgotten_with_its_last_user() -> None:
    wanted = steps("a.b", "a.b", "a.c")
    wanted.remove("a.b")
    assert wanted.at("a.b") is not None
    wanted.remove("a.b")
    assert wanted.at("a.b") is None
    assert wanted.at("a.c") is not None
    wanted.remove("a.c")
    assert not wanted.below


def test_a_message_without_scalars_has_none() -> None:
    for body, expected in (("{}", False), ('{"b": [[], {}]}', False), ('{"b": [[], 1]}', True), ('{"a": 1}', True)):
        assert read(of_body(body), "a").has_scalars is expected
    assert not read(of_attributes(None), "a").has_scalars
    assert not read(of_attributes({"a": MessageAttributeValue("Binary", binary_value=b"x")}), "a").has_scalars


def test_a_body_that_is_no_object_is_no_document() -> None:
    for body in ("", "[]", "1", "{", '"a"', "[" * 100_000):
        assert of_body(body) is None


def test_a_long_message_is_read_in_slices() -> None:
    bodies: list[Any] = [
        {"a": [7] * 100_000},
        {"a": [[7]] * 20_000},
        {"a": [{"b": 7}] * 20_000},
        {"c": [[] for _ in range(100_000)], "d": 7},
    ]
    for body in bodies:
        document = of_body(json.dumps(body))
        assert document is not None
        budget, slices = Budget(1), 0
        for _ in document.read(steps("a", "a.b"), budget):
            slices += 1
            budget.left = 1
        assert slices > 5 or "d" in body
        assert document.has_scalars
        assert {value for found in document.values.values() for value in found.all} <= {7}
