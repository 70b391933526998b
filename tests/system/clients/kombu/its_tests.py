"""Runs kombu's own integration tests of its SQS transport, as they come with its sources."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

FILE = "t/integration/test_sqs.py"
LEFT_OUT = "not invalid_receipt"
"""They want GoAws's error for a handle whose message is deleted, where SQS has none."""


def run_tests(*options: str) -> str:
    """Return what pytest counted. Raises AssertionError if it failed."""
    [sources] = Path(sys.executable).parents[2].glob("kombu-*/t")
    where = urlsplit(os.environ["ENDPOINTS"].split(",")[-1])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", FILE, "-k", LEFT_OUT]
    done = subprocess.run(
        [*command, *options],
        cwd=sources.parent,
        env=os.environ | {"SQS_HOST": str(where.hostname), "SQS_PORT": str(where.port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
    return done.stdout.strip().splitlines()[-1].strip(" =")
