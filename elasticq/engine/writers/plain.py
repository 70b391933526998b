"""A writer for mutations whose only effects are the row changes they declare. ``State.tables`` holds these rows."""

from typing import Any

from elasticq.engine.state import State
from elasticq.engine.stored.tables import Change, Drop, Key, Put, RowChange, changed
from elasticq.engine.writers.contract import Undo


def write(state: State, changes: list[RowChange], undo: Undo | None) -> None:
    """Apply the row changes to the tables of the state."""
    for change in changes:
        assert isinstance(change, Put | Drop | Change), "Raise needs a writer of its own"
        assert not change.table.member, "rows that share a key need a writer of their own"
        rows = state.tables[change.table.name]
        if isinstance(change, Put):
            put(rows, change.key, change.row, undo)
        elif isinstance(change, Drop):
            put(rows, change.key, None, undo)
        elif change.key in rows:
            put(rows, change.key, changed(rows[change.key], change), undo)


def put(rows: dict[Any, Any], key: Key, row: Any, undo: Undo | None) -> None:
    """Put ``row`` under ``key``; None drops the old row. Rows stay in key order, in a roll-back as well."""
    old = rows.get(key)
    if undo is not None:
        undo.append((put, rows, key, old, None))
    if row is None:
        rows.pop(key, None)
        return
    is_last = old is not None or not rows or next(reversed(rows)) < key
    rows[key] = row
    if not is_last:
        ordered = sorted(rows.items(), key=_key)
        rows.clear()
        rows.update(ordered)


def _key(item: tuple[Any, Any]) -> Any:
    return item[0]
