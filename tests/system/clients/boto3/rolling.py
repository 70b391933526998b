"""Plain boto3 while members die and restart: no call fails, and each message comes once."""

import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import boto3
from worker import ENDPOINTS, WORK, until

EACH_S = 0.02
THREADS = 3

url = boto3.client("sqs", endpoint_url=ENDPOINTS[0]).create_queue(QueueName=f"boto3-{uuid.uuid4().hex}")["QueueUrl"]
sent: list[str] = []
seen: Counter[str] = Counter()
errors: list[str] = []
is_over = threading.Event()


def produce(number: int) -> None:
    sqs = boto3.client("sqs", endpoint_url=ENDPOINTS[0])
    count, began_s = 0, time.monotonic()
    while not (WORK / "over").exists():
        body = f"{number}-{count}"
        sqs.send_message(QueueUrl=url, MessageBody=body)
        sent.append(body)
        count += 1
        time.sleep(max(0.0, began_s + count * EACH_S - time.monotonic()))  # the pace of a real program


def consume(number: int) -> None:
    sqs = boto3.client("sqs", endpoint_url=ENDPOINTS[0])
    while not is_over.is_set():
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        seen.update(message["Body"] for message in found)
        gone = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(found)]
        if gone:
            failed = sqs.delete_message_batch(QueueUrl=url, Entries=gone).get("Failed", [])
            errors.extend(map(str, failed))


threading.excepthook = lambda error: errors.append(repr(error.exc_value))
producers = [threading.Thread(target=produce, args=(number,)) for number in range(THREADS)]
consumers = [threading.Thread(target=consume, args=(number,)) for number in range(THREADS)]
for thread in producers + consumers:
    thread.start()
(WORK / "begun").touch()
for thread in producers:
    thread.join()
try:
    until(lambda: errors or len(seen) == len(sent), f"{len(sent)} messages come")
finally:
    is_over.set()
for thread in consumers:
    thread.join()
assert not errors, errors[:10]
assert set(seen) == set(sent)
twice = [body for body, count in seen.items() if count > 1]
assert not twice, f"{len(twice)} of {len(sent)} messages came again: {twice[:10]}"
print(f"boto3: {len(sent)} messages, each came once, no error")
