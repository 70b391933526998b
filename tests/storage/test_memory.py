"""The storage that keeps nothing."""

from elasticq.replication.records import NOTHING, Vote
from elasticq.storage.memory import MemoryStorage


def test_memory_keeps_nothing_and_never_syncs() -> None:
    storage = MemoryStorage()
    synced: list[int] = []
    storage.append([Vote(1, "a")], 1, synced.append)
    storage.close()
    assert storage.volatile
    assert synced == []
    loaded = storage.load()
    assert loaded.durable == NOTHING
    assert list(loaded.rows) == []
    assert loaded.durable.entries is not NOTHING.entries
