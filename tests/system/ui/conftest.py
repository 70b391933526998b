"""A real browser without a window, for the page of the admin port; make ui-test installs it.

Pictures of what it saw are kept in ``$ELASTICQ_PICTURES``, or in build/ui of the checkout.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.admin.operator import Operator
from tests.server.process import Server
from tests.system.cluster.cluster import Cluster

PICTURES = Path(os.environ.get("ELASTICQ_PICTURES", "build/ui"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/system/ui/" in item.path.as_posix():
            item.add_marker(pytest.mark.ui)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "make ui-test installs Debian's package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab of its own; it fails the test where the page's policy or a script was broken, or another host asked."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    tab = context.new_page()
    wrong: list[str] = []
    hosts: set[str] = set()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
    tab.on("request", lambda request: hosts.add(request.url.split("/")[2].partition(":")[0]))
    yield tab
    context.close()
    assert wrong == []
    assert hosts <= {"127.0.0.1", "localhost"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three members that serve."""
    cluster = Cluster(tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.end()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def operator(server: Server) -> Operator:
    return Operator(server.admin())


def picture(tab: Any, name: str) -> None:
    """Keep what the tab shows, for people to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=str(PICTURES / f"{name}.png"), full_page=True)
