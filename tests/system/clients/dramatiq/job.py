"""dramatiq-sqs: a worker, a delayed message, retries of one that fails, and its end in the dead-letter queue."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tasks import broker, fail, record
from worker import ENDPOINTS, Worker, done, until

DELAY_S = 2

with Worker(ENDPOINTS[-1], "dramatiq", "tasks", "--processes", "1", "--threads", "2"):
    record.send("plain")
    until(lambda: "plain" in done(), "the plain message")
    began_s = time.monotonic()
    record.send_with_options(args=("delayed",), delay=DELAY_S * 1_000)
    until(lambda: "delayed" in done(), "the delayed message")
    assert time.monotonic() - began_s >= DELAY_S, "the delay was cut short"
    fail.send("failing")
    until(lambda: done().count("failing") == 2, "the failing message and its retry")
    letters = []
    until(lambda: letters.extend(broker.dead_letter_queues["default"].receive_messages()) or letters, "a dead letter")
assert done().count("plain") == done().count("delayed") == 1, done()
print("dramatiq: worker, delay, retry, dead-letter queue")
