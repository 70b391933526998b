"""What the documentation names as its proof is there: files and folders of tests, and tests by their names."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})
PLACE = re.compile(r"\btests/[\w./-]*\w")
FILE = re.compile(r"\btest_\w+\.py\b")
NAMED = re.compile(r"(?:\b(\w+)(?:\.py)?)?::(test_\w+)")
SHORT = {"unnoticed": "test_unnoticed"}
"""Names of files that docs/testing.md gives to make its table narrow."""


@cache
def known_tests() -> dict[str, set[str]]:
    """By the stem of a file the tests in all files of that name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        found[path.stem] |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
    return found


def faults_in(text: str) -> list[str]:
    """What the text names and nobody has; a ``::test_…`` without a file may be in any."""
    found = [place for place in PLACE.findall(text) if not (ROOT / place).exists()]
    found += [name for name in FILE.findall(text) if name.removesuffix(".py") not in known_tests()]
    for stem, test in NAMED.findall(text):
        stem = SHORT.get(stem, stem)
        places = [known_tests().get(stem, set())] if stem else known_tests().values()
        if not any(test in each for each in places):
            found.append(f"{stem}::{test}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    assert faults_in(page.read_text("utf-8")) == []


def test_pages_name_many_tests() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert len(set(PLACE.findall(text))) > 50
    assert len(set(NAMED.findall(text))) > 50


@pytest.mark.parametrize(
    "text",
    [
        "`tests/http/test_gone.py`",
        "see tests/gone/",
        "`test_gone.py`",
        "`tests/system/docs/test_named_tests.py::test_gone`",
        "`test_threats.py::test_tests_that_a_page_names_are_there`",
        "`unnoticed::test_gone`, `::test_unknown_anywhere`",
    ],
)
def test_what_is_not_there_is_found(text: str) -> None:
    assert faults_in(text)
