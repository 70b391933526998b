"""The rules about members, links, disks, clocks, versions, clients and purges. They are pure: reports in, findings out.

All times of findings are cluster time, so every member shows the same ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low
from typing import Final

from msgspec import Struct

from elasticq.admin.attention.clients import Flood
from elasticq.admin.attention.finding import (
    CLUSTER_PAGE,
    CRITICAL,
    EVENTS_PAGE,
    NOTE,
    WARNING,
    Finding,
    Severity,
)
from elasticq.admin.attention.report import Report
from elasticq.node.proxy import PROXY
from elasticq.node.settings import MemberStatus
from elasticq.peers.errors import NO_ANSWER

BEHIND_MS: Final = 2_000
BEHIND_WARNING_MS: Final = 30_000
CLOCK_MS: Final = 1_000
"""The difference of a member's clock from the middle one that is reported."""
DISK_SHARE: Final = 0.1
"""The part of a disk that must be free beyond ``storage.reserve_mb``."""
UNKNOWN_MS: Final = 0
"""The ``since_ms`` of a finding whose start is in no report. The survey replaces it by the time of its first look."""
RECENT_MS: Final = 600_000
"""Purges and deletions of queues are shown for this time."""


class Situation(Struct, frozen=True):
    """What one process knows when its page is shown.

    own: its own report. others: those of the members that answered.
    silent: the names of linked members that did not answer in time, and since when they have not.
    clocks_ms: by member, how far its wall clock is ahead of this process's.
    """

    own: Report
    others: Sequence[Report] = ()
    silent: Mapping[str, int] = {}
    clocks_ms: Mapping[str, int] = {}

    @property
    def reports(self) -> list[Report]:
        return [self.own, *self.others]

    @property
    def master(self) -> Report | None:
        """Return the report of the master, None without one."""
        masters = [each for each in self.reports if each.role == "master"]
        return max(masters, key=lambda each: each.term, default=None)

    @property
    def best(self) -> Report:
        """Return the master's report, else this process's own."""
        return self.master or self.own


# --- members and links ---------------------------------------------------------------


def _no_master(situation: Situation) -> Iterator[Finding]:
    own = situation.own
    if situation.master is not None or own.ready:
        return
    since_ms = own.time_ms - own.stale_ms
    if own.role == PROXY:
        yield Finding(
            kind="proxy_without_master",
            severity=CRITICAL,
            what=f"The proxy {own.name} cannot pass calls on to a master.",
            cause=_sentence(own.reason),
            since_ms=since_ms,
            link=CLUSTER_PAGE,
            command="elasticq cluster status --admin URL of a member",
            member=own.name,
        )
        return
    voters = [each for each in own.members if each.voter]
    reached = sum(each.is_linked for each in voters)
    is_cut_off = 0 < reached < own.quorum
    yield Finding(
        kind="member_cut_off" if is_cut_off else "no_master",
        severity=CRITICAL,
        what=f"{own.name} is cut off: it reaches {reached} of {len(voters)} voters and takes no writes."
        if is_cut_off
        else "There is no master, so nobody can write.",
        cause=_sentence(own.reason),
        since_ms=since_ms,
        link=CLUSTER_PAGE,
        command="elasticq cluster status",
        member=own.name if is_cut_off else "",
    )


def _members(situation: Situation) -> Iterator[Finding]:
    """Yield voters that do not answer, and those without a link to the master.

    Without a master's report, a voter that this member cannot reach may be well: this member may be cut off itself.
    """
    best = situation.best
    voters = [each for each in best.members if each.voter]
    linked = sum(each.is_linked and each.name not in situation.silent for each in voters)
    for member in voters:
        if member.name in situation.silent:
            cause = "It has a link and does not answer: its process hangs, or the network is too slow."
            yield _down(member, "member_cut_off", "does not answer", cause, situation.silent[member.name], linked, best)
        elif not member.is_linked and situation.master is not None:
            yield _unlinked(situation, member, linked)


