"""The door of the admin port: a token where one is set, and no page of others."""

from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from elasticq.admin.app import make_app
from elasticq.admin.authenticator import Token
from elasticq.wire.browsers import Browsers
from elasticq.wire.headers import NOTIFICATION_TYPE
from tests.admin.member import Member

TOKEN = "a-token-of-operators"


async def statuses(aiohttp_client: Any, token: str | None, **headers: str) -> dict[str, int]:
    client = await aiohttp_client(TestServer(make_app(Member(), Token(token), Browsers())))
    pages = ("/health", "/ready", "/master", "/cluster", "/metrics")
    return {page: (await client.get(page, headers=headers)).status for page in pages}


@pytest.mark.parametrize(
    ("token", "authorization", "status"),
    [
        ("", None, 200),
        (TOKEN, f"Bearer {TOKEN}", 200),
        (TOKEN, None, 401),
        (TOKEN, "Bearer ", 401),
        (TOKEN, f"Bearer {TOKEN}x", 401),
        (TOKEN, f"Basic {TOKEN}", 401),
        (TOKEN, "Bearer \xff", 401),
        (None, None, 403),
        (None, "Bearer ", 403),
        (None, "Bearer None", 403),
    ],
)
async def test_pages_but_for_probes_want_the_token(
    aiohttp_client: Any, token: str | None, authorization: str | None, status: int
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    seen = await statuses(aiohttp_client, token, **headers)
    assert seen == {"/health": 200, "/ready": 200, "/master": 200, "/cluster": status, "/metrics": status}


async def test_orders_want_the_token(aiohttp_client: Any) -> None:
    member = Member()
    client = await aiohttp_client(TestServer(make_app(member, Token(TOKEN))))
    assert (await client.post("/cluster/orders", json={"order": "verify"})).status == 401
    assert member.orders == []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert (await client.post("/cluster/orders", json={"order": "verify"}, headers=headers)).status == 200


@pytest.mark.parametrize("token", ["", TOKEN, None])
async def test_a_notification_of_a_topic_is_refused_at_every_route(aiohttp_client: Any, token: str | None) -> None:
    member = Member()
    app = make_app(member, Token(token), Browsers())
    client = await aiohttp_client(TestServer(app))
    headers = {NOTIFICATION_TYPE: "Notification", "Authorization": f"Bearer {TOKEN}"}
    routes = [(each.method, each.resource.canonical) for each in app.router.routes() if each.resource is not None]
    assert len(routes) > 20
    for method, path in [*routes, ("POST", "/nothing"), ("POST", "/api/actions/DeleteQueue"), ("PUT", "/cluster")]:
        url = path.replace("{", "").replace("}", "")
        answer = await client.request(method, url, json={"QueueUrl": "x"}, headers=headers, allow_redirects=False)
        assert answer.status == 403, (method, path)
    assert (member.orders, member.asked) == ([], [])


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example", "Sec-Fetch-Mode": "cors"}]
)
async def test_pages_of_others_see_nothing(aiohttp_client: Any, headers: dict[str, str]) -> None:
    assert set((await statuses(aiohttp_client, "", **headers)).values()) == {403}


async def test_a_page_under_a_name_of_its_own_sees_what_probes_see(aiohttp_client: Any) -> None:
    """It can take every mark of its browser away; without a token only the Host tells."""
    seen = await statuses(aiohttp_client, "", Host="evil.example:9325", **{"User-Agent": "x"})
    assert seen == {"/health": 200, "/ready": 200, "/master": 200, "/cluster": 403, "/metrics": 403}
    with_token = {"Host": "admin.example.com", "Authorization": f"Bearer {TOKEN}"}
    assert set((await statuses(aiohttp_client, TOKEN, **with_token)).values()) == {200}
    assert set((await statuses(aiohttp_client, "", Host="elasticq-0")).values()) == {200}
