"""What a storage owes its runtime: keep records in order, and say when they are durable.

One storage serves one member and is called from the loop's thread only. It may
write in a thread of its own, but ``on_synced`` comes back in the loop's thread,
with tokens that only grow; a token covers every record appended up to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from elasticq.replication.records import Durable, Record

OnSynced = Callable[[int], None]


class Storage(ABC):
    """Keeps what a member must not forget."""

    volatile: bool
    """True: keeps nothing, so a record counts as durable when it is made and ``on_synced`` is never called."""

    @abstractmethod
    def load(self) -> Durable:
        """What is on the disk at start: the newest vote and the entries in order."""

    @abstractmethod
    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Take ``records`` (the caller's list is not kept) and call ``on_synced(token)`` once they are durable."""

    @abstractmethod
    def close(self) -> None:
        """Release files; no ``on_synced`` comes after it."""
