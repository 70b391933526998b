"""Keeps the garbage collector from holding the event loop.

A collection of the oldest generation looks at every object that the state is made of: with 100,000 queues it takes half
a second. Requests leave almost no cycles, and the state has none. So objects that have survived such a collection are
*frozen* before they are too many to be looked at again: reference counting frees them, and the collector passes over
them. What is born later and becomes garbage in a cycle, such as a closed TLS connection, is still collected.
"""

import gc
from typing import Final

THRESHOLDS: Final = (7_000, 2, 1)
"""A collection of the youngest, the middle and the oldest generation takes 2, 6 and 20 ms at most."""
OLD_MAX: Final = 20_000
"""Survivors from which on the oldest generation is frozen."""


def tame() -> None:
    """Set the thresholds for this process, and freeze what it has loaded."""
    gc.collect()
    gc.freeze()
    gc.collect()  # of nothing: the next one of the oldest generation is due when it is a quarter larger than the last
    gc.set_threshold(*THRESHOLDS)
    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(generation=2)) > OLD_MAX:
        gc.freeze()
