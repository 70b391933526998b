"""Members find each other, keep one link a pair, and refuse who does not belong."""

import asyncio
import socket

import pytest

from elasticq.peers import link as link_module
from elasticq.peers.frames import DATA, FRAME_BYTES_MAX, FrameWriter
from tests.peers.community import PATIENCE_S, Member, make_peer, running
from tests.peers.conftest import LogLines
from tests.peers.proxy import proxied

SECRET = {"secret": b"open sesame"}


@pytest.mark.parametrize("settings", [{}, SECRET])
async def test_three_members_find_each_other_from_one_seed(settings: dict[str, bytes]) -> None:
    first = Member("a", **settings)
    async with running(first):
        others = [Member(name, seeds=(first.peers.address,), **settings) for name in "bc"]
        async with running(*others):
            members = [first, *others]
            for member in members:
                await member.until_linked(*(other for other in members if other is not member))
            assert others[0].mets[-1].address in {first.peers.address, others[1].peers.address}


async def test_frames_arrive_whole_and_in_order() -> None:
    first = Member("a", **SECRET)
    async with running(first):
        second = Member("b", seeds=(first.peers.address,), **SECRET)
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            sent = [b"%d" % number for number in range(2_000)] + [bytes(FRAME_BYTES_MAX), b"last"]
            first.send(second, *sent[:1_000])
            first.send(second, *sent[1_000:])
            second.send(first, b"back")
            await second.until(lambda: len(second.frames) == len(sent))
            await first.until(lambda: first.frames == [b"back"])
            assert second.frames == sent
            assert first.peers.status()["frames_sent"] == len(sent)


async def test_both_dial_and_one_link_stays() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    first = Member("a", port=port)
    second = Member("b", seeds=(f"127.0.0.1:{port}",))
    async with running(second):
        first.peers.know(second.id, second.peers.address)
        async with running(first):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            # The last frame answers on whichever link has stayed at both ends.
            async with asyncio.timeout(PATIENCE_S):
                while not (second.frames and first.frames):
                    first.send(second, b"ping")
                    second.send(first, b"pong")
                    await asyncio.wait([asyncio.ensure_future(second.until(lambda: bool(second.frames)))], timeout=0.1)
            assert first.peers.status()["links"] == [second.id]
            assert second.peers.status()["links"] == [first.id]


async def test_a_cut_link_is_told_and_dialled_again() -> None:
    first = Member("a", **SECRET)
    async with running(first), proxied(first.peers.address) as proxy:
        second = Member("b", seeds=(proxy.address,), **SECRET)
        first.change(address=proxy.address)
        async with running(second):
            await second.until_linked(first)
            await first.until_linked(second)
            proxy.cut_all()
            await first.until(lambda: first.losts == [second.id])
            await second.until(lambda: second.losts == [first.id])
            await first.until_linked(second)
            await second.until_linked(first)


