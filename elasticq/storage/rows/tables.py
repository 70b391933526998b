"""The tables as a member keeps them in memory: as they will be on the disk after all taken changes are written."""

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
"""A number above every sequence: the floor of a deleted queue."""


class Queue:
    """A queue. row: as it will be written; floor: no message below it lives (watermark, or NEVER if deleted).

    stored: pending messages by sequence; touched: their delivery states; priorities: their priorities, if these differ
    from what the messages and the queue's attributes say. stale: pages, by first sequence, that a batch must write
    again. messages: how many messages on pages live.
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
        """Replace the queue's row. Pending messages keep the default priority with which they were sent."""
        if self.has_priorities and row.attributes != self.row.attributes:
            self.priorities = self.priorities_of(self.stored.values())
        self.row = row

    def living(self, sequence: int) -> Page | None:
        """Return the page of a living message; None if no page has it."""
        page = self.directory.find(sequence)
        return page if page is not None and page.live >> sequence - page.first & 1 else None


def floor_of(row: QueueRestored) -> int:
    """Return the sequence below which no message lives."""
    return row.watermark if row.deleted_ms is None else NEVER


def _numbers() -> dict[str, int]:
    return {AHEAD_MS: 0, LAST_QUEUE_ID: 0}


class Tables(Struct):
    """All tables. small: the small tables by name; numbers: the numbers that a ``Raise`` change raises.

    reclaim: queue ids with pages (last first) without living messages, whose rows must still be deleted.
    delay_pages: the number of rows of ``delays``. free_pages, file_pages: free and all pages of the SQLite file, about.
    has_holes: as in ``Applied``.
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
