"""The routes of the page: HTML from templates, forms that htmx sends, and static files.

The first request imports Jinja2 outside the loop's thread: nothing else needs it.
"""

import asyncio
import json as plain_json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web

from elasticq import __version__
from elasticq.admin import asking, calls, definitions, events, openapi
from elasticq.admin.api import Api, no_queue
from elasticq.admin.attention.finding import CRITICAL
from elasticq.admin.attention.overview import overview
from elasticq.admin.calls import Ask, NotExecuted
from elasticq.admin.cluster import document
from elasticq.admin.page import forms, groups, scheduled, text, topics
from elasticq.admin.page.login import Login
from elasticq.admin.pauses import first_in_order, joined
from elasticq.admin.shapes import TASKS_SHOWN_MAX, QueueRow
from elasticq.admin.source import AdminSource
from elasticq.engine.stored.subscription_attributes import PROTOCOLS
from elasticq.model.names import account_of, inner_owner, parse_queue_arn, queue_arn, queue_path, region_of, topic_arn

if TYPE_CHECKING:
    from jinja2 import Environment

HERE: Final = Path(__file__).parent
NAV: Final = (
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/topics", "Topics"),
    ("/groups.html", "Groups"),
    ("/consumers", "Consumers"),
    ("/cluster.html", "Cluster"),
    ("/events", "Events"),
    ("/definitions", "Definitions"),
)
COLUMNS: Final = (
    ("name", "Queue"),
    ("visible", "Visible"),
    ("in_flight", "In flight"),
    ("delayed", "Delayed"),
    ("oldest_age_ms", "Oldest"),
    ("sent_per_s", "In, /s"),
    ("received_per_s", "Out, /s"),
    ("deleted_per_s", "Deleted, /s"),
)
SETTINGS: Final = (
    ("VisibilityTimeout", "Visibility timeout, s"),
    ("DelaySeconds", "Delay, s"),
    ("MessageRetentionPeriod", "Retention, s"),
    ("ReceiveMessageWaitTimeSeconds", "Receive wait, s"),
    ("MaximumMessageSize", "Largest message, bytes"),
    ("ContentBasedDeduplication", "Content-based deduplication"),
    ("DeduplicationScope", "Deduplication scope"),
    ("FifoThroughputLimit", "FIFO throughput limit"),
)
SHOWN_MAX: Final = 1_000
PEEKED: Final = 50
IN_FLIGHT_SHOWN: Final = 50
AFTERWARDS: Final = {"DeleteQueue": "/queues", "DeleteTopic": "/topics"}
"""The page that a browser shows after it deleted the queue or topic of its page."""
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
        self._templates: Environment | None = None

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/", self.overview)
        app.router.add_get("/queues", self.queues)
        app.router.add_get("/queues/{account}/{name}", self.queue)
        app.router.add_get("/queues/{account}/{name}/messages/{sequence}", self.message)
        app.router.add_get("/queues/{account}/{name}/scheduled", self.scheduled)
        app.router.add_get("/queues/{account}/{name}/order", self.group_order)
        app.router.add_get("/topics", self.all_topics)
        app.router.add_get("/topics/{account}/{name}", self.topic)
        app.router.add_get("/groups.html", self.all_groups)
        app.router.add_get("/consumers", self.consumers)
        app.router.add_get("/cluster.html", self.cluster)
        app.router.add_get("/events", self.events)
        app.router.add_get("/definitions", self.definitions)
        app.router.add_get("/api/docs", self.docs)
        app.router.add_get("/static/{name}", self.static)
        app.router.add_post("/page/do/{action}", self.do)
        app.router.add_post("/page/as/{tool}/{action}", self.code)
        app.router.add_post("/page/order/{order}", self.order)
        app.router.add_post("/page/order-as/curl/{order}", self.order_code)
        app.router.add_post("/page/definitions", self.load)
        app.router.add_post("/page/matching", self.matching)

    # --- pages --------------------------------------------------------------------------

    async def overview(self, _: web.Request) -> web.Response:
        """Show the state of the cluster."""
        return await self._html("overview.html", "/", owner_path=self._owner_path)

    async def queues(self, request: web.Request) -> web.Response:
        query = request.query
        wanted, sort, down = query.get("filter", "")[:80], query.get("sort", "name"), bool(query.get("down"))
        if sort not in dict(COLUMNS):
            sort = "name"
        rows = [row for row in await self._api.rows() if wanted in row.name]
        shown = await first_in_order(rows, partial(_order, sort), SHOWN_MAX, reverse=down)

        def sorted_by(key: str) -> str:
            turned = "1" if (key == sort and not down) or (key != sort and key != "name") else ""
            return urlencode({"filter": wanted, "sort": key, "down": turned})

        return await self._html(
            "queues.html",
            "/queues",
            rows=shown,
            shown=len(shown),
            total=len(rows),
            filter=wanted,
            sort=sort,
            down=down,
            columns=COLUMNS,
            sorted_by=sorted_by,
            query=urlencode({"filter": wanted, "sort": sort, "down": "1" if down else ""}),
            path=self._path,
        )

    async def queue(self, request: web.Request) -> web.Response:
        try:
            owner, row = self._queue_of(request)
        except NotExecuted as error:
            return await self._missing(error)
        url = {"QueueUrl": row.url}
        asked, page = _peek_filters(request), dict[str, Any]()
        attributes, tags, sources = dict[str, Any](), dict[str, Any](), dict[str, Any]()
        if "HX-Request" not in request.headers:  # a refresh of the page uses none of these
            attributes = await self._try("GetQueueAttributes", {**url, "AttributeNames": ["All"]}, owner)
            tags = await self._try("ListQueueTags", url, owner)
            sources = await self._try("ListDeadLetterSourceQueues", url, owner)
            page = await self._peeked(row, owner, asked)
        found = attributes.get("Attributes", {})
        names = [queue_path(each, owner) for each in sources.get("queueUrls", ())]
        arn = queue_arn(self._source.region, owner, row.name)
        tasks = await self._try("ListMessageMoveTasks", {"SourceArn": arn, "MaxResults": 3}, owner)
        return await self._html(
            "queue.html",
            "",
            **self._of_queue(row),
            attributes=found,
            settings=[(name, label) for name, label in SETTINGS if name in found],
            tags=tags.get("Tags", {}),
            sources=[(name, self._owner_path(own, name)) for own, name in names],
            tasks=tasks.get("Results", ()),
            dead=self._dead(found.get("RedrivePolicy", ""), owner),
            messages=page.get("Messages", ()),
            next_sequence=page.get("NextSequence"),
            trouble=page.get("message", ""),
            asked=asked,
            has_groups=row.name.endswith(".fifo") or self._source.group_order(owner, row.name, "", 0, 0) is not None,
            in_flight=self._source.in_flight(owner, row.name, IN_FLIGHT_SHOWN),
            newest_from=max(0, self._last_sequence(owner, row.name) - PEEKED + 1),
            waiting=[each for each in await self._api.receives() if (each.owner, each.queue) == (owner, row.name)],
        )

    def _of_queue(self, row: QueueRow) -> dict[str, Any]:
        """Return the values that the templates of all pages of a queue use."""
        region_query = "" if row.region == self._source.region else f"region={row.region}&"
        return {
            "queue": row,
            "fifo": row.name.endswith(".fifo"),
            "now_ms": self._source.status().time_ms,
            "base_path": f"/queues/{row.account}/{quote(row.name)}",
            "region_query": region_query,
            "chart_query": f"queue={quote(row.name)}&account={row.account}&{region_query}",
        }

    async def _peeked(self, row: QueueRow, owner: str, asked: dict[str, str]) -> dict[str, Any]:
        given: dict[str, Any] = {"QueueUrl": row.url, "FromSequence": int(asked["first"]), "Limit": PEEKED}
        if asked["state"]:
            given["States"] = [asked["state"]]
        if asked["group"]:
            given["MessageGroupId"] = asked["group"]
        return await self._try("Peek", given, owner)

    async def message(self, request: web.Request) -> web.Response:
        """Return the body of one message as a file."""
        try:
            owner, row = self._queue_of(request)
            sequence = request.match_info["sequence"]
            if not (sequence.isascii() and sequence.isdigit()) or len(sequence) > 19:
                raise NotExecuted(404, "NotFound", "There is no such message.")
            given = {"QueueUrl": row.url, "FromSequence": int(sequence), "Limit": 1}
            page = await self._execute("Peek", given, owner)
            found = [each for each in page["Messages"] if each["Sequence"] == int(sequence)]
            if not found:
                raise NotExecuted(404, "NotFound", "The message does not exist any more.")
        except NotExecuted as error:
            return await self._missing(error)
        headers = {"Content-Disposition": f'attachment; filename="{sequence}.txt"'}
        body = found[0]["Body"].encode("utf-8", "replace")
        return web.Response(body=body, headers=headers, content_type="application/octet-stream")

    async def scheduled(self, request: web.Request) -> web.Response:
        """Show the messages of a queue that wait for their delivery time."""
        try:
            owner, row = self._queue_of(request)
        except NotExecuted as error:
            return await self._missing(error)
        messages, following, first, trouble = list[dict[str, Any]](), None, _first(request), ""
        try:
            messages, following = await scheduled.found(self._asker(owner), row.url, first)
        except NotExecuted as error:
            trouble = error.message
        return await self._html(
            "scheduled.html",
            "",
            **self._of_queue(row),
            messages=messages,
            following=following,
            first=first,
            trouble=trouble,
        )

    async def group_order(self, request: web.Request) -> web.Response:
        """Show the order of a queue's messages in their groups."""
        try:
            owner, row = self._queue_of(request)
        except NotExecuted as error:
            return await self._missing(error)
        wanted = request.query.get("group", "")[:128]
        order = self._api.groups_of(owner, row.name, wanted)
        return await self._html("order.html", "", **self._of_queue(row), order=order, group=wanted)

    async def all_topics(self, request: web.Request) -> web.Response:
        return await self._list(request, "topics.html", "/topics", topics.listed, shown_max=topics.SHOWN_MAX)

    async def all_groups(self, request: web.Request) -> web.Response:
        return await self._list(request, "groups.html", "/groups.html", groups.listed)

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
            return await self._missing(error)
        try:
            rows = await listed(self._asker(owner), wanted)
        except NotExecuted as error:
            trouble = error.message
        return await self._html(
            template,
            here,
            rows=rows,
            trouble=trouble,
            filter=wanted,
            query=urlencode({name: query[name] for name in ("filter", "account", "region") if name in query}),
            owner=owner,
            owner_path=self._owner_path,
            **self._shown(owner),
            **values,
        )

    async def topic(self, request: web.Request) -> web.Response:
        parts = request.match_info
        name = parts["name"]
        try:
            owner = calls.owner_of(self._source, parts["account"], request.query.get("region", ""))
            arn = topic_arn(self._source.region, owner, name)
            topic = await topics.one(self._asker(owner), arn)
        except NotExecuted as error:
            return await self._missing(error)
        for each in topic["subscriptions"]:
            queue = parse_queue_arn(each["Endpoint"], owner) if each["Protocol"] == "sqs" else None
            each["link"] = queue and self._owner_path(*queue)
            key = each["SubscriptionArn"].rpartition(":")[2]
            inner = self._source.queue(inner_owner(owner), key)
            each["waiting"] = None if inner is None else inner.visible + inner.in_flight
            each["counts"] = self._source.subscription(key)
        return await self._html(
            "topic.html",
            "",
            name=name,
            arn=arn,
            fifo=name.endswith(".fifo"),
            protocols=sorted(PROTOCOLS),
            published=topics.published(self._source, owner, name),
            undetailed=max(0, len(topic["subscriptions"]) - topics.DETAILED_MAX),
            **self._shown(owner),
            **topic,
        )

    async def consumers(self, _: web.Request) -> web.Response:
        waiting = await self._api.receives()
        return await self._html("waiting.html", "/consumers", waiting=waiting, owner_path=self._owner_path)

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
        return await self._html(
            "cluster.html",
            "/cluster.html",
            cluster=view,
            voters=voters,
            quorum=voters // 2 + 1,
            linked=len(linked),
            last_election=next((each for each in self._source.events() if each.event in elections), None),
            facts=facts,
            tasks=self._source.tasks(TASKS_SHOWN_MAX),
            now_ms=status.time_ms,
            owner_path=self._owner_path,
        )

    async def events(self, _: web.Request) -> web.Response:
        return await self._html("events.html", "/events", events=await events.of_cluster(self._source))

    async def definitions(self, request: web.Request) -> web.Response:
        origin, has_token = str(request.url.origin()), self._login.is_wanted
        token = forms.TOKEN if has_token else ""
        return await self._html(
            "definitions.html",
            "/definitions",
            download=f"curl -s {origin}/api/definitions{token} -o definitions.json",
            upload=f"curl -s -X PUT {origin}/api/definitions{token} {forms.AS_JSON} -d @definitions.json",
        )

    async def docs(self, _: web.Request) -> web.Response:
        return await self._html("docs.html", "", api=openapi.document())

    async def static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in STATIC:
            return web.Response(status=404)
        headers = {"Cache-Control": "max-age=3600"}
        return web.Response(body=(HERE / "static" / name).read_bytes(), content_type=STATIC[name], headers=headers)

    # --- forms ----------------------------------------------------------------------------

    async def do(self, request: web.Request) -> web.Response:
        """Execute the action of a form, and show its result."""
        try:
            given, owner = await self._form(request)
            answer = await self._execute(request.match_info["action"], given, owner)
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        shown = text.shown(plain_json.dumps(answer, indent=2, ensure_ascii=False) if answer else "")
        if answer.get("NotFound"):
            message = "was not done: the message does not wait any more, or a consumer received it."
            return await self._notice("refused", request.match_info["action"], message, shown)
        notice = await self._notice("done", request.match_info["action"], "was done.", shown)
        notice.headers["HX-Trigger"] = "done"
        if request.match_info["action"] in AFTERWARDS:
            notice.headers["HX-Redirect"] = AFTERWARDS[request.match_info["action"]]
        return notice

    async def code(self, request: web.Request) -> web.Response:
        """Show the form's action as a command of the AWS CLI or curl, or as Python, without executing it."""
        action, tool = request.match_info["action"], request.match_info["tool"]
        if tool not in forms.tools_of(action):
            return web.Response(status=404)
        try:
            given, owner = await self._form(request, is_executed=False)
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        region = region_of(owner, self._source.region)
        if tool == "curl":
            own = {"account": account_of(owner), "region": region}
            differing = {key: value for key, value in own.items() if value != getattr(self._source, key)}
            path = f"/api/actions/{action}" + (f"?{urlencode(differing)}" if differing else "")
            shown = forms.as_curl(path, given, str(request.url.origin()), has_token=self._login.is_wanted)
        else:
            write = forms.as_cli if tool == "cli" else forms.as_boto3
            shown = write(action, given, self._source.endpoint, region)
        return await self._notice("code", "The same", "elsewhere:", shown)

    async def _form(self, request: web.Request, *, is_executed: bool = True) -> tuple[dict[str, Any], str]:
        """Return the members of the action and the owner that a form names.

        Only htmx on this page sends such a request: no page of another origin can set its header. Raise NotExecuted
        if the form is not of this page or is malformed, or if the typed name (its confirmation) is not the thing's.
        """
        fields = await _fields(request)
        own = {name: value for name, value in fields if name.startswith("_")}
        action = request.match_info.get("action", "Publish")
        given = forms.members(action, [each for each in fields if each[0] not in own])
        owner = calls.owner_of(self._source, own.get("_account", ""), own.get("_region", ""))
        is_topic = "TopicArn" in given
        named = str(given.get("TopicArn") or given.get("QueueUrl", ""))
        name = topics.name_in(named) if is_topic else queue_path(named, owner)[1]
        if is_executed and own.get("_typed", name) != name:
            kind = "topic" if is_topic else "queue"
            raise NotExecuted(400, "NotConfirmed", f"The typed name is not that of the {kind}: nothing was done.")
        return given, owner

    async def order(self, request: web.Request) -> web.Response:
        """Execute an order for the cluster, and show its result."""
        try:
            fields = dict(await _fields(request))
            calls.check_may_change(self._source)
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        body = msgspec.json.encode({"order": request.match_info["order"], "member": fields.get("member", "")})
        status, answer = await asking.order(self._source, body)
        outcome = msgspec.json.decode(answer)
        message = str(outcome.get("done") or outcome.get("refused") or outcome.get("error"))
        return await self._notice("done" if status == 200 else "refused", "The order", message, status=status)

    async def order_code(self, request: web.Request) -> web.Response:
        """Show an order for the cluster as a command of curl, without executing it."""
        try:
            fields = dict(await _fields(request))
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        given = {"order": request.match_info["order"], "member": fields.get("member", "")}
        shown = forms.as_curl("/cluster/orders", given, str(request.url.origin()), has_token=self._login.is_wanted)
        return await self._notice("code", "The same", "elsewhere:", shown)

    async def matching(self, request: web.Request) -> web.Response:
        """Show which subscriptions would get the form's message, without publishing it."""
        try:
            given, owner = await self._form(request, is_executed=False)
            reached, kept, unknown = await topics.matching(self._asker(owner), given)
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        except ValueError as error:
            return await self._notice("refused", "InvalidParameter", str(error), status=400)
        lines = [f"gets it: {each}" for each in reached] + [f"filtered out: {each}" for each in kept]
        more = f", and {unknown} more were not checked" if unknown else ""
        message = f"would get it, {len(kept)} would not{more}. Nothing was published."
        return await self._notice("code", str(len(reached)), message, text.shown("\n".join(lines)))

    async def load(self, request: web.Request) -> web.Response:
        try:
            fields = dict(await _fields(request))
            progress = await definitions.load(self._source, fields.get("definitions", "").encode())
        except NotExecuted as error:
            return await self._notice("refused", error.code, error.message, status=error.status)
        return await self._notice("done", "The definitions", f"were loaded: {progress}.")

    # --- parts --------------------------------------------------------------------------

    def _queue_of(self, request: web.Request) -> tuple[str, QueueRow]:
        """Return the owner and the row of the queue that a path names. Raise NotExecuted if it does not exist."""
        parts = request.match_info
        owner = calls.owner_of(self._source, parts["account"], request.query.get("region", ""))
        row = self._api.row_of(owner, parts["name"])
        if row is None:
            raise no_queue(parts["name"])
        return owner, row

    def _last_sequence(self, owner: str, name: str) -> int:
        figures = self._source.queue(owner, name)
        return 0 if figures is None else figures.last_sequence

    async def _execute(self, action: str, given: dict[str, Any], owner: str) -> dict[str, Any]:
        return await calls.ask(self._source, action, given, owner)

    async def _try(self, action: str, given: dict[str, Any], owner: str) -> dict[str, Any]:
        """Execute an action like ``_execute``, but return an error as the member ``message``."""
        try:
            return await self._execute(action, given, owner)
        except NotExecuted as error:
            return {"message": error.message}

    def _asker(self, owner: str) -> Ask:
        return lambda action, given: self._execute(action, given, owner)

    def _shown(self, owner: str) -> dict[str, Any]:
        """Return account and region of the page's subject, which may differ from the node's."""
        return {"shown_account": account_of(owner), "shown_region": region_of(owner, self._source.region)}

    def _dead(self, policy: str, owner: str) -> dict[str, Any] | None:
        try:
            redrive = msgspec.json.decode(policy, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            return None
        found = parse_queue_arn(redrive.get("deadLetterTargetArn"), owner)
        if found is None:
            return None
        return {"name": found[1], "path": self._owner_path(*found), "count": redrive.get("maxReceiveCount")}

    def _path(self, row: QueueRow) -> str:
        query = "" if row.region == self._source.region else f"?region={row.region}"
        return f"/queues/{row.account}/{quote(row.name)}{query}"

    def _owner_path(self, owner: str, name: str, kind: str = "queues") -> str:
        region = region_of(owner, self._source.region)
        query = "" if region == self._source.region else f"?region={region}"
        return f"/{kind}/{account_of(owner)}/{quote(name)}{query}"

    async def _missing(self, error: NotExecuted) -> web.Response:
        return await self._html("missing.html", "", text=error.message, code=error.status)

    async def _notice(self, kind: str, title: str, message: str, code: str = "", *, status: int = 200) -> web.Response:
        template = (await self._environment()).get_template("notice.html")
        body = template.render(kind=kind, title=title, text=message, code=code)
        return web.Response(text=body, content_type="text/html", status=status)

    async def _html(self, template: str, here: str, /, *, code: int = 200, **values: Any) -> web.Response:
        environment = await self._environment()
        source, state = self._source, overview(await self._api.surveyor.survey())
        parts = environment.get_template(template).generate(
            nav=NAV,
            here=here,
            status=source.status(),
            state=state,
            alarms=[each for each in state.findings if each.severity == CRITICAL],
            node=source.node_name,
            version=__version__,
            endpoint=source.endpoint,
            account=source.account,
            region=source.region,
            read_only=source.is_read_only,
            has_login=self._login.is_wanted,
            **values,
        )
        body = await joined(parts)
        return web.Response(text=body, content_type="text/html", status=code)

    async def _environment(self) -> "Environment":
        if self._templates is None:
            await asyncio.get_running_loop().run_in_executor(None, import_module, "jinja2")
            from jinja2 import Environment, FileSystemLoader

            made = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True)
            made.filters.update(text.FILTERS)
            made.globals["tools_of"] = forms.tools_of
            await asyncio.get_running_loop().run_in_executor(None, _compile, made)
            self._templates = made
        return self._templates


def _compile(environment: "Environment") -> None:
    """Compile all templates, each of which takes up to 50 ms. The environment keeps them."""
    for name in environment.list_templates():
        environment.get_template(name)


async def _fields(request: web.Request) -> list[tuple[str, str]]:
    """Return the fields of a form that this page sent. Raise NotExecuted for any other request."""
    if request.headers.get("HX-Request") != "true":
        raise NotExecuted(403, "NotFromThisPage", "Only the page may send its forms: use the API.")
    return [(name, value) for name, value in (await request.post()).items() if isinstance(value, str)]


def _first(request: web.Request) -> int:
    """Return the sequence of the first message to show."""
    first = request.query.get("from", "0")
    return int(first) if first.isascii() and first.isdigit() and len(first) <= 19 else 0


def _peek_filters(request: web.Request) -> dict[str, str]:
    """Return which messages of a queue to show: their state, group and first sequence."""
    state, group = (request.query.get(key, "")[:128] for key in ("state", "group"))
    return {"state": state, "group": group, "first": str(_first(request))}


def _order(sort: str, row: QueueRow) -> tuple[Any, ...]:
    value = getattr(row, sort)
    return (value is not None, value if value is not None else 0, row.name)
