"""Keeps the garbage collector of Spark's Python workers off what was imported."""

import gc

_settled = False


def settle() -> None:
    """Once in a worker. After each task Spark has the worker collect all that is alive, twice what a small batch costs.

    pandas and pyarrow are most of that, and stay for ever: they are taken out of what is looked at.
    """
    global _settled
    from pyspark import TaskContext

    if not _settled and TaskContext.get() is not None:
        gc.freeze()
        _settled = True
