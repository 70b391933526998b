"""What a member knows of the tables on its disk, as they will be once all that was taken is written."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from elasticq.engine.ordering.kinds import kind_of
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY, arrival_priority
from elasticq.engine.stored.mutations import MessageStored, QueueRestored
from elasticq.engine.stored.tables import AHEAD_MS, LAST_QUEUE_ID
from elasticq.storage.rows.invocations import InvocationTable
from elasticq.storage.rows.pages import Delivery, Directory, Page
from elasticq.storage.rows.small import SmallTable, small_tables

NEVER: Final = 1 << 63
"""Larger than every sequence; it is the floor of a deleted queue."""


class Queue:
    """row: the queue's row as it will be written; floor: nothing below it lives (watermark, or NEVER once deleted).

    stored, touched: pending messages, and the delivery states of these; priorities: of these, too, where they are not
    what the message and the queue's attributes say; stale: the pages, by their first
    sequence, whose header or rows on disk are older; messages: how many live in all.
    """

    __slots__ = (
        "directory",
        "floor",
        "has_priorities",
        "last_sequence",
        "messages",
        "needs_groups",
        "priorities",
        "row",
        "stale",
        "stored",
        "touched",
    )

    def __init__(self, row: QueueRestored) -> None:
        self.row = row
        kind = kind_of(row.attributes)
        self.needs_groups = kind.needs_group
        self.has_priorities = kind.has_priorities
        self.floor = floor_of(row)
        self.last_sequence = row.last_sequence
        self.messages = 0
        self.directory = Directory()
        self.stored: dict[int, MessageStored] = {}
        self.touched: dict[int, Delivery] = {}
        self.priorities: dict[int, int] = {}
        self.stale: dict[int, Page] = {}

    def priorities_of(self, messages: Iterable[MessageStored]) -> dict[int, int]:
        """Return the priorities of pending messages by sequence."""
        default, own = int(self.row.attributes.get(DEFAULT_PRIORITY, 0)), self.priorities
        return {
            each.sequence: own[each.sequence] if each.sequence in own else arrival_priority(each, default)
            for each in messages
        }

    def set_row(self, row: QueueRestored) -> None:
        """Replace the queue's row; pending messages that came under another default priority keep it."""
        if self.has_priorities and row.attributes != self.row.attributes:
            self.priorities = self.priorities_of(self.stored.values())
        self.row = row

    def living(self, sequence: int) -> Page | None:
        """Return the page in which the message lives; None if there is none."""
        page = self.directory.find(sequence)
        return page if page is not None and page.live >> sequence - page.first & 1 else None


def floor_of(row: QueueRestored) -> int:
    """Return the sequence below which no message lives."""
    return row.watermark if row.deleted_ms is None else NEVER


def _numbers() -> dict[str, int]:
    return {AHEAD_MS: 0, LAST_QUEUE_ID: 0}


class Tables(Struct):
    """small: the small tables by name; numbers: the numbers that a ``Raise`` change raises.

    reclaim: by queue, the pages (last first) in which nothing lives, but whose rows are all still on the disk;
    delay_pages: how many rows the table of delays has; free_pages, file_pages: pages of the file, as SQLite counts
    them; has_holes: as in ``Applied``.
    """

    queues: dict[int, Queue] = field(default_factory=dict)
    small: dict[str, SmallTable] = field(default_factory=small_tables)
    numbers: dict[str, int] = field(default_factory=_numbers)
    invocations: InvocationTable = field(default_factory=InvocationTable)
    reclaim: list[tuple[int, list[Page]]] = field(default_factory=list)
    delay_pages: int = 0
    free_pages: int = 0
    file_pages: int = 0
    has_holes: bool = False
