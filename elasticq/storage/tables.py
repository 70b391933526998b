"""What a member knows of the tables on its disk, as they will be when all that was taken is written."""

from typing import Final

from msgspec import Struct, field

from elasticq.engine.leases import Key
from elasticq.engine.mutations import ClusterFounded, MessageStored, QueueRestored
from elasticq.engine.ordering.kinds import kind_of
from elasticq.storage.pages import Delivery, Directory, Page

NEVER: Final = 1 << 63
"""Above every sequence: what a deleted queue keeps begins here."""

LEASE_ITSELF: Final = -1
"""Among the calls of a lease: its own row."""
FIRST_CALL: Final = 0


class LeaseRows(Struct):
    """row: the lease's own, 0 or 1; calls: its receives on the disk and on their way there."""

    row: int = 0
    calls: set[int] = field(default_factory=set)


class Queue:
    """row: as it is written; floor: nothing below it lives (the watermark, or NEVER once deleted).

    stored, touched: pending messages, and where delivery of these stands; stale: pages by their first
    sequence whose header or rows on disk are older; messages: how many live in all.
    """

    __slots__ = ("directory", "floor", "last_sequence", "messages", "needs_groups", "row", "stale", "stored", "touched")

    def __init__(self, row: QueueRestored) -> None:
        self.row = row
        self.needs_groups = kind_of(row.attributes).needs_group
        self.floor = row.watermark if row.deleted_ms is None else NEVER
        self.last_sequence = row.last_sequence
        self.messages = 0
        self.directory = Directory()
        self.stored: dict[int, MessageStored] = {}
        self.touched: dict[int, Delivery] = {}
        self.stale: dict[int, Page] = {}

    def living(self, sequence: int) -> Page | None:
        """The page in which the message lives."""
        page = self.directory.find(sequence)
        return page if page is not None and page.live >> sequence - page.first & 1 else None


class Tables(Struct):
    """last_queue_id: the newest ever given; last_number: of a row of invocations; tasks: numbers of move tasks.

    reclaim: pages, the last first, of which nothing lives and every row is still on the disk, by queue;
    free_pages, file_pages: of the file, as SQLite counts them; has_holes: as in ``Applied``.
    """

    queues: dict[int, Queue] = field(default_factory=dict)
    last_queue_id: int = 0
    founded: ClusterFounded | None = None
    ahead_ms: int = 0
    takeover_terms: list[int] = field(default_factory=list)
    tasks: dict[int, None] = field(default_factory=dict)
    leases: dict[Key, LeaseRows] = field(default_factory=dict)
    lease_rows: int = 0
    last_number: int = 0
    reclaim: list[tuple[int, list[Page]]] = field(default_factory=list)
    free_pages: int = 0
    file_pages: int = 0
    has_holes: bool = False
