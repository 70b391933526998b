"""Takeovers: terms count once, spans are bounded and hold."""

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.writers.cluster import GRACE_SPANS_MAX
from tests.engine.desk import START_MS, Desk
from tests.engine.driver import check_indexes


def test_takeover_spans_are_bounded_and_terms_count_once() -> None:
    state = State()
    for term in range(1, 200):
        apply(state, m.TookOver(term, "a", START_MS + term * 10, START_MS + term * 10 + 5))
    assert len(state.grace.spans) == GRACE_SPANS_MAX
    spans = list(state.grace.spans)
    apply(state, m.TookOver(7, "a", 1, 2))
    assert (state.grace.spans, state.takeover_term) == (spans, 199)


def test_takeover_span_holds_for_what_the_index_already_gave_free() -> None:
    """A master that is elected again, or applied another's takeover, must not know better than its rows."""
    desk = Desk()
    desk.create()
    desk.send()
    desk.receive(1, visibility_s=1)
    desk.wait(1)
    assert desk.counts() == (1, 0, 0)  # looked at, so the index moved it
    now_ms = desk.context.now_ms
    desk.write([m.TookOver(2, "a", now_ms - 500, now_ms + 1_000)])
    check_indexes(desk.state, now_ms)
    assert desk.counts() == (0, 1, 0)
    desk.wait(1)
    assert desk.counts() == (1, 0, 0)


def test_spans_that_ended_twelve_hours_ago_go() -> None:
    state = State()
    apply(state, m.TookOver(1, "a", 1_000, 2_000))
    apply(state, m.TookOver(2, "a", 43_202_000, 43_203_000))
    assert state.grace.spans == [(43_202_000, 43_203_000)]
