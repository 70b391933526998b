"""Pages and orders that are about other members: asked over links, and told honestly where that is not possible."""

import json
from typing import Any

import pytest

from elasticq.admin import asking
from elasticq.admin.app import make_app
from elasticq.admin.history import PERIOD_S
from elasticq.engine.views.figures import QueueFigures
from elasticq.node.orders import OrderOutcome, OrderRefused, RemoveVoter
from elasticq.node.proxy import PROXY
from elasticq.runtime.meter import Messages
from elasticq.runtime.runtime import RuntimeStopped
from tests.admin.member import IDS, Member


class Trio:
    def __init__(self) -> None:
        self.n1, self.n2, self.n3 = (Member(name) for name in IDS)
        members = (self.n1, self.n2, self.n3)
        for member in members:
            member.linked = {other.seen.member_id: other for other in members if other is not member}


ORDER = b'{"order": "remove", "member": "n3"}'


@pytest.mark.parametrize("asked", ["n3", IDS["n3"], "n2", IDS["n2"]])
async def test_page_of_each_member_is_its_own_by_name_or_id(aiohttp_client: Any, asked: str) -> None:
    client = await aiohttp_client(make_app(Trio().n2))
    answer = await client.get(f"/cluster/members/{asked}")
    page = await answer.json()
    assert (answer.status, page["node"]) == (200, asked[:2])


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ("n9", 404, "n2 knows no member n9"),
        ("n3", 502, f"n2 got no answer from n3 ({IDS['n3']}): there is no link to it"),
    ],
)
async def test_member_that_cannot_be_asked_is_named(aiohttp_client: Any, asked: str, status: int, told: str) -> None:
    trio = Trio()
    del trio.n2.linked[IDS["n3"]]
    client = await aiohttp_client(make_app(trio.n2))
    answer = await client.get(f"/cluster/members/{asked}")
    assert answer.status == status
    assert told in (await answer.json())["error"]


async def test_two_members_of_one_name_are_told_apart_by_id(aiohttp_client: Any) -> None:
    trio = Trio()
    trio.n2.with_members(n1={"name": "n3"})
    client = await aiohttp_client(make_app(trio.n2))
    answer = await client.get("/cluster/members/n3")
    assert (answer.status, (await answer.json())["error"]) == (
        404,
        "n2 knows 2 members named n3: give the id of one",
    )
    assert (await (await client.get(f"/cluster/members/{IDS['n3']}")).json())["node"] == "n3"


async def test_order_is_passed_on_to_the_master_and_its_refusal_comes_back(aiohttp_client: Any) -> None:
    trio = Trio()
    client = await aiohttp_client(make_app(trio.n3))
    answer = await client.post("/cluster/orders", data=ORDER, headers={"Content-Type": "application/json"})
    assert (answer.status, await answer.json()) == (200, {"done": "done: RemoveVoter"})
    assert (trio.n1.orders, trio.n3.orders) == ([RemoveVoter("n3")], [])

    async def refuse(order: object) -> OrderOutcome:
        return OrderRefused("n3 is the last voter")

    trio.n1.outcome = refuse
    answer = await client.post("/cluster/orders", data=ORDER, headers={"Content-Type": "application/json"})
    assert (answer.status, await answer.json()) == (409, {"refused": "n3 is the last voter"})


async def test_proxy_asks_members_for_their_pages_and_refuses_orders_by_itself(aiohttp_client: Any) -> None:
    trio = Trio()
    proxy = Member("n3", role=PROXY, member_id="web1-" + "9" * 16)
    proxy.linked = {IDS["n1"]: trio.n1}

    async def refuse(order: object) -> OrderOutcome:
        return OrderRefused("this is a proxy")

    proxy.outcome = refuse
    client = await aiohttp_client(make_app(proxy))
    assert (await (await client.get("/cluster/members/n1")).json())["node"] == "n1"
    answer = await client.post("/cluster/orders", data=ORDER, headers={"Content-Type": "application/json"})
    assert (answer.status, await answer.json()) == (409, {"refused": "this is a proxy"})
    assert (proxy.asked, trio.n1.orders) == ([(IDS["n1"], "cluster")], [])


async def test_order_that_was_passed_on_is_not_passed_on_again() -> None:
    """Two members that each think that the other is master would pass it to and fro."""
    trio = Trio()
    await asking.answer(trio.n3, asking.ORDER, ORDER)
    assert (trio.n3.orders, trio.n3.asked) == ([RemoveVoter("n3")], [])


async def test_order_whose_answer_did_not_come_may_have_been_done() -> None:
    trio = Trio()
    trio.n3.linked = {}
    status, body = await asking.order(trio.n3, ORDER)
    assert (status, json.loads(body)["error"]) == (
        502,
        "n3 got no answer from the master n1: there is no link to it: the order may have been done, see cluster status",
    )


async def test_member_that_stops_says_so() -> None:
    trio = Trio()

    async def stop(order: object) -> OrderOutcome:
        raise RuntimeStopped

    trio.n1.outcome = stop
    assert (await asking.order(trio.n3, ORDER))[0] == 503


@pytest.mark.parametrize(("kind", "body", "status"), [("order", b"{}", 400), ("metrics", b"", 404)])
async def test_question_that_is_not_understood_is_refused(kind: str, body: bytes, status: int) -> None:
    trio = Trio()
    assert (await asking.answer(trio.n1, kind, body))[0] == status
    assert trio.n1.orders == []


async def test_the_list_and_the_charts_have_the_rates_of_all_members(aiohttp_client: Any) -> None:
    trio, key = Trio(), ("000000000000", "jobs")
    for member in (trio.n1, trio.n2, trio.n3):
        member.queued = [QueueFigures(*key, 1, 0, 0, None)]
        counts = Messages()
        for sent in (0, 6):
            counts.sent = sent
            member.history.update({key: (1, 0, 0)}, {key: counts}, lambda _: True)
    client = await aiohttp_client(make_app(trio.n2))
    [row] = (await (await client.get("/api/queues")).json())["queues"]
    assert row["sent_per_s"] == 3 * 6 / (2 * PERIOD_S)
    series = await (await client.get("/api/history?queue=jobs")).json()
    assert (series["sent"], series["visible"]) == ([0.0, 3 * 6 / PERIOD_S], [1.0, 1.0])
