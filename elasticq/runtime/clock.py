"""The clocks of a member, in whole ms."""

import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], int]

_BOOTTIME: Final = time.CLOCK_BOOTTIME
_clock_gettime_ns = time.clock_gettime_ns


def boot_ms() -> int:
    """Return the reading of the boot clock: the time since the machine's start, suspension included.

    It is never set back.
    """
    return _clock_gettime_ns(_BOOTTIME) // 1_000_000


def wall_ms() -> int:
    """Return the time since the epoch. It is used once, to start cluster time when no member knows it."""
    return time.time_ns() // 1_000_000
