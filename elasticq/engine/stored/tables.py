"""The effects of mutations on the small tables, as data. The storage makes SQL from it, and knows no mutation by name.

A small table has few rows, and each row is a mutation: applying all rows restores the state. There are many messages,
so their rows are in pages (storage/rows/rows.py).
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

Key = Any
"""The key of a row: an int, a str, or a tuple of these if the key has several columns."""

_Row = TypeVar("_Row", bound=Struct)


class Table(Struct, frozen=True):
    """A small table. Its name and columns are those of the table on disk.

    - key: The columns of the key.
    - member: A further column that distinguishes the rows of one key, which are deleted together. Empty if each key has
      one row.
    - row: The class of the rows, or the union of their classes.
    - since: The disk format (storage/rows/schema.py) that adds the table; the storage then creates it itself. 0: the
      table is created by other code, or not at all.
    - newest: How many rows are kept, those with the highest keys; then keys only grow. 0: all rows.
    - is_plain: Whether the state holds the rows unchanged (State.tables); then ``engine/views/dump.py`` dumps them.
    - is_held: Whether the storage keeps the rows in memory, so that a ``Change`` can find its row.
    - last_by: The field by which a start sorts the rows. Rows without it come first.
    """

    name: str
    key: tuple[str, ...]
    row: Any
    member: str = ""
    since: int = 1
    newest: int = 0
    is_plain: bool = False
    is_held: bool = False
    last_by: str = ""

    def columns(self) -> tuple[str, ...]:
        """Return the columns that identify a row. The columns ``value`` and ``crc`` follow them."""
        return (*self.key, self.member) if self.member else self.key


class Put(Struct, frozen=True):
    """A row to store under the key, replacing any other."""

    table: Table
    key: Key
    row: Struct
    member: int = 0


class Drop(Struct, frozen=True):
    """The deletion of all rows of the key."""

    table: Table
    key: Key


class Change(Struct, frozen=True):
    """New values for fields of the row with the key. It has no effect if there is no such row.

    ``grows`` is one of the fields. Nothing changes unless its new value is larger.
    """

    table: Table
    key: Key
    fields: dict[str, Any]
    grows: str = ""


class Raise(Struct, frozen=True):
    """A new value for one of the single numbers, which never decrease. They are stored next to the applied index."""

    number: str
    to: int


RowChange = Put | Drop | Change | Raise

AHEAD_MS = "ahead_ms"
LAST_QUEUE_ID = "last_queue_id"
"""The only numbers for ``Raise``. For a new one, add a table of one row instead."""


def changed(row: _Row, change: Change) -> _Row:
    """Return the changed row, or ``row`` itself if nothing changes."""
    if change.grows and change.fields[change.grows] <= getattr(row, change.grows):
        return row
    return replace(row, **change.fields)
