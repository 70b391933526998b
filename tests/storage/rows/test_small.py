"""The small tables: whatever is put, dropped and changed, what is read is what a dict would hold."""

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.apply import ROWS
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Change, Drop, Put, Table
from elasticq.node.outputs import Committed
from elasticq.storage.errors import Damaged
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.small import SmallTable
from tests.model.structs import structs
from tests.storage.rows.test_rows import flush, opened, task

LATER = Table("later", ("account", "number"), m.QueueTagged, member="part", since=schema.FORMAT + 1)
HELD = Table("held", ("name",), m.QueueTagged, since=schema.FORMAT + 1, is_held=True)
NEWEST = Table("newest", ("number",), m.QueueTagged, since=schema.FORMAT + 1, newest=2)
SMALL = st.integers(0, 2)
TIMES = st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=1)


def row(value: int) -> m.QueueTagged:
    return m.QueueTagged(value, {"value": str(value)})


def made(table: Table) -> sqlite3.Connection:
    """A database with the table, as it is made where it is new."""
    connection = opened()
    connection.execute(schema.statement_for(table))
    return connection


def written(connection: sqlite3.Connection, small: SmallTable) -> None:
    for text, rows in small.statements():
        connection.executemany(text, rows)


def read(connection: sqlite3.Connection, table: Table, count: int) -> tuple[SmallTable, list[Any]]:
    small = SmallTable(table)
    return small, small.read(connection, count)


@given(
    st.lists(
        st.one_of(
            st.builds(lambda number, part, value: ("put", ("a", number), part, value), SMALL, SMALL, SMALL),
            st.builds(lambda number: ("drop", ("a", number), 0, 0), SMALL),
            st.sampled_from([("write", ("", 0), 0, 0), ("restart", ("", 0), 0, 0)]),
        )
    )
)
def test_what_is_read_is_what_was_put_and_not_dropped(steps: list[tuple[str, tuple[str, int], int, int]]) -> None:
    connection, small = made(LATER), SmallTable(LATER)
    model: dict[tuple[str, int], dict[int, m.QueueTagged]] = {}
    for step, key, part, value in [*steps, ("restart", ("", 0), 0, 0)]:
        if step == "put":
            small.take(Put(LATER, key, row(value), part))
            model.setdefault(key, {})[part] = row(value)
        elif step == "drop":
            small.take(Drop(LATER, key))
            model.pop(key, None)
        else:
            written(connection, small)
            assert small.statements() == [], "each change is written once"
        wanted = [members[part] for _, members in sorted(model.items()) for part in sorted(members)]
        assert small.count == len(wanted)
        if step == "restart":
            small, found = read(connection, LATER, small.count)
            assert (found, small.count) == (wanted, len(wanted))


def test_row_that_is_held_is_changed_in_part_also_after_a_start() -> None:
    connection, small = made(HELD), SmallTable(HELD)
    small.take(Change(HELD, "a", {"tags": {"lost": ""}}))  # there is none
    small.take(Put(HELD, "a", m.QueueTagged(5, {})))
    small.take(Change(HELD, "a", {"queue_id": 4, "tags": {"k": "v"}}, grows="queue_id"))
    written(connection, small)
    small, found = read(connection, HELD, 1)
    assert found == [m.QueueTagged(5, {})]
    small.take(Change(HELD, "a", {"queue_id": 6, "tags": {"k": "v"}}, grows="queue_id"))
    written(connection, small)
    assert read(connection, HELD, 1)[1] == [m.QueueTagged(6, {"k": "v"})]


def test_only_the_newest_are_kept_and_no_older_one_comes_back() -> None:
    connection, small = made(NEWEST), SmallTable(NEWEST)
    for number in (1, 2, 5):
        small.take(Put(NEWEST, number, row(number)))
        written(connection, small)
    small, found = read(connection, NEWEST, 2)
    assert found == [row(2), row(5)]
    for number in (4, 5, 6):
        small.take(Put(NEWEST, number, row(number)))
    written(connection, small)
    assert read(connection, NEWEST, 2)[1] == [row(5), row(6)]


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM later WHERE part = 1",
        "UPDATE later SET part = 3 WHERE part = 1",
        "UPDATE later SET number = 3 WHERE part = 1",
        "UPDATE later SET value = CAST(value || x'00' AS BLOB) WHERE part = 1",
        "UPDATE later SET crc = crc + 1 WHERE part = 1",
    ],
)
def test_lost_or_changed_row_is_found(harm: str) -> None:
    connection, small = made(LATER), SmallTable(LATER)
    for part in (1, 2):
        small.take(Put(LATER, ("a", 1), row(part), part))
    written(connection, small)
    read(connection, LATER, 2)
    connection.execute(harm)
    with pytest.raises(Damaged, match="table later"):
        read(connection, LATER, 2)


def test_lost_or_changed_move_task_is_found() -> None:
    for harm in (
        "DELETE FROM move_tasks WHERE number = 1",
        "UPDATE move_tasks SET value = substr(value, 1, length(value) - 1) || x'00' WHERE number = 2",
    ):
        connection, rows = opened(), Rows()
        rows.take(Committed(1, 1, 1, [task(1), task(2, status=m.COMPLETED), task(3), m.MoveTaskForgotten(3)]))
        flush(rows, connection)
        assert list(Rows().load(connection)[1]) == [task(1), task(2, status=m.COMPLETED)]
        connection.execute(harm)
        with pytest.raises(Damaged):
            list(Rows().load(connection)[1])


def test_lost_or_changed_row_of_a_lease_is_found() -> None:
    called = [m.LeaseCalled(7, "q", 1, partition, 0, 1, 9, [5], [6]) for partition in range(3)]
    renewed, ended = (m.LeaseSet(7, "q", 1, at, 1, 99, state, at, 1) for at, state in enumerate(("open", "committed")))
    for harm in (
        "DELETE FROM leases WHERE partition = 2",
        "DELETE FROM leases WHERE call = -1 AND partition = 0",
        "UPDATE leases SET call = 1 WHERE call = 0 AND partition = 0",
        "UPDATE leases SET value = substr(value, 1, length(value) - 1) || x'00' WHERE partition = 1",
    ):
        connection, rows = opened(), Rows()
        rows.take(Committed(1, 1, 1, [*called, renewed]))
        flush(rows, connection)
        rows.take(Committed(2, 1, 1, [ended]))
        flush(rows, connection)
        assert list(Rows().load(connection)[1]) == [called[0], called[2], renewed, ended]
        connection.execute(harm)
        with pytest.raises(Damaged):
            list(Rows().load(connection)[1])


@pytest.mark.parametrize("table", m.TABLES, ids=lambda table: table.name)
@given(st.data())
def test_rows_of_each_table_come_back_as_they_were(table: Table, data: st.DataObject) -> None:
    """Written by way of what mutations declare, and read by the next start."""
    kinds = [kind for kind in ROWS if isinstance(kind, type) and issubclass(kind, table.row)]
    connection, rows = opened(), Rows()
    row = data.draw(structs(data.draw(st.sampled_from(kinds))))
    if isinstance(row, m.TurnsSet):  # it tells of several rows, of which each comes back by itself
        row = data.draw(
            st.builds(m.TurnsSet, SMALL, st.just(["a.b"]), TIMES, st.lists(SMALL, min_size=1, max_size=1), TIMES)
        )
    rows.take(Committed(1, 1, 1, [row]))
    flush(rows, connection)
    assert list(Rows().load(connection)[1]) == [row]
