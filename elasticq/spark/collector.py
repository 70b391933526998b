"""Keeps the garbage collector of Spark's Python workers off what was imported."""

import gc
import sys

_settled = 0


def settle() -> None:
    """Take all objects alive out of garbage collection if modules were imported since: Spark collects after each task.

    pandas and pyarrow are most of these and stay for ever; looking at them costs twice what a small batch does. Called
    before a task and at its end, as much is imported in the middle of a worker's first task.
    """
    global _settled
    from pyspark import TaskContext

    if _settled != len(sys.modules) and TaskContext.get() is not None:
        gc.freeze()
        _settled = len(sys.modules)
