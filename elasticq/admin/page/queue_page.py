"""The pages of one queue: its messages and settings, its scheduled messages, and the order within its groups."""

from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from elasticq.admin import calls
from elasticq.admin.api import Api, no_queue
from elasticq.admin.calls import NotExecuted
from elasticq.admin.page import scheduled, settings
from elasticq.admin.page.frame import Frame
from elasticq.admin.shapes import QueueRow
from elasticq.engine.ordering.sharing import FAIRNESS, SQS
from elasticq.model.names import queue_arn, queue_path

PEEKED: Final = 50
IN_FLIGHT_SHOWN: Final = 50
MESSAGES: Final = "messages"
"""The id of the element that shows the messages. htmx names it if it asks for that element alone."""
LONGEST_SEQUENCE: Final = 19


class QueuePage:
    """The handlers of these pages."""

    def __init__(self, frame: Frame, api: Api) -> None:
        self._frame = frame
        self._source = frame.source
        self._api = api

    def add_to(self, app: web.Application) -> None:
        for path, handler in (
            ("", self.queue),
            ("/messages/{sequence}", self.message),
            ("/scheduled", self.scheduled),
            ("/order", self.group_order),
        ):
            app.router.add_get("/queues/{account}/{name}" + path, self._found(handler))

    def _found(self, handler: Any) -> Any:
        """Return the handler, which gets the owner and the row of the queue that the path names."""

        async def found(request: web.Request) -> web.Response:
            parts = request.match_info
            try:
                owner = calls.owner_of(self._source, parts["account"], request.query.get("region", ""))
                row = await self._api.row_of(owner, parts["name"])
                if row is None:
                    raise no_queue(parts["name"])
                answer: web.Response = await handler(request, owner, row)
            except NotExecuted as error:
                return await self._frame.missing(error)
            return answer

        return found

    async def queue(self, request: web.Request, owner: str, row: QueueRow) -> web.Response:
        """Show the queue. A refresh of its figures asks for less: for neither settings nor messages."""
        url, asked = {"QueueUrl": row.url}, _peek_filters(request)
        attributes, tags, sources, page = (dict[str, Any]() for _ in range(4))
        is_refresh = "HX-Request" in request.headers
        if not is_refresh:
            attributes = await self._frame.attempt("GetQueueAttributes", {**url, "AttributeNames": ["All"]}, owner)
            tags = await self._frame.attempt("ListQueueTags", url, owner)
        if not is_refresh or request.headers.get("HX-Target") == MESSAGES:
            page = await self._peeked(row, owner, asked)
        sources = await self._frame.attempt("ListDeadLetterSourceQueues", url, owner)
        found = attributes.get("Attributes", {})
        names = [queue_path(each, owner) for each in sources.get("queueUrls", ())]
        arn = queue_arn(self._source.region, owner, row.name)
        tasks = await self._frame.attempt("ListMessageMoveTasks", {"SourceArn": arn, "MaxResults": 3}, owner)
        messages = page.get("Messages", ())
        figures = self._source.queue(owner, row.name)
        return await self._frame.html(
            "queue.html",
            "/queues",
            **self._of_queue(row),
            kind_words=_kind_words(row, found),
            attributes=found,
            arn=arn,
            fields=list(settings.of_kind(row.kind, found)),
            redrive=settings.redrive_of(found),
            permissions=settings.PERMISSIONS,
            tags=tags.get("Tags", {}),
            sources=[(name, self._frame.owner_path(own, name)) for own, name in names],
            tasks=tasks.get("Results", ()),
            messages=messages,
            blocked=self._blocked(owner, row, messages),
            stamp="" if figures is None else _stamp(row, figures.last_sequence),
            next_sequence=page.get("NextSequence"),
            trouble=page.get("message", ""),
            asked=asked,
            has_groups=row.kind == settings.FIFO or self._source.group_order(owner, row.name, "", 0, 0) is not None,
            in_flight=self._source.in_flight(owner, row.name, IN_FLIGHT_SHOWN),
            newest_from=0 if figures is None else max(0, figures.last_sequence - PEEKED + 1),
            waiting=[each for each in await self._api.receives() if (each.owner, each.queue) == (owner, row.name)],
        )

    def _of_queue(self, row: QueueRow) -> dict[str, Any]:
        """Return the values that the templates of all pages of a queue use."""
        region_query = "" if row.region == self._source.region else f"region={row.region}&"
        return {
            "queue": row,
            "fifo": row.kind == settings.FIFO,
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
        return await self._frame.attempt("Peek", given, owner)

    def _blocked(self, owner: str, row: QueueRow, messages: Any) -> dict[int, tuple[int, int]]:
        """Return which of the messages wait for another one of their group: by sequence, for which and until when.

        SQS counts them as visible, but no consumer gets them.
        """
        if row.kind != settings.FIFO:
            return {}
        found, places = dict[int, tuple[int, int]](), dict[str, Any]()
        for each in messages:
            group, sequence = each.get("GroupId", ""), each["Sequence"]
            if group not in places:
                order = self._source.group_order(owner, row.name, group, 1, 0)
                places[group] = order.groups[0] if order is not None and order.groups else None
            place = places[group]
            blocker = None if place is None else place.blocked_by
            if each["State"] == "visible" and blocker is not None and sequence > blocker:
                found[sequence] = blocker, place.blocked_until_ms
        return found

    async def message(self, request: web.Request, owner: str, row: QueueRow) -> web.Response:
        """Return the body of one message as a file."""
        sequence = request.match_info["sequence"]
        if not (sequence.isascii() and sequence.isdigit()) or len(sequence) > LONGEST_SEQUENCE:
            raise NotExecuted(404, "NotFound", "There is no such message.")
        given = {"QueueUrl": row.url, "FromSequence": int(sequence), "Limit": 1}
        page = await self._frame.execute("Peek", given, owner)
        found = [each for each in page["Messages"] if each["Sequence"] == int(sequence)]
        if not found:
            raise NotExecuted(404, "NotFound", "The message does not exist any more.")
        headers = {"Content-Disposition": f'attachment; filename="{sequence}.txt"'}
        body = found[0]["Body"].encode("utf-8", "replace")
        return web.Response(body=body, headers=headers, content_type="application/octet-stream")

    async def scheduled(self, request: web.Request, owner: str, row: QueueRow) -> web.Response:
        """Show the messages of a queue that wait for their delivery time."""
        messages, following, first, trouble = list[dict[str, Any]](), None, _first(request), ""
        try:
            messages, following = await scheduled.found(self._frame.asker(owner), row.url, first)
        except NotExecuted as error:
            trouble = error.message
        return await self._frame.html(
            "scheduled.html",
            "/queues",
            **self._of_queue(row),
            messages=messages,
            following=following,
            first=first,
            trouble=trouble,
        )

    async def group_order(self, request: web.Request, owner: str, row: QueueRow) -> web.Response:
        """Show the order of a queue's messages in their groups."""
        wanted = request.query.get("group", "")[:128]
        order = self._api.groups_of(owner, row.name, wanted)
        return await self._frame.html("order.html", "/queues", **self._of_queue(row), order=order, group=wanted)


def _kind_words(row: QueueRow, attributes: dict[str, str]) -> str:
    """Return the kind of the queue with what else shapes its order."""
    words = [f"{row.kind[:1].upper()}{row.kind[1:]} queue"]
    if "ElasticqPartitions" in attributes:
        words.append(f"{attributes['ElasticqPartitions']} partitions")
    if attributes.get(FAIRNESS, SQS) != SQS:
        words.append(f"{attributes[FAIRNESS].replace('_', ' ')} fair share")
    return " · ".join(words)


def _stamp(row: QueueRow, last_sequence: int) -> str:
    """Return a text that differs when the list of messages may differ."""
    return f"{row.visible} {row.in_flight} {row.delayed} {last_sequence}"


def _first(request: web.Request) -> int:
    """Return the sequence of the first message to show."""
    first = request.query.get("from", "0")
    return int(first) if first.isascii() and first.isdigit() and len(first) <= LONGEST_SEQUENCE else 0


def _peek_filters(request: web.Request) -> dict[str, str]:
    """Return which messages of a queue to show: their state, group and first sequence."""
    state, group = (request.query.get(key, "")[:128] for key in ("state", "group"))
    return {"state": state, "group": group, "first": str(_first(request))}
