"""Backups through the admin port: at which index, how long they are kept, and how many."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from msgspec.structs import replace

from elasticq.admin import backups
from elasticq.admin.port import AdminPort
from tests.admin.member import IDS, Member

CONTENT = bytes(range(256)) * 5_000


class File(NamedTuple):
    path: Path
    id: str
    index: int
    size_bytes: int


class World:
    """A member with an admin port; its snapshots are made when ``may_make`` is set."""

    def __init__(self, tmp_path: Path, name: str) -> None:
        self.member = Member(name)
        self.master = self.member if name == "n1" else Member("n1")
        self.member.linked = {self.master.seen.member_id: self.master}
        self.member.snapshot_at = self.make
        self.port = AdminPort(self.member, "127.0.0.1", 0)
        self.may_make = asyncio.Event()
        self.may_make.set()
        self.asked: list[int] = []
        self.path = tmp_path / "snapshot"
        self.path.write_bytes(CONTENT)
        self.session = ClientSession(f"http://127.0.0.1:{self.port.port}")

    async def make(self, index: int) -> File:
        self.asked.append(index)
        await self.may_make.wait()
        return File(self.path, f"{index}-abc", index, len(CONTENT))

    async def begin(self, **body: Any) -> tuple[int, dict[str, Any]]:
        async with self.session.post("/backups", json=body) as answer:
            return answer.status, await answer.json()

    async def part(self, name: str, offset: int | str) -> tuple[int, bytes]:
        async with self.session.get(f"/backups/{name}", params={"offset": str(offset)}) as answer:
            return answer.status, await answer.read()


@pytest_asyncio.fixture(params=["n1", "n2"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, request.param)
    await world.port.start()
    yield world
    await world.session.close()
    await world.port.stop()


async def test_a_backup_is_at_the_commit_index_of_the_master_and_comes_in_parts(world: World) -> None:
    world.master.seen = replace(world.master.seen, commit_index=130)
    status, made = await world.begin()
    assert (status, world.asked) == (200, [130])
    assert made == {
        "id": "130-abc",
        "index": 130,
        "term": 7,
        "member": world.member.seen.member_id,
        "size_bytes": len(CONTENT),
    }
    fetched = b""
    while part := (await world.part(made["id"], len(fetched)))[1]:
        assert len(part) <= backups.PART_BYTES
        fetched += part
    assert fetched == CONTENT
    assert (await world.part("other", 0))[0] == 404
    assert (await world.part(made["id"], "-1"))[0] == 400
    world.path.unlink()
    assert (await world.part(made["id"], 0))[0] == 404


async def test_what_takes_long_is_asked_for_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "WAIT_S", 0.01)
    world.may_make.clear()
    status, made = await world.begin()
    assert (status, made) == (202, {"index": 120})
    assert (await world.begin(index=120))[0] == 202
    assert world.asked == [120]
    for index in (1, 2, 3):
        assert (await world.begin(index=index))[0] == 202
    assert await world.begin(index=4) == (503, {"error": "4 backups are being fetched already"})
    world.may_make.set()
    status = 202
    while status == 202:
        status, made = await world.begin(index=120)
    assert (status, made["id"]) == (200, "120-abc")


async def test_a_file_that_nobody_reads_is_released(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "KEPT_S", 0.01)
    await world.begin()
    while not world.member.released:
        await asyncio.sleep(0)
    assert world.member.released == ["120-abc"]
    assert (await world.part("120-abc", 0))[0] == 404


async def test_the_same_file_is_held_once(world: World) -> None:
    world.may_make.clear()
    both = asyncio.gather(world.begin(), world.begin(index=119))
    while len(world.asked) < 2:
        await asyncio.sleep(0)
    world.may_make.set()
    assert [made["id"] for _, made in await both] == ["120-abc", "119-abc"]
    assert (await world.begin(index=118))[1]["id"] == "120-abc"
    assert world.asked == [120, 119]


async def test_no_backup_lacks_what_was_acknowledged(world: World) -> None:
    world.member.seen = replace(world.member.seen, master=None, reason="read-only: 1 of 3")
    status, told = await world.begin()
    assert (status, world.asked) == (503, [])
    assert told["error"] == "no master, so acknowledged messages could be missing: read-only: 1 of 3"
    world.member.seen = replace(world.member.seen, master=IDS["n3"])  # no link leads to it
    assert (await world.begin())[0] == 503
    world.member.seen = replace(world.member.seen, role="proxy")
    assert (await world.begin())[0] == 409


async def test_refusals_name_their_reason(world: World) -> None:
    world.member.snapshot_at = world.member._no_snapshot
    assert await world.begin() == (503, {"error": "no backup can be made now: nothing is at 120"})
    assert (await world.begin(index=-1))[0] == 400
    async with world.session.post("/backups", data=b"{}") as answer:
        assert answer.status == 415
    async with world.session.post("/backups", json={}, headers={"Origin": "http://127.0.0.1"}) as answer:
        assert answer.status == 403
