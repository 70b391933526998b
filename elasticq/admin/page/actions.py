"""The forms of the page: they execute actions and orders, or show them as commands of other tools."""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from elasticq.admin import asking, calls, comparison, definitions
from elasticq.admin.calls import NotExecuted
from elasticq.admin.page import forms, outcomes, text, topics
from elasticq.admin.page.frame import Frame
from elasticq.model.names import account_of, queue_path, region_of

AFTERWARDS: Final = {"DeleteQueue": "/queues", "DeleteTopic": "/topics"}
"""The page that a browser shows after it deleted the queue or topic of its page."""
Answering = Callable[[web.Request], Awaitable[web.Response]]


class Actions:
    """The handlers of forms. Each answers with a note (notice.html)."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._source = frame.source

    def add_to(self, app: web.Application) -> None:
        for path, handler in (
            ("/page/do/{action}", self.do),
            ("/page/as/{tool}/{action}", self.code),
            ("/page/order/{order}", self.order),
            ("/page/order-as/curl/{order}", self.order_code),
            ("/page/definitions", self.load),
            ("/page/matching", self.matching),
        ):
            app.router.add_post(path, self._noted(handler))

    def _noted(self, handler: Answering) -> Answering:
        """Return the handler with a note for what it refuses."""

        async def noted(request: web.Request) -> web.Response:
            try:
                return await handler(request)
            except NotExecuted as error:
                return await self._frame.refused(error)

        return noted

    async def do(self, request: web.Request) -> web.Response:
        """Execute the action of a form, and show its result."""
        action = request.match_info["action"]
        given, owner = await self._form(request)
        answer = await self._frame.execute(action, given, owner)
        if answer.get("NotFound"):
            return await self._frame.notice("refused", "Not done.", outcomes.TOO_LATE)
        title, words = outcomes.of(action, given, answer)
        notice = await self._frame.notice("done", title, words, text.shown(outcomes.detail(action, answer)))
        notice.headers["HX-Trigger"] = "done"
        if action in AFTERWARDS:
            notice.headers["HX-Redirect"] = AFTERWARDS[action]
        return notice

    async def code(self, request: web.Request) -> web.Response:
        """Show the form's action as a command of the AWS CLI or curl, or as Python, without executing it."""
        action, tool = request.match_info["action"], request.match_info["tool"]
        if tool not in forms.tools_of(action):
            return web.Response(status=404)
        given, owner = await self._form(request, is_executed=False)
        region = region_of(owner, self._source.region)
        if tool == "curl":
            own = {"account": account_of(owner), "region": region}
            differing = {key: value for key, value in own.items() if value != getattr(self._source, key)}
            path = f"/api/actions/{action}" + (f"?{urlencode(differing)}" if differing else "")
            return await self._as_curl(request, path, given)
        write = forms.as_cli if tool == "cli" else forms.as_boto3
        return await self._elsewhere(write(action, given, self._source.endpoint, region))

    async def order(self, request: web.Request) -> web.Response:
        """Execute an order for the cluster, and show its result."""
        order = await self._order(request)
        calls.check_may_change(self._source)
        status, answer = await asking.order(self._source, msgspec.json.encode(order))
        outcome = msgspec.json.decode(answer)
        message = str(outcome.get("done") or outcome.get("refused") or outcome.get("error"))
        if status != 200:
            return await self._frame.notice("refused", "Not done:", f"{message}.", status=status)
        if order["order"] == "verify":
            is_equal, message = await comparison.compare(self._source, message)
            return await self._frame.notice("done" if is_equal else "refused", "Rows compared.", message)
        return await self._frame.notice("done", "Done:", f"{message}.")

    async def order_code(self, request: web.Request) -> web.Response:
        """Show an order for the cluster as a command of curl, without executing it."""
        return await self._as_curl(request, "/cluster/orders", await self._order(request))

    async def _order(self, request: web.Request) -> dict[str, str]:
        fields = dict(await sent_fields(request))
        return {"order": request.match_info["order"], "member": fields.get("member", "")}

    async def _as_curl(self, request: web.Request, path: str, given: dict[str, Any]) -> web.Response:
        origin, has_token = str(request.url.origin()), self._frame.login.is_wanted
        return await self._elsewhere(forms.as_curl(path, given, origin, has_token=has_token))

    async def _elsewhere(self, command: str) -> web.Response:
        return await self._frame.notice("code", "The same", "elsewhere:", command)

    async def matching(self, request: web.Request) -> web.Response:
        """Show which subscriptions would get the form's message, without publishing it."""
        given, owner = await self._form(request, is_executed=False)
        try:
            reached, kept, unknown = await topics.matching(self._frame.asker(owner), given)
        except ValueError as error:
            raise NotExecuted(400, "InvalidParameter", str(error)) from error
        lines = [f"gets it: {each}" for each in reached] + [f"filtered out: {each}" for each in kept]
        more = f", and {unknown} more were not checked" if unknown else ""
        message = f"would get it, {len(kept)} would not{more}. Nothing was published."
        return await self._frame.notice("code", str(len(reached)), message, text.shown("\n".join(lines)))

    async def load(self, request: web.Request) -> web.Response:
        fields = dict(await sent_fields(request))
        progress = await definitions.load(self._source, fields.get("definitions", "").encode())
        return await self._frame.notice("done", "The definitions", f"were loaded: {progress}.")

    async def _form(self, request: web.Request, *, is_executed: bool = True) -> tuple[dict[str, Any], str]:
        """Return the members of the action and the owner that a form names.

        Only htmx on this page sends such a request: no page of another origin can set its header. Raise NotExecuted
        if the form is not of this page or is malformed, or if the typed name (its confirmation) is not the thing's.
        """
        fields = await sent_fields(request)
        own = {name: value for name, value in fields if name.startswith("_")}
        action = request.match_info.get("action", "Publish")
        owner = calls.owner_of(self._source, own.get("_account", ""), own.get("_region", ""))
        given = forms.members(action, [each for each in fields if each[0] not in own], self._source.region, owner)
        is_topic = "TopicArn" in given
        named = str(given.get("TopicArn") or given.get("QueueUrl", ""))
        name = topics.name_in(named) if is_topic else queue_path(named, owner)[1]
        if is_executed and own.get("_typed", name) != name:
            kind = "topic" if is_topic else "queue"
            raise NotExecuted(400, "NotConfirmed", f"The typed name is not that of the {kind}: nothing was done.")
        return given, owner


async def sent_fields(request: web.Request) -> list[tuple[str, str]]:
    """Return the fields of a form that this page sent. Raise NotExecuted for any other request."""
    if request.headers.get("HX-Request") != "true":
        raise NotExecuted(403, "NotFromThisPage", "Only the page may send its forms: use the API.")
    return [(name, value) for name, value in (await request.post()).items() if isinstance(value, str)]
