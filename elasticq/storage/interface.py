"""The interface between a storage and its runtime: a durable log, and rows that are written after it.

One storage serves one member. It is called from the loop's thread only. It may
work in threads of its own, but every callback comes in the loop's thread.

The log makes records durable. A record is durable when ``on_synced`` was called with its token. Tokens only grow, and
a token covers every record that was appended up to it. The rows hold committed entries only, and are written later,
in batches. ``on_stored`` gets the index up to which the rows are durable. Contents that they hold can be fetched.
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
    """The data on the disk at the start.

    rows: mutations that, applied in this order, turn an empty state into the state at applied_index.
    ``told``: lines for the operator, such as what was lost.
    """

    durable: Durable
    rows: Iterator[Mutation]
    told: list[str] = field(default_factory=list)


class Damage(Struct, frozen=True):
    """Damage found in the rows. ``told``: a line for the operator.

    sequences: the messages of the queue whose contents are lost. If it is empty, the extent of the damage is unknown,
    and the storage stops to read and write the rows.
    """

    told: str
    queue_id: int = 0
    sequences: list[int] = field(default_factory=list)


OnDamaged = Callable[[Damage], None]


class Storage(ABC):
    """The storage of one member: its log and its rows."""

    volatile: bool
    """True if nothing is kept. Records then count as durable when they are made, and no callback is ever called."""

    @abstractmethod
    def load(self) -> Loaded:
        """Return what is on the disk at the start. Raise DataError if it cannot be used."""

    @abstractmethod
    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Append ``records`` to the log, and call ``on_synced(token)`` once they are durable. The list is copied."""

    @abstractmethod
    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        """Write committed entries, given in the order of their indexes, to the rows. The list is copied.

        ``on_stored(index)`` is called when the rows are durable up to ``index``. One call can cover many entries.
        """

    @abstractmethod
    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        """Read the contents of stored messages, and pass them to ``on_fetched``.

        Other messages of the same pages may be included. Deleted messages are left out.
        """

    @abstractmethod
    def forget_log(self, index: int) -> None:
        """Allow the storage to remove the entries up to ``index`` from the log."""

    @property
    def slow_sync_ms(self) -> int:
        """Return about how long the slowest of the last syncs took, in ms. Election timeouts take it into account."""
        return 0

    @property
    def sync_times(self) -> Histogram | None:
        """Return the histogram of the durations of the log's syncs, in seconds; None if nothing is kept."""
        return None

    async def snapshot(self, index: int) -> Snapshot:
        """Return a file with all committed entries up to ``index`` or a later one. The caller must ``release`` it.

        The storage keeps working meanwhile. Raise DataError if no snapshot can be made now.
        """
        raise SnapshotRefused("this storage makes no snapshots")

    def release(self, snapshot: Snapshot) -> None:
        """Release the file that ``snapshot`` returned: the caller does not read it any more."""
        raise AssertionError("this storage made no snapshot")

    async def install(self, path: Path, is_wanted: Callable[[], bool]) -> Loaded:
        """Replace log and rows by the snapshot of another member at ``path``; return them as ``load`` does.

        The file is moved away, and the vote is kept. The old node continues meanwhile. Records that it still appends
        may be dropped, and are then never acknowledged. When this returns, no callback of the old node comes any more.
        The caller must then start a new node with the result, before it calls the old node again.

        ``is_wanted`` is called before the old state is dropped: a node that caught up meanwhile has acknowledged
        entries that the file lacks. Raise DataError, with nothing changed, if the file is bad or not wanted. Any later
        error is a failure of the storage.
        """
        raise SnapshotRefused("this storage installs no snapshots")

    def salvage(self, damaged: Damaged) -> Loaded:
        """Load what can be read, after ``load`` raised ``damaged``. Other members have the rest.

        Raise ``damaged`` if there are no other voters: then the operator has to decide.
        """
        raise damaged

    async def heal(self) -> Loaded:
        """Replace damaged rows by what can be read of them, while the process runs; return as ``install`` does."""
        raise AssertionError("this storage has no rows that could be damaged")

    def check(self, on_checked: Callable[[bool], None]) -> None:
        """Read all rows, and report damage as a fetch does. Then call ``on_checked``, with True if nothing is damaged.

        A storage without rows calls it at once.
        """
        on_checked(True)

    @abstractmethod
    def close(self) -> None:
        """Write what is pending and release the files. No callback comes after it."""