def _unlinked(situation: Situation, member: MemberStatus, linked: int) -> Finding:
    best = situation.best
    since_ms = best.time_ms - member.lost_ms if member.lost_ms is not None else best.time_ms - _uptime_ms(best)
    by = [each.name for each in situation.others if each.id != member.id and _sees(each, member.id)]
    if by:
        cause = f"{best.name} has no link to it, but {', '.join(by)} {'has' if len(by) == 1 else 'have'} one."
        return _down(member, "member_cut_off", f"is cut off from {best.name}", cause, since_ms, linked, best)
    why = best.unreached.get(member.address, "")
    if why and not why.startswith(NO_ANSWER):
        cause = f"Nothing listens at {member.address}: {why}."
        return _down(member, "member_down", "is down", cause, since_ms, linked, best)
    cause = f"{_sentence(why or NO_ANSWER)[:-1]} at {member.address}: it is cut off, it hangs, or its machine is off."
    return _down(member, "member_cut_off", "is cut off", cause, since_ms, linked, best)


def _down(member: MemberStatus, kind: str, state: str, cause: str, since_ms: int, linked: int, best: Report) -> Finding:
    spare = linked - best.quorum
    is_last = " The loss of one more voter stops all writes." if spare <= 0 else ""
    return Finding(
        kind=kind,
        severity=CRITICAL,
        what=f"{member.name} {state}.{is_last}",
        cause=cause,
        since_ms=since_ms,
        link=CLUSTER_PAGE,
        command=f"systemctl restart elasticq (on {member.name}); "
        f"if its data directory is empty, also elasticq cluster replace {member.name}",
        member=member.name,
    )


def _behind(situation: Situation) -> Iterator[Finding]:
    best = situation.best
    for member in best.members:
        if member.is_linked and member.lag_ms is not None and member.lag_ms >= BEHIND_MS and member.lag:
            yield Finding(
                kind="member_behind",
                severity=WARNING if member.voter and member.lag_ms >= BEHIND_WARNING_MS else NOTE,
                what=f"{member.name} is {member.lag_ms / 1_000:.0f} s behind the master.",
                cause=f"It lacks {member.lag:,} committed entries: its link or its disk is slow, or it was down.",
                since_ms=best.time_ms - member.lag_ms,
                link=CLUSTER_PAGE,
                command="elasticq cluster status",
                member=member.name,
            )


# --- one member ------------------------------------------------------------------------


def _disks(situation: Situation) -> Iterator[Finding]:
    for each in situation.reports:
        usable = each.disk_free_bytes - each.disk_reserve_bytes
        if not each.disk_size_bytes or (usable >= DISK_SHARE * each.disk_size_bytes and not each.is_disk_full):
            continue
        state = "is full: it refuses sends" if each.is_disk_full else "fills"
        yield _of_member(
            each,
            "disk_fills",
            CRITICAL if each.is_disk_full else WARNING,
            f"The disk of {each.name} {state}.",
            f"{_size(max(usable, 0))} of {_size(each.disk_size_bytes)} are left for messages. "
            f"When none are left, it refuses sends. {_size(each.disk_reserve_bytes)} are in reserve for deletes.",
            UNKNOWN_MS,
            f"elasticq queues ls, or df -h (on {each.name})",
        )


def _clocks(situation: Situation) -> Iterator[Finding]:
    ahead = {situation.own.name: 0, **situation.clocks_ms}
    if len(ahead) < 3:
        return  # of two clocks nobody knows which one is wrong
    middle_ms = median_low(ahead.values())
    for each in situation.reports:
        off_ms = ahead.get(each.name, middle_ms) - middle_ms
        if abs(off_ms) >= CLOCK_MS:
            direction = "ahead of" if off_ms > 0 else "behind"
            yield _of_member(
                each,
                "clock_off",
                WARNING,
                f"The clock of {each.name} is {abs(off_ms) / 1_000:,.0f} s {direction} the others.",
                "Its wall clock differs from that of most members. It is not synchronised, or was set.",
                UNKNOWN_MS,
                f"timedatectl status (on {each.name})",
            )


def _versions(situation: Situation) -> Iterator[Finding]:
    members = [each for each in situation.reports if each.role != PROXY]
    by_version: dict[str, list[str]] = {}
    for each in members:
        by_version.setdefault(each.version, []).append(each.name)
    if len(by_version) < 2:
        return
    parts = [f"{', '.join(sorted(names))} {version}" for version, names in sorted(by_version.items())]
    newest = max(members, key=lambda each: each.started_ms)
    yield Finding(
        kind="upgrade_half_done",
        severity=WARNING,
        what="The members run different versions.",
        cause=f"An upgrade is under way, or was not finished: {'; '.join(parts)}.",
        since_ms=newest.time_ms - _uptime_ms(newest),
        link=CLUSTER_PAGE,
        command="docs/upgrade.md: restart the other members, one after another",
    )


