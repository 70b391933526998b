"""The SQL statements of a batch and the rows for them, each with its checksum."""

from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from elasticq.engine.stored.mutations import QueueRestored
from elasticq.replication.records import Base, Voter
from elasticq.storage.rows.pages import Delivery, Update, contents_crc

VACUUM_PAGES: Final = 1_000  # pages released to the file system after one batch
FETCH_PAGES_MAX: Final = 16  # pages of contents read by one query

_PRIME: Final = (1 << 31) - 1
_FACTORS: Final = (3, 5, 7, 11, 13, 17, 19)  # factors of a touched row's columns, in order

PUT_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"
PUT_META_COPY: Final = "INSERT OR REPLACE INTO meta_copy VALUES (?, ?, ?)"
PUT_QUEUE: Final = "INSERT OR REPLACE INTO queues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DROP_QUEUE: Final = "DELETE FROM queues WHERE id = ?"
PUT_PAGE: Final = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
PUT_CONTENTS: Final = "INSERT INTO contents VALUES (?, ?, ?, ?)"
PUT_GROUPS: Final = "INSERT INTO groups VALUES (?, ?, ?, ?)"
PUT_PRIORITIES: Final = "INSERT OR REPLACE INTO priorities VALUES (?, ?, ?, ?, ?)"
PUT_DELAYS: Final = "INSERT INTO delays VALUES (?, ?, ?, ?)"
PUT_TOUCHED: Final = "INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
DROP_TOUCHED: Final = "DELETE FROM touched WHERE queue_id = ? AND sequence = ?"
DROP_TOUCHED_OF_PAGE: Final = "DELETE FROM touched WHERE queue_id = ? AND sequence BETWEEN ? AND ?"
DROP_PAGE: Final = "DELETE FROM pages WHERE queue_id = ? AND first = ?"
DROP_CONTENTS: Final = "DELETE FROM contents WHERE queue_id = ? AND first = ?"
DROP_GROUPS: Final = "DELETE FROM groups WHERE queue_id = ? AND first = ?"
DROP_PRIORITIES: Final = "DELETE FROM priorities WHERE queue_id = ? AND first = ?"
DROP_DELAYS: Final = "DELETE FROM delays WHERE queue_id = ? AND first = ?"
PUT_INVOCATIONS: Final = "INSERT INTO invocations VALUES (?, ?, ?, ?, ?)"
DROP_INVOCATIONS: Final = "DELETE FROM invocations WHERE newest_ms <= ?"
VACUUM: Final = f"PRAGMA incremental_vacuum({VACUUM_PAGES})"


def _moved(column: str, parameter: int, factor: int) -> str:
    return f"(?{parameter} % {_PRIME} - {column} % {_PRIME}) * {factor}"


# The checksum of a touched row is linear, so SQL can update it without the values of the other columns.
_CHANGE_VISIBILITY: Final = (
    f"UPDATE touched SET visible_at_ms = ?1, checksum = checksum + {_moved('visible_at_ms', 1, _FACTORS[2])} "
    "WHERE queue_id = ?2 AND sequence = ?3"
)
_RETURN: Final = (
    "UPDATE touched SET visible_at_ms = ?1, receive_count = ?2, first_received_ms = ?3, checksum = checksum + "
    f"{_moved('visible_at_ms', 1, _FACTORS[2])} + {_moved('receive_count', 2, _FACTORS[4])} + "
    f"{_moved('first_received_ms', 3, _FACTORS[5])} WHERE queue_id = ?5 AND sequence = ?6 AND hand_out = ?4"
)

# The order in which a batch runs the statements. Those of the small tables follow.
ORDER: Final = (
    PUT_META,
    PUT_META_COPY,
    DROP_QUEUE,
    PUT_QUEUE,
    PUT_PAGE,
    PUT_CONTENTS,
    PUT_GROUPS,
    PUT_PRIORITIES,
    PUT_DELAYS,
    PUT_TOUCHED,
    DROP_TOUCHED,
    DROP_PAGE,
    DROP_CONTENTS,
    DROP_GROUPS,
    DROP_PRIORITIES,
    DROP_DELAYS,
    DROP_TOUCHED_OF_PAGE,
    PUT_INVOCATIONS,
    DROP_INVOCATIONS,
)

