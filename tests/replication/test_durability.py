"""Which entries survive a crash, by the tokens of the storage."""

from elasticq.replication.durability import Durability
from tests.replication.bench import Bench, entry


def test_truncated_entries_are_not_durable_though_their_sync_ends_later() -> None:
    bench = Bench(syncs=False)
    bench.append("b", 1, (0, 0), entry(1, 1), entry(2, 1))
    old_token = bench.token
    bench.append("c", 2, (1, 1), entry(2, 2))
    bench.replica.synced(old_token, bench.now_ms)
    assert bench.replica.durability.durable_index == 1
    bench.sync()
    assert bench.replica.durability.durable_index == 2


def test_entries_are_durable_with_the_token_that_they_were_handed_out_under() -> None:
    durability = Durability(3)
    durability.handed_out(1, 5)
    durability.handed_out(2, 5)  # a vote alone: no entry waits for it
    durability.handed_out(3, 8)
    durability.synced(1)
    assert (durability.durable_index, durability.synced_token) == (5, 1)
    durability.synced(2)
    assert durability.durable_index == 5
    durability.synced(3)
    assert (durability.durable_index, durability.token, durability.synced_token) == (8, 3, 3)


def test_what_the_storage_says_again_changes_nothing() -> None:
    durability = Durability(0)
    durability.handed_out(1, 1)
    durability.handed_out(2, 2)
    durability.synced(2)
    durability.synced(1)
    assert (durability.durable_index, durability.synced_token) == (2, 2)


def test_durable_entries_that_are_cut_are_durable_no_more() -> None:
    durability = Durability(9)
    durability.truncated(6)
    assert durability.durable_index == 5
    durability.handed_out(1, 6)
    durability.synced(1)
    assert durability.durable_index == 6
