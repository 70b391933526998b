"""Django Q 2: its own test of its SQS broker; then a cluster of workers that returns results and failures."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import django_q
from project import COMMAND, Failure, tasks
from worker import ENDPOINTS, WORK, Worker, done, until

file = Path(django_q.__file__).parent / "tests" / "test_brokers.py"
settings = {"AWS_ENDPOINT_URL": ENDPOINTS[-1], "DJANGO_SETTINGS_MODULE": "django_q.tests.settings"}
command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, f"{file}::test_sqs"]
tested = subprocess.run(command, cwd=WORK, env=os.environ | settings, capture_output=True, text=True, check=False)
assert "1 passed" in tested.stdout, tested.stdout + tested.stderr

with Worker(ENDPOINTS[-1], *COMMAND):
    names = [tasks.async_task("tasks.record", f"task {number}") for number in range(20)]
    until(lambda: len(done()) >= 20, "20 tasks")
    until(lambda: all(tasks.result(name) for name in names), "their results")
    tasks.async_task("tasks.fail", "failing")
    until(lambda: Failure.objects.count(), "the failure is stored")
assert sorted(tasks.result(name) for name in names) == sorted(f"TASK {number}" for number in range(20))
assert sorted(done()) == sorted([f"task {number}" for number in range(20)] + ["failing"]), done()
print("django_q: its own test of SQS, 20 tasks with results, a failure")
