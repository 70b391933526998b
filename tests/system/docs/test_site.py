"""The documentation as a site: it is built strictly, whole, and loads nothing from elsewhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from elasticq.rest import openapi

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


class Loads(HTMLParser):
    """What a browser fetches by itself when it shows the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe"):
            self.found.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "preconnect", "icon", "preload"):
            self.found.append(values.get("href") or "")


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [each for each in loads.found if re.match(r"(https?:)?//", each)] == [], page.name


def test_excuses_of_blocks_are_not_shown_and_their_code_is(site: Path) -> None:
    text = (site / "operations.html").read_text(encoding="utf-8")
    assert "no-run" not in text
    assert "force-new" in text


def test_site_has_the_openapi_document(site: Path) -> None:
    assert json.loads((site / "openapi.json").read_text(encoding="utf-8")) == openapi.document()


def test_every_page_but_decisions_can_be_reached(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f'href="{page.stem}.html"' in start or page.stem == "index", page.name
