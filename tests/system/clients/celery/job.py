"""Celery: a worker, a plain task, a countdown; the worker is killed in the middle of a task and another one gets it.

Then two workers get each task of a broadcast, by a topic.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from worker import ENDPOINTS, WORK, Worker, done, until

os.environ["BROADCAST"] = f"everywhere-{WORK.name}-{time.monotonic_ns()}"

import boto3
from kombu import Exchange
from tasks import begin_and_wait, record, record_everywhere

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

sns = boto3.client("sns", endpoint_url=ENDPOINTS[0])


def subscriptions() -> int:
    return sum(os.environ["BROADCAST"] in each["TopicArn"] for each in sns.list_subscriptions()["Subscriptions"])


before = subscriptions()
with Worker(ENDPOINTS[-1], *COMMAND), Worker(ENDPOINTS[0], *COMMAND):
    until(lambda: subscriptions() == before + 2, "two workers subscribe their queues to the topic")
    # Where nobody declares the exchange, kombu takes it for a direct one, and the task goes nowhere.
    record_everywhere.apply_async(("to all",), declare=[Exchange(os.environ["BROADCAST"], type="fanout")])
    until(lambda: done().count("to all") == 2, "each of them gets the task")
print("celery: worker, countdown, kill -9 of the worker and its task delivered to the next one, broadcast by a topic")
