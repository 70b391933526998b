"""Rows that the state holds as they are: whatever comes, they are those of a dict in the order of its keys."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Change, Drop, Put, RowChange
from elasticq.engine.writers import plain
from elasticq.engine.writers.contract import Undo, roll_back

NUMBERS = st.integers(1, 5)


def task(number: int, moved: int = 0) -> m.MoveTaskSet:
    return m.MoveTaskSet(number, f"id{number}", "a", 3, "arn", "", 0, m.COMPLETED, 1, moved, 9, 5, 99)


CHANGES = st.lists(
    st.one_of(
        st.builds(lambda number, moved: Put(m.MOVE_TASKS, number, task(number, moved)), NUMBERS, NUMBERS),
        st.builds(lambda number: Drop(m.MOVE_TASKS, number), NUMBERS),
        st.builds(lambda number, moved: Change(m.MOVE_TASKS, number, {"moved": moved}, "moved"), NUMBERS, NUMBERS),
    )
)


def modelled(rows: dict[int, m.MoveTaskSet], changes: list[RowChange]) -> dict[int, m.MoveTaskSet]:
    after = dict(rows)
    for change in changes:
        match change:
            case Put():
                after[change.key] = task(change.key, change.row.moved)
            case Drop():
                after.pop(change.key, None)
            case Change() if change.key in after:
                after[change.key] = task(change.key, max(after[change.key].moved, change.fields["moved"]))
    return dict(sorted(after.items()))


@given(before=CHANGES, lost=CHANGES)
def test_rows_are_those_of_a_dict_in_the_order_of_keys_also_after_a_roll_back(
    before: list[RowChange], lost: list[RowChange]
) -> None:
    state, undo = State(), Undo()
    plain.write(state, before, None)
    kept = modelled({}, before)
    assert list(state.move_tasks.items()) == list(kept.items())
    plain.write(state, lost, undo)
    assert list(state.move_tasks.items()) == list(modelled(kept, lost).items())
    roll_back(undo)
    assert list(state.move_tasks.items()) == list(kept.items())
