"""Celery: a worker, a plain task, a countdown; the worker is killed in the middle of a task and another one gets it."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tasks import begin_and_wait, record
from worker import ENDPOINTS, WORK, Worker, done, until

COUNTDOWN_S = 3
COMMAND = ("celery", "-A", "tasks", "worker", "--concurrency=1", "--without-mingle", "--without-gossip", "-l", "info")

with Worker(ENDPOINTS[-1], *COMMAND) as worker:
    record.delay("plain")
    until(lambda: "plain" in done(), "the plain task")
    began_s = time.monotonic()
    record.apply_async(("countdown",), countdown=COUNTDOWN_S)
    until(lambda: "countdown" in done(), "the task with a countdown")
    assert time.monotonic() - began_s >= COUNTDOWN_S, "the countdown was cut short"
    begin_and_wait.delay("long")
    until(lambda: "long begun" in done(), "the long task begins")
    worker.kill9()
assert "long ended" not in done()

with Worker(ENDPOINTS[len(ENDPOINTS) // 2], *COMMAND):
    until(lambda: done().count("long begun") == 2, "the task of the dead worker is delivered to another one")
    (WORK / "release").touch()
    until(lambda: "long ended" in done(), "it ends there")
    record.delay("last")
    until(lambda: "last" in done(), "the worker goes on")
assert done().count("plain") == done().count("countdown") == 1, done()
print("celery: worker, countdown, kill -9 of the worker and its task delivered to the next one")
