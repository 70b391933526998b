"""One post of a notification: what counts as done, as worth a retry, as final; where it never goes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from elasticq.push.addresses import REFUSED, Guard
from elasticq.push.post import ANSWER_BYTES_MAX, DONE, Poster

HEADERS = {"Content-Type": "text/plain; charset=UTF-8"}


class Site:
    """A web server whose answers the path tells."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hold = asyncio.Event()
        app = web.Application()
        app.router.add_post("/status/{status}", self._status)
        app.router.add_post("/moved", self._moved)
        app.router.add_post("/silent", self._silent)
        app.router.add_post("/endless", self._endless)
        self.server = TestServer(app, host="127.0.0.1")

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server.port}{path}"

    async def _status(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.headers['User-Agent']}: {await request.text()}")
        return web.Response(status=int(request.match_info["status"]))

    async def _moved(self, request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/status/200"})

    async def _silent(self, request: web.Request) -> web.Response:
        await self.hold.wait()
        return web.Response()

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not self.hold.is_set():
            await response.write(b"x" * ANSWER_BYTES_MAX)
        return response


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.server.start_server()
    yield site
    site.hold.set()
    await site.server.close()


@pytest.fixture
async def poster() -> AsyncIterator[Poster]:
    poster = Poster(Guard(REFUSED), connections_max=4, timeout_s=20)
    yield poster
    await poster.close()


async def test_success_is_any_2xx(site: Site, poster: Poster) -> None:
    for status in (200, 202, 204):
        assert await poster.post(site.url(f"/status/{status}"), HEADERS, "é".encode()) == DONE
    assert site.asked == ["Amazon Simple Notification Service Agent: é"] * 3


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (503, False), (429, False), (400, True), (404, True)])
async def test_a_refusal_is_final_unless_the_server_is_at_fault(
    site: Site, poster: Poster, status: int, is_final: bool
) -> None:
    outcome = await poster.post(site.url(f"/status/{status}"), HEADERS, b"x")
    assert (outcome.is_done, outcome.is_final, outcome.reason) == (False, is_final, f"the endpoint answered {status}")


async def test_a_redirect_is_not_followed(site: Site, poster: Poster) -> None:
    outcome = await poster.post(site.url("/moved"), HEADERS, b"x")
    assert (outcome.is_final, outcome.reason) == (True, "the endpoint answered 307")
    assert site.asked == []


async def test_an_answer_that_does_not_come_or_end_is_worth_a_retry_or_enough(site: Site, poster: Poster) -> None:
    impatient = Poster(Guard(REFUSED), connections_max=4, timeout_s=0.05)
    outcome = await impatient.post(site.url("/silent"), HEADERS, b"x")
    assert (outcome.is_done, outcome.is_final) == (False, False)
    await impatient.close()
    assert await poster.post(site.url("/endless"), HEADERS, b"x") == DONE


async def test_a_port_where_nobody_listens_is_worth_a_retry(site: Site, poster: Poster) -> None:
    url = site.url("/status/200")
    await site.server.close()
    outcome = await poster.post(url, HEADERS, b"x")
    assert (outcome.is_done, outcome.is_final) == (False, False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_a_refused_address_is_not_connected_to_by_any_name(site: Site, host: str) -> None:
    guarded = Poster(Guard(["127.0.0.0/8", "::1/128"]), connections_max=4, timeout_s=20)
    outcome = await guarded.post(site.url("/status/200", host), HEADERS, b"x")
    await guarded.close()
    assert (outcome.is_done, outcome.is_final) == (False, True)
    assert site.asked == []


async def test_a_refused_port_is_not_connected_to(site: Site) -> None:
    port = site.server.port
    assert port is not None
    guarded = Poster(Guard([], [port]), connections_max=4, timeout_s=20)
    for host in ("localhost", "127.0.0.1"):
        outcome = await guarded.post(site.url("/status/200", host), HEADERS, b"x")
        assert (outcome.is_done, outcome.is_final) == (False, True)
    await guarded.close()
    assert site.asked == []


@pytest.mark.parametrize("url", ["http://", "ftp://host/", "http://[::", "http://a:99999/", "no url"])
async def test_what_is_no_url_of_a_web_server_is_final(poster: Poster, url: str) -> None:
    outcome = await poster.post(url, HEADERS, b"x")
    assert (outcome.is_done, outcome.is_final) == (False, True)
