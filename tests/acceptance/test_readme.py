"""The README's examples, run as they stand against a real process."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:9324"


def example(language: str, mark: str) -> str:
    """The only code block of that language that holds ``mark``."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (found,) = [block for block in blocks if mark in block]
    assert ADDRESS in found
    return str(found)


def run(command: list[str], home: Path) -> str:
    """Standard output of a command that sees an empty home and this Python's programs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(home), "AWS_PAGER": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_example_receives_what_it_sent(server: str, tmp_path: Path) -> None:
    program = example("python", "boto3").replace(ADDRESS, server)
    assert run([sys.executable, "-c", program], tmp_path) == "hello\n"


def test_shell_example_receives_what_it_sent(server: str, tmp_path: Path) -> None:
    script = example("sh", "aws --endpoint-url").replace(ADDRESS, server)
    assert '"Body": "hello"' in run(["bash", "-euc", script], tmp_path)
