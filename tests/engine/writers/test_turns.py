"""Turns as rows: one for each path, gone with what it says, and known before their queue at a start."""

from elasticq.engine.apply import apply, row_changes
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put
from elasticq.engine.writers.contract import Undo, roll_back

SET = m.TurnsSet(7, ["a", "b"], [b"\x05", b""], [2, -1], [b"", b""])
CREATED = m.QueueCreated(7, "0" * 12, "jobs", {"ElasticqFairness": "weighted"}, {}, 1)


def test_each_path_has_a_row() -> None:
    row = m.TurnsSet(7, ["a"], [b"\x05"], [2], [b""])
    assert row_changes(SET) == [Put(m.TURNS, (7, "a"), row), Drop(m.TURNS, (7, "b"))]


def test_rows_come_before_their_queue() -> None:
    state = State()
    apply(state, SET)
    apply(state, CREATED)
    assert state.queues[7].turns == {"a": (5, 2, 0)}


def test_turns_are_taken_back() -> None:
    state, undo = State(), Undo()
    apply(state, CREATED)
    apply(state, m.TurnsSet(7, ["b"], [b"\x09"], [1], [b""]))
    apply(state, SET, undo)
    assert state.queues[7].turns == {"a": (5, 2, 0)}
    roll_back(undo)
    assert state.queues[7].turns == {"b": (9, 1, 0)}


def test_turns_of_a_queue_that_is_gone_leave_nothing() -> None:
    state = State()
    for mutation in (CREATED, m.QueueDeleted(7, 2), m.QueueReclaimed(7), SET):
        apply(state, mutation)
    assert not state.turns
