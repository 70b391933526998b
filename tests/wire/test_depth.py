"""The depth check against a scan of one character after the other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.limits import JSON_DEPTH_MAX
from elasticq.wire.depth import is_too_deep


def depth_of(text: str) -> int:
    """Deepest nesting outside strings, by a character at a time."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def nested(depth: int, inside: object = 1) -> object:
    for level in range(depth):
        inside = [inside] if level % 2 else {"member": inside}
    return inside


@pytest.mark.parametrize("inside", [1, "[{" * 50, '"[' * 50, "\\" * 3 + "[" * 50, "", ["", "[", "\\", '\\"', "\n"]])
def test_depth_at_the_limit_passes_and_one_more_does_not(inside: object) -> None:
    levels = JSON_DEPTH_MAX - isinstance(inside, list)
    assert not is_too_deep(json.dumps(nested(levels, inside)).encode())
    assert is_too_deep(json.dumps(nested(levels + 1, inside)).encode())


def test_many_shallow_brackets_pass() -> None:
    assert not is_too_deep(json.dumps({"x": [[{}], []] * 1000}).encode())


def test_json_in_a_string_is_not_depth() -> None:
    assert not is_too_deep(json.dumps({"MessageBody": json.dumps(nested(100))}).encode())


@pytest.mark.parametrize("opener", [b"[", b'{"a":', b"[{"])
def test_endless_openers_are_too_deep(opener: bytes) -> None:
    assert is_too_deep(opener * 100_000)


json_values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('"\\[]{}an'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('"\\[]{}'), max_size=3), inner),
    max_leaves=20,
)


@given(json_values, st.integers(JSON_DEPTH_MAX - 8, JSON_DEPTH_MAX + 2))
def test_scan_agrees_with_the_plain_one(value: object, levels: int) -> None:
    text = json.dumps(["[" * 40, nested(levels, value)])
    assert is_too_deep(text.encode()) == (depth_of(text) > JSON_DEPTH_MAX)
