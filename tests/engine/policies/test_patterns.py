"""Texts with wildcards: what they match, and that no text makes them try for ever."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.policies.patterns import are_alike, arn_parts, is_like


@given(st.text("ab*?", max_size=12), st.text("ab*?", max_size=8))
def test_a_pattern_matches_what_the_regular_expression_of_it_matches(text: str, pattern: str) -> None:
    expression = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    assert is_like(text, pattern) is (re.fullmatch(expression, text) is not None)


def test_many_stars_take_no_more_than_text_times_pattern() -> None:
    begun_s = time.process_time()
    assert not is_like("a" * 2_000, "a*" * 100 + "b")
    assert time.process_time() - begun_s < 5


def test_an_arn_is_matched_part_by_part() -> None:
    queue = arn_parts("arn:aws:sqs:us-east-1:000000000000:jobs")
    assert are_alike(queue, arn_parts("arn:aws:sqs:*:000000000000:j?bs"))
    assert not are_alike(queue, arn_parts("arn:aws:s*:jobs:jobs:jobs"))
    assert arn_parts("arn:aws:s3:::a:b")[-1] == "a:b"
    with pytest.raises(ValueError, match="six parts"):
        arn_parts("arn:aws:sqs:us-east-1:jobs")
