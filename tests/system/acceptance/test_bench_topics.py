"""scripts/bench topics --servers: what it publishes to a server arrives in every queue, and each row has figures."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROWS = ("send", "query send", "publish to 1 queue", "publish to 10 queues")
FIGURES = re.compile(r"^(\S.*?) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)x", re.MULTILINE)
OTHERS = ("ELASTICMQ_LIB", "GOAWS_BIN", "LOCALSTACK_PYTHON")
PATIENCE_S = 300


def test_requests_to_servers_are_measured() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OTHERS}
    done = subprocess.run(
        [sys.executable, "scripts/bench", "topics", "--servers", "--runs", "1", "--seconds", "0.3"],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {match.group(1): [float(value) for value in match.groups()[1:]] for match in FIGURES.finditer(done.stdout)}
    assert set(ROWS) <= set(found), done.stdout
    assert all(value > 0 for figures in found.values() for value in figures), done.stdout
    assert found["send"][-1] == 1, "the ratio beside itself"
