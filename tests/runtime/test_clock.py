"""The clocks a member lives by: which of the system's they are, in milliseconds."""

import time

from elasticq.runtime.clock import boot_ms, wall_ms


def test_the_clocks_are_those_of_the_system_in_milliseconds() -> None:
    for clock, name in ((boot_ms, time.CLOCK_BOOTTIME), (wall_ms, time.CLOCK_REALTIME)):
        before_ms = time.clock_gettime_ns(name) // 1_000_000
        assert before_ms <= clock() <= time.clock_gettime_ns(name) // 1_000_000
