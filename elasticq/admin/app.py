"""The routes of the admin port: /health, /ready, /master, /cluster, /leases, /groups, /metrics, orders for the cluster.

The port also serves the API of queues (api.py) and the page for browsers (page/).

Questions about another member are sent to it over the link to it (asking.py). All requests have passed
authenticator.py. The port refuses orders from web pages. A page can make a browser post here, but only with an Origin
header or as a plain form.
"""

import asyncio
from importlib import import_module
from typing import Final

from aiohttp import web

from elasticq.admin import asking
from elasticq.admin.admission import BODY_BYTES_MAX, ORDER_BYTES_MAX, POLICY
from elasticq.admin.api import Api, in_parts, reply
from elasticq.admin.authenticator import Token, make_authenticator
from elasticq.admin.backups import Backups
from elasticq.admin.page.frame import by_accept
from elasticq.admin.page.login import Login
from elasticq.admin.page.pages import Pages
from elasticq.admin.source import AdminSource
from elasticq.wire.browsers import Browsers

ORDERS_MAX: Final = 16
"""The number of orders that may wait at the same time. The cluster executes them one after the other."""
PAGES_MAX: Final = 16
"""The number of questions to other members that may wait at the same time."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of each answer, unless its handler has set them."""
LEASES_SHOWN_MAX: Final = 1_000
GROUPS_SHOWN_MAX: Final = 1_000


def make_app(source: AdminSource, token: Token | None = None, browsers: Browsers | None = None) -> web.Application:
    """Return the application.

    token: what operators must show, None if they need nothing; browsers: the check of web pages' requests, None
    without one.
    """
    pages, shared = _Pages(source), token or Token()
    login = Login(shared)
    api = Api(source)
    page = Pages(source, api, login)
    app = web.Application(
        client_max_size=BODY_BYTES_MAX,
        middlewares=[make_authenticator(shared, browsers, login.is_shown_by), page.frame.errors],
    )
    app.on_response_prepare.append(_protect)
    api.add_to(app)
    login.add_to(app)
    page.add_to(app)
    Backups(source).add_to(app)
    app.router.add_get("/health", pages.health)
    app.router.add_get("/ready", pages.ready)
    app.router.add_get("/master", pages.master)
    app.router.add_get("/cluster", by_accept(page.cluster, pages.cluster))
    app.router.add_get("/cluster/members/{member}", pages.member)
    app.router.add_get("/leases", pages.leases)
    app.router.add_get("/groups", by_accept(page.all_groups, pages.groups))
    app.router.add_get("/metrics", pages.metrics)
    app.router.add_post("/cluster/orders", pages.order)
    return app


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that stop web pages of other origins from using an answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


class _Pages:
    def __init__(self, source: AdminSource) -> None:
        self._source = source
        self._metrics_lock = asyncio.Lock()
        self._orders = 0
        self._members = 0

    async def health(self, _: web.Request) -> web.Response:
        """Answer that the process is alive; name its durability if that is reduced."""
        return web.Response(text=self._source.health())

    async def ready(self, _: web.Request) -> web.Response:
        if self._source.stopping:
            return web.Response(status=503, text="stopping")
        status = self._source.status()
        return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)

    async def master(self, _: web.Request) -> web.Response:
        """Answer 200 on the master and 503 elsewhere, for load balancers that send traffic only to the master."""
        role = "stopping" if self._source.stopping else self._source.status().role
        return web.Response(status=200 if role == "master" else 503, text=role)

    async def cluster(self, _: web.Request) -> web.Response:
        return reply(await asking.answer(self._source, asking.CLUSTER, b""))

    async def member(self, request: web.Request) -> web.Response:
        """Return the answer of another member to GET /cluster, fetched over the link to it."""
        if self._members >= PAGES_MAX:
            return _json(503, {"error": f"{PAGES_MAX} members are being asked already"})
        self._members += 1
        try:
            return reply(await asking.page_of(self._source, request.match_info["member"]))
        finally:
            self._members -= 1

    async def leases(self, _: web.Request) -> web.Response:
        """List the open leases, then those that ended last. ``total`` counts all that the member remembers."""
        return _json(200, {"leases": self._source.leases(LEASES_SHOWN_MAX), "total": self._source.status().leases})

    async def groups(self, _: web.Request) -> web.Response:
        """List the consumer groups. The action ElasticqDescribeGroups returns what each consumer holds."""
        return _json(200, {"groups": self._source.groups(GROUPS_SHOWN_MAX)})

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Answer one request at a time. The first one imports the library outside the loop's thread."""
        async with self._metrics_lock:
            await asyncio.get_running_loop().run_in_executor(None, import_module, "elasticq.admin.metrics")
            from elasticq.admin import metrics

            parts = await metrics.expose(self._source)
        return await in_parts(request, parts, metrics.CONTENT_TYPE)

    async def order(self, request: web.Request) -> web.Response:
        if "Origin" in request.headers:
            return _json(403, {"error": "web pages cannot give orders"})
        if request.content_type != "application/json":
            return _json(415, {"error": "the content type of an order is application/json"})
        body = await request.read()
        if self._source.is_read_only:
            return _json(403, {"error": "this admin port is read-only (admin.read_only)"})
        if len(body) > ORDER_BYTES_MAX:
            return _json(413, {"error": f"an order has at most {ORDER_BYTES_MAX} bytes"})
        if self._orders >= ORDERS_MAX:
            return _json(503, {"error": f"{ORDERS_MAX} orders are waiting already"})
        self._orders += 1
        try:
            return reply(await asking.order(self._source, body))
        finally:
            self._orders -= 1


def _json(status: int, content: object) -> web.Response:
    return reply(asking.json_answer(status, content))
