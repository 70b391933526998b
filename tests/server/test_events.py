"""What the log told last."""

import logging

from elasticq.server.events import KEPT_MAX, LOGGERS, EventKeeper


def test_lines_of_the_log_become_events_newest_first() -> None:
    keeper = EventKeeper()
    keeper.listen()
    try:
        log = logging.getLogger(LOGGERS[0])
        log.warning("%s: %s", "read_only", "This member is read-only: 1 of 3.")
        log.warning("a line of another form")
    finally:
        keeper.stop()
    other, told = keeper.newest_first()
    assert (told.event, told.level, told.text) == ("read_only", "warning", "This member is read-only: 1 of 3.")
    assert told.time_ms > 1_600_000_000_000
    assert (other.event, other.text) == ("note", "a line of another form")
    log.warning("event: After the end.")
    assert len(keeper.newest_first()) == 2


def test_only_the_newest_are_kept() -> None:
    keeper = EventKeeper()
    for number in range(KEPT_MAX + 5):
        keeper.emit(logging.makeLogRecord({"msg": f"event: {number}"}))
    told = keeper.newest_first()
    assert (len(told), told[0].text, told[-1].text) == (KEPT_MAX, str(KEPT_MAX + 4), "5")
