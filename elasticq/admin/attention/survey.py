"""The survey of the whole cluster by one process: it asks all others and applies the rules to their reports."""

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from elasticq.admin.attention.finding import Finding, gravest
from elasticq.admin.attention.members import RULES, UNKNOWN_MS, Situation
from elasticq.admin.attention.report import Report, report
from elasticq.admin.source import AdminSource
from elasticq.peers.questions import NotAnswered

REPORT: Final = "report"
"""The kind of question that a process answers with its report."""
ASK_S: Final = 0.7
"""A member that has not answered by then counts as silent, so a page never waits longer."""
FRESH_S: Final = 1.0
"""A survey is used again for this time."""

Kind = TypeVar("Kind")


class Survey(Struct, frozen=True):
    """The state of the cluster at one time. time_ms: cluster time."""

    time_ms: int
    situation: Situation
    findings: list[Finding]


def findings(situation: Situation) -> list[Finding]:
    """Return all findings, the gravest first: those of the watch over queues, and those of the rules in members.py."""
    found = list(situation.best.queues)
    for rule in RULES:
        found += rule(situation)
    return gravest(found)


class Surveyor:
    """The surveys of one process. Requests that come at the same time share one."""

    def __init__(self, source: AdminSource) -> None:
        self._source = source
        self._newest: Survey | None = None
        self._made_s = 0.0
        self._making: asyncio.Task[Survey] | None = None
        self._silent: dict[str, int] = {}
        self._first_ms: dict[tuple[str, str, str], int] = {}

    async def survey(self) -> Survey:
        """Return a survey that is at most FRESH_S old."""
        if self._newest is not None and monotonic() - self._made_s < FRESH_S:
            return self._newest
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make())
        return await asyncio.shield(self._making)

    async def _make(self) -> Survey:
        source = self._source
        linked = _linked(source)
        answers = await asyncio.gather(*(self._ask(member_id) for member_id in linked))
        own = report(source)
        others, clocks_ms, silent = list[Report](), dict[str, int](), dict[str, int]()
        for name, answer in zip(linked.values(), answers, strict=True):
            if answer is None:
                silent[name] = self._silent.get(name, own.time_ms)
            else:
                others.append(answer[0])
                clocks_ms[answer[0].name] = answer[1]
        self._silent = silent
        situation = Situation(own, others, silent, clocks_ms)
        self._newest = survey = Survey(own.time_ms, situation, self._dated(findings(situation), own.time_ms))
        self._made_s = monotonic()
        return survey

    async def _ask(self, member_id: str) -> tuple[Report, int] | None:
        """Return a member's report, and how far its wall clock is ahead; None if it does not answer in time."""
        source = self._source
        began_ms = source.wall_ms()
        try:
            status, body = await source.ask(member_id, REPORT, b"", ASK_S)
        except NotAnswered:
            return None
        if status != 200:
            return None
        ended_ms = source.wall_ms()
        try:
            found = msgspec.json.decode(body, type=Report)
        except msgspec.DecodeError:
            return None  # a version whose report this one cannot read
        return found, found.wall_ms - (began_ms + ended_ms) // 2

    def _dated(self, found: Iterable[Finding], now_ms: int) -> list[Finding]:
        """Return the findings. One whose begin is unknown begins when this process noticed it."""
        known, self._first_ms = self._first_ms, {}
        dated = []
        for finding in found:
            if finding.since_ms == UNKNOWN_MS:
                key = finding.kind, finding.member, finding.cause if finding.kind == "link_refused" else ""
                since_ms = self._first_ms[key] = known.get(key, now_ms)
                finding = replace(finding, since_ms=since_ms)
            dated.append(finding)
        return dated


def _linked(source: AdminSource) -> dict[str, str]:
    """Return the names of the other linked members, by id."""
    status = source.status()
    return {each.id: each.name for each in status.members if each.is_linked and each.id != status.member_id}
