"""Snapshots arrive whole: over cuts, from another member, verified."""

import asyncio
import os
from pathlib import Path

import pytest

from elasticq.node.outputs import Wanted
from elasticq.peers.transfer import TokenBucket, file_digest
from tests.peers.community import PATIENCE_S, Member, make_peer, running
from tests.peers.conftest import LogLines
from tests.peers.proxy import proxied

SIZE_BYTES = 3_500_000
SECRET = {"secret": b"open sesame"}


def make_file(folder: Path, name: str = "source.db", size_bytes: int = SIZE_BYTES) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(size_bytes))
    return path


async def fetched(member: Member, source: str, index: int, into: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await member.peers.fetch(Wanted(source, index), into)


@pytest.mark.parametrize("settings", [{}, SECRET])
@pytest.mark.parametrize("size_bytes", [0, SIZE_BYTES])
async def test_a_snapshot_arrives_whole(tmp_path: Path, settings: dict[str, bytes], size_bytes: int) -> None:
    source = Member("a", **settings)
    path = make_file(tmp_path, size_bytes=size_bytes)
    source.files.add(path, "one", 7)
    async with running(source):
        joiner = Member("b", seeds=(source.peers.address,), **settings)
        async with running(joiner):
            await joiner.until_linked(source)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
            assert (tmp_path / "into.db").read_bytes() == path.read_bytes()
            assert source.peers.status()["snapshot_bytes_served"] == size_bytes
    assert source.files.open_count == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["into.db", "source.db"]


async def test_a_snapshot_that_was_sent_is_told_once(tmp_path: Path, log: LogLines) -> None:
    source = Member("a", **SECRET)
    source.files.add(make_file(tmp_path), "one", 7)
    async with running(source):
        joiner = Member("b", seeds=(source.peers.address,), **SECRET)
        async with running(joiner):
            await joiner.until_linked(source)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
            await log.until(lambda: log.having("snapshot_sent"))
    told = f"snapshot_sent: The snapshot at index 7 was sent to b, {SIZE_BYTES} bytes in all."
    assert log.having("snapshot_sent") == [told]


async def test_a_cut_transfer_resumes_where_it_was(tmp_path: Path) -> None:
    source = Member("a", **SECRET)
    path = make_file(tmp_path)
    source.files.add(path, "one", 7)
    async with running(source), proxied(source.peers.address) as proxy:
        source.change(address=proxy.address)
        joiner = Member("b", seeds=(proxy.address,), **SECRET)
        async with running(joiner):
            await joiner.until_linked(source)
            proxy.cut_after = proxy.passed + 2_500_000
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
            assert proxy.cut.is_set()
            assert (tmp_path / "into.db").read_bytes() == path.read_bytes()
            served = source.peers.status()["snapshot_bytes_served"]
            assert isinstance(served, int)
            assert served < 2 * SIZE_BYTES


async def test_a_fetch_resumes_over_a_restart_of_the_fetcher(tmp_path: Path) -> None:
    source = Member("a")
    path = make_file(tmp_path)
    source.files.add(path, "one", 7)
    (tmp_path / "into.db.one.part").write_bytes(path.read_bytes()[:3_000_000])
    async with running(source):
        joiner = Member("b", seeds=(source.peers.address,))
        async with running(joiner):
            await joiner.until_linked(source)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
            assert source.peers.status()["snapshot_bytes_served"] == 500_000
    assert file_digest(tmp_path / "into.db") == file_digest(path)


async def test_another_snapshot_at_the_source_starts_anew(tmp_path: Path) -> None:
    source = Member("a")
    path = make_file(tmp_path)
    source.files.add(path, "two", 9)
    (tmp_path / "into.db.one.part").write_bytes(b"of an older one")
    async with running(source):
        joiner = Member("b", seeds=(source.peers.address,))
        async with running(joiner):
            await joiner.until_linked(source)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
    assert file_digest(tmp_path / "into.db") == file_digest(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["into.db", "source.db"]


async def test_a_damaged_part_is_thrown_away_and_fetched_again(tmp_path: Path, log: LogLines) -> None:
    source = Member("a")
    path = make_file(tmp_path)
    source.files.add(path, "one", 7)
    (tmp_path / "into.db.one.part").write_bytes(bytes(1_000_000))
    async with running(source):
        joiner = Member("b", seeds=(source.peers.address,))
        async with running(joiner):
            await joiner.until_linked(source)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
    assert log.having("another digest")
    assert file_digest(tmp_path / "into.db") == file_digest(path)


async def test_another_member_is_asked_when_the_source_has_none(tmp_path: Path, log: LogLines) -> None:
    source, other = Member("a"), Member("c")
    path = make_file(tmp_path)
    other.files.add(path, "one", 8)
    source.files.add(path, "old", 6)
    async with running(source, other):
        joiner = Member("b", seeds=(source.peers.address, other.peers.address))
        async with running(joiner):
            await joiner.until_linked(source, other)
            await fetched(joiner, source.id, 7, tmp_path / "into.db")
    assert log.having("snapshot_fetch_failed", "nothing at 7")
    assert file_digest(tmp_path / "into.db") == file_digest(path)


async def test_a_dead_source_is_passed_over(tmp_path: Path) -> None:
    other = Member("c")
    other.files.add(make_file(tmp_path), "one", 8)
    async with running(other):
        joiner = Member("b", seeds=(other.peers.address,))
        async with running(joiner):
            await joiner.until_linked(other)
            await fetched(joiner, make_peer("gone").id, 7, tmp_path / "into.db")


async def test_two_joiners_share_one_open_snapshot(tmp_path: Path) -> None:
    source = Member("a")
    path = make_file(tmp_path)
    source.files.add(path, "one", 7)
    async with running(source):
        joiners = [Member(name, seeds=(source.peers.address,)) for name in "bc"]
        async with running(*joiners):
            for joiner in joiners:
                await joiner.until_linked(source)
            await asyncio.gather(*(fetched(joiner, source.id, 7, tmp_path / joiner.id) for joiner in joiners))
            assert source.files.open_count == 1
    assert source.files.open_count == 0


def test_the_bucket_spreads_bytes_over_time() -> None:
    bucket = TokenBucket(1_000)
    waits = [bucket.take(100, 50.0) for _ in range(4)]
    assert waits == pytest.approx([0, 0, 0.1, 0.2])
    assert bucket.take(100, 60.0) == 0
    assert TokenBucket(0).take(10**9, 0.0) == 0


def test_slow_rates_have_small_chunks() -> None:
    assert TokenBucket(0).chunk_bytes == 1_048_576
    assert TokenBucket(80_000_000).chunk_bytes == 1_048_576
    assert TokenBucket(800_000).chunk_bytes == 100_000
    assert TokenBucket(1).chunk_bytes == 16_384
