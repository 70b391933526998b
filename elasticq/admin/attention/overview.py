"""The state of the whole cluster for one page: figures, members, and what needs attention. It is pure."""

from typing import Annotated

from msgspec import Meta, Struct

from elasticq.admin.attention.finding import Finding
from elasticq.admin.attention.members import Situation
from elasticq.admin.attention.queues import Totals
from elasticq.admin.attention.report import Report
from elasticq.admin.attention.survey import Survey
from elasticq.admin.source import Event
from elasticq.node.settings import MemberStatus


class MemberRow(Struct, kw_only=True):
    """A member or proxy as the cluster sees it. What only the member itself knows is null if it does not answer."""

    name: str
    id: str
    role: str
    voter: bool
    answers: Annotated[bool, Meta(description="Whether it answered this survey.")]
    linked: Annotated[bool, Meta(description="Whether the master, or this process without one, has a link to it.")]
    ready: bool | None = None
    version: str | None = None
    build: Annotated[str | None, Meta(description="compiled or pure.")] = None
    uptime_ms: int | None = None
    disk_free_bytes: Annotated[int | None, Meta(description="Null without a data directory.")] = None
    disk_size_bytes: int | None = None
    lag: Annotated[int | None, Meta(description="Committed entries that it lacks. Null if the master does not know.")]
    lag_ms: Annotated[int | None, Meta(description="For how long the oldest of them has been committed.")]
    sent_per_s: float | None = None
    received_per_s: float | None = None
    address: str
    admin: str


class Overview(Struct, kw_only=True):
    """The state of the cluster. Times are cluster time, in ms since the epoch; rates are those of the last minute."""

    time_ms: int
    asked: Annotated[str, Meta(description="The name of the process that made this survey.")]
    master: Annotated[str | None, Meta(description="The name of the master, null without one.")]
    term: int
    quorum: Annotated[int, Meta(description="The number of voters that must reach each other for a write.")]
    totals: Totals
    sent_per_s: float
    received_per_s: float
    deleted_per_s: float
    members: list[MemberRow]
    proxies: list[str]
    last_election: Event | None
    findings: Annotated[list[Finding], Meta(description="What needs attention, the gravest first.")]


def overview(survey: Survey) -> Overview:
    """Return the overview of a survey."""
    situation = survey.situation
    own, best, reports = situation.own, situation.best, {each.id: each for each in situation.reports}
    rates = [sum(each.per_s[at] for each in reports.values()) for at in range(3)]
    # A member that starts later learns of an old election. So the earliest event of the present term counts.
    words = tuple(f"master of term {best.term}{end}" for end in (".", ","))
    events = [each.last_election for each in reports.values() if each.last_election is not None]
    elections = [each for each in events if any(word in each.text for word in words)]
    return Overview(
        time_ms=survey.time_ms,
        asked=own.name,
        master=None if situation.master is None else situation.master.name,
        term=best.term,
        quorum=best.quorum,
        totals=best.totals,
        sent_per_s=rates[0],
        received_per_s=rates[1],
        deleted_per_s=rates[2],
        members=[_row(each, reports.get(each.id)) for each in _members(situation)],
        proxies=sorted({*best.proxies}),
        last_election=min(elections, key=lambda each: each.time_ms, default=None),
        findings=survey.findings,
    )


def _members(situation: Situation) -> list[MemberStatus]:
    """Return the members as the master sees them, else this process, by name."""
    return sorted(situation.best.members, key=lambda each: (each.name, each.id))


def _row(member: MemberStatus, report: Report | None) -> MemberRow:
    row = MemberRow(
        name=member.name,
        id=member.id,
        role=member.role if report is None else report.role if member.voter else member.role,
        voter=member.voter,
        answers=report is not None,
        linked=member.is_linked,
        lag=member.lag,
        lag_ms=member.lag_ms,
        address=member.address,
        admin=member.admin,
    )
    if report is not None:
        row.ready, row.version, row.build = report.ready, report.version, report.build
        row.uptime_ms = max(0, report.wall_ms - report.started_ms)
        row.sent_per_s, row.received_per_s, _ = report.per_s
        if report.disk_size_bytes:
            row.disk_free_bytes, row.disk_size_bytes = report.disk_free_bytes, report.disk_size_bytes
    return row
