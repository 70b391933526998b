"""The client of an admin port, against members that are only what the test says."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from elasticq.admin.port import AdminPort
from elasticq.cli.admin_client import AdminClient, Failure
from elasticq.node.orders import RemoveVoter
from tests.admin.member import Member


class Pair:
    """n1, the master, and n2, which knows where n1's admin port is."""

    def __init__(self) -> None:
        self.master, self.follower = Member("n1"), Member("n2")
        self.ports = [AdminPort(member, "127.0.0.1", 0) for member in (self.master, self.follower)]
        self.master_url, self.follower_url = (f"http://127.0.0.1:{port.port}" for port in self.ports)
        self.follower.with_members(n1={"admin": self.master_url})


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


async def test_master_is_found_through_a_follower_and_gets_the_order(pair: Pair) -> None:
    master = await asyncio.to_thread(AdminClient(pair.follower_url).master)
    assert master.url == pair.master_url
    assert await asyncio.to_thread(master.order, "remove", "n2") == "done: RemoveVoter"
    assert (pair.master.orders, pair.follower.orders) == ([RemoveVoter("n2")], [])


async def test_master_that_is_asked_itself_needs_no_url_of_its_own(pair: Pair) -> None:
    client = AdminClient(pair.master_url)
    assert await asyncio.to_thread(client.master) is client


async def test_no_master_is_a_failure_that_names_the_reason(pair: Pair) -> None:
    pair.follower.seen = replace(pair.follower.seen, master=None, reason="read-only")
    with pytest.raises(Failure, match="n2 knows no master: read-only"):
        await asyncio.to_thread(AdminClient(pair.follower_url).master)


async def test_master_without_a_known_admin_port_is_a_failure(pair: Pair) -> None:
    pair.follower.seen = replace(pair.follower.seen, members=())
    with pytest.raises(Failure, match="the admin port of the master n1 is not known"):
        await asyncio.to_thread(AdminClient(pair.follower_url).master)


def test_client_of_another_member_has_the_same_token() -> None:
    other = AdminClient("http://one", "secret").to("http://other")
    assert (other.url, other._token) == ("http://other", "secret")
