"""The pages of the admin port."""

import asyncio
import re
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from elasticq import BUILD, __version__
from elasticq.admin import asking
from elasticq.admin.app import HEADERS, ORDERS_MAX, make_app
from elasticq.node.orders import (
    AddVoter,
    Order,
    OrderDone,
    OrderOutcome,
    OrderRefused,
    RemoveVoter,
    ReplaceVoter,
    TransferMastership,
    VerifyRows,
)
from elasticq.node.settings import GroupStatus, LeaseStatus
from elasticq.runtime.runtime import RuntimeStopped
from tests.admin.member import IDS, Member

Client = TestClient[Any, Any]


async def client_of(aiohttp_client: Any, member: Member) -> Client:
    client: Client = await aiohttp_client(TestServer(make_app(member)))
    return client


async def get(client: Client, path: str) -> tuple[int, str]:
    answer = await client.get(path)
    return answer.status, await answer.text()


async def test_health_tells_alive_and_how_durable(aiohttp_client: Any) -> None:
    client = await client_of(aiohttp_client, Member())
    assert await get(client, "/health") == (200, "OK durability=os")


async def test_ready_tells_the_reason_when_it_is_not(aiohttp_client: Any) -> None:
    member = Member()
    client = await client_of(aiohttp_client, member)
    assert await get(client, "/ready") == (200, "OK")
    member.seen = replace(member.seen, ready=False, reason="read-only: 1 of 3 members, 2 needed")
    assert await get(client, "/ready") == (503, "read-only: 1 of 3 members, 2 needed")
    member.stopping = True
    assert await get(client, "/ready") == (503, "stopping")


async def test_every_answer_has_the_headers_that_protect_it(aiohttp_client: Any) -> None:
    """Those of paths and methods that there are not, too."""
    member = Member()
    member.stopping = True  # streams end
    client = await client_of(aiohttp_client, member)
    app = client.server.app  # type: ignore[attr-defined]
    paths = {resource.canonical for resource in app.router.resources()}
    assert len(paths) > 40
    statuses = set()
    for path in sorted(paths | {"/nothing", "/nothing<script>", "/static/nothing", "/queues", "/api", "/%ff"}):
        path = re.sub(r"{account}", "000000000000", path)
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            async with client.request(method, re.sub(r"{\w+}", "x", path), allow_redirects=False) as answer:
                statuses.add(answer.status)
                assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS | (
                    {"Cache-Control": "max-age=3600"} if "max-age" in answer.headers["Cache-Control"] else {}
                ), (method, path)
    assert {200, 303, 400, 403, 404, 405} <= statuses


@pytest.mark.parametrize(("name", "role", "status"), [("n1", "master", 200), ("n2", "follower", 503)])
async def test_master_is_200_on_the_master_alone(aiohttp_client: Any, name: str, role: str, status: int) -> None:
    member = Member(name)
    client = await client_of(aiohttp_client, member)
    assert await get(client, "/master") == (status, role)
    member.stopping = True
    assert await get(client, "/master") == (503, "stopping")


async def test_leases_are_listed_with_how_many_there_are(aiohttp_client: Any) -> None:
    member = Member(leases=1_500)
    lease = LeaseStatus("000000000000", "jobs", "query", 7, 2, 40, 1_000, 601_000, "open", 0)
    member.leased = [lease] * 1_500
    client = await client_of(aiohttp_client, member)
    answer = await (await client.get("/leases")).json()
    assert answer["leases"][0] == {
        "account": "000000000000",
        "queue": "jobs",
        "name": "query",
        "batch": 7,
        "partition": 2,
        "messages": 40,
        "opened_ms": 1_000,
        "deadline_ms": 601_000,
        "state": "open",
        "ended_ms": 0,
    }
    assert (len(answer["leases"]), answer["total"]) == (1_000, 1_500)


