"""No message and no page names a package of an index that has none."""

import re
from pathlib import Path

import pytest

from elasticq import __version__
from elasticq.extras import how_to_install

ROOT = Path(__file__).resolve().parents[1]
TOLD = [
    page
    for folder, pattern in (("", "*.md"), ("docs", "*.md"), ("elasticq", "**/*.py"), ("scripts", "*.py"))
    for page in (ROOT / folder).glob(pattern)
    if page.name != "CHANGELOG.md"
]
OF_AN_INDEX = re.compile(r"(pip install|install one, or) '?elasticq\b(?!-)")


@pytest.mark.parametrize("page", TOLD, ids=lambda page: str(page.relative_to(ROOT)))
def test_nothing_is_to_be_installed_from_an_index(page: Path) -> None:
    assert OF_AN_INDEX.findall(page.read_text(encoding="utf-8")) == []


def test_the_wheel_of_this_version_is_named() -> None:
    assert f"--find-links dist 'elasticq[hocon]=={__version__}'" in how_to_install("hocon")
