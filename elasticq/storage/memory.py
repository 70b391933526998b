"""The storage of ``--memory``: it keeps nothing, each start is a new member."""

from elasticq.replication.records import Durable, Record, Vote
from elasticq.storage.interface import OnSynced, Storage


class MemoryStorage(Storage):
    volatile = True

    def load(self) -> Durable:
        return Durable(Vote(0, None), [])

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Nothing to do: the node treats its records as durable from the start."""

    def close(self) -> None:
        """Nothing to release."""
