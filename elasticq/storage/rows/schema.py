"""The tables of the rows on disk: how they are made, migrated and opened. All are in one SQLite file:

pages        which messages of a page live, and which are untouched: never received and never rescheduled
contents     what was sent, apart from ``pages``, so a delivery never rewrites a blob
groups       the message groups of a page's messages, if any has one
priorities   for a page of a priority queue: part 0 as the messages were sent, part 1 the changed priorities
delays       when the delayed messages of a page become visible
touched      one row for each living message that was received or rescheduled
leases       one row for each numbered receive of a lease, and one with call -1 for the lease itself
meta_copy    a copy of ``meta`` on another page, for repairs: without it the other rows are useless

Every row has its own checksum, as SQLite has none: a flipped bit on the disk must not change a message.
"""

import sqlite3
from typing import Final

from elasticq.engine.stored.mutations import TABLES
from elasticq.engine.stored.tables import Table
from elasticq.storage.errors import BEFORE_FIRST_RELEASE, WrongFormat

FILE: Final = "rows.db"
APPLICATION: Final = 0x656C6371
"""The application_id of the SQLite file. Files from before the first release have none."""
FORMAT_AT: Final = 60  # offset in the file of the byte that holds the format: user_version
PAGE_BYTES: Final = 8_192

PRAGMAS: Final = (
    f"PRAGMA page_size = {PAGE_BYTES}",
    "PRAGMA auto_vacuum = INCREMENTAL",  # both have an effect only before the first table is made
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = OFF",  # with Debian's default, ON, a delete on a full disk would write all it frees
    "PRAGMA cache_size = -4096",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cell_size_check = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_size_limit = 33554432",
)
"""The settings of every connection that writes, in this order."""

_FIRST: Final = (
    f"PRAGMA application_id = {APPLICATION}",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE queues (
        id INTEGER PRIMARY KEY, account TEXT NOT NULL, name TEXT NOT NULL, attributes BLOB NOT NULL, tags BLOB NOT NULL,
        created_ms INTEGER NOT NULL, modified_ms INTEGER NOT NULL, deleted_ms INTEGER, purged_ms INTEGER,
        watermark INTEGER NOT NULL, last_sequence INTEGER NOT NULL, messages INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE pages (
        queue_id INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, last_sent_ms INTEGER NOT NULL,
        disk_pages INTEGER NOT NULL, untouched BLOB NOT NULL, live BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (queue_id, first)) WITHOUT ROWID""",
    """CREATE TABLE contents (
        queue_id INTEGER NOT NULL, first INTEGER NOT NULL, contents BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (queue_id, first))""",
    """CREATE TABLE touched (
        queue_id INTEGER NOT NULL, sequence INTEGER NOT NULL, visible_at_ms INTEGER NOT NULL, hand_out INTEGER NOT NULL,
        receive_count INTEGER NOT NULL, first_received_ms INTEGER NOT NULL, received_ms INTEGER NOT NULL,
        checksum INTEGER NOT NULL, PRIMARY KEY (queue_id, sequence)) WITHOUT ROWID""",
    """CREATE TABLE invocations (
        number INTEGER PRIMARY KEY, newest_ms INTEGER NOT NULL, removed BLOB NOT NULL, rows BLOB NOT NULL,
        crc INTEGER NOT NULL)""",
    "CREATE INDEX invocations_by_age ON invocations (newest_ms)",
    """CREATE TABLE groups (
        queue_id INTEGER NOT NULL, first INTEGER NOT NULL, groups BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (queue_id, first))""",
    "CREATE TABLE meta_copy (name TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE priorities (
        queue_id INTEGER NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, priorities BLOB NOT NULL,
        crc INTEGER NOT NULL, PRIMARY KEY (queue_id, first, part)) WITHOUT ROWID""",
    """CREATE TABLE delays (
        queue_id INTEGER NOT NULL, first INTEGER NOT NULL, delays BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (queue_id, first)) WITHOUT ROWID""",
)

_BY_HAND: Final = (_FIRST,)


def statement_for(table: Table) -> str:
    """Return the statement that creates a table of engine/stored/tables.py. Its key columns take values of any type."""
    columns = (
        "".join(f"{column} NOT NULL, " for column in table.columns()) + "value BLOB NOT NULL, crc INTEGER NOT NULL"
    )
    return f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({', '.join(table.columns())})) WITHOUT ROWID"


def _migration(number: int) -> tuple[str, ...]:
    """Return the statements that migrate from format ``number`` to the next one."""
    by_hand = _BY_HAND[number] if number < len(_BY_HAND) else ()
    return (*by_hand, *(statement_for(table) for table in TABLES if table.since == number + 1))


FORMAT: Final = max(len(_BY_HAND), *(table.since for table in TABLES))
MIGRATIONS: Final = tuple(_migration(number) for number in range(FORMAT))
"""The migrations: MIGRATIONS[n] leads from format n to n + 1, in one transaction."""


def prepare(connection: sqlite3.Connection) -> None:
    """Set up the connection and migrate the tables to FORMAT.

    Raise WrongFormat, before any change, if this version cannot use the file.
    """
    version = format_of(connection, FILE)
    for pragma in PRAGMAS:
        connection.execute(pragma).fetchall()
    for number in range(version, FORMAT):
        _migrate(connection, number)


def format_of(connection: sqlite3.Connection, file: object) -> int:
    """Return the format of the rows; 0 for an empty file. Raise WrongFormat if this version cannot use it."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version and connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
        raise WrongFormat(f"{file} {BEFORE_FIRST_RELEASE}")
    if version > FORMAT:
        raise WrongFormat(
            f"{file} has format {version}; this version of elasticq knows formats up to {FORMAT}. "
            "Nothing was changed. Start the newer version, or restore a backup of this one."
        )
    return version


def _migrate(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number + 1}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
