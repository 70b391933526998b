"""A server for an example: elasticq in memory, on a free port, for as long as the example runs."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LISTENING = re.compile(r"listening on (http://\S+)")
KEYS = {"AWS_ACCESS_KEY_ID": "000000000000", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def local_server() -> Iterator[str]:
    """Run a server, and yield its URL. Set keys in the environment if there are none. The server accepts any key.

    Raise RuntimeError if it does not start.
    """
    for name, value in KEYS.items():
        os.environ.setdefault(name, value)
    command = [sys.executable, "-m", "elasticq", "server", "--memory", "--host", "127.0.0.1", "--port", "0"]
    environment = os.environ | {"ELASTICQ_ADMIN__PORT": "0"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if match := LISTENING.search(line):
                yield match.group(1)
                return
        raise RuntimeError("the server did not start")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