def _conflicts(situation: Situation) -> Iterator[Finding]:
    seen = set[str]()
    for each in situation.reports:
        for conflict in each.conflicts:
            code, colon, reason = conflict.partition(": ")
            text = reason if colon and "_" in code else conflict  # the other side puts the code of its reason first
            if text not in seen:
                seen.add(text)
                yield _of_member(
                    each,
                    "link_refused",
                    CRITICAL,
                    f"{each.name} refuses the link to a process, or is refused.",
                    _sentence(text),
                    UNKNOWN_MS,
                    "elasticq cluster events",
                )


def _data(situation: Situation) -> Iterator[Finding]:
    for each in situation.reports:
        if each.set_aside:
            yield _of_member(
                each,
                "rows_set_aside",
                WARNING,
                f"{each.name} could not read {each.set_aside:,} stored rows.",
                "They were damaged, or written by another version. It serves without them.",
                each.time_ms - _uptime_ms(each),
                "elasticq cluster verify",
            )
        if each.reason and not each.ready and situation.master is not None and each.role != PROXY:
            yield _of_member(
                each,
                "member_not_ready",
                WARNING,
                f"{each.name} is not ready.",
                _sentence(each.reason),
                each.time_ms - each.stale_ms,
                "elasticq cluster status",
            )


def _floods(situation: Situation) -> Iterator[Finding]:
    for each in situation.reports:
        flood = each.flood
        if flood is not None:
            yield _of_member(
                each,
                "client_floods",
                NOTE,
                f"The client {flood.address} floods {each.name}.",
                _flood(flood),
                flood.since_ms,
                f"ss -tnp (on {flood.address}) shows which process it is",
            )


def _purges(situation: Situation) -> Iterator[Finding]:
    for each in situation.reports:
        for event in each.purges:
            age_ms = each.wall_ms - event.time_ms
            if age_ms < RECENT_MS:
                yield Finding(
                    kind=event.event,
                    severity=NOTE,
                    what=event.text.partition(" by ")[0] + ".",
                    cause=event.text,
                    since_ms=each.time_ms - age_ms,
                    link=EVENTS_PAGE,
                    command="elasticq queues import QUEUE FILE restores an export",
                    member=each.name,
                )


RULES: Final = (_no_master, _members, _behind, _disks, _clocks, _versions, _conflicts, _data, _floods, _purges)
"""All rules of this module. The survey applies them."""


# --- parts -------------------------------------------------------------------------------


def _flood(flood: Flood) -> str:
    """Return how much the client sends. A client whose last connection is closed has sent it."""
    rate = f"{flood.per_s:,.0f} requests a second, {flood.share:.0%} of all"
    if not flood.connections:
        return f"It sent {rate}, and has closed its connections."
    if flood.connections == 1:
        return f"It sends {rate}, over 1 connection."
    return f"It sends {rate}, over {flood.connections:,} connections: http.connections_per_address can limit them."


def _of_member(
    each: Report, kind: str, severity: Severity, what: str, cause: str, since_ms: int, command: str
) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        what=what,
        cause=cause,
        since_ms=since_ms,
        link=CLUSTER_PAGE,
        command=command,
        member=each.name,
    )


def _sees(each: Report, member_id: str) -> bool:
    return any(member.id == member_id and member.is_linked for member in each.members)


def _uptime_ms(each: Report) -> int:
    return max(0, each.wall_ms - each.started_ms)


def _sentence(text: str) -> str:
    """Return a reason as a sentence."""
    text = text.strip() or "The reason is unknown"
    if not any(map(str.isdigit, text.split(maxsplit=1)[0])):  # it does not begin with the name of a member
        text = text[0].upper() + text[1:]
    return text.rstrip(".") + "."


def _size(size_bytes: float) -> str:
    for unit, of_bytes in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= of_bytes:
            return f"{size_bytes / of_bytes:,.1f} {unit}"
    return f"{size_bytes / 1_000:,.0f} KB"
