"""Stored JSON is read to a fixed depth, whatever the depth of the stack."""

import contextlib
import json
from collections.abc import Callable
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model import documents
from elasticq.model.limits import DOCUMENT_DEPTH_MAX, FILTER_DOCUMENT_DEPTH_MAX


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


def at_stack_depth(frames: int, call: Callable[[], object]) -> object:
    """Call ``call`` from that many more frames."""
    return call() if not frames else at_stack_depth(frames - 1, call)


def is_readable(text: str, depth_max: int = DOCUMENT_DEPTH_MAX) -> bool:
    try:
        documents.read(text, depth_max)
    except documents.Unreadable:
        return False
    return True


@pytest.mark.parametrize("depth_max", [DOCUMENT_DEPTH_MAX, FILTER_DOCUMENT_DEPTH_MAX])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_alone_decides(depth_max: int, opening: str, closing: str) -> None:
    step = opening.count("[") + opening.count("{")
    for depth in (1, depth_max // step, depth_max // step + 1, 500, 100_000):
        text = opening * depth + "1" + closing * depth
        for frames in (0, 300, 600):
            assert at_stack_depth(frames, lambda text=text: is_readable(text, depth_max)) == (depth * step <= depth_max)


@given(st.recursive(st.none() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)))
def test_reads_what_json_reads(value: object) -> None:
    if is_readable(text := json.dumps(value, ensure_ascii=False)):
        assert documents.read(text) == value


@pytest.mark.parametrize("text", ["", "{", "[}", "[" * 40 + "}" * 40, "NaN", "1e999", '"\\ud800"', '{"a":1}x', "\x00"])
def test_refuses_what_is_no_json(text: str) -> None:
    with pytest.raises(documents.Unreadable):
        documents.read(text)


def test_brackets_in_strings_do_not_nest() -> None:
    text = json.dumps([nested(500), '"' + nested(500), "\\"])
    assert documents.read(text) == json.loads(text)
    assert documents.read(json.dumps(nested(500))) == nested(500)


@given(st.text("[]{}", max_size=200), st.integers(0, 40))
def test_depth_is_that_of_the_deepest_bracket(brackets: str, depth_max: int) -> None:
    depth = deepest = 0
    for bracket in brackets:
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > depth_max:
        with pytest.raises(documents.Unreadable, match="nests more"):
            documents.check_depth(brackets, depth_max)
    else:
        documents.check_depth(brackets, depth_max)


def test_the_cost_of_deep_documents_grows_with_their_length_alone() -> None:
    """Once it took a round over the text for each level: 0.3 s for a filter policy."""
    texts = [(nested(300) + ",") * 400, "[]" * 120_000, "[" * 240_000]
    took_s = []
    for text in texts:
        began_s = thread_time()
        with contextlib.suppress(documents.Unreadable):
            documents.check_depth(text, FILTER_DOCUMENT_DEPTH_MAX)
        took_s.append(thread_time() - began_s)
    assert max(took_s) < 10 * min(took_s)
