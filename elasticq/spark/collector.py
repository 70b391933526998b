"""The exclusion of imported objects from garbage collection in Spark's Python workers."""

import gc
import sys

_settled = 0


def settle() -> None:
    """Exclude all living objects from garbage collection, if modules were imported since the last call.

    Spark collects after each task. Most objects belong to pandas and pyarrow and are never freed, and a visit of all
    of them costs twice as much as a small batch. Call this before and after a task, because a worker's first task
    imports many modules.
    """
    global _settled
    from pyspark import TaskContext

    if _settled != len(sys.modules) and TaskContext.get() is not None:
        gc.freeze()
        _settled = len(sys.modules)
