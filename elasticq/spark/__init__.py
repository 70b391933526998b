"""Spark reads and writes queues: ``format("sqs")``, ``consume``, ``run_forever``, ``session``.

A name is imported when it is first used: each fresh worker of Spark imports this package, and a reader needs little of
it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from elasticq.spark.acknowledge import ack, for_each_batch_delete
    from elasticq.spark.consuming import consume
    from elasticq.spark.forever import progress_listener, run_forever, watched
    from elasticq.spark.starting import register, session

__all__ = [
    "ack",
    "consume",
    "for_each_batch_delete",
    "progress_listener",
    "register",
    "run_forever",
    "session",
    "watched",
]

_PLACES: Final = {
    "ack": "acknowledge",
    "consume": "consuming",
    "for_each_batch_delete": "acknowledge",
    "progress_listener": "forever",
    "register": "starting",
    "run_forever": "forever",
    "session": "starting",
    "watched": "forever",
}
"""Which module of this package has a name."""


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{place}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
