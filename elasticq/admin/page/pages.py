"""The pages for browsers: topics, groups, consumers, cluster, events, definitions, the API's description, static files.

The pages of queues are in queue_list.py and queue_page.py, the forms in actions.py.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from elasticq import __version__
from elasticq.admin import calls, events, openapi
from elasticq.admin.api import Api
from elasticq.admin.calls import Ask, NotExecuted
from elasticq.admin.cluster import document
from elasticq.admin.page import forms, groups, text, topics
from elasticq.admin.page.actions import Actions
from elasticq.admin.page.frame import HERE, Frame
from elasticq.admin.page.login import Login
from elasticq.admin.page.queue_list import QueueList
from elasticq.admin.page.queue_page import QueuePage
from elasticq.admin.page.settings import redrive_of
from elasticq.admin.shapes import TASKS_SHOWN_MAX
from elasticq.admin.source import AdminSource
from elasticq.engine.stored import topic_attributes
from elasticq.engine.stored.subscription_attributes import PROTOCOLS
from elasticq.model.names import inner_owner, parse_queue_arn, topic_arn

STATIC: Final = {
    "htmx.min.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "page.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}


class Pages:
    """The handlers of the page. ``api`` has the figures that it shows."""

    def __init__(self, source: AdminSource, api: Api, login: Login) -> None:
        self._source = source
        self._api = api
        self._login = login
        self.frame = Frame(source, login, api.surveyor)

    def add_to(self, app: web.Application) -> None:
        for path, handler in (
            ("/", self.overview),
            ("/page/state", self.state),
            ("/topics", self.all_topics),
            ("/topics/{account}/{name}", self.topic),
            ("/consumers", self.consumers),
            ("/events", self.events),
            ("/definitions", self.definitions),
            ("/api/docs", self.docs),
            ("/static/{name}", self.static),
        ):
            app.router.add_get(path, handler)
        QueueList(self.frame, self._api).add_to(app)
        QueuePage(self.frame, self._api).add_to(app)
        Actions(self.frame).add_to(app)

    async def overview(self, _: web.Request) -> web.Response:
        """Show the state of the cluster."""
        return await self.frame.html("overview.html", "/", owner_path=self.frame.owner_path)

    async def state(self, _: web.Request) -> web.Response:
        """Return the frame alone, with which each page refreshes the state of the member."""
        return await self.frame.html("base.html", "")

    async def all_topics(self, request: web.Request) -> web.Response:
        return await self._list(request, "topics.html", "/topics", topics.listed, shown_max=topics.SHOWN_MAX)

    async def all_groups(self, request: web.Request) -> web.Response:
        return await self._list(request, "groups.html", "/groups", groups.listed)

    async def _list(
        self,
        request: web.Request,
        template: str,
        here: str,
        listed: Callable[[Ask, str], Awaitable[list[dict[str, Any]]]],
        **values: Any,
    ) -> web.Response:
        """Show a list of things of one account and region whose names contain the filter."""
        query = request.query
        wanted, trouble, rows = query.get("filter", "")[:80], "", list[dict[str, Any]]()
        try:
            owner = calls.owner_of(self._source, query.get("account", ""), query.get("region", ""))
        except NotExecuted as error:
            return await self.frame.missing(error)
        try:
            rows = await listed(self.frame.asker(owner), wanted)
        except NotExecuted as error:
            trouble = error.message
        return await self.frame.html(
            template,
            here,
            rows=rows,
            trouble=trouble,
            filter=wanted,
            query=urlencode({name: query[name] for name in ("filter", "account", "region") if name in query}),
            owner=owner,
            owner_path=self.frame.owner_path,
            **self.frame.shown(owner),
            **values,
        )

    async def topic(self, request: web.Request) -> web.Response:
        parts = request.match_info
        name = parts["name"]
        try:
            owner = calls.owner_of(self._source, parts["account"], request.query.get("region", ""))
            arn = topic_arn(self._source.region, owner, name)
            topic = await topics.one(self.frame.asker(owner), arn)
        except NotExecuted as error:
            return await self.frame.missing(error)
        for each in topic["subscriptions"]:
            queue = parse_queue_arn(each["Endpoint"], owner) if each["Protocol"] == "sqs" else None
            each["link"] = queue and self.frame.owner_path(*queue)
            key = each["SubscriptionArn"].rpartition(":")[2]
            inner = self._source.queue(inner_owner(owner), key)
            each["waiting"] = None if inner is None else inner.visible + inner.in_flight
            each["counts"] = self._source.subscription(key)
            each["dead_letters"] = redrive_of(each["attributes"]).target
        return await self.frame.html(
            "topic.html",
            "/topics",
            name=name,
            arn=arn,
            fifo=name.endswith(".fifo"),
            protocols=sorted(PROTOCOLS),
            settable=topic_attributes.names(is_fifo=name.endswith(".fifo")),
            published=topics.published(self._source, owner, name),
            undetailed=max(0, len(topic["subscriptions"]) - topics.DETAILED_MAX),
            **self.frame.shown(owner),
            **topic,
        )

    async def consumers(self, _: web.Request) -> web.Response:
        waiting = await self._api.receives()
        return await self.frame.html("waiting.html", "/consumers", waiting=waiting, owner_path=self.frame.owner_path)

    async def cluster(self, _: web.Request) -> web.Response:
        status = self._source.status()
        view = document(self._source.node_name, status)
        voters = max(1, len(status.voters))
        linked = [each for each in status.members if each.voter and (each.is_linked or each.id == status.member_id)]
        elections = ("mastership_gained", "master", "election")
        metrics = self._source.metrics()
        facts = [("health", self._source.health()), ("version", __version__), ("waiting receives", status.waiters)]
        facts += [("held calls", status.held_calls), ("leases", status.leases), ("queues", status.queues)]
        if "disk_free_bytes" in metrics:
            free, whole = text.size(metrics["disk_free_bytes"]), text.size(metrics["disk_size_bytes"])
            facts.append(("disk", "full" if metrics["disk_full"] else f"{free} free of {whole}"))
        return await self.frame.html(
            "cluster.html",
            "/cluster",
            cluster=view,
            voters=voters,
            quorum=voters // 2 + 1,
            linked=len(linked),
            last_election=next((each for each in self._source.events() if each.event in elections), None),
            facts=facts,
            tasks=self._source.tasks(TASKS_SHOWN_MAX),
            now_ms=status.time_ms,
            owner_path=self.frame.owner_path,
        )

    async def events(self, _: web.Request) -> web.Response:
        return await self.frame.html("events.html", "/events", events=await events.of_cluster(self._source))

    async def definitions(self, request: web.Request) -> web.Response:
        origin, has_token = str(request.url.origin()), self._login.is_wanted
        token = forms.TOKEN if has_token else ""
        return await self.frame.html(
            "definitions.html",
            "/definitions",
            download=f"curl -s {origin}/api/definitions{token} -o definitions.json",
            upload=f"curl -s -X PUT {origin}/api/definitions{token} {forms.AS_JSON} -d @definitions.json",
        )

    async def docs(self, _: web.Request) -> web.Response:
        return await self.frame.html("docs.html", "", api=openapi.document())

    async def static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in STATIC:
            return web.Response(status=404)
        headers = {"Cache-Control": "max-age=3600"}
        return web.Response(body=(HERE / "static" / name).read_bytes(), content_type=STATIC[name], headers=headers)
