"""The pages that programs poll."""

import pytest

from elasticq import __version__
from elasticq.wire.browsers import Browsers
from tests.http.desk import Desk, get


async def test_health_and_ready_show_the_state() -> None:
    desk = Desk()
    assert (await desk.ask(get("/health"))).body == b"OK"
    assert (await desk.ask(get("/ready"))).body == b"OK"
    assert desk.context.slow_requests == 2
    desk.context.stopping = True
    assert (await desk.ask(get("/ready"))).status == 503
    await desk.close()


async def test_waiters_for_localstack_see_when_both_services_run() -> None:
    desk = Desk()
    services = (await desk.ask(get("/_localstack/health"))).json()
    assert services == {
        "services": {"sqs": "running", "sns": "running"},
        "edition": "elasticq",
        "version": __version__,
    }
    await desk.close()


async def test_waiters_for_localstacks_scripts_see_that_all_have_run() -> None:
    desk = Desk()
    stages = (await desk.ask(get("/_localstack/init"))).json()
    assert stages == {"completed": {"BOOT": True, "START": True, "READY": True, "SHUTDOWN": False}, "scripts": []}
    for stage in ("boot", "start", "ready", "shutdown"):
        answer = (await desk.ask(get(f"/_localstack/init/{stage}"))).json()
        assert answer == {"completed": stage != "shutdown", "scripts": []}
    assert (await desk.ask(get("/_localstack/info"))).json()["version"] == __version__
    assert (await desk.ask(get("/_localstack/init/other"))).status == 404
    await desk.close()


@pytest.mark.parametrize("page", ["/health", "/ready"])
async def test_a_probe_may_use_any_name(page: str) -> None:
    desk = Desk(browsers=Browsers())
    assert (await desk.ask(f"GET {page} HTTP/1.1\r\nHost: lb.example.com\r\n\r\n".encode())).status == 200
    await desk.close()


async def test_health_is_shown_to_every_page() -> None:
    desk = Desk(browsers=Browsers())
    answer = await desk.ask(get("/health", "Origin: https://evil.example"))
    assert answer.status == 200
    assert answer.headers["server"] == f"elasticq/{__version__}"
    await desk.close()
