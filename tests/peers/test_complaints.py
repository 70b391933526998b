"""One line a minute for one reason and place; strangers cannot write into the log."""

from elasticq.peers.complaints import PLACES_MAX, QUIET_S, Complaints
from elasticq.peers.errors import WrongSecret
from tests.peers.conftest import LogLines


def test_the_same_complaint_is_logged_once_a_minute_and_counted_always(log: LogLines) -> None:
    complaints = Complaints()
    for at_s in (0.0, 1.0, QUIET_S - 1, QUIET_S):
        complaints.note(WrongSecret("another secret"), "host:1", at_s)
    complaints.note(WrongSecret("another secret"), "host:2", 1.0)
    assert complaints.counts == {"wrong_secret": 5}
    assert len(log.having("host:1")) == 2
    assert len(log.having("host:2")) == 1


def test_text_of_strangers_is_cut_and_has_no_line_breaks(log: LogLines) -> None:
    Complaints().say("reason", "host:1", "a\nb\x1b[2J" + "x" * 10_000, 0.0)
    assert "\n" not in log.lines[0]
    assert "\x1b" not in log.lines[0]
    assert len(log.lines[0]) < 700


def test_conflicts_fade_when_they_are_not_met_again() -> None:
    complaints = Complaints()
    complaints.conflict("two clusters", 0.0)
    assert complaints.conflicts(1.0) == ["two clusters"]
    assert complaints.conflicts(QUIET_S + 1) == []


def test_places_have_a_bound(log: LogLines) -> None:
    complaints = Complaints()
    for number in range(PLACES_MAX + 10):
        complaints.say("reason", f"host:{number}", "text", 0.0)
    assert len(complaints._last_s) <= PLACES_MAX
