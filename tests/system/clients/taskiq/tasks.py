"""Tasks of a taskiq broker that is the server under test."""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from taskiq_aio_sqs import SQSBroker
from worker import WORK, note

VISIBILITY_S = 4
QUEUE = f"taskiq-{WORK.name}"

broker = SQSBroker(
    endpoint_url=os.environ["ENDPOINTS"].split(",")[0],
    sqs_queue_name=QUEUE,
    region_name="us-east-1",
    aws_access_key_id="x",
    aws_secret_access_key="x",
    wait_time_seconds=2,
    visibility_timeout=VISIBILITY_S,
    is_fair_queue=True,
    enable_batching=True,
    enable_heartbeat=True,
    heartbeat_interval=1.0,
    use_task_id_for_deduplication=False,
)


@broker.task
async def record(text: str) -> None:
    note(text)


@broker.task
async def last(text: str) -> None:
    """Twice as long as a message is hidden without a heartbeat."""
    note(f"{text} begun")
    await asyncio.sleep(2 * VISIBILITY_S)
    note(f"{text} ended")
