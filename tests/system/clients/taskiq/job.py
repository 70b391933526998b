"""taskiq-aio-sqs: a worker, batched tasks on a fair queue, a heartbeat that outlasts the visibility timeout."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from botocore.session import get_session
from tasks import QUEUE, broker, last, record
from worker import ENDPOINTS, Worker, done, until

TEXTS = {f"task {number}" for number in range(12)}
sqs = get_session().create_client("sqs", endpoint_url=ENDPOINTS[0], region_name="us-east-1")


def stored() -> int:
    """Messages in the queue, also those that a worker has."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(map(int, counts.values()))


async def send() -> None:
    """Ends when all are sent: a shutdown of this broker in the middle of a batch never ends."""
    await broker.startup()
    await asyncio.gather(*(record.kiq(text) for text in TEXTS), last.kiq("long"))
    await asyncio.to_thread(until, lambda: stored() == len(TEXTS) + 1, "everything is sent")
    await broker.shutdown()


sqs.create_queue(QueueName=QUEUE)
asyncio.run(send())
with Worker(ENDPOINTS[-1], "taskiq", "worker", "tasks:broker", "--workers", "1"):
    until(lambda: set(done()) >= TEXTS, "twelve tasks")
    until(lambda: "long ended" in done(), "the long task")
    until(lambda: stored() == 0, "everything is deleted")
assert sorted(done()) == sorted([*TEXTS, "long begun", "long ended"]), done()
print("taskiq: worker, batched sends, fair queue, heartbeat over the visibility timeout")
