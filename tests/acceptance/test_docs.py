"""The snippets of docs/client.md run as they stand, each as a program of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "client.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("at", range(len(SNIPPETS)))
def test_snippet_of_the_clients_page_runs(server: str, at: int) -> None:
    program = SNIPPETS[at].replace("http://127.0.0.1:9324", server)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_page_has_snippets() -> None:
    assert len(SNIPPETS) == 4
