"""Kept metadata in the rows: what a member writes is what it reads at its next start."""

import sqlite3

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.metadata_rows import MetadataForgotten, MetadataKept
from elasticq.node.outputs import Committed
from elasticq.storage.rows.rows import Rows
from tests.storage.rows.test_rows import created, flush, opened, stored


def test_metadata_outlives_a_restart_until_it_is_forgotten() -> None:
    connection, rows = opened(), Rows()
    kept = [MetadataKept(7, sequence, {"a": str(sequence)}) for sequence in (3, 1, 2)]
    rows.take(Committed(1, 1, 1, [created(), stored(1), stored(2), stored(3), *kept]))
    flush(rows, connection)
    assert _read(connection) == {(7, number): {"a": str(number)} for number in (1, 2, 3)}
    rows.take(Committed(2, 1, 1, [MetadataForgotten(7, [1, 3]), MetadataKept(7, 2, {"b": "x"})]))
    flush(rows, connection)
    assert _read(connection) == {(7, 2): {"b": "x"}}


def _read(connection: sqlite3.Connection) -> dict[tuple[int, int], dict[str, str]]:
    state = State()
    mutations: list[m.Mutation] = list(Rows().load(connection)[1])
    for mutation in mutations:
        apply(state, mutation)
    assert list(state.metadata) == sorted(state.metadata)
    return {key: row.metadata for key, row in state.metadata.items()}
