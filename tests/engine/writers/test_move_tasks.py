"""Which tasks there are, and which of them are not over."""

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.writers.contract import Undo, roll_back


def task(number: int, status: str) -> m.MoveTaskSet:
    return m.MoveTaskSet(number, f"id{number}", "a", 3, "arn", "", 0, status, 1, 0, 9, 5, 99)


def test_those_that_move_are_known_apart_and_come_back_in_order() -> None:
    state, undo = State(), Undo()
    for number, status in ((1, m.RUNNING), (2, m.COMPLETED), (3, m.CANCELLING)):
        apply(state, task(number, status))
    assert (list(state.move_tasks), list(state.moving)) == ([1, 2, 3], [1, 3])
    apply(state, task(1, m.FAILED), undo)
    apply(state, m.MoveTaskForgotten(1), undo)
    apply(state, m.MoveTaskForgotten(9), undo)
    assert (list(state.move_tasks), list(state.moving)) == ([2, 3], [3])
    roll_back(undo)
    assert (list(state.move_tasks), list(state.moving)) == ([1, 2, 3], [1, 3])
    assert state.move_tasks[1].status == m.RUNNING
