"""A member starts with every row that can be read, sets the others aside and reports them."""

from typing import Any

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.dump import dump
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.node.effects import Effects
from elasticq.node.restoring import FAILURES_MAX, SET_ASIDE, restore
from tests.node.cluster import Solo

BROKEN = m.UntouchedRestored(99, 1, 5, [1], [5], 7)
"""Messages of a queue whose row is gone."""


def started(rows: list[Any]) -> tuple[State, Effects, int]:
    state, effects = State(), Effects()
    return state, effects, restore(state, rows, effects)


def rows_of(solo: Solo) -> list[m.Mutation]:
    return [row for chunk in dump(solo.node.state) for row in chunk]


def test_sound_rows_report_nothing(solo: Solo) -> None:
    solo.send()
    state, effects, set_aside = started(rows_of(solo))
    assert set_aside == 0
    assert not effects.news
    assert not effects.failures
    assert state.queue(DEFAULT_ACCOUNT, "jobs").count == 1


def test_row_that_cannot_be_applied_is_set_aside(solo: Solo) -> None:
    solo.send()
    rows = rows_of(solo)
    for at in range(len(rows) + 1):
        state, effects, set_aside = started([*rows[:at], BROKEN, *rows[at:]])
        assert set_aside == 1
        (failure,) = effects.failures
        assert failure.action == "row UntouchedRestored"
        assert [(each.event, each.is_warning) for each in effects.news] == [(SET_ASIDE, True)]
        assert state.queue(DEFAULT_ACCOUNT, "jobs").count == 1


def test_damaged_attributes_are_named(solo: Solo) -> None:
    rows: list[m.Mutation] = [
        m.QueueCreated(9, DEFAULT_ACCOUNT, "odd", {"DelaySeconds": "soon", "RedrivePolicy": "["}, {}, 1)
    ]
    _, effects, set_aside = started([*rows_of(solo), *rows])
    assert set_aside == 2
    (news,) = effects.news
    assert "DelaySeconds of the queue odd of 000000000000; RedrivePolicy of the queue odd" in news.text


def test_much_damage_is_reported_in_bounded_lines() -> None:
    _, effects, set_aside = started([BROKEN] * 1_000)
    assert set_aside == 1_000
    assert len(effects.failures) == FAILURES_MAX
    assert len(effects.news) == 1
