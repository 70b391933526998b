"""Sets how the C library keeps memory: large blocks come from the system and go back to it, arenas are few.

Left alone, glibc learns from the first large block that is freed to keep blocks of that size, in an arena for each
thread: after a flood of megabyte messages 200 MB in use were 900 MB of the machine's memory.
"""

import ctypes
from typing import Final

M_MMAP_THRESHOLD: Final = -3
M_TRIM_THRESHOLD: Final = -1
M_ARENA_MAX: Final = -8
LARGE_BYTES: Final = 131_072
ARENAS: Final = 2


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
