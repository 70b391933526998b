"""The page of a cluster whose master dies, and the login, in a real browser."""

from pathlib import Path
from typing import Any

from tests.server.process import Server
from tests.system.cluster.cluster import Cluster
from tests.system.ui.conftest import picture
from tests.system.ui.test_page import expect


def test_a_failover_is_seen(page: Any, cluster: Cluster) -> None:
    master = cluster.master()
    url = f"http://127.0.0.1:{cluster[cluster.followers()[0]].admin_port}"
    page.goto(f"{url}/cluster")
    expect(page.locator("#cluster")).to_contain_text("3, 2 needed")
    expect(page.locator("#cluster dd").first).to_have_text(master)
    picture(page, "cluster")
    cluster[master].kill9()
    expect(page.locator("#cluster dd").first).not_to_have_text(master, timeout=30_000)
    expect(page.locator("#cluster tr", has=page.get_by_role("rowheader", name=master))).to_contain_text("no")
    page.goto(f"{url}/events")
    expect(page.locator("#events")).to_contain_text("link_lost", timeout=30_000)
    picture(page, "cluster-after-failover")


def test_the_mastership_is_handed_over(page: Any, cluster: Cluster) -> None:
    master = cluster.master()
    page.goto(f"http://127.0.0.1:{cluster[master].admin_port}/cluster")
    page.get_by_text("Orders", exact=True).click()
    page.get_by_role("button", name="Hand over").click()
    expect(page.locator("#notice")).to_contain_text("Done: the mastership is being handed over.", timeout=30_000)
    expect(page.locator("#cluster dd").first).not_to_have_text(master, timeout=30_000)
    expect(page.locator("#who")).to_contain_text(f"{master} · follower", timeout=15_000)
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("#notice")).to_contain_text("All rows are equal on n1, n2, n3 (entry ", timeout=60_000)


def test_a_browser_logs_in(page: Any, tmp_path: Path) -> None:
    token, settings = tmp_path / "token", tmp_path / "elasticq.toml"
    token.write_text("canary" * 4)
    token.chmod(0o600)
    settings.write_text(f'[admin]\ntoken_file = "{token}"\n')
    with Server("--config", str(settings)) as server:
        page.goto(server.admin())
        picture(page, "login")
        page.get_by_label("Token of the operators").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_text("This is not the token.")).to_be_visible()
        page.get_by_label("Token of the operators").fill("canary" * 4)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("link", name="Log out").click()
        expect(page.get_by_label("Token of the operators")).to_be_visible()
