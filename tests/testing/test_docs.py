"""Every snippet of docs/testing.md runs, each in a process of its own; the pytest ones by pytest."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet_of_the_page_on_testing_runs(number: int, tmp_path: Path) -> None:
    snippet, command = SNIPPETS[number], [sys.executable]
    name = "snippet.py"
    if snippet.startswith("# test_"):
        name = snippet.split()[1]
        command += ["-m", "pytest", "-q", "-p", "elasticq.testing.plugin", "-p", "no:cacheprovider"]
    (tmp_path / name).write_text(snippet)
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
