"""A process asks all linked members, applies the rules to their reports, and uses the result for a while."""

import asyncio

import msgspec
import pytest

from elasticq.admin.attention.finding import NOTE, Finding
from elasticq.admin.attention.overview import overview
from elasticq.admin.attention.survey import Surveyor
from elasticq.admin.source import Links
from elasticq.peers.questions import Answer
from tests.admin.member import IDS, trio

LONELY = Finding(kind="nobody_fetches", severity=NOTE, what="Nobody.", cause="None.", since_ms=1)


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
