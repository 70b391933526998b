"""The list of queues: filtered, sorted, with what is unusual in each row. Its address keeps all choices."""

from functools import partial
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from aiohttp import web

from elasticq.admin.api import Api
from elasticq.admin.page import text
from elasticq.admin.page.frame import Frame
from elasticq.admin.page.settings import KIND_NAMES, PERMISSIONS, Redrive, of_kind
from elasticq.admin.pauses import Pause, first_in_order
from elasticq.admin.shapes import QueueRow

COLUMNS: Final = (
    ("name", "Queue"),
    ("kind", "Kind"),
    ("visible", "Visible"),
    ("in_flight", "In flight"),
    ("delayed", "Delayed"),
    ("oldest_age_ms", "Oldest"),
    ("dead_letters", "Dead letters"),
    ("consumers", "Consumers"),
    ("sent_per_s", "In /s"),
    ("received_per_s", "Out /s"),
    ("deleted_per_s", "Deleted /s"),
)
TEXTS: Final = ("name", "kind")
"""The columns that are texts, and sorted upwards first."""
SHOWN_MAX: Final = 1_000
UNFETCHED_MS: Final = 60_000
"""Messages that wait for longer than this without any consumer are unusual."""


class Choice(NamedTuple):
    """What the user chose. Empty texts mean all."""

    filter: str = ""
    kind: str = ""
    account: str = ""
    unusual: str = ""
    sort: str = "name"
    down: str = ""

    def query(self, **changes: str) -> str:
        """Return the choice, with some changes, as a query without what is empty or normal."""
        chosen = self._replace(**changes)
        normal = self._field_defaults
        return urlencode({name: value for name, value in chosen._asdict().items() if value != normal[name]})

    def sorted_by(self, key: str) -> str:
        """Return the query of the link of a column: the column, or the other direction if it is the sorted one."""
        is_down = not self.down if key == self.sort else key not in TEXTS
        return self.query(sort=key, down="1" if is_down else "")

    def takes(self, row: QueueRow) -> bool:
        return (
            self.filter in row.name
            and (not self.kind or row.kind == self.kind)
            and (not self.account or row.account == self.account)
            and (not self.unusual or bool(unusual(row)))
        )


def chosen(query: Any) -> Choice:
    """Return the choice that a URL's query makes. What is unknown counts as not chosen."""
    sort = query.get("sort", "name")
    return Choice(
        query.get("filter", "")[:80],
        query.get("kind", "") if query.get("kind") in KIND_NAMES else "",
        query.get("account", "")[:12],
        "1" if query.get("unusual") else "",
        sort if sort in dict(COLUMNS) else "name",
        "1" if query.get("down") else "",
    )


def unusual(row: QueueRow) -> dict[str, str]:
    """Return what is unusual in a row: a reason by column."""
    found = {}
    if row.dead_letters:
        found["dead_letters"] = f"{row.dead_letters:,} in {row.dead_letter_queue}"
    if row.is_dead_letter_queue and row.visible:
        found["visible"] = "dead letters wait here"
    elif row.visible and not row.consumers and not row.received_per_s and (row.oldest_age_ms or 0) > UNFETCHED_MS:
        found["visible"] = f"no consumer receives, for {text.age(row.oldest_age_ms)}"
    return found


class QueueList:
    """The page of all queues. A refresh gets the table alone, without charts and forms."""

    def __init__(self, frame: Frame, api: Api) -> None:
        self._frame = frame
        self._api = api

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/queues", self.queues)

    async def queues(self, request: web.Request) -> web.Response:
        choice, pause = chosen(request.query), Pause()
        every = await self._api.rows()
        rows = [row for row in every if choice.takes(row)]
        shown = await first_in_order(rows, partial(_order, choice.sort), SHOWN_MAX, reverse=bool(choice.down))
        lines, source = list[str](), self._frame.source
        for number, row in enumerate(shown, 1):
            lines.append(_line(number, row, source.account, source.region))
            await pause()
        return await self._frame.html(
            "queues.html",
            "/queues",
            lines="".join(lines),
            shown=len(lines),
            total=len(rows),
            is_part="HX-Request" in request.headers,
            every=len(every),
            choice=choice,
            is_filtered=choice._replace(sort="name", down="") != Choice(),
            columns=COLUMNS,
            texts=TEXTS,
            kinds=KIND_NAMES,
            creations=[(kind, list(of_kind(kind, {}, is_new=True))) for kind in KIND_NAMES],
            redrive=Redrive(),
            permissions=PERMISSIONS,
            accounts=sorted({row.account for row in every} | ({choice.account} if choice.account else set())),
        )


def _line(number: int, row: QueueRow, account: str, region: str) -> str:
    """Return a row of the table as HTML. A template takes ten times as long, and there may be a thousand rows."""
    reasons, name = unusual(row), escape(row.name)
    query = "" if row.region == region else f"?region={quote(row.region)}"
    own = f"{account} {region}"
    tags = [each for each in (row.region, row.account) if each not in own]
    if row.is_dead_letter_queue:
        tags.insert(0, "dead letters")
    marks = "".join(f' <span class="tag">{escape(each)}</span>' for each in tags)
    dead = _number(row.dead_letters, reasons.get("dead_letters", "")) if row.dead_letter_queue else _NONE
    return (
        f'<tr>\n<th scope="row"><a id="queue-{number}" href="/queues/{row.account}/{quote(row.name)}{query}">{name}</a>'
        f'{marks}</th><td class="kind">{row.kind}</td>{_number(row.visible, reasons.get("visible", ""))}'
        f"{_number(row.in_flight)}{_number(row.delayed)}"
        f'<td class="number">{text.age(row.oldest_age_ms)}</td>{dead}{_number(row.consumers)}'
        f"{_rate(row.sent_per_s)}{_rate(row.received_per_s)}{_rate(row.deleted_per_s)}</tr>\n"
    )


_ZERO: Final = '<td class="number zero">0</td>'
_NONE: Final = '<td class="number zero">–</td>'


def _number(value: int, reason: str = "") -> str:
    if reason:
        return f'<td class="number unusual" title="{escape(reason)}">{value:,}</td>'
    return f'<td class="number">{value:,}</td>' if value else _ZERO


def _rate(value: float) -> str:
    return f'<td class="number">{text.rate(value)}</td>' if value else _ZERO


def _order(sort: str, row: QueueRow) -> tuple[Any, ...]:
    value = getattr(row, sort)
    return (value is not None, value if value is not None else 0, row.name)
