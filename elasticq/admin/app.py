"""The routes of the admin port: /health, /ready, /master, /cluster, /leases, /groups, /metrics, orders for the cluster.

Besides these there are the API of queues (api.py) and the page for browsers (page/).

What is about another member is asked of it over the link between the two (asking.py).
Requests have passed authenticator.py. Orders are taken from no web page: a page can make a browser post here, but only
with an Origin header or as a plain form.
"""

import asyncio
from importlib import import_module
from typing import Final

from aiohttp import web

from elasticq.admin import asking
from elasticq.admin.admission import BODY_BYTES_MAX, ORDER_BYTES_MAX, POLICY
from elasticq.admin.api import Api, in_parts, reply
from elasticq.admin.authenticator import Token, make_authenticator
from elasticq.admin.page.login import Login
from elasticq.admin.page.pages import Pages
from elasticq.admin.source import AdminSource
from elasticq.wire.browsers import Browsers

ORDERS_MAX: Final = 16
"""Orders that may wait at the same time; the cluster carries out one after the other anyway."""
PAGES_MAX: Final = 16
"""Pages of other members that may be asked for at the same time."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise itself."""
LEASES_SHOWN_MAX: Final = 1_000
GROUPS_SHOWN_MAX: Final = 1_000


def make_app(source: AdminSource, token: Token | None = None, browsers: Browsers | None = None) -> web.Application:
    """The application, which keeps only the number of waiting orders.

    token: what operators must show, None: nothing; browsers: see authenticator.py.
    """
    pages, shared = _Pages(source), token or Token()
    login = Login(shared)
    app = web.Application(
        client_max_size=BODY_BYTES_MAX, middlewares=[make_authenticator(shared, browsers, login.is_shown_by)]
    )
    app.on_response_prepare.append(_protect)
    api = Api(source)
    api.add_to(app)
    login.add_to(app)
    Pages(source, api, login).add_to(app)
    app.router.add_get("/health", pages.health)
    app.router.add_get("/ready", pages.ready)
    app.router.add_get("/master", pages.master)
    app.router.add_get("/cluster", pages.cluster)
    app.router.add_get("/cluster/members/{member}", pages.member)
    app.router.add_get("/leases", pages.leases)
    app.router.add_get("/groups", pages.groups)
    app.router.add_get("/metrics", pages.metrics)
    app.router.add_post("/cluster/orders", pages.order)
    return app


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that keep pages of others from using an answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


class _Pages:
    __slots__ = ("_looking", "_members", "_orders", "_source")

    def __init__(self, source: AdminSource) -> None:
        self._source = source
        self._looking = asyncio.Lock()
        self._orders = 0
        self._members = 0

    async def health(self, _: web.Request) -> web.Response:
        """Tell that this process answers, and its durability where that is not the full one."""
        return web.Response(text=self._source.health())

    async def ready(self, _: web.Request) -> web.Response:
        if self._source.stopping:
            return web.Response(status=503, text="stopping")
        status = self._source.status()
        return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)

    async def master(self, _: web.Request) -> web.Response:
        """Answer 200 on the master alone, for load balancers that send traffic to the master only."""
        role = "stopping" if self._source.stopping else self._source.status().role
        return web.Response(status=200 if role == "master" else 503, text=role)

    async def cluster(self, _: web.Request) -> web.Response:
        return reply(await asking.answer(self._source, asking.CLUSTER, b""))

    async def member(self, request: web.Request) -> web.Response:
        """Show the page /cluster of another member, which is asked for it over the link to it."""
        if self._members >= PAGES_MAX:
            return _json(503, {"error": f"{PAGES_MAX} members are being asked already"})
        self._members += 1
        try:
            return reply(await asking.page_of(self._source, request.match_info["member"]))
        finally:
            self._members -= 1

    async def leases(self, _: web.Request) -> web.Response:
        """List the leases that live, then those that ended last; ``total`` counts all that are remembered."""
        return _json(200, {"leases": self._source.leases(LEASES_SHOWN_MAX), "total": self._source.status().leases})

    async def groups(self, _: web.Request) -> web.Response:
        """List the consumer groups; ElasticqDescribeGroups tells what each consumer holds."""
        return _json(200, {"groups": self._source.groups(GROUPS_SHOWN_MAX)})

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Answer one request at a time. The first one imports the library, in another thread than the loop's."""
        async with self._looking:
            await asyncio.get_running_loop().run_in_executor(None, import_module, "elasticq.admin.metrics")
            from elasticq.admin import metrics

            parts = await metrics.expose(self._source)
        return await in_parts(request, parts, metrics.CONTENT_TYPE)

    async def order(self, request: web.Request) -> web.Response:
        if "Origin" in request.headers:
            return _json(403, {"error": "orders are not taken from web pages"})
        if request.content_type != "application/json":
            return _json(415, {"error": "an order is application/json"})
        body = await request.read()
        if self._source.is_read_only:
            return _json(403, {"error": "this admin port may change nothing (admin.read_only)"})
        if len(body) > ORDER_BYTES_MAX:
            return _json(413, {"error": f"an order is at most {ORDER_BYTES_MAX} bytes"})
        if self._orders >= ORDERS_MAX:
            return _json(503, {"error": f"{ORDERS_MAX} orders wait already"})
        self._orders += 1
        try:
            return reply(await asking.order(self._source, body))
        finally:
            self._orders -= 1


def _json(status: int, content: object) -> web.Response:
    return reply(asking.told(status, content))
