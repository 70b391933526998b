"""One line a minute for one reason and place; strangers cannot write into the log."""

from elasticq.peers.errors import WrongSecret
from elasticq.peers.refusal_log import PLACES_MAX, QUIET_S, RefusalLog
from tests.peers.conftest import LogLines


def test_the_same_complaint_is_logged_once_a_minute_and_counted_always(log: LogLines) -> None:
    refusal_log = RefusalLog()
    for at_s in (0.0, 1.0, QUIET_S - 1, QUIET_S):
        refusal_log.note(WrongSecret("another secret"), "host:1", at_s)
    refusal_log.note(WrongSecret("another secret"), "host:2", 1.0)
    assert refusal_log.counts == {"wrong_secret": 5}
    assert len(log.having("host:1")) == 2
    assert len(log.having("host:2")) == 1


def test_text_of_strangers_is_cut_and_has_no_line_breaks(log: LogLines) -> None:
    RefusalLog().say("reason", "host:1", "a\nb\x1b[2J" + "x" * 10_000, 0.0)
    assert "\n" not in log.lines[0]
    assert "\x1b" not in log.lines[0]
    assert len(log.lines[0]) < 700


def test_conflicts_fade_when_they_are_not_met_again() -> None:
    refusal_log = RefusalLog()
    refusal_log.conflict("two clusters", 0.0)
    assert refusal_log.conflicts(1.0) == ["two clusters"]
    assert refusal_log.conflicts(QUIET_S + 1) == []


def test_places_have_a_bound(log: LogLines) -> None:
    refusal_log = RefusalLog()
    for number in range(PLACES_MAX + 10):
        refusal_log.say("reason", f"host:{number}", "text", 0.0)
    assert len(refusal_log._last_s) <= PLACES_MAX
