"""The Spark integration: ``format("sqs")``, ``consume``, ``run_forever``, ``session``.

Each name is imported at its first use, because every new Spark worker imports this package and needs little of it.
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
"""The module of this package that defines each name."""

__getattr__, __dir__ = lazily.names(globals(), _PLACES)
