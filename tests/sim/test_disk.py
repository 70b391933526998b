"""The simulated disk keeps what was synced, whatever a crash does to the rest."""

from random import Random

import pytest

from elasticq.replication.records import Entry, Truncation, Vote
from elasticq.sim.disk import Disk


def entry(index: int, term: int = 1, size_bytes: int = 20) -> Entry:
    return Entry(index, term, 5, b"x" * size_bytes)


def sync(disk: Disk, count: int) -> None:
    disk.write(count)
    disk.sync(count)


@pytest.mark.parametrize("seed", range(200))
def test_crash_loses_only_a_tail_of_what_was_not_synced(seed: int) -> None:
    random = Random(seed)
    disk, index = Disk(random, Random(seed)), 0
    for token in range(1, random.randint(2, 7)):
        count = random.randint(1, 4)
        size_bytes = random.choice((0, 10, 600, 2_000))
        disk.append([entry(index + at, size_bytes=size_bytes) for at in range(1, count + 1)], token)
        index += count
        if random.random() < 0.6:
            sync(disk, random.randint(0, len(disk.unsynced)))
    synced = disk.view.last_index
    disk.crash()
    kept = disk.load().durable.entries
    assert synced <= len(kept) <= index
    assert [each.index for each in kept] == list(range(1, len(kept) + 1))


def test_load_gives_the_newest_vote_and_what_truncations_left() -> None:
    disk = Disk(Random(1), Random(1))
    disk.append([Vote(1, "a"), entry(1), entry(2), entry(3), Vote(2, None), Truncation(2), entry(2, term=2)], 1)
    sync(disk, 7)
    durable = disk.load().durable
    assert durable.vote == Vote(2, None)
    assert durable.entries == [entry(1), entry(2, term=2)]
    assert disk.view.has(2, 2)
    assert not disk.view.has(2, 1)


def test_log_goes_on_after_a_crash() -> None:
    disk = Disk(Random(3), Random(3))
    disk.append([entry(1)], 1)
    sync(disk, 1)
    disk.append([entry(2, size_bytes=5_000)], 2)
    disk.write(1)
    disk.crash()
    disk.load()
    disk.append([entry(2, term=2)], 1)
    sync(disk, 1)
    assert disk.load().durable.entries[-1] == entry(2, term=2)