async def test_consumer_groups_are_listed(aiohttp_client: Any) -> None:
    member = Member()
    group = GroupStatus("000000000000", "g", 7, 3, 1, 2, 1, 4, 12, 250, 900, 10_000)
    member.known_groups = [group] * 1_500
    client = await client_of(aiohttp_client, member)
    answer = await (await client.get("/groups")).json()
    assert len(answer["groups"]) == 1_000
    assert answer["groups"][0] == {
        "account": "000000000000",
        "group": "g",
        "generation": 7,
        "consumers": 3,
        "idle": 1,
        "held": 2,
        "revoking": 1,
        "free": 4,
        "moves": 12,
        "rebalancing_ms": 250,
        "rebalanced_ms": 900,
        "session_ms": 10_000,
    }


async def test_cluster_tells_names_members_and_progress(aiohttp_client: Any) -> None:
    member = Member("n2", digests={118: "ab12"}, discarded=3, proxies=("web1",))
    member.with_members(n1={"admin": "http://10.0.0.1:9325"}, n3={"lag": None, "is_linked": False})
    client = await client_of(aiohttp_client, member)
    answer = await client.get("/cluster")
    assert answer.content_type == "application/json"
    document = await answer.json()
    members = document.pop("members")
    assert document == {
        "node": "n2",
        "member": IDS["n2"],
        "role": "follower",
        "master": "n1",
        "master_admin": "http://10.0.0.1:9325",
        "term": 7,
        "commit": 120,
        "applied": 119,
        "cluster": "c" * 16,
        "ready": True,
        "reason": "",
        "stale_ms": 4_000,
        "discarded": 3,
        "set_aside": 0,
        "digests": {"118": "ab12"},
        "proxies": ["web1"],
    }
    assert members[2] == {
        "id": IDS["n3"],
        "name": "n3",
        "role": "follower",
        "voter": True,
        "linked": False,
        "lag": None,
        "lag_ms": None,
        "lost_ms": None,
        "address": "10.0.0.3:9326",
        "http": "http://10.0.0.3:9324",
        "admin": "",
        "replaces": "",
    }


@pytest.mark.parametrize(
    ("changes", "master"),
    [({"master": None}, None), ({"master": "n-9-0123456789abcdef"}, "n-9"), ({"members": ()}, "n1")],
)
async def test_a_master_that_is_not_known_has_no_admin_port(
    aiohttp_client: Any, changes: dict[str, Any], master: str | None
) -> None:
    client = await client_of(aiohttp_client, Member("n1", **changes))
    document = await (await client.get("/cluster")).json()
    assert (document["master"], document["master_admin"]) == (master, None)


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ('{"order": "add", "member": "n4"}', AddVoter("n4")),
        ('{"order": "remove", "member": "n4"}', RemoveVoter("n4")),
        ('{"order": "replace", "member": "n4"}', ReplaceVoter("n4")),
        ('{"order": "transfer", "member": "n2"}', TransferMastership("n2")),
        ('{"order": "transfer"}', TransferMastership("")),
        ('{"order": "verify"}', VerifyRows()),
    ],
)
async def test_an_order_reaches_the_member_and_its_text_comes_back(
    aiohttp_client: Any, body: str, order: Order
) -> None:
    member = Member()
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", data=body, headers={"Content-Type": "application/json"})
    assert (answer.status, await answer.json()) == (200, {"done": f"done: {type(order).__name__}"})
    assert member.orders == [order]


