"""Spark reads and writes queues: ``format("sqs")``, ``consume``, ``run_forever``, ``session``."""

from elasticq.spark.acknowledge import ack, for_each_batch_delete
from elasticq.spark.consume import consume
from elasticq.spark.forever import progress_listener, run_forever, watched
from elasticq.spark.session import register, session

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
