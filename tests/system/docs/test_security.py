"""What docs/security.md promises is held by tests: those that it names are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"`(tests/[\w/]*/|)(test_\w+\.py)?(?:::)?(test_\w+)?`")


def named() -> list[tuple[Path, str]]:
    """Files and folders, each with a test in it or none; a name without a folder stands in the one before it."""
    found = []
    for line in (ROOT / "docs" / "security.md").read_text().splitlines():
        folder, file = "tests/", ""
        for place, name, test in NAMED.findall(line):
            if not (place or name or test):
                continue
            folder, file = place or folder, name or ("" if place else file)
            found.append((ROOT / folder / file, test))
    return found


def test_each_test_that_is_named_is_there() -> None:
    missing = []
    for path, test in named():
        if path.name.endswith(".py"):
            paths = [path] if path.is_file() else sorted((ROOT / "tests").rglob(path.name))
        else:
            paths = sorted(path.rglob("test_*.py")) if path.is_dir() else []
        if not paths or (test and not any(f"def {test}(" in one.read_text() for one in paths)):
            missing.append(f"{path.relative_to(ROOT)} {test}")
    assert missing == []
    assert len(named()) > 60, "they are found"
