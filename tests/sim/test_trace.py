"""The trace of a run: its hash tells runs apart, and a finding ends the run."""

from collections.abc import Callable

import pytest

from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import FINDINGS_MAX, Trace


def _trace(*, keeps_lines: bool = False) -> Trace:
    return Trace(Scheduler(1), keeps_lines=keeps_lines)


@pytest.mark.parametrize(
    "event",
    [
        lambda trace: trace.note("crash", "m2", 1),
        lambda trace: trace.frame("m1", "m2", 80),
        lambda trace: trace.frame("m1", "m2", 81),
        lambda trace: trace.found("lost", "message 1"),
    ],
)
def test_every_event_changes_the_hash(event: Callable[[Trace], None]) -> None:
    one, same, empty = _trace(), _trace(), _trace()
    event(one)
    event(same)
    assert one.hash == same.hash != empty.hash


def test_the_moment_of_an_event_changes_the_hash() -> None:
    one, later = _trace(), _trace()
    later.scheduler.run_until(1)
    for trace in (one, later):
        trace.note("crash", "m1", 1)
    assert one.hash != later.hash


def test_lines_are_kept_if_asked_and_change_no_hash() -> None:
    silent, telling = _trace(), _trace(keeps_lines=True)
    for trace in (silent, telling):
        trace.note("crash", "m1", 1)
    assert (silent.lines, telling.lines) == ([], ["0 crash m1 1"])
    assert silent.hash == telling.hash


def test_finding_stops_the_run_and_has_its_moment() -> None:
    trace = _trace()
    trace.scheduler.schedule(30, lambda: trace.found("lost", "message 1"))
    trace.scheduler.run_until(100)
    assert [(found.name, found.evidence, found.at_us) for found in trace.findings] == [("lost", "message 1", 30)]
    assert trace.scheduler.now_us == 30


def test_only_the_first_findings_are_kept() -> None:
    trace = _trace()
    for number in range(FINDINGS_MAX + 1):
        trace.found("lost", str(number))
    assert [found.evidence for found in trace.findings] == [str(number) for number in range(FINDINGS_MAX)]
