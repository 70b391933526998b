"""Tasks that PyQS's workers execute."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyqs import task
from worker import WORK, done, note

os.environ["AWS_ENDPOINT_URL"] = os.environ["ENDPOINTS"].split(",")[0]
QUEUE = f"pyqs-{WORK.name}"


@task(queue=QUEUE)
def record(text: str) -> None:
    note(text)


@task(queue=QUEUE)
def fail_once(text: str) -> None:
    note(text)
    if done().count(text) == 1:
        raise RuntimeError("as it should")
