"""Browsers log in with the operators' token."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.admin.operator import FORM, Operator
from tests.server.process import Server

TOKEN = "canary" * 4


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The admin port of a server with a token."""
    file = Path(tmp_path_factory.mktemp("login") / "token")
    file.write_text(TOKEN)
    file.chmod(0o600)
    settings = file.with_name("elasticq.toml")
    settings.write_text(f'[admin]\ntoken_file = "{file}"\n')
    with Server("--config", str(settings)) as server:
        yield server.admin()


def cookie(url: str) -> str:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    body = urlencode({"token": TOKEN})
    connection.request("POST", "/login", body, {"Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    made: str = answer.headers["Set-Cookie"]
    connection.close()
    assert "HttpOnly" in made
    assert "SameSite=Strict" in made
    assert TOKEN not in made
    return made.partition(";")[0]


def test_a_browser_is_sent_to_the_form_and_a_program_is_refused(closed: str) -> None:
    stranger = Operator(closed)
    status, page, headers = stranger.ask("/", headers={"Accept": "text/html"})
    assert (status, "Token of the operators" in page) == (200, True)
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert stranger.ask("/api/queues")[0] == 401
    assert stranger.ask("/page/do/ListQueues", b"", FORM)[0] == 401
    assert stranger.ask("/static/page.css")[0] == 200
    assert stranger.ask("/health")[0] == 200


def test_who_logs_in_may_look_and_act(closed: str) -> None:
    known = Operator(closed, Cookie=cookie(closed))
    assert "Log out" in known.ask("/")[1]
    assert known.ask("/page/do/CreateQueue", b"QueueName=made", FORM)[0] == 200
    assert [row["name"] for row in known.get("/api/queues")["queues"]] == ["made"]


@pytest.mark.parametrize("given", ["", "elasticq_operator=", "elasticq_operator=" + "0" * 64])
def test_a_cookie_that_was_not_given_opens_nothing(closed: str, given: str) -> None:
    assert Operator(closed, Cookie=given).ask("/api/queues")[0] == 401


def test_a_wrong_token_is_told(closed: str) -> None:
    body = urlencode({"token": "wrong"}).encode()
    status, page, _ = Operator(closed).ask("/login", body, {"Content-Type": "application/x-www-form-urlencoded"})
    assert (status, "not the token" in page) == (401, True)


def test_the_header_still_opens(closed: str) -> None:
    assert Operator(closed, Authorization=f"Bearer {TOKEN}").ask("/api/queues")[0] == 200
