"""The table of invocations: a start reads each call as it was first taken, within its window, unless it was undone."""

import sqlite3

from elasticq.engine.stored import mutations as m
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.node.outputs import Committed
from elasticq.replication.records import Base
from elasticq.storage.rows.invocations import InvocationTable
from elasticq.storage.rows.rows import Rows
from elasticq.storage.rows.statements import PUT_INVOCATIONS
from tests.storage.rows.test_rows import flush, opened

CALL, OTHER = b"a" * 16, b"b" * 16


def call(key: bytes = CALL, at_ms: int = 1, detail: bytes = b"") -> m.InvocationRecorded:
    return m.InvocationRecorded(key, at_ms, 0, 0, detail)


def taken(table: InvocationTable, index: int, time_ms: int = 1) -> list[int]:
    """The numbers of the rows that are written."""
    statements = dict(table.statements(Base(index, 1, time_ms)))
    return [row[0] for row in statements[PUT_INVOCATIONS]]


def restarted(connection: sqlite3.Connection) -> list[m.Mutation]:
    kinds = (m.InvocationRecorded, m.SentIdTaken)
    return [mutation for mutation in Rows().load(connection)[1] if isinstance(mutation, kinds)]


def written(*mutations: m.Mutation, apart: bool, time_ms: int = 1) -> list[m.Mutation]:
    """What a start reads of mutations that were written in one batch, or each in its own."""
    connection, rows = opened(), Rows()
    for index, mutation in enumerate(mutations, start=1):
        rows.take(Committed(index, 1, time_ms, [mutation]))
        if apart:
            flush(rows, connection)
    flush(rows, connection)
    return restarted(connection)


def test_what_is_not_yet_written_is_written_once_in_rows_whose_numbers_grow() -> None:
    table = InvocationTable()
    table.take_invocation(call())
    table.take_sent_id(m.SentIdTaken(OTHER, 1, 9, 7, 1))
    assert taken(table, index=5) == [5, 6]
    assert taken(table, index=6) == []
    table.forget(CALL)
    assert taken(table, index=6) == [7]
    assert table.last_number == 7


def test_a_new_row_comes_behind_those_of_an_earlier_start() -> None:
    connection, rows = opened(), Rows()
    rows.take(Committed(1, 1, 1, [call(), m.SentIdTaken(OTHER, 1, 9, 7, 1)]))
    flush(rows, connection)
    again = Rows()
    list(again.load(connection)[1])
    again.take(Committed(2, 1, 1, [m.AttemptRecorded(CALL, 1, b"")]))
    flush(again, connection)
    assert connection.execute("SELECT number FROM invocations ORDER BY number").fetchall() == [(1,), (2,), (3,)]
    assert restarted(connection) == [m.SentIdTaken(OTHER, 0, 9, 7, 1)]


def test_a_call_stands_as_it_was_recorded_first_until_its_window_is_over() -> None:
    again_ms = 1 + INVOCATION_WINDOW_MS
    assert written(call(), call(at_ms=again_ms - 1, detail=b"late"), apart=False) == [call()]
    assert written(call(), call(at_ms=again_ms, detail=b"new"), apart=False) == [call(at_ms=again_ms, detail=b"new")]


def test_a_deduplication_id_stands_for_as_long_as_anybody_took_it() -> None:
    long, short = m.SentIdTaken(CALL, 1, 20, 7, 1), m.SentIdTaken(CALL, 2, 10, 7, 2)
    for order in ((long, short), (short, long)):
        assert written(*order, apart=False) == [m.SentIdTaken(CALL, 0, 20, 7, 1)]


def test_an_attempt_takes_the_place_of_what_it_stood_for_and_is_gone_without_messages() -> None:
    first, second, gone = (m.AttemptRecorded(CALL, at_ms, detail) for at_ms, detail in ((1, b"x"), (2, b"y"), (3, b"")))
    for apart in (False, True):
        assert written(first, second, apart=apart) == [call(at_ms=2, detail=b"y")]
        assert written(first, call(OTHER), gone, apart=apart) == [call(OTHER)]


def test_a_row_goes_from_the_disk_when_the_window_of_its_newest_call_is_over() -> None:
    connection, rows = opened(), Rows()
    for index, time_ms in ((1, 1), (2, INVOCATION_WINDOW_MS), (3, 1 + INVOCATION_WINDOW_MS)):
        rows.take(Committed(index, 1, time_ms, [call()] if index == 1 else []))
        flush(rows, connection)
        kept = connection.execute("SELECT count(*) FROM invocations").fetchone()[0]
        assert kept == (index < 3)
