"""Spark reads and writes queues: ``format("sqs")``, ``consume``, ``run_forever``, ``session``.

A name is imported when it is first used: each fresh worker of Spark imports this package, and a reader needs little of
it.
"""

from typing import TYPE_CHECKING, Final

from elasticq import lazily

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

__getattr__, __dir__ = lazily.names(globals(), _PLACES)
