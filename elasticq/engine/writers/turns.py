"""The effects of mutations on the turns of groups in fair-share queues (ordering/shares.py)."""

from typing import Final

from elasticq.engine.ordering.shares import GONE, Stored
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put, RowChange
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _turns_set(state: State, mutation: m.TurnsSet, undo: Undo | None) -> None:
    turns = state.turns.get(mutation.queue_id)
    if turns is None:
        if mutation.queue_id <= state.last_queue_id:
            return  # the queue is gone
        turns = state.turns[mutation.queue_id] = {}  # a start restores turns before queues
    for path, start, weight, clock in zip(
        mutation.paths, mutation.starts, mutation.weights, mutation.clocks, strict=True
    ):
        if undo is not None:
            undo.append((_set, state, mutation.queue_id, turns, path, turns.get(path)))
        stored = None if weight == GONE else (int.from_bytes(start, "big"), weight, int.from_bytes(clock, "big"))
        _set(state, mutation.queue_id, turns, path, stored)


def _set(state: State, queue_id: int, turns: dict[str, Stored], path: str, stored: Stored | None) -> None:
    if stored is None:
        turns.pop(path, None)
    else:
        turns[path] = stored
    queue = state.queues.get(queue_id)
    if queue is not None:
        queue.order.set_turn(path, stored)


def _turns_set_rows(mutation: m.TurnsSet) -> list[RowChange]:
    queue_id = mutation.queue_id
    # validation.py has checked that the lengths are equal.
    found = zip(mutation.paths, mutation.starts, mutation.weights, mutation.clocks, strict=False)
    return [
        Drop(m.TURNS, (queue_id, path))
        if weight == GONE
        else Put(m.TURNS, (queue_id, path), m.TurnsSet(queue_id, [path], [start], [weight], [clock]))
        for path, start, weight, clock in found
    ]


WRITERS: Final[dict[type, Writer]] = {m.TurnsSet: _turns_set}

ROWS: Final[dict[type, Declare]] = {m.TurnsSet: _turns_set_rows}
