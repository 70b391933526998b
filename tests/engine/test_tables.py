"""What mutations declare for the small tables: columns, and changes of parts of rows."""

import pytest

from elasticq.engine import mutations as m
from elasticq.engine.apply import ROWS, row_changes
from elasticq.engine.tables import Change, Drop, Put, Raise, changed

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


def test_each_declaration_names_a_table_that_is_stored() -> None:
    """Of one mutation of each kind: what it declares is for a table of TABLES, for the queues, or a number."""
    ones: list[m.Mutation] = [
        m.ClusterFounded("c", b"k", 1),
        m.ClusterRenamed("d"),
        m.TookOver(3, "a", 1, 2),
        m.ClockAdvanced(5),
        m.QueueCreated(7, "a", "q", {}, {}, 1),
        m.QueueAttributesSet(7, {"DelaySeconds": "1"}, 2),
        m.QueueTagged(7, {"k": "v"}),
        m.QueuePurged(7, 9, 3),
        m.QueueDeleted(7, 4),
        m.QueueReclaimed(7),
        TASK,
        m.MoveTaskForgotten(7),
        m.LeaseCalled(7, "q", 1, 0, 0, 1, 9, [5], [6]),
        m.LeaseSet(7, "q", 1, 0, 1, 9, m.LEASE_COMMITTED, 8, 1),
        m.LeaseForgotten(7, "q", 1, 0),
        m.GroupsServed(7, ["g"], [1]),
    ]
    told: dict[type, list[str]] = {}
    for mutation in ones:
        for change in row_changes(mutation):
            what = change.number if isinstance(change, Raise) else f"{type(change).__name__} {change.table.name}"
            told.setdefault(type(mutation), []).append(what)
            assert isinstance(change, Raise) or change.table in (*m.TABLES, m.QUEUES)
            assert not isinstance(change, Put) or isinstance(change.row, change.table.row)
    assert told.keys() | {m.GroupsServed} == ROWS.keys()
    assert told[m.QueueCreated] == ["last_queue_id", "Put queues"]
    assert told[m.LeaseSet] == ["Drop leases", "Put leases"]
    assert told[m.QueueReclaimed] == [f"{Drop.__name__} queues"]
