"""The clocks a member lives by, in whole milliseconds."""

import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], int]

_BOOTTIME: Final = time.CLOCK_BOOTTIME
_clock_gettime_ns = time.clock_gettime_ns


def boot_ms() -> int:
    """Since boot, suspended time included, never set back: what the node counts by."""
    return _clock_gettime_ns(_BOOTTIME) // 1_000_000


def wall_ms() -> int:
    """Since the epoch; used once, to start cluster time where nobody knows it better."""
    return time.time_ns() // 1_000_000
