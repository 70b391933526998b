"""What the reports of members say about members, links, disks, clocks, versions, clients and purges."""

from typing import Any

from msgspec.structs import replace

from elasticq.admin.attention.clients import Flood
from elasticq.admin.attention.finding import CRITICAL, NOTE, WARNING, Finding
from elasticq.admin.attention.members import BEHIND_WARNING_MS, RECENT_MS, UNKNOWN_MS, Situation
from elasticq.admin.attention.report import Report
from elasticq.admin.attention.survey import findings
from elasticq.admin.source import Event
from elasticq.node.settings import MemberStatus

NOW_MS = 1_800_000_000_000
NAMES = ("n1", "n2", "n3")


def member(name: str, **changes: Any) -> MemberStatus:
    status = MemberStatus(
        id=f"{name}-{name[1] * 16}",
        name=name,
        role="master" if name == "n1" else "follower",
        voter=True,
        is_linked=True,
        lag=0,
        lag_ms=0,
        address=f"10.0.0.{name[1]}:9326",
    )
    return replace(status, **changes)


def report(name: str, lost: dict[str, int] | None = None, **changes: Any) -> Report:
    """The report of one of three members; ``lost``: how long ago its link to others broke, in ms."""
    members = [
        member(each, is_linked=False, lag=None, lag_ms=None, lost_ms=lost[each])
        if each in (lost or {})
        else member(each)
        for each in NAMES
    ]
    given = {
        "id": member(name).id,
        "name": name,
        "role": member(name).role,
        "master": member("n1").id,
        "version": "1.0.0",
        "started_ms": NOW_MS - 60_000,
        "wall_ms": NOW_MS,
        "time_ms": NOW_MS,
        "ready": True,
        "quorum": 2,
        "members": tuple(members),
        "disk_size_bytes": 1_000,
        "disk_free_bytes": 500,
    }
    return Report(**(given | changes))


def seen(*reports: Report, **changes: Any) -> list[Finding]:
    return findings(Situation(reports[0], reports[1:], **changes))


def one(*reports: Report, **changes: Any) -> Finding:
    [finding] = seen(*reports, **changes)
    return finding


def test_a_healthy_cluster_needs_nothing() -> None:
    assert seen(*map(report, NAMES)) == []


def test_a_member_is_down_if_nothing_listens_at_its_address() -> None:
    lost = {"n3": 4_000}
    refused = {"10.0.0.3:9326": "connection refused"}
    of_master, of_follower = report("n1", lost, unreached=refused), report("n2", {"n3": 4_500})
    finding = one(of_master, of_follower)
    assert (finding.kind, finding.severity, finding.member) == ("member_down", CRITICAL, "n3")
    assert finding.what == "n3 is down. The loss of one more voter stops all writes."
    assert finding.cause == "Nothing listens at 10.0.0.3:9326: connection refused."
    assert finding.since_ms == NOW_MS - 4_000
    assert one(of_follower, of_master) == finding, "all members show the same"


def test_a_member_that_answers_nothing_is_cut_off_or_worse() -> None:
    silent = {"10.0.0.3:9326": "no answer within 3 s"}
    finding = one(report("n1", {"n3": 4_000}, unreached=silent), report("n2", {"n3": 4_000}))
    assert (finding.kind, finding.what[:16]) == ("member_cut_off", "n3 is cut off. T")
    assert finding.cause == "No answer within 3 s at 10.0.0.3:9326: it is cut off, it hangs, or its machine is off."


def test_a_member_that_only_the_master_misses_is_cut_off_from_it() -> None:
    finding = one(report("n1", {"n3": 4_000}), report("n2"))
    assert (finding.kind, finding.cause) == ("member_cut_off", "n1 has no link to it, but n2 has one.")


def test_a_member_with_a_link_that_does_not_answer_hangs() -> None:
    finding = one(report("n1"), report("n2"), silent={"n3": NOW_MS - 2_000})
    assert (finding.kind, finding.member, finding.since_ms) == ("member_cut_off", "n3", NOW_MS - 2_000)
    assert "its process hangs" in finding.cause


def test_a_member_that_is_cut_off_says_so_of_itself() -> None:
    reason = "read-only: 1 of 3 members, 2 needed"
    own = report("n3", {"n1": 5_000, "n2": 5_000}, ready=False, reason=reason, stale_ms=4_000, master=None)
    finding = one(own)
    assert (finding.kind, finding.member, finding.since_ms) == ("member_cut_off", "n3", NOW_MS - 4_000)
    assert finding.what == "n3 is cut off: it reaches 1 of 3 voters and takes no writes."
    assert finding.cause == "Read-only: 1 of 3 members, 2 needed."


def test_no_master_is_critical() -> None:
    changes = {"ready": False, "reason": "no master yet", "master": None, "role": "candidate"}
    finding = one(*(report(name, **changes) for name in NAMES))
    assert (finding.kind, finding.severity) == ("no_master", CRITICAL)


def test_a_proxy_without_a_master_says_why() -> None:
    own = report("web1x", role="proxy", ready=False, reason="no link to any member", members=(), quorum=0, master=None)
    finding = one(own)
    assert (finding.kind, finding.member) == ("proxy_without_master", "web1x")
    assert finding.cause == "No link to any member."


