"""The small tables on the disk: one writer and one reader for all tables in engine/stored/tables.py."""

import sqlite3
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct, field

from elasticq.engine.stored.mutations import META, TABLES, Mutation
from elasticq.engine.stored.tables import Change, Drop, Key, Put, Table, changed
from elasticq.storage.errors import Damaged
from elasticq.storage.rows.schema import FILE
from elasticq.storage.rows.statements import APPLIED, Statement, checked, encode


class _Pending(Struct):
    """The changes of one key's rows in the next batch: delete all if is_dropped, then write ``rows``, by member."""

    is_dropped: bool = False
    rows: dict[int, Any] = field(default_factory=dict)


class SmallTable:
    """One small table: its keys after all taken changes, and the changes that are not written yet.

    count: the number of rows after all taken changes.
    """

    def __init__(self, table: Table) -> None:
        columns = table.columns()
        self.table = table
        self.count = 0
        self._members: dict[Key, set[int]] = {}
        self._held: dict[Key, Struct] = {}
        self._pending: dict[Key, _Pending] = {}
        self._decode = msgspec.msgpack.Decoder(table.row).decode
        self._select = f"SELECT * FROM {table.name} ORDER BY {', '.join(columns)}"
        self._drop = f"DELETE FROM {table.name} WHERE {' AND '.join(f'{column} = ?' for column in table.key)}"
        self.put = f"INSERT OR REPLACE INTO {table.name} VALUES ({', '.join('?' * (len(columns) + 2))})"

    # --- writing ------------------------------------------------------------------------

    def take(self, change: Put | Drop | Change) -> None:
        """Take the next committed change."""
        if isinstance(change, Put):
            self._put(change.key, change.member, change.row)
        elif isinstance(change, Drop):
            self._remove(change.key)
        elif change.key in self._held:
            self._put(change.key, 0, changed(self._held[change.key], change))

    def _put(self, key: Key, member: int, row: Struct) -> None:
        newest = self.table.newest
        if newest and self._members and key <= next(reversed(self._members)):
            return
        self._know(key, member, row)
        self._pending.setdefault(key, _Pending()).rows[member] = row
        if newest and len(self._members) > newest:
            self._remove(next(iter(self._members)))

    def _know(self, key: Key, member: int, row: Struct) -> None:
        members = self._members.setdefault(key, set())
        self.count += member not in members
        members.add(member)
        if self.table.is_held:
            self._held[key] = row

    def _remove(self, key: Key) -> None:
        members = self._members.pop(key, None)
        if members is not None:
            self.count -= len(members)
            self._held.pop(key, None)
            pending = self._pending.setdefault(key, _Pending())
            pending.is_dropped, pending.rows = True, {}

    def statements(self) -> list[Statement]:
        """Return statements for the changes since the last call of this. Later calls do not return them again."""
        pending, self._pending = self._pending, {}
        drops = [_columns(key) for key, change in pending.items() if change.is_dropped]
        puts = [
            _row(self.table, key, member, encode(row))
            for key, change in pending.items()
            for member, row in change.rows.items()
        ]
        return [(text, rows) for text, rows in ((self._drop, drops), (self.put, puts)) if rows]

    # --- reading ------------------------------------------------------------------------

    def read(self, connection: sqlite3.Connection, expected: int) -> list[Mutation]:
        """Return the rows of the table as mutations. This must be the first call.

        Raise Damaged if a row is damaged, or if their number is not ``expected``.
        """
        name = self.table.name
        rows = connection.execute(self._select).fetchall()
        if self.table is META:
            rows = [row for row in rows if row[0] != APPLIED]
        if len(rows) != expected:
            raise Damaged(FILE, 0, f"table {name}: {expected} rows expected, {len(rows)} found")
        read: list[Any] = []
        for row in rows:
            if not self.is_whole(row):
                raise Damaged(FILE, 0, f"table {name}, row {row[:-2]}: bad crc")
            mutation = self._decode(row[-2])
            self._know(*self._key_and_member(row), mutation)
            read.append(mutation)
        if self.table.last_by:
            read.sort(key=self._place)
        return read

    def _place(self, row: Mutation) -> Any:
        return getattr(row, self.table.last_by, -1)

    def is_whole(self, row: tuple[Any, ...]) -> bool:
        """Return whether the row fits its checksum."""
        return _row(self.table, *self._key_and_member(row), row[-2]) == row

    def _key_and_member(self, row: tuple[Any, ...]) -> tuple[Key, int]:
        """Return the key and the member of a row on the disk. The member is 0 if the table has one row for each key."""
        width = len(self.table.key)
        return row[0] if width == 1 else row[:width], row[width] if self.table.member else 0


def small_tables() -> dict[str, SmallTable]:
    """Return all small tables by name, in the order in which a start reads them."""
    return {table.name: SmallTable(table) for table in TABLES}


def _columns(key: Key) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _row(table: Table, key: Key, member: int, value: bytes) -> tuple[Any, ...]:
    if not table.member:
        return *_columns(key), *checked(key, value)[1:]
    return *_columns(key), member, value, crc32(value, crc32(repr((key, member)).encode()))
