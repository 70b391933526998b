"""The clocks a member lives by: which of the system's they are, in milliseconds."""

import time

from elasticq.runtime.clock import boot_ms, wall_ms


def test_the_clocks_are_those_of_the_system_in_milliseconds() -> None:
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    assert before <= boot_ms() <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    assert isinstance(wall_ms(), int)
    assert wall_ms() > 1_000_000_000_000, "since the epoch, in milliseconds: a day after September 2001"
