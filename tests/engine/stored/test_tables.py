"""What mutations declare for the small tables: columns, and changes of parts of rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.apply import ROWS, apply, row_changes
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import AHEAD_MS, LAST_QUEUE_ID, Change, Put, Raise, Table, changed
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from tests.model.structs import structs

TASK = m.MoveTaskSet(7, "id", "a", 3, "arn", "", 0, m.RUNNING, 1, 0, 9, 5, 99)


def test_columns_are_those_of_the_key_and_of_what_tells_apart_the_rows_of_one() -> None:
    assert m.MOVE_TASKS.columns() == ("number",)
    assert m.LEASES.columns() == ("queue_id", "name", "batch", "partition", "call")


@pytest.mark.parametrize(
    ("fields", "grows", "moved", "cursor"),
    [
        ({"moved": 4}, "", 4, 5),
        ({"moved": 4, "cursor": 6}, "cursor", 4, 6),
        ({"moved": 4, "cursor": 5}, "cursor", 0, 5),
        ({"moved": 4, "cursor": 1}, "cursor", 0, 5),
    ],
)
def test_change_of_a_row_that_must_grow(fields: dict[str, int], grows: str, moved: int, cursor: int) -> None:
    row = changed(TASK, Change(m.MOVE_TASKS, 7, fields, grows))
    assert (row.moved, row.cursor) == (moved, cursor)
    assert (TASK.moved, TASK.cursor) == (0, 5), "the old row stays as it was"


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_each_declaration_names_a_table_that_is_stored(kind: type, data: st.DataObject) -> None:
    """Of TABLES, or that of the queues, or a number; with a key that has the table's columns, and its kind of row."""
    for change in row_changes(data.draw(structs(kind))):
        if isinstance(change, Raise):
            assert change.number in (AHEAD_MS, LAST_QUEUE_ID)
            continue
        table = change.table
        assert table in (*m.TABLES, m.QUEUES)
        assert len(change.key if isinstance(change.key, tuple) else (change.key,)) == len(table.key)
        if isinstance(change, Put):
            assert isinstance(change.row, table.row)
        elif isinstance(change, Change):
            assert table.is_held or table.is_plain or table is m.QUEUES


@pytest.mark.parametrize("table", [table for table in m.TABLES if table.is_plain], ids=lambda table: table.name)
@given(st.data())
def test_row_that_the_state_holds_as_it_is_is_hashed_and_told(table: Table, data: st.DataObject) -> None:
    row = data.draw(structs(table.row))
    state = State()
    apply(state, row)
    assert list(state.tables[table.name].values()) == [row]
    assert [mutation for chunk in dump(state) for mutation in chunk] == [row]
    assert state_digest(state) != state_digest(State())
