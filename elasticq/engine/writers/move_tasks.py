"""What mutations do to message move tasks."""

from elasticq.engine import mutations as m
from elasticq.engine.state import State
from elasticq.engine.writers.contract import Undo, Writer


def _move_task_set(state: State, mutation: m.MoveTaskSet, undo: Undo | None) -> None:
    _put_task(state, mutation.number, mutation, undo)


def _move_task_forgotten(state: State, mutation: m.MoveTaskForgotten, undo: Undo | None) -> None:
    _put_task(state, mutation.number, None, undo)


def _put_task(state: State, number: int, task: m.MoveTaskSet | None, undo: Undo | None) -> None:
    """Tasks stand in the order of their numbers, also when an old one comes back by a roll-back."""
    old = state.move_tasks.pop(number, None)
    if undo is not None:
        undo.append((_put_task, state, number, old, None))
    state.moving.pop(number, None)
    if task is not None:
        state.move_tasks[number] = task
        if task.status in m.MOVING:
            state.moving[number] = task
    for tasks in (state.move_tasks, state.moving):
        numbers = list(tasks)
        if numbers != sorted(numbers):
            ordered = sorted(tasks.items())
            tasks.clear()
            tasks.update(ordered)


WRITERS: dict[type, Writer] = {
    m.MoveTaskSet: _move_task_set,
    m.MoveTaskForgotten: _move_task_forgotten,
}