async def test_a_refused_order_is_409_with_the_reason(aiohttp_client: Any) -> None:
    async def refuse(order: Order) -> OrderOutcome:
        return OrderRefused("n4 has not caught up")

    member = Member()
    member.outcome = refuse
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", json={"order": "add", "member": "n4"})
    assert (answer.status, await answer.json()) == (409, {"refused": "n4 has not caught up"})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "object"),
        (b'{"member": "n1"}', "order"),
        (b'{"order": "explode", "member": "n1"}', "explode"),
        (b'{"order": "add", "member": "n1", "force": true}', "force"),
        (b'{"order": "add", "member": 1}', "member"),
        (b'{"order": "add"}', "the order add needs a member"),
        (b'{"order": "replace", "member": ""}', "the order replace needs a member"),
        (b'{"order": "verify", "member": "n1"}', "all members"),
        (b'{"order": "add", "member": "\xff"}', ""),
        (b'{"order": "add", "member": "' + b"x" * 129 + b'"}', "128"),
        (b"[" * 4_000, ""),
    ],
)
async def test_what_is_no_order_is_400_and_changes_nothing(aiohttp_client: Any, body: bytes, told: str) -> None:
    member = Member()
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", data=body, headers={"Content-Type": "application/json"})
    assert answer.status == 400
    assert told in (await answer.json())["error"]
    assert member.orders == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json", "Origin": "http://127.0.0.1:9325"}, 403),
        ({"Content-Type": "application/json", "Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_browsers_give_no_orders(aiohttp_client: Any, headers: dict[str, str], status: int) -> None:
    member = Member()
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", data='{"order": "verify"}', headers=headers)
    assert answer.status == status
    assert member.orders == []


async def test_a_body_over_4_kib_is_413(aiohttp_client: Any) -> None:
    member = Member()
    client = await client_of(aiohttp_client, member)
    body = '{"order": "verify"}' + " " * 4_096
    answer = await client.post("/cluster/orders", data=body, headers={"Content-Type": "application/json"})
    assert answer.status == 413
    assert member.orders == []


async def test_other_methods_and_pages_are_refused(aiohttp_client: Any) -> None:
    client = await client_of(aiohttp_client, Member())
    assert (await client.get("/cluster/orders")).status == 405
    assert (await client.post("/cluster")).status == 405
    assert (await client.get("/nothing")).status == 404


async def test_orders_that_wait_are_bounded(aiohttp_client: Any) -> None:
    release = asyncio.Event()

    async def wait(order: Order) -> OrderOutcome:
        if len(member.orders) == ORDERS_MAX:
            full.set()
        await release.wait()
        return OrderDone("done")

    full = asyncio.Event()
    member = Member()
    member.outcome = wait
    client = await client_of(aiohttp_client, member)
    waiting = [asyncio.create_task(client.post("/cluster/orders", json={"order": "verify"})) for _ in range(ORDERS_MAX)]
    await asyncio.wait_for(full.wait(), 10)
    assert (await client.post("/cluster/orders", json={"order": "verify"})).status == 503
    release.set()
    assert [(await answer).status for answer in waiting] == [200] * ORDERS_MAX
    assert (await client.post("/cluster/orders", json={"order": "verify"})).status == 200


async def test_an_order_without_an_answer_is_504(aiohttp_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(order: Order) -> OrderOutcome:
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asking, "ORDER_S", 0)
    member = Member()
    member.outcome = never
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", json={"order": "verify"})
    assert answer.status == 504
    assert "may still happen" in (await answer.json())["error"]


async def test_an_order_to_a_stopped_member_is_503(aiohttp_client: Any) -> None:
    async def stopped(order: Order) -> OrderOutcome:
        raise RuntimeStopped

    member = Member()
    member.outcome = stopped
    client = await client_of(aiohttp_client, member)
    answer = await client.post("/cluster/orders", json={"order": "verify"})
    assert (answer.status, await answer.json()) == (503, {"error": "the server is stopping"})


async def test_metrics_are_what_prometheus_reads(aiohttp_client: Any) -> None:
    member = Member()
    member.more = {"http_hot_requests_total": 12.0, "peer_frames_total": 3}
    client = await client_of(aiohttp_client, member)
    answer = await client.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
    assert families["elasticq_http_hot_requests"].samples[0].value == 12
    assert families["elasticq_peer_frames"].type == "counter"
    build = families["elasticq_build_info"].samples[0]
    assert (build.labels, build.value) == ({"version": __version__, "build": BUILD.name}, 1)
    assert int(answer.headers["Content-Length"]) == len(await answer.read())
    head = await client.head("/metrics")
    assert (head.status, await head.read()) == (200, b"")
    assert (await client.get("/metrics")).status == 200
