"""The API of the admin port: figures of queues, SQS's actions, history, definitions, events and waiting receives.

``routes.py`` has the table of its routes. The page (page/) and ``elasticq cluster events`` use no other API.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from elasticq.admin import asking, calls, consumers, definitions, events
from elasticq.admin.attention.overview import overview
from elasticq.admin.attention.survey import Surveyor
from elasticq.admin.calls import NotExecuted
from elasticq.admin.history import ALL, MOVES, WINDOWS_S, Key, Rate, Series, added
from elasticq.admin.openapi import document
from elasticq.admin.pauses import Pause, in_order
from elasticq.admin.routes import JSON, LIVE_S, QUERY, ROUTES, STREAM
from elasticq.admin.shapes import (
    GROUP_MESSAGES_SHOWN_MAX,
    GROUPS_SHOWN_MAX,
    IN_FLIGHT_SHOWN_MAX,
    TASKS_SHOWN_MAX,
    WAITING_SHOWN_MAX,
    Events,
    QueueRow,
    Receives,
    Tasks,
)
from elasticq.admin.source import AdminSource, Waiting
from elasticq.engine.views.figures import QueueFigures
from elasticq.engine.views.message_group_order import GroupOrder
from elasticq.model.names import account_of, queue_url, region_of
from elasticq.peers.questions import Answer

WRITTEN_BYTES: Final = 65_536
"""A long answer is written in parts of about this size."""
PART: Final = 100
"""The number of queues whose figures are read before the loop serves others."""
STREAMS_MAX: Final = 32
"""The number of charts that may be open at the same time."""
NOT_JSON: Final = NotExecuted(415, "UnsupportedMediaType", f"The body is of one of the types {', '.join(JSON)}.")
"""A web page of another origin cannot make a browser send these types without a preflight request."""


class Api:
    """The handlers of the routes in ``routes.py``."""

    def __init__(self, source: AdminSource) -> None:
        self._source = source
        self.surveyor = Surveyor(source)
        self._streams = 0

    def add_to(self, app: web.Application) -> None:
        for route in ROUTES:
            handler = getattr(self, route.handler)
            app.router.add_route(route.method, route.path, handler)
            if route.method == "GET" and route.answer.content_type != STREAM:  # a stream has no end
                app.router.add_head(route.path, handler)
        app.router.add_get("/api/openapi.json", self.openapi)

    # --- queues -----------------------------------------------------------------------

    async def queues(self, request: web.Request) -> web.StreamResponse:
        try:
            prefix = _text(request, "prefix")
        except NotExecuted as error:
            return refusal(error)
        rows = await in_order(await self.rows(prefix), lambda row: (row.name, row.account, row.region))
        parts, pause = [b'{"queues":['], Pause()
        for first in range(0, len(rows), PART):
            part = msgspec.json.encode(rows[first : first + PART])[1:-1]
            parts.append(b"," + part if first else part)
            await pause()
        return await in_parts(request, [*parts, b"]}"], "application/json")

    async def rows(self, prefix: str = "") -> list[QueueRow]:
        """Return the queues whose names begin with ``prefix``."""
        rates, waiting = await asyncio.gather(self._rates(), self._waiting_at())
        rows, time_ms, pause = [], self._source.status().time_ms, Pause()
        for number, figures in enumerate(self._source.queues()):
            if figures.name.startswith(prefix):
                rows.append(self._row(figures, time_ms, rates, waiting))
            if number % PART == PART - 1:
                await pause()
        return rows

    async def _rates(self) -> dict[Key, Rate]:
        """Return the rates of queues whose messages moved in the last minute, of all members that answer."""
        answers = await asyncio.gather(*(asking.rates_of(self._source, other) for other in self._others()))
        found = self._source.history.rates()
        for answer in answers:
            for key, sent, received, deleted in answer:
                before = found.get(key, (0.0, 0.0, 0.0))
                found[key] = before[0] + sent, before[1] + received, before[2] + deleted
        return found

    async def _waiting_at(self) -> Mapping[Key, int]:
        """Return how many receives wait at each queue. Only the master counts all; others stop at WAITING_SHOWN_MAX."""
        status = self._source.status()
        if status.master == status.member_id:
            return self._source.consumers()
        return Counter((each.owner, each.queue) for each in await self.receives())

    def _others(self) -> list[str]:
        """Return the ids of the other linked members."""
        status = self._source.status()
        return [member.id for member in status.members if member.is_linked and member.id != status.member_id]

    def _row(
        self, figures: QueueFigures, time_ms: int, rates: Mapping[Key, Rate], waiting: Mapping[Key, int]
    ) -> QueueRow:
        source, target, key = self._source, figures.dead_letters_to, (figures.account, figures.name)
        dead = None if target is None else source.queue(*target)
        sent, received, deleted = rates.get(key, (0.0, 0.0, 0.0))
        return QueueRow(
            figures.name,
            account_of(figures.account),
            region_of(figures.account, source.region),
            queue_url(source.endpoint, figures.account, figures.name),
            figures.kind,
            figures.visible,
            figures.in_flight,
            figures.delayed,
            None if figures.oldest_ms is None else max(0, time_ms - figures.oldest_ms),
            "" if target is None else target[1],
            0 if dead is None else dead.visible + dead.in_flight + dead.delayed,
            figures.is_dead_letter_queue,
            waiting.get(key, 0),
            sent,
            received,
            deleted,
        )

    async def row_of(self, owner: str, name: str) -> QueueRow | None:
        """Return one queue, None if it does not exist."""
        figures = self._source.queue(owner, name)
        if figures is None:
            return None
        rates, waiting = await asyncio.gather(self._rates(), self._waiting_at())
        return self._row(figures, self._source.status().time_ms, rates, waiting)

    async def action(self, request: web.Request) -> web.Response:
        """Execute an action of SQS or SNS. The body is AWS JSON 1.0."""
        if request.content_type not in JSON:
            return refusal(NOT_JSON)
        body = await request.read()
        query = request.query
        answer = calls.answer(
            self._source, request.match_info["action"], body, query.get("account", ""), query.get("region", "")
        )
        return reply(await answer)

    async def waiting(self, _: web.Request) -> web.Response:
        return reply((200, msgspec.json.encode(Receives(await self.receives()))))

    async def receives(self) -> list[Waiting]:
        """Return the receives of the whole cluster that wait at queues."""
        return await consumers.of_cluster(self._source, WAITING_SHOWN_MAX)

    async def in_flight(self, request: web.Request) -> web.Response:
        """Return which messages of a queue are in flight, since when and until when."""
        try:
            owner, name = self._named(request)
            found = self._source.in_flight(owner, name, IN_FLIGHT_SHOWN_MAX)
            if found is None:
                raise no_queue(name)
        except NotExecuted as error:
            return refusal(error)
        return reply((200, msgspec.json.encode(self._at_this_time(found))))

    async def group_order(self, request: web.Request) -> web.Response:
        """Return the order of the messages in each message group, and what blocks the group."""
        try:
            owner, name = self._named(request)
            if self._source.queue(owner, name) is None:
                raise no_queue(name)
            found = self.groups_of(owner, name, _text(request, "group"))
        except NotExecuted as error:
            return refusal(error)
        return reply((200, msgspec.json.encode(self._at_this_time(found))))

    def groups_of(self, owner: str, name: str, wanted: str) -> GroupOrder:
        """Return the order of messages in the groups whose ids contain ``wanted``.

        The result has no groups if the queue does not order messages by group.
        """
        found = self._source.group_order(owner, name, wanted, GROUPS_SHOWN_MAX, GROUP_MESSAGES_SHOWN_MAX)
        return GroupOrder(is_strict=False, count=0, looked_at=0, groups=[]) if found is None else found

    def _named(self, request: web.Request) -> tuple[str, str]:
        """Return the owner and the name of the queue that the query of a request names.

        Raise NotExecuted if the query has no valid queue, account and region.
        """
        query = request.query
        if "queue" not in query:
            raise NotExecuted(400, "MissingParameter", "The request must contain the parameter queue.")
        return calls.owner_of(self._source, query.get("account", ""), query.get("region", "")), _text(request, "queue")

    def _at_this_time(self, view: Struct) -> dict[str, Any]:
        return {"time_ms": self._source.status().time_ms, **msgspec.to_builtins(view)}

    async def tasks(self, _: web.Request) -> web.Response:
        """List the work that is done in the background."""
        tasks = Tasks(self._source.status().time_ms, self._source.tasks(TASKS_SHOWN_MAX))
        return reply((200, msgspec.json.encode(tasks)))

    async def attention(self, _: web.Request) -> web.Response:
        """Return the state of the cluster, and what needs attention in it."""
        return reply((200, msgspec.json.encode(overview(await self.surveyor.survey()))))

    # --- definitions ------------------------------------------------------------------

    async def export(self, request: web.Request) -> web.StreamResponse:
        try:
            parts = await definitions.export(self._source)
        except NotExecuted as error:
            return refusal(error)
        headers = {"Content-Disposition": 'attachment; filename="elasticq-definitions.json"'}
        return await in_parts(request, parts, "application/json", headers)

    async def load(self, request: web.Request) -> web.Response:
        if request.content_type not in JSON:
            return refusal(NOT_JSON)
        try:
            progress = await definitions.load(self._source, await request.read())
        except definitions.LoadFailed as error:
            return reply((error.status, msgspec.json.encode({"error": error.message, **error.done})))
        except NotExecuted as error:
            return refusal(error)
        return reply((200, msgspec.json.encode(progress.done)))

    # --- history ----------------------------------------------------------------------

    async def series(self, request: web.Request) -> web.Response:
        """Return the history of the last ``window_s`` seconds. Rates are added up over all members that answer."""
        try:
            key, window_s = self._window_of(request)
        except NotExecuted as error:
            return refusal(error)
        return reply((200, msgspec.json.encode(await self._everywhere(key, window_s))))

    def _window_of(self, request: web.Request) -> tuple[Key, int]:
        query = request.query
        owner = calls.owner_of(self._source, query.get("account", ""), query.get("region", ""))
        key = (owner, _text(request, "queue")) if "queue" in query else ALL
        window = query.get("window_s", "60")
        if not window.isascii() or not window.isdigit() or int(window[:9]) not in WINDOWS_S:
            known = ", ".join(map(str, WINDOWS_S))
            raise NotExecuted(400, "InvalidParameterValue", f"window_s is one of {known}.")
        return key, int(window)

    async def _everywhere(self, key: Key, window_s: int) -> Series:
        asked = msgspec.json.encode([*key, window_s])
        answers = await asyncio.gather(*(asking.history_of(self._source, other, asked) for other in self._others()))
        return added(
            [self._source.history.series(key, window_s), *(answer for answer in answers if answer is not None)]
        )

    async def live(self, request: web.Request) -> web.StreamResponse:
        """Send an event every LIVE_S seconds: the counts of one queue or of all, and the latest rates."""
        try:
            key, _ = self._window_of(request)
        except NotExecuted as error:
            return refusal(error)
        if self._streams >= STREAMS_MAX:
            return refusal(NotExecuted(503, "ServiceUnavailable", f"{STREAMS_MAX} charts are open already."))
        self._streams += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            with suppress(ConnectionError):
                await response.prepare(request)
                while not self._source.stopping:
                    await response.write(b"data: " + msgspec.json.encode(await self._now(key)) + b"\n\n")
                    await asyncio.sleep(LIVE_S)
            return response
        finally:
            self._streams -= 1

    async def _now(self, key: Key) -> dict[str, Any]:
        counts = {"visible": 0, "in_flight": 0, "delayed": 0}
        one = None if key == ALL else self._source.queue(*key)
        shown = self._source.queues() if key == ALL else () if one is None else (one,)
        for number, figures in enumerate(shown):
            counts["visible"] += figures.visible
            counts["in_flight"] += figures.in_flight
            counts["delayed"] += figures.delayed
            if number % PART == PART - 1:
                await asyncio.sleep(0)
        last = await self._everywhere(key, 60)
        moved = {name: sum(getattr(last, name)[-1:]) for name in MOVES}
        return {"time_ms": self._source.status().time_ms, **counts, **moved}

    # --- events and the OpenAPI document -------------------------------------------------

    async def events(self, _: web.Request) -> web.Response:
        return reply((200, msgspec.json.encode(Events(await events.of_cluster(self._source)))))

    async def openapi(self, _: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(document()), content_type="application/json")


def _text(request: web.Request, name: str) -> str:
    """Return a text of a URL's query, empty if it is missing. Raise NotExecuted if it is too long."""
    text, longest = request.query.get(name, ""), QUERY[name].max_length
    if longest is not None and len(text) > longest:
        raise NotExecuted(400, "InvalidParameterValue", f"{name} can have at most {longest} characters.")
    return text


def no_queue(name: str) -> NotExecuted:
    return NotExecuted(404, "QueueDoesNotExist", f"There is no queue {name[:80]} here.")


def reply(answer: Answer) -> web.Response:
    return web.Response(status=answer[0], body=answer[1], content_type="application/json")


async def in_parts(
    request: web.Request, parts: list[bytes], content_type: str, headers: Mapping[str, str] = MappingProxyType({})
) -> web.StreamResponse:
    """Answer with a long body in parts, as writing megabytes at once would block the loop."""
    length = {"Content-Type": content_type, "Content-Length": str(sum(map(len, parts)))}
    response = web.StreamResponse(headers={**length, **headers})
    pause, some = Pause(), bytearray()
    with suppress(ConnectionError):  # the client closed the connection
        await response.prepare(request)
        for part in parts if request.method != "HEAD" else ():
            some += part
            if len(some) > WRITTEN_BYTES:
                await response.write(some)
                await pause()
                some = bytearray()
        await response.write(some)
    return response


def refusal(error: NotExecuted) -> web.Response:
    return reply((error.status, msgspec.json.encode({"error": error.message})))
