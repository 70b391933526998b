"""Deadlines during a time without a master."""

import pytest

from elasticq.engine.stored.delivery_rows import Grace, Row


def grace(*spans: tuple[int, int]) -> Grace:
    made = Grace()
    made.spans.extend(spans)
    return made


@pytest.mark.parametrize(("until_ms", "ends_ms"), [(9, 9), (10, 20), (19, 20), (20, 20), (25, 25)])
def test_what_would_end_while_nobody_could_extend_it_ends_with_the_span(until_ms: int, ends_ms: int) -> None:
    assert grace((10, 20)).until_ms(until_ms) == ends_ms


def test_spans_chain() -> None:
    assert grace((10, 20), (20, 30), (40, 50)).until_ms(15) == 30


def test_a_delay_is_not_extended() -> None:
    spans = grace((10, 20))
    assert spans.deadline(Row(15, delivery_number=1)) == 20
    assert spans.deadline(Row(15)) == 15
