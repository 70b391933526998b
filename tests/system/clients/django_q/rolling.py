"""Django Q 2 while the members of its broker restart: each task is queued without an error and executed once."""

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from project import COMMAND, tasks
from worker import ENDPOINTS, WORK, Worker, done, said, until

EACH_S = 0.05

queued = 0
with Worker(ENDPOINTS[0], *COMMAND):
    tasks.async_task("tasks.record", "first")
    until(lambda: "first" in done(), "the first task")
    (WORK / "begun").touch()
    began_s = time.monotonic()
    while not (WORK / "over").exists():
        tasks.async_task("tasks.record", f"task {queued}")
        queued += 1
        time.sleep(max(0.0, began_s + queued * EACH_S - time.monotonic()))  # the pace of a real program
    while (executed := len(set(done()))) < queued + 1:
        until(lambda: len(set(done())) > executed, f"{executed} of {queued} tasks are executed, and the next one")
twice = [text for text, count in Counter(done()).items() if count > 1]
assert not twice, f"{len(twice)} of {queued} tasks were executed again: {twice[:10]}"
assert "Traceback" not in said(), said()
print(f"django_q: {queued} tasks, each executed once, no error")
