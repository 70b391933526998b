"""A PyQS worker of the queue of the tasks, which it finds by a pattern."""

from pyqs.main import _main
from tasks import QUEUE

_main([f"{QUEUE[:-1]}?"], concurrency=2, logging_level="INFO", region="us-east-1", interval=0)
