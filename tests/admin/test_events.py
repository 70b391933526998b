"""The events of the cluster are those of all members, merged."""

from elasticq.admin import events
from elasticq.admin.source import Event
from tests.admin.member import trio


def event(time_ms: int, text: str = "n1 is the master of term 3.", member: str = "") -> Event:
    return Event(time_ms, "info", "master", text, member)


async def test_any_member_shows_the_events_of_all_by_time_with_the_members_that_logged_them() -> None:
    members = trio()
    members["n1"].told = [event(9_000, "n1 was elected."), event(1_000, "old")]
    members["n2"].told = [event(9_005)]
    members["n3"].told = [event(9_002)]
    shown = [event(9_005, member="n2, n3"), event(9_000, "n1 was elected.", "n1"), event(1_000, "old", "n1")]
    for member in members.values():
        assert await events.of_cluster(member) == shown
    members["n1"].linked = {}
    assert await events.of_cluster(members["n1"]) == shown[1:]


def test_the_same_event_later_or_of_the_same_member_is_another_one() -> None:
    first, later = event(1_000, member="n1"), event(1_000 + events.SAME_MS + 1, member="n2")
    assert events.merged([[first], [later]]) == [later, first]
    again = event(2_000, member="n1")
    assert events.merged([[again, first]]) == [again, first]


def test_events_are_bounded() -> None:
    many = [event(at, str(at), "n1") for at in range(2 * events.SHOWN_MAX)]
    found = events.merged([many])
    assert len(found) == events.SHOWN_MAX
    assert found[0].time_ms == 2 * events.SHOWN_MAX - 1
