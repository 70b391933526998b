"""The tuning of the C library's memory allocator: the system gets freed memory back, and arenas are few.

By default, glibc keeps freed blocks of a size once it has seen a large block of that size freed, and it does so in one
arena for each thread. After a flood of messages of 1 MB, 200 MB in use took 900 MB of the machine's memory. So large
blocks come from the system and return to it.

Smaller blocks are in one heap, and glibc releases only its end. After a backlog of 300 MB was deleted, one small block
in use kept all of it. So the process also releases free pages inside the heap when it is quiet after some work. This
takes about 20 ms for 100 MB, in which another thread may wait for a block.
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
"""The process is quiet if it used less CPU time since the last check."""
WORKED_CPU_S: Final = 0.25


def return_large_blocks() -> None:
    """Set glibc's parameters so that large blocks return to the system. Do nothing without glibc.

    Call it before any thread starts.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (M_MMAP_THRESHOLD, LARGE_BYTES),
            (M_TRIM_THRESHOLD, 2 * LARGE_BYTES),
            (M_ARENA_MAX, ARENAS),
        ):
            mallopt(parameter, value)


def release_free_pages() -> None:
    """Release the free pages inside the heap. Other threads run meanwhile. Do nothing without glibc."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


class Trimmer:
    """A timer that calls ``trim`` in another thread when the process is quiet.

    It does so only if the process has used WORKED_CPU_S of CPU time since the last call.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        trim: Callable[[], None] = release_free_pages,
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
