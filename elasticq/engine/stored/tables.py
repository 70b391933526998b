"""What a mutation does to the small tables, said as data: the storage makes SQL of it, and knows no mutation by name.

A small table is one of few rows, each of which is a mutation: who applies all rows that are there gets the
state back. Messages are many, so their rows have pages of their own (storage/rows/rows.py).
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

Key = Any
"""Of a row: an int or a str, or a tuple of these where the key has several columns."""

_Row = TypeVar("_Row", bound=Struct)


class Table(Struct, frozen=True):
    """A small table: its name and columns are those of the table on disk.

    key: columns of the key. member: the column behind them that tells apart the rows of one key, which go
    together; "" where each key has one row. row: the class, or the union of classes, of the rows.

    since: the format of the rows on disk (storage/rows/schema.py) that brings the table, which the storage then makes
    by itself; 0 for those that it makes by hand, and for those that are not made at all.
    newest: how many rows are kept, those of the highest keys, which then only grow; 0: all rows.
    is_plain: the state holds the rows as they are (State.tables), and they are told by ``engine/views/dump.py``.
    is_held: the storage keeps the rows in memory, so that a ``Change`` finds what it changes.
    last_by: the field by which a start sorts the rows; those that do not have it come first.
    """

    name: str
    key: tuple[str, ...]
    row: Any
    member: str = ""
    since: int = 0
    newest: int = 0
    is_plain: bool = False
    is_held: bool = False
    last_by: str = ""

    def columns(self) -> tuple[str, ...]:
        """Those that tell each row apart; behind them a table has ``value`` and ``crc``."""
        return (*self.key, self.member) if self.member else self.key


class Put(Struct, frozen=True):
    """The row stands under the key from now on, whatever stood there."""

    table: Table
    key: Key
    row: Struct
    member: int = 0


class Drop(Struct, frozen=True):
    """All rows of the key go."""

    table: Table
    key: Key


class Change(Struct, frozen=True):
    """Fields of the row that stands under the key, if one does.

    grows: one of the fields; nothing is changed unless that one becomes larger.
    """

    table: Table
    key: Key
    fields: dict[str, Any]
    grows: str = ""


class Raise(Struct, frozen=True):
    """A number that the rows have once and that never becomes smaller; it stands with the applied index."""

    number: str
    to: int


RowChange = Put | Drop | Change | Raise

AHEAD_MS = "ahead_ms"
LAST_QUEUE_ID = "last_queue_id"
"""The numbers that there are for ``Raise``. A new one is a table of one row instead."""


def changed(row: _Row, change: Change) -> _Row:
    """The row as it is from now on: the same object where nothing changes."""
    if change.grows and change.fields[change.grows] <= getattr(row, change.grows):
        return row
    return replace(row, **change.fields)