async def test_a_mute_link_is_closed_and_told(log: LogLines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SILENT_S", 0.8)
    first = Member("a")
    async with running(first), proxied(first.peers.address) as proxy:
        second = Member("b", seeds=(proxy.address,))
        first.change(address=proxy.address)
        async with running(second):
            await second.until_linked(first)
            proxy.is_mute = True
            await second.until(lambda: first.id in second.losts)
            assert log.having("reason=silent")


async def test_an_idle_link_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SILENT_S", 1.2)
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(second.until(lambda: bool(second.losts)), 2.5)
            assert first.losts == []


async def test_news_of_oneself_is_told() -> None:
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await second.until_linked(first)
            first.change(cluster="the cluster", is_fresh=False, http="http://a")
            await second.until(lambda: second.mets[-1].cluster == "the cluster")
            assert second.mets[-1].http == "http://a"
            assert second.losts == []


async def test_a_seed_that_is_oneself_is_ignored(log: LogLines) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    first = Member("a", port=port, seeds=(f"localhost:{port}",))
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
    assert first.linked == {second.id}
    assert log.lines == []


@pytest.mark.parametrize(
    ("settings", "peer", "reason"),
    [
        ({"secret": b"else"}, {}, "wrong_secret"),
        ({}, {}, "wrong_secret"),
        (SECRET, {"cluster_name": "other"}, "other_cluster_name"),
        (SECRET, {"cluster": "second"}, "two_clusters"),
    ],
)
async def test_a_stranger_is_refused_with_one_line(
    log: LogLines, settings: dict[str, bytes], peer: dict[str, str], reason: str
) -> None:
    first = Member("a", peer=make_peer("a", cluster="first"), **SECRET)
    async with running(first):
        stranger = Member("b", peer=make_peer("b", **peer), seeds=(first.peers.address,), **settings)
        async with running(stranger):
            await log.until(lambda: log.having(f"reason={reason}"))
            await log.until(lambda: log.having("reason=two_clusters", "127.0.0.1: ") or reason != "two_clusters")
            lines = log.having(f"reason={reason}")
            assert len(lines) == len(set(lines)) <= 2  # one of each side at the most
            assert first.mets == stranger.mets == []
            assert first.peers.status()["links"] == []
            assert bool(first.peers.status()["conflicts"]) == (reason == "two_clusters")


async def test_two_clusters_that_appear_later_part(log: LogLines) -> None:
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            first.change(cluster="one")
            second.change(cluster="two")
            await first.until(lambda: second.id in first.losts)
            await log.until(lambda: log.having("two_clusters"))
            assert first.peers.status()["conflicts"] or second.peers.status()["conflicts"]


@pytest.mark.parametrize("settings", [{}, SECRET])
async def test_a_changed_byte_closes_the_link(log: LogLines, settings: dict[str, bytes]) -> None:
    first = Member("a", **settings)
    async with running(first), proxied(first.peers.address) as proxy:
        second = Member("b", seeds=(proxy.address,), **settings)
        first.change(address=proxy.address)
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            proxy.flip_at = proxy.passed + 400
            first.send(second, b"x" * 1_000, b"after")
            await second.until(lambda: first.id in second.losts)
            assert second.frames == []
            assert len(log.having("reason=wrong_checksum")) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "wrong_length"),
        (b"\x00\x00\x00\x00\x45\x51\x02\x01", "wrong_version"),
        (b"\x00\x00\x00\x00\x45\x51\x01\x63", "unexpected_kind"),
        (b"\x00\x00\x00\x00\x45\x51\x01\x01\x00\x00\x00\x00", "wrong_checksum"),
    ],
)
async def test_foreign_bytes_close_the_connection(log: LogLines, data: bytes, reason: str) -> None:
    member = Member("a")
    async with running(member):
        host, port = member.peers.address.split(":")
        for _ in range(2):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(data)
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
            writer.close()
        assert len(log.having(f"reason={reason}", "127.0.0.1")) == 1
        assert member.mets == []


async def test_a_frame_before_the_handshake_closes_the_connection(log: LogLines) -> None:
    member = Member("a")
    async with running(member):
        host, port = member.peers.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        pieces: list[bytes] = []
        FrameWriter().add(pieces, DATA, b"vote for me")
        writer.writelines(pieces)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()
        assert log.having("reason=unexpected_kind")
        assert member.frames == []


@pytest.mark.parametrize(
    "rival",
    [make_peer("b", id="b-ffffffffffffffff", incarnation="zz"), make_peer("b", incarnation="zz")],
    ids=["same name", "same member id"],
)
async def test_the_second_process_of_a_name_is_refused_for_good_after_3_seconds(log: LogLines, rival: object) -> None:
    first = Member("a")
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            started_s = asyncio.get_running_loop().time()
            double = Member("b", peer=rival, seeds=(first.peers.address,))  # type: ignore[arg-type]
            async with running(double):
                await double.until(lambda: bool(double.refusals))
                assert asyncio.get_running_loop().time() - started_s > 3
                assert "--node-id" in double.refusals[0]
            assert second.refusals == []
            assert second.linked == {first.id}
            assert first.losts == []


async def test_a_restart_replaces_its_lingering_link() -> None:
    first = Member("a")
    async with running(first), proxied(first.peers.address) as proxy:
        before = Member("b", seeds=(proxy.address,))
        first.change(address=proxy.address)
        async with running(before):
            await asyncio.gather(first.until_linked(before), before.until_linked(first))
            proxy.is_mute = True  # its machine is gone without a word
            after = Member("b", peer=make_peer("b", id="b-ffffffffffffffff", incarnation="later"))
            after.peers.know(first.id, "")
            async with running(after):
                first.peers.know(after.id, after.peers.address)
                await asyncio.gather(first.until_linked(after), after.until_linked(first))
                assert before.id in first.losts
                assert after.refusals == []


async def test_a_member_that_does_not_read_is_dropped(log: LogLines) -> None:
    first = Member("a", send_buffer_bytes=1_000_000)
    async with running(first):
        second = Member("b", seeds=(first.peers.address,))
        async with running(second):
            await asyncio.gather(first.until_linked(second), second.until_linked(first))
            first.send(second, bytes(600_000), bytes(600_000))
            await first.until(lambda: second.id in first.losts)
            assert log.having("send_buffer_full")


async def test_frames_for_nobody_are_counted_and_dropped() -> None:
    first, second = Member("a"), Member("b")
    async with running(first):
        first.send(second, b"x")
        assert first.peers.status()["frames_dropped"] == 1
