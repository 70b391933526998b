"""Actors whose broker is the server under test."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dramatiq
from dramatiq.middleware import AgeLimit, Retries, TimeLimit
from dramatiq_sqs import SQSBroker
from worker import WORK, note

broker = SQSBroker(
    namespace=f"dramatiq-{WORK.name}",
    middleware=[AgeLimit(), TimeLimit(), Retries(max_retries=1, min_backoff=100, max_backoff=200)],
    dead_letter=True,
    visibility_timeout=10,
    tags={"made-by": "dramatiq"},
    endpoint_url=os.environ["ENDPOINTS"].split(",")[0],
    region_name="us-east-1",
)
dramatiq.set_broker(broker)


@dramatiq.actor
def record(text: str) -> None:
    note(text)


@dramatiq.actor
def fail(text: str) -> None:
    note(text)
    raise RuntimeError("as it should")
