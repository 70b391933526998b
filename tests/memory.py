"""What is left in memory of calls that failed, and what objects take."""

import gc
import tracemalloc
from collections.abc import Callable


def errors_in_memory() -> int:
    """Of any kind: the decoder's hold what was sent as well as ours."""
    return sum(isinstance(each, BaseException) for each in gc.get_objects())


def kept_bytes(action: Callable[[], object]) -> int:
    """Return by how many bytes the memory of Python's objects grows through ``action``, with what it returns."""
    gc.collect()
    tracemalloc.start(1)
    try:
        kept = action()
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return grown
