"""Tasks of a Celery application whose broker is the server under test."""

import os
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from celery import Celery
from kombu import Queue
from kombu.common import Broadcast
from worker import LOOK_S, WORK, note

VISIBILITY_S = int(os.environ.get("VISIBILITY_S", "5"))

app = Celery("tasks", broker=f"sqs://x:x@{urlsplit(os.environ['ENDPOINTS'].split(',')[0]).netloc}//")
app.conf.update(
    task_default_queue=f"celery-{WORK.name}",
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "region": "us-east-1",
        "is_secure": False,
        "visibility_timeout": VISIBILITY_S,
        "wait_time_seconds": 2,
        "polling_interval": 0.1,
    },
)

if "BROADCAST" in os.environ:  # the name of an exchange, which is a topic, and by which each worker gets a task
    topic = os.environ["BROADCAST"]
    app.conf.broker_transport_options |= {"supports_fanout": True}
    app.conf.task_queues = (Queue(app.conf.task_default_queue), Broadcast(topic))
    app.conf.task_routes = {"tasks.record_everywhere": {"queue": topic, "exchange": topic}}


@app.task
def record_everywhere(text: str) -> None:
    note(text)


@app.task
def record(text: str) -> None:
    note(text)


@app.task
def begin_and_wait(text: str) -> None:
    """Ends when somebody makes the file ``release``."""
    note(f"{text} begun")
    while not (WORK / "release").exists():
        time.sleep(LOOK_S)  # the file is all that this foreign worker is told by, and nothing announces it
    note(f"{text} ended")
