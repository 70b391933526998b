"""A member that lost its cluster goes on alone, as another cluster with the same handles."""

import asyncio
from pathlib import Path

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.mutations import ClusterFounded
from elasticq.node.outputs import Committed
from elasticq.replication.records import Entry, Vote, Voter
from elasticq.storage.errors import DataError, DirectoryInUse
from elasticq.storage.offline.backup import TERMS_SKIPPED, backup, restore
from elasticq.storage.offline.force_new import force_new
from tests.storage.test_storage import CREATED, FOUNDED, Opened, entry, message

VOTERS = (Voter("a-1"), Voter("b-2"), Voter("c-3"))


async def made(path: Path) -> str:
    """Three voters, entries 1 and 2 in the rows, 3 only in the log; the member's id."""
    one = Opened(path)
    first = [FOUNDED, CREATED]
    founding = Entry(1, 1, 1_001, m.encode(first), VOTERS)
    one.append([Vote(4, "b-2"), founding, entry(2, message(1)), entry(3, message(2))], 1)
    one.take(Committed(1, 1, 1_001, first, VOTERS), Committed(2, 1, 1_002, [message(1)]))
    assert {await one.next(), await one.next()} == {("synced", 1), ("stored", 2)}
    await one.close()
    return one.directory.member_id


async def test_forced_member_is_the_only_voter_of_a_new_cluster_with_the_same_key(tmp_path: Path) -> None:
    member_id = await made(tmp_path / "data")
    told = await asyncio.to_thread(force_new, tmp_path / "data")
    assert "up to index 3, of which 2 are known to be committed" in told
    assert "must not come back" in told
    again = Opened(tmp_path / "data")
    durable = again.loaded.durable
    assert durable.vote == Vote(4 + TERMS_SKIPPED, member_id)
    last = durable.entries[-1]
    assert (last.index, last.term, last.time_ms, last.voters) == (4, 4 + TERMS_SKIPPED, 1_003, (Voter(member_id),))
    state = State()
    for mutation in again.mutations:
        apply(state, mutation)
    for kept in durable.entries[durable.applied_index - durable.base.index :]:
        for mutation in m.decode(kept.payload):
            apply(state, mutation)
    assert state.cluster_id not in ("", FOUNDED.cluster_id)
    assert (state.mac_key, state.feature_level) == (FOUNDED.mac_key, FOUNDED.feature_level)
    assert [queue.count for queue in state.queues.values()] == [2]
    await again.close()


async def test_forcing_twice_gives_another_cluster_again(tmp_path: Path) -> None:
    await made(tmp_path / "data")
    first, second = force_new(tmp_path / "data"), force_new(tmp_path / "data")
    assert first != second
    assert "up to index 4" in second


async def test_directory_in_use_is_not_forced(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    with pytest.raises(DirectoryInUse):
        force_new(tmp_path / "data")
    await one.close()


async def test_member_without_a_cluster_is_not_forced(tmp_path: Path) -> None:
    one = Opened(tmp_path / "data")
    await one.close()
    with pytest.raises(DataError, match="no cluster yet"):
        force_new(tmp_path / "data")


async def test_backup_of_a_cluster_is_restored_as_a_member_alone(tmp_path: Path) -> None:
    await made(tmp_path / "data")
    backup(tmp_path / "data", tmp_path / "file")
    restore(tmp_path / "file", tmp_path / "restored")
    again = Opened(tmp_path / "restored")
    assert again.loaded.durable.base.voters == (Voter(again.directory.member_id),)
    (founded,) = [each for each in again.mutations if isinstance(each, ClusterFounded)]
    assert founded.cluster_id != "cluster"
    await again.close()
