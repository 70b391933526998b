"""What filter policies see of a message."""

from elasticq.engine.filter_document import Step, of_attributes, of_body
from elasticq.engine.filter_patterns import TRUE
from elasticq.model.commands import MessageAttributeValue


def steps(*keys: str) -> Step:
    wanted = Step()
    for key in keys:
        wanted.add(key)
    return wanted


def test_only_wanted_keys_are_kept() -> None:
    document = of_body('{"a": {"b": [1, [true, {"c": 2}]], "x": 3}, "y": 4}', steps("a.b", "a.b.c", "z"))
    assert document is not None
    assert {key: sorted(found, key=repr) for key, found in document.values.items()} == {
        "a.b": sorted([1, TRUE], key=repr),
        "a.b.c": [2],
    }
    assert document.is_forked


def test_a_name_with_dots_is_a_path() -> None:
    document = of_body('{"a.b": {"c": 1}, "a": {"b.c": 2}, "a.b.c": 3, "a.x": 4}', steps("a.b.c"))
    assert document is not None
    assert sorted(document.values["a.b.c"], key=str) == [1, 2, 3]
    assert not document.is_forked


def test_a_key_is_forgotten_with_its_last_user() -> None:
    wanted = steps("a.b", "a.b", "a.c")
    wanted.remove("a.b")
    assert wanted.at("a.b") is not None
    wanted.remove("a.b")
    assert wanted.at("a.b") is None
    assert wanted.at("a.c") is not None
    wanted.remove("a.c")
    assert not wanted.below


def test_a_message_without_scalars_is_empty() -> None:
    wanted = steps("a")
    for body, expected in (("{}", True), ('{"b": [[], {}]}', True), ('{"b": [[], 1]}', False), ('{"a": 1}', False)):
        document = of_body(body, wanted)
        assert document is not None
        assert document.is_empty() is expected
    assert of_attributes(None, wanted).is_empty()
    assert of_attributes({"a": MessageAttributeValue("Binary", binary_value=b"x")}, wanted).is_empty()


def test_a_body_that_is_no_object_is_no_document() -> None:
    for body in ("", "[]", "1", "{", '"a"', "[" * 100_000):
        assert of_body(body, steps("a")) is None
