"""Connections that prove nothing, frames that are refused or too long: who is a member is served all the same."""

import asyncio

import pytest

from elasticq.node.membership.peer import Peer
from elasticq.peers import peers
from elasticq.peers.frames import FRAME_BYTES_MAX
from tests.peers.community import Member, make_peer, running
from tests.peers.conftest import LogLines

SECRET = {"secret": b"open sesame"}


async def test_silent_connections_do_not_keep_members_from_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "UNPROVEN_MAX", 8)
    first = Member("a", **SECRET)
    async with running(first):
        host, port = first.peers.address.rsplit(":", 1)
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        second = Member("b", seeds=(first.peers.address,), **SECRET)
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            assert int(str(first.peers.status()["connections"])) <= 8 + 2
        for _, writer in silent:
            writer.close()


async def test_more_silent_connections_than_the_port_may_have_leave_links_alone() -> None:
    first = Member("a", connections_max=8, **SECRET)
    async with running(first):
        second = Member("b", seeds=(first.peers.address,), **SECRET)
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            host, port = first.peers.address.rsplit(":", 1)
            silent = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
            second.send(first, b"still here")
            await first.until(lambda: first.frames == [b"still here"])
            for _, writer in silent:
                writer.close()
    assert first.losts in ([], [second.id])  # only at the end


async def test_more_proxies_than_may_be_linked_keep_no_member_out(log: LogLines) -> None:
    first = Member("a", connections_max=8, **SECRET)
    async with running(first):
        seeds = (first.peers.address,)
        proxies = [Member(f"p{at}", peer=proxy(at), listens=False, seeds=seeds, **SECRET) for at in range(4)]
        async with running(*proxies):
            await first.until(lambda: len(first.linked) == 2)
            await log.until(lambda: log.having("too_many_proxies"))
            second = Member("b", seeds=seeds, **SECRET)
            async with running(second):
                await asyncio.gather(first.until_linked(second), second.until_linked(first))
                assert len(first.linked) == 3


def proxy(at: int) -> Peer:
    return make_peer(f"p{at}", is_proxy=True, is_fresh=False)


async def test_a_refused_frame_costs_its_link_and_the_next_one_is_dialled(log: LogLines) -> None:
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            first.peers.cut(second.id, "its term is too far ahead")
            await second.until(lambda: second.losts == [first.id])
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            await log.until(lambda: log.having("refused_frame", "too far ahead"))
            first.peers.cut("nobody", "harmless")


async def test_a_frame_that_is_too_long_is_dropped_and_the_others_go_out(log: LogLines) -> None:
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            first.send(second, b"before", bytes(FRAME_BYTES_MAX + 1), b"behind")
            await second.until(lambda: len(second.frames) == 2)
            assert second.frames == [b"before", b"behind"]
            assert first.peers.status()["frames_dropped"] == 1
            await log.until(lambda: log.having("frame_too_long"))
