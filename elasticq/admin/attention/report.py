"""The report of one process about itself and what it sees, which members ask each other for."""

from collections.abc import Mapping

from msgspec import Struct

from elasticq import BUILD, __version__
from elasticq.admin.attention.clients import Flood
from elasticq.admin.attention.finding import Finding
from elasticq.admin.attention.queues import Totals
from elasticq.admin.history import ALL, RATES_S
from elasticq.admin.source import AdminSource, Event
from elasticq.node.settings import MemberStatus

PURGES: frozenset[str] = frozenset(("queue_purged", "queue_deleted"))
ELECTIONS: frozenset[str] = frozenset(("mastership_gained", "master", "election"))
EVENTS_MAX = 10


class Report(Struct, kw_only=True):
    """What one process reports. Each field has a default, because members of other versions may leave it out.

    version, build: of the running code. started_ms, wall_ms: by its wall clock. time_ms: cluster time of the answer.
    reason: why it is not ready. stale_ms: time since it heard a master. members: the members as it sees them.
    unreached: by address, why the last attempt to link a member failed. conflicts: links refused in the last 10 s.
    disk_free_bytes, disk_size_bytes: 0 without a data directory; disk_reserve_bytes: kept free of messages.
    per_s: messages sent, received and deleted a second through it, over the last minute.
    queues, totals: the findings and counts of its watch over queues; those of the master are the cluster's.
    purges: the last purges and deletions of queues through it. last_election: of its log.
    """

    id: str = ""
    name: str = ""
    role: str = ""
    master: str | None = None
    term: int = 0
    version: str = ""
    build: str = ""
    started_ms: int = 0
    wall_ms: int = 0
    time_ms: int = 0
    ready: bool = False
    reason: str = ""
    stale_ms: int = 0
    quorum: int = 0
    members: tuple[MemberStatus, ...] = ()
    proxies: tuple[str, ...] = ()
    unreached: dict[str, str] = {}
    conflicts: list[str] = []
    disk_free_bytes: int = 0
    disk_size_bytes: int = 0
    disk_reserve_bytes: int = 0
    is_disk_full: bool = False
    set_aside: int = 0
    discarded: int = 0
    per_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    flood: Flood | None = None
    queues: list[Finding] = []
    totals: Totals = Totals()
    purges: list[Event] = []
    last_election: Event | None = None


def report(source: AdminSource) -> Report:
    """Return the report of this process."""
    status, links, figures = source.status(), source.links(), source.metrics()
    events = source.events()
    return Report(
        id=status.member_id,
        name=source.node_name,
        role=status.role,
        master=status.master,
        term=status.term,
        version=__version__,
        build=BUILD.name,
        started_ms=source.started_ms,
        wall_ms=source.wall_ms(),
        time_ms=status.time_ms,
        ready=status.ready,
        reason=status.reason,
        stale_ms=status.stale_ms,
        quorum=len(status.voters) // 2 + 1 if status.voters else 0,
        members=status.members,
        proxies=status.proxies,
        unreached=links.unreached,
        conflicts=links.conflicts,
        disk_free_bytes=_whole(figures, "disk_free_bytes"),
        disk_size_bytes=_whole(figures, "disk_size_bytes"),
        disk_reserve_bytes=_whole(figures, "disk_reserve_bytes"),
        is_disk_full=bool(figures.get("disk_full")),
        set_aside=status.set_aside,
        discarded=status.discarded,
        per_s=source.history.per_second(ALL, RATES_S),
        flood=source.clients.flood,
        queues=source.watch.findings,
        totals=source.watch.totals,
        purges=[each for each in events if each.event in PURGES][:EVENTS_MAX],
        last_election=next((each for each in events if each.event in ELECTIONS), None),
    )


def _whole(figures: Mapping[str, float], name: str) -> int:
    return int(figures.get(name, 0))
