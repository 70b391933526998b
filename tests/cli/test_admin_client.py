"""The client of an admin port, against members that are only what the test says."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from elasticq.admin.port import AdminPort
from elasticq.cli.admin_client import AdminClient, Failure, master_of
from elasticq.node.orders import RemoveVoter
from tests.admin.member import IDS, Member


class Pair:
    """n1, the master, and n2, which knows where n1's admin port is."""

    def __init__(self) -> None:
        self.master, self.follower = Member("n1"), Member("n2")
        self.ports = [AdminPort(member, "127.0.0.1", 0) for member in (self.master, self.follower)]
        self.master_url, self.follower_url = (f"http://127.0.0.1:{port.port}" for port in self.ports)
        self.follower.with_members(n1={"admin": self.master_url})
        self.follower.linked = {IDS["n1"]: self.master}


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    for port in pair.ports:
        await port.start()
    yield pair
    for port in pair.ports:
        await port.stop()


async def test_view_is_what_the_asked_member_sees(pair: Pair) -> None:
    seen = await asyncio.to_thread(AdminClient(pair.follower_url).view)
    assert (seen["node"], seen["role"], seen["master"]) == ("n2", "follower", "n1")


async def test_order_goes_to_the_master_through_a_follower(pair: Pair) -> None:
    assert await asyncio.to_thread(AdminClient(pair.follower_url).order, "remove", "n2") == "done: RemoveVoter"
    assert (pair.master.orders, pair.follower.orders) == ([RemoveVoter("n2")], [])
    assert pair.follower.asked == [(IDS["n1"], "order")]


async def test_view_of_another_member_is_its_own(pair: Pair) -> None:
    client = AdminClient(pair.follower_url)
    seen = await asyncio.to_thread(client.view)
    assert master_of(seen) == IDS["n1"]
    assert (await asyncio.to_thread(client.view_of, seen, IDS["n1"]))["node"] == "n1"
    assert (await asyncio.to_thread(client.view_of, seen, IDS["n2"]))["node"] == "n2"
    pair.follower.linked[IDS["n3"]] = pair.master
    with pytest.raises(Failure, match=r"the link of n2 leads to n1 .* not to n3 "):
        await asyncio.to_thread(client.view_of, seen, IDS["n3"])


async def test_no_master_is_a_failure_that_names_the_reason(pair: Pair) -> None:
    pair.follower.seen = replace(pair.follower.seen, master=None, reason="read-only")
    client = AdminClient(pair.follower_url)
    with pytest.raises(Failure, match="n2 knows no master: read-only"):
        await asyncio.to_thread(client.order, "remove", "n2")
    with pytest.raises(Failure, match="n2 knows no master: read-only"):
        master_of(await asyncio.to_thread(client.view))
