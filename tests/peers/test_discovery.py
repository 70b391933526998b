"""Members on one host find each other by zeroconf over loopback; other cluster names do not."""

import asyncio

import msgspec
from zeroconf.asyncio import AsyncServiceInfo

from elasticq.peers.discovery import SERVICE_TYPE, places
from tests.peers.community import Member, make_peer, running


async def test_members_of_one_cluster_name_find_each_other_without_seeds() -> None:
    first, second = (Member(name, discovery="zeroconf") for name in "ab")
    stranger = Member("c", peer=make_peer("c", cluster_name="other"), discovery="zeroconf")
    async with running(stranger, first, second):
        await asyncio.gather(first.until_linked(second), second.until_linked(first))
        assert stranger.mets == []
        assert stranger.peers.status()["refused"] == {}


async def test_a_cluster_id_that_comes_later_is_announced() -> None:
    first = Member("a", discovery="zeroconf")
    async with running(first):
        first.change(cluster="the cluster")
        second = Member("b", discovery="zeroconf")
        async with running(second):
            await second.until(lambda: any(peer.cluster == "the cluster" for peer in second.mets))


def test_the_advertised_address_comes_first_and_wildcards_are_left_out() -> None:
    info = AsyncServiceInfo(
        SERVICE_TYPE, f"x.{SERVICE_TYPE}", port=9326, addresses=[b"\x0a\x00\x00\x01"], properties={"peers": "host:1"}
    )
    assert places(info) == ["host:1", "10.0.0.1:9326"]
    assert msgspec.json.encode(places(AsyncServiceInfo(SERVICE_TYPE, f"x.{SERVICE_TYPE}", port=1))) == b"[]"