AS_STORED, AS_MOVED = 0, 1
"""The parts of a page's priorities: those with which messages were sent, and changed ones, which replace them."""

APPLIED: Final = "applied"
"""The name of the row of ``meta`` that holds the index up to which the rows are complete."""
DELAYS: Final = "delays"
"""The name under which Applied counts the pages with delays. A missing row would make messages visible too soon."""

Statement = tuple[str, list[tuple[Any, ...]]]
encode = msgspec.msgpack.Encoder().encode


class Applied(Struct, array_like=True):
    """Row "applied" of ``meta``: the index up to which the rows are complete, and how many rows the small tables have.

    last_queue_id: the highest id ever used, as ids are not used again. ahead_ms: how far tests advanced the clock,
    else 0. has_holes: the rows were salvaged and lack something that other members have. counts: the number of rows of
    each small table, and of pages with DELAYS, by name.
    """

    index: int
    term: int
    time_ms: int
    queues: int = 0
    voters: tuple[Voter, ...] | None = None
    last_queue_id: int = 0
    ahead_ms: int = 0
    has_holes: bool = False
    counts: dict[str, int] = {}

    def base(self) -> Base:
        return Base(self.index, self.term, self.time_ms, self.voters)


def checked(key: Any, value: bytes) -> tuple[Any, bytes, int]:
    return key, value, crc32(value, crc32(str(key).encode()))


def queue_row(row: QueueRestored, messages: int) -> tuple[Any, ...]:
    values = (
        row.queue_id,
        row.account,
        row.name,
        encode(row.attributes),
        encode(row.tags),
        row.created_ms,
        row.modified_ms,
        row.deleted_ms,
        row.purged_ms,
        row.watermark,
        row.last_sequence,
        messages,
    )
    return (*values, crc32(encode(values)))


def checksum(row: tuple[int, ...]) -> int:
    return sum([value % _PRIME * factor for value, factor in zip(row, _FACTORS, strict=False)])


def touched_row(queue_id: int, sequence: int, delivery: Delivery) -> tuple[int, ...]:
    row = (queue_id, sequence, *delivery)
    return (*row, checksum(row))


def blob_row(queue_id: int, first: int, blob: bytes) -> tuple[int, int, bytes, int]:
    return queue_id, first, blob, contents_crc(queue_id, first, blob)


def priorities_row(queue_id: int, first: int, part: int, blob: bytes) -> tuple[int, int, int, bytes, int]:
    return queue_id, first, part, blob, crc32(bytes((part,)), contents_crc(queue_id, first, blob))


def add_updates(statements: list[Statement], queue_id: int, sequence: int, updates: list[Update]) -> None:
    """Add the updates of one message, in order, to the statements. Updates of the same kind in a row share one."""
    for update in updates:
        sql = _CHANGE_VISIBILITY if len(update) == 1 else _RETURN
        if not statements or statements[-1][0] != sql:
            statements.append((sql, []))
        statements[-1][1].append((*update, queue_id, sequence))


def fetches(queue_id: int, firsts: list[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Return queries for the contents of the pages that begin at ``firsts``."""
    return [_fetch(queue_id, firsts[at : at + FETCH_PAGES_MAX]) for at in range(0, len(firsts), FETCH_PAGES_MAX)]


def _fetch(queue_id: int, firsts: list[int]) -> tuple[str, tuple[int, ...]]:
    """Return one query. A short IN list repeats its last value, so SQLite prepares only two texts."""
    places = 1 if len(firsts) == 1 else FETCH_PAGES_MAX
    marks = ", ".join("?" * places)
    sql = f"SELECT queue_id, first, contents, crc FROM contents WHERE queue_id = ? AND first IN ({marks})"
    return sql, (queue_id, *firsts, *[firsts[-1]] * (places - len(firsts)))
