"""Keeps the garbage collector of Spark's Python workers off what was imported."""

import gc

_settled = False


def settle() -> None:
    """Takes all objects alive out of garbage collection, once in a worker: Spark collects after each task.

    pandas and pyarrow are most of these and stay for ever; looking at them costs twice what a small batch does.
    """
    global _settled
    from pyspark import TaskContext

    if not _settled and TaskContext.get() is not None:
        gc.freeze()
        _settled = True
