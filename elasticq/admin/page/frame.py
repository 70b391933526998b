"""The frame of all pages: the templates, their common values, notes, and pages for errors.

The first request imports Jinja2 outside the loop's thread: nothing else needs it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from aiohttp import web

from elasticq import __version__
from elasticq.admin import asking, calls
from elasticq.admin.attention.finding import CRITICAL
from elasticq.admin.attention.overview import overview
from elasticq.admin.attention.survey import Surveyor
from elasticq.admin.calls import Ask, NotExecuted
from elasticq.admin.page import forms, text
from elasticq.admin.page.login import Login
from elasticq.admin.pauses import joined
from elasticq.admin.source import AdminSource
from elasticq.model.names import account_of, region_of

if TYPE_CHECKING:
    from jinja2 import Environment

HERE: Final = Path(__file__).parent
NAV: Final = (
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/topics", "Topics"),
    ("/groups", "Groups"),
    ("/consumers", "Consumers"),
    ("/cluster", "Cluster"),
    ("/events", "Events"),
    ("/definitions", "Definitions"),
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Frame:
    """What all pages share: the member that they show, and the templates."""

    def __init__(self, source: AdminSource, login: Login, surveyor: Surveyor) -> None:
        self.source = source
        self.login = login
        self._surveyor = surveyor
        self._templates: Environment | None = None

    # --- answers ----------------------------------------------------------------------------

    async def html(self, template: str, here: str, /, *, code: int = 200, **values: Any) -> web.Response:
        """Return a page. ``here``: the path of its entry in the navigation, empty if it has none."""
        environment, source = await self._environment(), self.source
        state = overview(await self._surveyor.survey())
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
            has_login=self.login.is_wanted,
            **values,
        )
        body = await joined(parts)
        return web.Response(text=body, content_type="text/html", status=code)

    async def missing(self, error: NotExecuted) -> web.Response:
        return await self.html("missing.html", "", text=error.message, code=error.status)

    async def notice(self, kind: str, title: str, message: str, code: str = "", *, status: int = 200) -> web.Response:
        template = (await self._environment()).get_template("notice.html")
        body = template.render(kind=kind, title=title, text=message, code=code)
        return web.Response(text=body, content_type="text/html", status=status)

    async def refused(self, error: NotExecuted) -> web.Response:
        return await self.notice("refused", error.code, error.message, status=error.status)

    @web.middleware
    async def errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer unknown paths and methods: browsers with a page, tools with JSON."""
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status not in (404, 405):
                raise
            known = {name: value for name, value in error.headers.items() if name == "Allow"}
            words = "There is no such page." if error.status == 404 else f"{request.method} is not allowed here."
            if wants_page(request):
                response = await self.missing(NotExecuted(error.status, "NotFound", words))
            else:
                status, body = asking.json_answer(error.status, {"error": words})
                response = web.Response(status=status, body=body, content_type="application/json")
            response.headers.update(known)
            return response

    # --- the subject of a page ----------------------------------------------------------------

    async def execute(self, action: str, given: dict[str, Any], owner: str) -> dict[str, Any]:
        return await calls.ask(self.source, action, given, owner)

    async def attempt(self, action: str, given: dict[str, Any], owner: str) -> dict[str, Any]:
        """Execute an action like ``execute``, but return an error as the member ``message``."""
        try:
            return await self.execute(action, given, owner)
        except NotExecuted as error:
            return {"message": error.message}

    def asker(self, owner: str) -> Ask:
        return lambda action, given: self.execute(action, given, owner)

    def shown(self, owner: str) -> dict[str, Any]:
        """Return account and region of the page's subject, which may differ from the node's."""
        return {"shown_account": account_of(owner), "shown_region": region_of(owner, self.source.region)}

    def owner_path(self, owner: str, name: str, kind: str = "queues") -> str:
        """Return the path of the page of a queue or topic."""
        region = region_of(owner, self.source.region)
        query = "" if region == self.source.region else f"?region={region}"
        return f"/{kind}/{account_of(owner)}/{quote(name)}{query}"

    # --- templates ----------------------------------------------------------------------------

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


def wants_page(request: web.Request) -> bool:
    """Return whether a browser asks: it accepts HTML by name, or its page asks by htmx."""
    return "text/html" in request.headers.get("Accept", "") or "HX-Request" in request.headers


def by_accept(page: Handler, tool: Handler) -> Handler:
    """Return a handler that shows browsers the page, and gives tools their JSON."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = await (page if wants_page(request) else tool)(request)
        response.headers["Vary"] = "Accept, HX-Request"
        return response

    return handler
