"""Requests that belong to no API: 404, or the page for people."""

import pytest

from tests.http.desk import Desk, get, post


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/"),
        get("/000000000000/orders"),
        get("/favicon.ico"),
        get("/?Version=2012-11-05"),
        get("/cluster"),  # on the admin port
        post(b"{}", path="/"),
    ],
)
async def test_what_is_no_action_is_404(request_bytes: bytes) -> None:
    desk = Desk()
    answer = await desk.ask(request_bytes)
    assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>")
    await desk.close()


@pytest.mark.parametrize(
    ("page_url", "shown"),
    [
        ("http://127.0.0.1:9325", b'<a href="http://127.0.0.1:9325">'),
        ("", b"There are no pages for people"),
        ('"<b>', b"&quot;&lt;b&gt;"),
    ],
)
async def test_a_browser_gets_the_place_of_the_pages(page_url: str, shown: bytes) -> None:
    desk = Desk()
    desk.context.page_url = page_url
    answer = await desk.ask(get("/", "Accept: text/html,*/*;q=0.8"))
    assert (answer.status, shown in answer.body, b"<b>" in answer.body) == (200, True, False)
    assert (await desk.ask(get("/orders", "Accept: text/html"))).status == 404
    listed = await desk.ask(get("/?Action=ListQueues", "Accept: text/html"))
    assert b"ListQueuesResponse" in listed.body
    await desk.close()


async def test_a_browser_without_a_key_gets_no_page() -> None:
    desk = Desk(auth="strict")
    answer = await desk.ask(get("/", "Accept: text/html"))
    assert (answer.status, b"<h1>" in answer.body) == (403, False)
    await desk.close()
