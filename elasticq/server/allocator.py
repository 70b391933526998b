"""Sets how the C library keeps memory: large blocks come from the system and go back to it, arenas are few.

Left alone, glibc learns from the first large block that is freed to keep blocks of that size, in an arena for each
thread: after a flood of megabyte messages 200 MB in use were 900 MB of the machine's memory.

Smaller blocks stand in one heap, of which glibc gives back the end only: after a backlog of 300 MB was deleted one
small block that lived kept all of it. So the pages that are free inside are given back, too, once the process has
worked and is quiet again: that takes about 20 ms for 100 MB, in which another thread may wait for a block.
"""

import ctypes
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Final

M_MMAP_THRESHOLD: Final = -3
M_TRIM_THRESHOLD: Final = -1
M_ARENA_MAX: Final = -8
LARGE_BYTES: Final = 131_072
ARENAS: Final = 2
LOOK_S: Final = 5.0
QUIET_CPU_S: Final = 0.25
"""A process that has used less CPU time between two looks is quiet."""
WORKED_CPU_S: Final = 0.25


def give_back_large_blocks() -> None:
    """Set glibc's parameters. Call it before any thread starts; where there is no glibc it does nothing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (M_MMAP_THRESHOLD, LARGE_BYTES),
            (M_TRIM_THRESHOLD, 2 * LARGE_BYTES),
            (M_ARENA_MAX, ARENAS),
        ):
            mallopt(parameter, value)


def give_back_free_pages() -> None:
    """Give back what is free inside the heap; other threads run meanwhile. Without glibc it does nothing."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


class Trimmer:
    """Calls ``trim`` in another thread whenever the process has used WORKED_CPU_S since the last time and is quiet."""

    __slots__ = ("_cpu_s", "_loop", "_seen_s", "_timer", "_trim", "_trimmed_s")

    def __init__(
        self,
        loop: AbstractEventLoop,
        trim: Callable[[], None] = give_back_free_pages,
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._loop = loop
        self._trim = trim
        self._cpu_s = cpu_s
        self._seen_s = self._trimmed_s = cpu_s()
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self.start()
        cpu_s = self._cpu_s()
        is_quiet = cpu_s - self._seen_s < QUIET_CPU_S
        self._seen_s = cpu_s
        if is_quiet and cpu_s - self._trimmed_s >= WORKED_CPU_S:
            self._trimmed_s = cpu_s
            self._loop.run_in_executor(None, self._trim)
