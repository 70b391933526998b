"""A process asks all linked members, applies the rules to their reports, and uses the result for a while."""

import asyncio

import msgspec
import pytest

from elasticq.admin.attention.finding import FINDINGS_MAX, NOTE, Finding
from elasticq.admin.attention.overview import overview
from elasticq.admin.attention.queues import Totals
from elasticq.admin.attention.report import Report, report
from elasticq.admin.attention.survey import Surveyor
from elasticq.admin.source import Event, Links
from elasticq.peers.questions import BODY_BYTES_MAX, Answer
from elasticq.runtime.meter import Messages
from tests.admin.member import IDS, Member

LONELY = Finding(kind="nobody_fetches", severity=NOTE, what="Nobody.", cause="None.", since_ms=1)


def trio() -> dict[str, Member]:
    members = {name: Member(name) for name in IDS}
    for name, member in members.items():
        member.linked = {IDS[other]: each for other, each in members.items() if other != name}
    return members


async def test_all_members_show_the_same_findings_and_totals() -> None:
    members = trio()
    members["n1"].watch.findings, members["n1"].watch.totals = [LONELY], Totals(2, 3, 4, 5, 6)
    shown = [overview(await Surveyor(each).survey()) for each in members.values()]
    assert [each.findings for each in shown] == [[LONELY]] * 3
    assert [each.totals for each in shown] == [Totals(2, 3, 4, 5, 6)] * 3
    assert [each.asked for each in shown] == list(IDS)
    assert {each.master for each in shown} == {"n1"}
    for each in shown:
        assert [(row.name, row.answers, row.ready, row.role) for row in each.members] == [
            ("n1", True, True, "master"),
            ("n2", True, True, "follower"),
            ("n3", True, True, "follower"),
        ]


async def test_rates_of_all_members_are_added_and_the_newest_election_is_shown() -> None:
    members = trio()
    for at, member in enumerate(members.values()):
        sent = Messages()
        member.rates.update({("0", "jobs"): sent})
        sent.sent = 20
        member.rates.update({("0", "jobs"): sent})
        member.told = [Event(at, "info", "master", f"master {at}"), Event(9, "info", "linked", "no election")]
    shown = overview(await Surveyor(members["n2"]).survey())
    assert shown.sent_per_s == 3 * 20 / 4
    assert shown.last_election == Event(2, "info", "master", "master 2")


async def test_a_member_that_does_not_answer_in_time_is_silent_since_the_first_time() -> None:
    members = trio()
    del members["n1"].linked[IDS["n3"]]
    surveyor = Surveyor(members["n1"])
    [finding] = (await surveyor.survey()).findings
    assert (finding.kind, finding.member) == ("member_cut_off", "n3")
    surveyor._made_s = 0.0
    members["n1"].seen = msgspec.structs.replace(members["n1"].seen, time_ms=members["n1"].seen.time_ms + 5_000)
    assert (await surveyor.survey()).findings[0].since_ms == finding.since_ms
    shown = overview(await surveyor.survey())
    assert [row.answers for row in shown.members] == [True, True, False]
    assert shown.members[2].version is None


async def test_requests_at_one_time_share_a_survey_and_later_ones_use_it_again() -> None:
    members = trio()
    surveyor = Surveyor(members["n1"])
    first, second = await asyncio.gather(surveyor.survey(), surveyor.survey())
    assert first is second
    assert await surveyor.survey() is first
    assert len(members["n1"].asked) == 2
    surveyor._made_s = 0.0
    assert await surveyor.survey() is not first


async def test_a_finding_whose_begin_is_unknown_begins_when_it_is_noticed() -> None:
    members = trio()
    members["n1"].troubles = Links(conflicts=["two clusters"])
    surveyor = Surveyor(members["n1"])
    [finding] = (await surveyor.survey()).findings
    assert (finding.kind, finding.since_ms) == ("link_refused", members["n1"].seen.time_ms)
    surveyor._made_s = 0.0
    members["n1"].seen = msgspec.structs.replace(members["n1"].seen, time_ms=members["n1"].seen.time_ms + 5_000)
    assert (await surveyor.survey()).findings == [finding]


async def test_the_clock_of_a_member_is_compared_with_the_own_one() -> None:
    members = trio()
    members["n3"].clock_ms += 5_000
    survey = await Surveyor(members["n1"]).survey()
    assert survey.situation.clocks_ms == {"n2": 0, "n3": 5_000}
    assert [each.kind for each in survey.findings] == ["clock_off"]


async def test_a_report_that_cannot_be_read_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    members = trio()

    async def ask(member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        return (200, b"[]") if member_id == IDS["n2"] else (404, b"{}")

    monkeypatch.setattr(members["n1"], "ask", ask)
    assert (await Surveyor(members["n1"]).survey()).situation.others == []


def test_a_report_has_a_default_for_each_member_and_fits_a_link() -> None:
    assert msgspec.json.decode(b"{}", type=Report) == Report()
    member = Member()
    long = "x" * 80
    member.watch.findings = [
        Finding(
            kind="blocked_group", severity=NOTE, what=long * 4, cause=long * 4, since_ms=1, link=long * 3, command=long
        )
    ] * FINDINGS_MAX
    encoded = msgspec.json.encode(report(member))
    assert len(encoded) < BODY_BYTES_MAX
    assert msgspec.json.decode(encoded, type=Report) == report(member)
