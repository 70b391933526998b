"""The effects of mutations on message move tasks."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put, RowChange
from elasticq.engine.writers import plain
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _move_task_set(state: State, mutation: m.MoveTaskSet, undo: Undo | None) -> None:
    plain.write(state, _move_task_set_rows(mutation), undo)
    plain.put(state.moving, mutation.number, mutation if mutation.status in m.MOVING else None, undo)


def _move_task_set_rows(mutation: m.MoveTaskSet) -> list[RowChange]:
    return [Put(m.MOVE_TASKS, mutation.number, mutation)]


def _move_task_forgotten(state: State, mutation: m.MoveTaskForgotten, undo: Undo | None) -> None:
    plain.write(state, _move_task_forgotten_rows(mutation), undo)
    plain.put(state.moving, mutation.number, None, undo)


def _move_task_forgotten_rows(mutation: m.MoveTaskForgotten) -> list[RowChange]:
    return [Drop(m.MOVE_TASKS, mutation.number)]


WRITERS: Final[dict[type, Writer]] = {
    m.MoveTaskSet: _move_task_set,
    m.MoveTaskForgotten: _move_task_forgotten,
}

ROWS: Final[dict[type, Declare]] = {
    m.MoveTaskSet: _move_task_set_rows,
    m.MoveTaskForgotten: _move_task_forgotten_rows,
}
