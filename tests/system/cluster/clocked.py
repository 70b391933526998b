"""A member whose clocks run as a test wants: ``clocked FILE server ...`` is ``elasticq server ...`` by FILE's clocks.

Every clock that a member lives by comes from elasticq.runtime.clock. Its functions are replaced before
anything else of elasticq is imported, so that nobody keeps the real ones; what only measures (timers of the
loop, which start over at each look at the clock, and durations) stays real.
"""

import importlib
import mmap
import sys
import time
from pathlib import Path
from typing import NamedTuple

NUMBERS = 3
NUMBER_BYTES = 8


class Skew(NamedTuple):
    """drift_ppm: how much faster than true time the boot-time clock runs, in millionths; the others: how far ahead."""

    drift_ppm: int = 0
    boot_ahead_ms: int = 0
    wall_ahead_ms: int = 0


class Clocks:
    """Of one member. The file is mapped into its process and the test's, so a change is seen at the next look."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with file.open("r+b") as opened:
            self._numbers = memoryview(mmap.mmap(opened.fileno(), NUMBERS * NUMBER_BYTES)).cast("q")

    @classmethod
    def make(cls, file: Path, skew: Skew) -> "Clocks":
        file.write_bytes(bytes(NUMBERS * NUMBER_BYTES))
        made = cls(file)
        made.skew = skew
        return made

    @property
    def skew(self) -> Skew:
        return Skew(*self._numbers)

    @skew.setter
    def skew(self, skew: Skew) -> None:
        for at, number in enumerate(skew):
            self._numbers[at] = number  # eight bytes at once: a process that looks meanwhile sees the old or the new

    def boot_ms(self) -> int:
        drift_ppm, ahead_ms, _ = self._numbers
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return (boot_ns + boot_ns * drift_ppm // 1_000_000) // 1_000_000 + ahead_ms

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._numbers[2]


def main(file: str, *words: str) -> int:
    assert not any(name.startswith("elasticq") for name in sys.modules), "somebody may have the real clocks already"
    clocks, real = Clocks(Path(file)), importlib.import_module("elasticq.runtime.clock")
    real.boot_ms, real.wall_ms = clocks.boot_ms, clocks.wall_ms
    return int(importlib.import_module("elasticq.cli").main(words))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