def test_a_member_that_lags_is_named_with_the_time_that_it_lacks() -> None:
    late = member("n3", lag=7_000, lag_ms=4_000)
    of_master = report("n1", members=(member("n1"), member("n2"), late))
    finding = one(of_master, report("n2"), report("n3"))
    assert (finding.kind, finding.severity, finding.since_ms) == ("member_behind", NOTE, NOW_MS - 4_000)
    assert finding.what == "n3 is 4 s behind the master."
    worse = replace(late, lag_ms=BEHIND_WARNING_MS)
    assert one(report("n1", members=(member("n1"), worse))).severity == WARNING
    assert seen(report("n1", members=(member("n1"), replace(late, lag_ms=1_500)))) == []


def test_a_disk_fills_when_less_than_a_tenth_is_left_beyond_the_reserve() -> None:
    assert seen(report("n1", disk_free_bytes=150, disk_reserve_bytes=50)) == []
    finding = one(report("n1", disk_free_bytes=149, disk_reserve_bytes=50))
    assert (finding.kind, finding.severity, finding.what) == ("disk_fills", WARNING, "The disk of n1 fills.")
    assert "it refuses sends" in finding.cause
    full = one(report("n1", is_disk_full=True))
    assert (full.severity, full.what) == (CRITICAL, "The disk of n1 is full: it refuses sends.")
    assert seen(report("n1", disk_size_bytes=0, disk_free_bytes=0)) == [], "it stores nothing on disk"


def test_the_clock_that_differs_from_most_is_named() -> None:
    reports = list(map(report, NAMES))
    finding = one(*reports, clocks_ms={"n2": 10, "n3": 3_600_000})
    assert (finding.kind, finding.member, finding.since_ms) == ("clock_off", "n3", UNKNOWN_MS)
    assert finding.what == "The clock of n3 is 3,600 s ahead of the others."
    own = one(*reports, clocks_ms={"n2": -5_000, "n3": -5_001})
    assert (own.member, own.what) == ("n1", "The clock of n1 is 5 s ahead of the others.")
    assert seen(*reports[:2], clocks_ms={"n2": 3_600_000}) == [], "one of two, and nobody knows which"


def test_members_of_different_versions_are_named() -> None:
    finding = one(report("n1"), report("n2"), report("n3", version="2.0.0", started_ms=NOW_MS - 5_000))
    assert (finding.kind, finding.since_ms) == ("upgrade_half_done", NOW_MS - 5_000)
    assert finding.cause.endswith("n1, n2 1.0.0; n3 2.0.0.")


def test_a_refused_link_is_told_once_with_its_reason() -> None:
    text = "n3 and n1 are different builds: run the same build on all members"
    finding = one(report("n1", conflicts=[text]), report("n2", conflicts=[f"other_protocol: {text}"]))
    assert (finding.kind, finding.severity) == ("link_refused", CRITICAL)
    assert finding.cause == "n3 and n1 are different builds: run the same build on all members."


def test_rows_that_were_set_aside_and_a_member_that_is_not_ready_are_told() -> None:
    assert one(report("n1", set_aside=3)).kind == "rows_set_aside"
    finding = one(report("n1"), report("n2", ready=False, reason="catching up"))
    assert (finding.kind, finding.member, finding.cause) == ("member_not_ready", "n2", "Catching up.")


def test_a_client_that_floods_a_member_is_named() -> None:
    finding = one(report("n1"), report("n2", flood=Flood("10.9.9.9", 1_234.0, 0.96, 3, NOW_MS - 8_000)))
    assert (finding.kind, finding.member, finding.since_ms) == ("client_floods", "n2", NOW_MS - 8_000)
    assert finding.cause.startswith("It sends 1,234 requests a second, 96% of all, over 3 connections: ")
    assert finding.command.startswith("ss -tnp (on 10.9.9.9)")


def test_a_limit_of_connections_is_advised_only_against_several() -> None:
    one_left, none_left = (one(report("n1", flood=Flood("10.9.9.9", 379.0, 0.99, count, 0))) for count in (1, 0))
    assert one_left.cause == "It sends 379 requests a second, 99% of all, over 1 connection."
    assert none_left.cause == "It sent 379 requests a second, 99% of all, and has closed its connections."


def test_a_purge_is_shown_for_some_time_with_who_did_it() -> None:
    text = "The queue ('0', 'jobs') was purged by AKID of account 0 from 10.1.1.1."
    event = Event(NOW_MS - 5_000, "info", "queue_purged", text)
    off = report("n2", purges=[event], time_ms=NOW_MS + 9)
    finding = one(report("n1"), off)
    assert (finding.kind, finding.severity, finding.since_ms) == ("queue_purged", NOTE, NOW_MS + 9 - 5_000)
    assert (finding.what, finding.cause) == ("The queue ('0', 'jobs') was purged.", text)
    assert seen(report("n1"), report("n2", purges=[event], wall_ms=event.time_ms + RECENT_MS)) == []


def test_findings_of_queues_are_those_of_the_master() -> None:
    lonely = Finding(kind="nobody_fetches", severity=NOTE, what="a", cause="b", since_ms=NOW_MS)
    assert seen(report("n2", queues=[lonely]), report("n1")) == []
    assert seen(report("n2"), report("n1", queues=[lonely])) == [lonely]
