"""The storage of ``--memory``: it keeps nothing, each start is a new member."""

from elasticq.node.effects import Committed, Fetch
from elasticq.replication.records import Durable, Record, Vote
from elasticq.storage.interface import Loaded, OnFetched, OnStored, OnSynced, Storage


class MemoryStorage(Storage):
    volatile = True

    def load(self) -> Loaded:
        return Loaded(Durable(Vote(0, None), []), iter(()))

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Nothing to do: the node treats its records as durable from the start."""

    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        """Nothing to do: the node never lets go of what is nowhere else."""

    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        raise AssertionError("nothing is ever stored, so nothing can be fetched")

    def forget_log(self, index: int) -> None:
        """Nothing to free."""

    def close(self) -> None:
        """Nothing to release."""
