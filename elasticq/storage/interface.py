"""What a storage offers its runtime: a log that is durable when it says so, and rows that are written after it.

One storage serves one member and is called from the loop's thread only. It may
work in threads of its own, but every callback comes in the loop's thread.

The log is the durable part: a record counts when ``on_synced`` named its token
(tokens only grow; one covers every record appended up to it). The rows hold
committed entries only and are written in batches behind; ``on_stored`` names
the index up to which they are durable, and what they hold may be fetched.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, field

from elasticq.engine.stored.mutations import MessageStored, Mutation
from elasticq.model.histogram import Histogram
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Durable, Record
from elasticq.storage.errors import Damaged
from elasticq.storage.snapshot import Snapshot, SnapshotRefused

OnSynced = Callable[[int], None]
OnStored = Callable[[int], None]
OnFetched = Callable[[Fetch, list[MessageStored]], None]


class Loaded(Struct):
    """What is on the disk at start. ``rows``: mutations that make an empty state that of applied_index, in this order.

    told: lines with what the operator must know of it.
    """

    durable: Durable
    rows: Iterator[Mutation]
    told: list[str] = field(default_factory=list)


class Damage(Struct, frozen=True):
    """What cannot be read from the rows any more; ``told`` is a line for the operator.

    sequences: messages of the queue whose contents are gone; if empty, it is not known what is gone, and the rows
    are neither written nor read any more.
    """

    told: str
    queue_id: int = 0
    sequences: list[int] = field(default_factory=list)


OnDamaged = Callable[[Damage], None]


class Storage(ABC):
    """Keeps on disk what a member must not forget: its log and its rows."""

    volatile: bool
    """True if nothing is kept: a record counts as durable when it is made, and no callback ever comes."""

    @abstractmethod
    def load(self) -> Loaded:
        """Return what is on the disk at start. Raises DataError."""

    @abstractmethod
    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Take ``records`` (the caller's list is not kept) and call ``on_synced(token)`` once they are durable."""

    @abstractmethod
    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        """Take committed entries in the order of their indexes (the caller's list is not kept).

        ``on_stored(index)`` comes now and then, growing.
        """

    @abstractmethod
    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        """Read the contents of stored messages; others of the same pages may come too, deleted ones are left out."""

    @abstractmethod
    def forget_log(self, index: int) -> None:
        """Allow the storage to free the entries up to ``index``, which nobody needs any more."""

    @property
    def slow_sync_ms(self) -> int:
        """Return about how long the slowest of the last syncs took; elections wait for them."""
        return 0

    @property
    def sync_times(self) -> Histogram | None:
        """Return how long each sync of the log took, in seconds; None if nothing is kept."""
        return None

    async def snapshot(self, index: int) -> Snapshot:
        """Return a file with all committed entries up to ``index`` at least, made now or before; to be released.

        Only the caller waits for it. Raises DataError if there can be no snapshot now.
        """
        raise SnapshotRefused("this storage makes no snapshots")

    def release(self, snapshot: Snapshot) -> None:
        """Note that the caller of ``snapshot`` does not read the file any more."""
        raise AssertionError("this storage made no snapshot")

    async def install(self, path: Path, is_wanted: Callable[[], bool]) -> Loaded:
        """Replace log and rows by the snapshot of another member at ``path``, which is moved away; the vote is kept.

        The old node goes on meanwhile: records that it still appends may be dropped and are then never acknowledged.
        When this returns no callback of the old node comes any more, and a new node begins with the result, as of
        ``load``: at once, before the old one is given anything else. ``is_wanted`` is asked again before the old state
        is given up: a node that caught up meanwhile has acknowledged what the file lacks. Raises DataError if the file
        is not good or not wanted, and nothing has happened; any later error is a failure of the storage.
        """
        raise SnapshotRefused("this storage installs no snapshots")

    def salvage(self, damaged: Damaged) -> Loaded:
        """Load as ``load``, which raised ``damaged``, but without what cannot be read, if other members have it all.

        Raises ``damaged`` itself for a member alone, whose operator has to decide.
        """
        raise damaged

    async def heal(self) -> Loaded:
        """Replace damaged rows by new ones made of what is left, while the process runs; return as ``install`` does."""
        raise AssertionError("this storage has no rows that could be damaged")

    def check(self, on_checked: Callable[[bool], None]) -> None:
        """Read all rows; report damage as a fetch does, then call ``on_checked`` with True if there was none."""
        on_checked(True)

    @abstractmethod
    def close(self) -> None:
        """Write what is pending and release the files; no callback comes after it."""
