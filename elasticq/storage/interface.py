"""What a storage owes its runtime: a log that is durable when it says so, and rows that follow behind it.

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

from elasticq.engine.mutations import MessageStored, Mutation
from elasticq.model.histogram import Histogram
from elasticq.node.effects import Committed, Fetch
from elasticq.replication.records import Durable, Record
from elasticq.storage.errors import Damaged
from elasticq.storage.snapshot import Snapshot, SnapshotRefused

OnSynced = Callable[[int], None]
OnStored = Callable[[int], None]
OnFetched = Callable[[Fetch, list[MessageStored]], None]


class Loaded(Struct):
    """What is on the disk at start. ``rows``: to be applied in this order to an empty state, up to applied_index.

    told: what the operator must know of it, a line each.
    """

    durable: Durable
    rows: Iterator[Mutation]
    told: list[str] = field(default_factory=list)


class Damage(Struct, frozen=True):
    """What cannot be read from the rows any more; ``told`` is for the operator.

    sequences: messages of the queue whose contents are gone; none: nobody knows what is, and nothing is written or
    read any more.
    """

    told: str
    queue_id: int = 0
    sequences: list[int] = field(default_factory=list)


OnDamaged = Callable[[Damage], None]


class Storage(ABC):
    """Keeps what a member must not forget."""

    volatile: bool
    """True: keeps nothing, so a record counts as durable when it is made and no callback ever comes."""

    @abstractmethod
    def load(self) -> Loaded:
        """What is on the disk at start. Raises DataError."""

    @abstractmethod
    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Take ``records`` (the caller's list is not kept) and call ``on_synced(token)`` once they are durable."""

    @abstractmethod
    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        """Take committed entries in the order of their indexes; ``on_stored(index)`` now and then, growing."""

    @abstractmethod
    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        """Read the contents of messages that are stored; more of the same pages may come with them, gone ones not."""

    @abstractmethod
    def forget_log(self, index: int) -> None:
        """Entries up to ``index`` are needed by nobody: their space may be freed."""

    @property
    def slow_sync_ms(self) -> int:
        """How long the slow ones of the last syncs took; elections wait for them."""
        return 0

    @property
    def sync_times(self) -> Histogram | None:
        """How long each sync of the log took, in seconds; None: nothing is kept."""
        return None

    async def snapshot(self, index: int) -> Snapshot:
        """A file with all committed entries up to ``index`` at least, made now or not long ago; to be released.

        Nobody waits for it but the caller. Raises DataError: there can be none now.
        """
        raise SnapshotRefused("this storage makes no snapshots")

    def release(self, snapshot: Snapshot) -> None:
        """The caller of ``snapshot`` does not read it any more."""
        raise AssertionError("this storage made no snapshot")

    async def install(self, path: Path, is_wanted: Callable[[], bool]) -> Loaded:
        """Put a snapshot of another member in the place of log and rows; the file is used up, the vote is kept.

        The old node goes on meanwhile: what it hands in may not be kept any more and is never acknowledged then.
        When this returns no callback of it comes any more, and with the answer, as of ``load``, a new node begins:
        at once, before the old one is given anything else. ``is_wanted`` is asked once more where the old state could
        still stay: a node that caught up meanwhile has acknowledged what the file lacks. Raises DataError: the file
        is not good, or not wanted, and nothing has happened; anything later is a failure of the storage.
        """
        raise SnapshotRefused("this storage installs no snapshots")

    def salvage(self, damaged: Damaged) -> Loaded:
        """As ``load``, which found rows ``damaged``: without what cannot be read, if others have all of it.

        Raises ``damaged`` itself for a member alone: somebody has to decide.
        """
        raise damaged

    async def heal(self) -> Loaded:
        """New rows of what is left in the place of damaged ones, in a living process, as by ``install``."""
        raise AssertionError("this storage has no rows that could be damaged")

    def check(self, on_checked: Callable[[bool], None]) -> None:
        """Read all that the rows hold, and tell damage as a fetch would; then whether there was none."""
        on_checked(True)

    @abstractmethod
    def close(self) -> None:
        """Write what is pending, release files; no callback comes after it."""
