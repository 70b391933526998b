"""scripts/bench scheduled: the rows that it writes are those of a server, which counts them at its start."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MESSAGES = 3_000
PATIENCE_S = 300


def test_server_starts_with_the_messages_that_were_written(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/bench", "scheduled", "--messages", str(MESSAGES), "--directory", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: a few messages tell nothing of memory
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{MESSAGES:,} messages, a start with 1,000 of them takes")
    (index,) = [line for line in lines if line.startswith("the index of times alone")]
    assert not index.endswith("MISSED")
    assert not list(tmp_path.iterdir()), "it leaves nothing"
