"""The state of the cluster, which all members show alike."""

from elasticq.admin.attention.finding import NOTE, Finding
from elasticq.admin.attention.overview import overview
from elasticq.admin.attention.queues import Totals
from elasticq.admin.attention.survey import Surveyor
from elasticq.admin.source import Event
from elasticq.runtime.meter import Messages
from tests.admin.member import IDS, trio

LONELY = Finding(kind="nobody_fetches", severity=NOTE, what="Nobody.", cause="None.", since_ms=1)


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


async def test_rates_of_all_members_are_added_and_the_last_election_is_shown_by_its_first_witness() -> None:
    members = trio()
    for at, member in enumerate(members.values()):
        sent = Messages()
        member.history.update({}, {("0", "jobs"): sent}, lambda _: True)
        sent.sent = 20
        member.history.update({}, {("0", "jobs"): sent}, lambda _: True)
        is_late = at == 0  # it started long after the election, and learned of it then
        member.told = [
            Event(8 if is_late else at, "info", "master", "n1 is the master of term 7."),
            Event(0, "info", "master", "n2 is the master of term 6."),
            Event(9, "info", "linked", "no election"),
        ]
    shown = overview(await Surveyor(members["n2"]).survey())
    assert shown.sent_per_s == 3 * 20 / 4
    assert shown.last_election == Event(1, "info", "master", "n1 is the master of term 7.")
