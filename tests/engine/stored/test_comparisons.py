"""A part of a comparison changes no row, and is alone in its entry."""

import pytest

from elasticq.engine.apply import apply, row_changes
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.validation import Unfit, validate
from elasticq.engine.views.digest import state_digest
from tests.engine.desk import Desk

PART = RowsCompared(7, [1, 2, "x"], [])


def test_it_changes_nothing() -> None:
    state = Desk().state
    before = state_digest(state)
    apply(state, PART, [])
    assert state_digest(state) == before
    assert row_changes(PART) == []
    assert m.decode(m.encode([PART])) == [PART]


def test_an_entry_with_another_mutation_is_refused() -> None:
    validate([PART], 9, 0)
    with pytest.raises(Unfit, match="only in an entry of its own"):
        validate([PART, m.ClockAdvanced(1)], 9, 0)
