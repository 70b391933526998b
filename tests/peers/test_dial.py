"""Every known address is dialled until its member is linked, and again when the link is lost."""

import asyncio

import pytest

from elasticq.peers import dial
from elasticq.peers.dial import Dialler, Target

PATIENCE_S = 10


class Dialled:
    """Attempts in their order; ``linked``: the members that a dial reaches."""

    def __init__(self) -> None:
        self.attempts: asyncio.Queue[str] = asyncio.Queue()
        self.linked: set[str] = set()
        self.dialler = Dialler(asyncio.get_running_loop(), self.dial, lambda member_id: member_id in self.linked)

    async def dial(self, target: Target) -> None:
        target.member_id = f"member at {target.address}"
        self.attempts.put_nowait(target.address)

    async def next(self) -> str:
        return await asyncio.wait_for(self.attempts.get(), PATIENCE_S)


@pytest.fixture
async def dialled(monkeypatch: pytest.MonkeyPatch) -> Dialled:
    monkeypatch.setattr(dial, "PAUSE_MIN_S", 0.001)
    monkeypatch.setattr(dial, "PAUSE_MAX_S", 0.002)
    return Dialled()


async def test_an_address_is_dialled_until_it_answers_and_again_when_its_link_is_lost(dialled: Dialled) -> None:
    dialled.dialler.follow(["a:1"])
    assert [await dialled.next() for _ in range(3)] == ["a:1"] * 3
    dialled.linked.add("member at a:1")
    wanted = dialled.dialler._targets["a:1"].wanted
    async with asyncio.timeout(PATIENCE_S):
        while wanted.is_set():
            await dialled.attempts.get()
    assert dialled.attempts.empty()
    dialled.linked.clear()
    dialled.dialler.lost("member at a:1")
    assert await dialled.next() == "a:1"
    await dialled.dialler.stop()


async def test_an_address_that_is_not_followed_any_more_is_left_alone(dialled: Dialled) -> None:
    dialled.dialler.follow(["a:1", "b:2"])
    assert {await dialled.next(), await dialled.next()} == {"a:1", "b:2"}
    gone = dialled.dialler._targets["a:1"].task
    assert gone is not None
    dialled.dialler.follow(["b:2"])
    await asyncio.wait([gone], timeout=PATIENCE_S)
    assert gone.cancelled()
    await dialled.dialler.stop()


async def test_who_linked_by_itself_is_not_dialled(dialled: Dialled) -> None:
    dialled.dialler.follow(["a:1"])
    target = dialled.dialler._targets["a:1"]
    dialled.dialler.linked("n1", "a:1")
    assert not target.wanted.is_set()
    dialled.dialler.lost("n2")
    assert not target.wanted.is_set()
    dialled.dialler.lost("n1")
    assert target.wanted.is_set()
    await dialled.dialler.stop()


async def test_why_an_address_has_no_link_is_told_until_it_has_one(dialled: Dialled) -> None:
    dialled.dialler.follow(["a:1"])
    await dialled.next()
    target = dialled.dialler._targets["a:1"]
    assert dialled.dialler.failures() == {}
    target.failure = "connection refused"
    assert dialled.dialler.failures() == {"a:1": "connection refused"}
    dialled.dialler.linked("member at a:1", "a:1")
    assert dialled.dialler.failures() == {}
    await dialled.dialler.stop()
