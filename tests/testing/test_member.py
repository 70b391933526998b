"""Members inside a test's process: what is left of them when they were stopped, or killed."""

import subprocess
import sys

PROGRAM = """
import threading
from elasticq.testing import Cluster

before = set(threading.enumerate())
with Cluster() as cluster:
    cluster.queue("jobs").create()
    cluster.kill(cluster.master)
for thread in set(threading.enumerate()) - before:
    thread.join(10)  # SQLite's tell that they are closed a moment before they end
print("left:", [thread.name for thread in set(threading.enumerate()) - before])
"""


def test_no_thread_is_left_of_a_cluster_that_stopped() -> None:
    """In a process of its own: servers of other tests begin their threads when they like."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "left: []\n"), done.stderr
