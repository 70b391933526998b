"""Tasks that Django Q's workers execute."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from worker import note


def record(text: str) -> str:
    note(text)
    return text.upper()


def fail(text: str) -> None:
    note(text)
    raise RuntimeError("as it should")
