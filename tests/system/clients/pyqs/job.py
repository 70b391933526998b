"""PyQS: a worker that finds its queue by a pattern, plain and delayed tasks, and one that fails and comes again."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import boto3
from tasks import QUEUE, fail_once, record
from worker import ENDPOINTS, Worker, done, until

DELAY_S = 2

sqs = boto3.client("sqs", endpoint_url=ENDPOINTS[0])
url = sqs.create_queue(QueueName=QUEUE, Attributes={"VisibilityTimeout": "3"})["QueueUrl"]
with Worker(ENDPOINTS[-1], "run"):
    for number in range(20):
        record.delay(f"task {number}")
    until(lambda: len(done()) == 20, "20 tasks")
    began_s = time.monotonic()
    record.delay("delayed", _delay_seconds=DELAY_S)
    until(lambda: "delayed" in done(), "the delayed task")
    assert time.monotonic() - began_s >= DELAY_S, "the delay was cut short"
    fail_once.delay("failing")
    until(lambda: done().count("failing") == 2, "the task that failed comes again")
counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
until(
    lambda: set(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=counts)["Attributes"].values()) == {"0"},
    "the worker deleted all",
)
assert sorted(done()) == sorted([f"task {number}" for number in range(20)] + ["delayed", "failing", "failing"]), done()
print("pyqs: 20 tasks, a delay, a task that failed and came again")
