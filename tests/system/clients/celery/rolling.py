"""Celery while the members of its broker restart: each task is published without an error and executed once."""

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tasks import record
from worker import ENDPOINTS, WORK, Worker, done, said, until

EACH_S = 0.05
COMMAND = ("celery", "-A", "tasks", "worker", "--concurrency=2", "--without-mingle", "--without-gossip", "-l", "info")

published = 0
with Worker(ENDPOINTS[0], *COMMAND):
    record.delay("first")
    until(lambda: "first" in done(), "the first task")
    (WORK / "begun").touch()
    began_s = time.monotonic()
    while not (WORK / "over").exists():
        record.delay(f"task {published}")
        published += 1
        time.sleep(max(0.0, began_s + published * EACH_S - time.monotonic()))  # the pace of a real program
    while (executed := len(set(done()))) < published + 1:  # two at a time take a while for what restarts held up
        until(lambda: len(set(done())) > executed, f"{executed} of {published} tasks are executed, and the next one")
twice = [text for text, count in Counter(done()).items() if count > 1]
assert not twice, f"{len(twice)} of {published} tasks were executed again: {twice[:10]}"
errors = [line for line in said().splitlines() if "ERROR" in line or "Traceback" in line]
assert not errors, errors[:10]
print(f"celery: {published} tasks, each executed once, no error")
