"""The tuning of the garbage collector, so that it does not block the event loop.

A collection of the oldest generation visits every object of the state: with 100,000 queues it takes half a second.
Requests leave almost no cycles, and the state has none. So objects that survived such a collection are *frozen* when
they are many: the collector skips them, and reference counting still frees them. Later objects that become garbage in
a cycle, such as a closed TLS connection, are still collected.
"""

import gc
from typing import Final

THRESHOLDS: Final = (7_000, 2, 1)
"""With these, a collection of the youngest, middle and oldest generation takes at most 2, 6 and 20 ms."""
OLD_MAX: Final = 20_000
"""The oldest generation is frozen if more objects survive in it."""


def tame() -> None:
    """Set the thresholds for this process, and freeze all its objects."""
    gc.collect()
    gc.freeze()
    gc.collect()  # finds nothing, which resets the size that decides when the oldest generation is collected next
    gc.set_threshold(*THRESHOLDS)
    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(generation=2)) > OLD_MAX:
        gc.freeze()
