"""Headers for browsers: listed origins may read answers, others may not."""

from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, Response, form_request

APP = "https://app.example.com"


def guarded() -> Desk:
    return Desk(browsers=Browsers(origins=[APP]))


async def preflight(desk: Desk, origin: str) -> Response:
    lines = ["OPTIONS / HTTP/1.1", f"Host: {HOST}", f"Origin: {origin}", "Access-Control-Request-Method: POST", "", ""]
    return await desk.ask("\r\n".join(lines).encode())


async def test_preflights_are_answered_for_listed_origins_only() -> None:
    desk = guarded()
    answer = await preflight(desk, APP)
    assert (answer.status, answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (
        200,
        APP,
        "Origin",
    )
    assert "x-amz-target" in answer.headers["access-control-allow-headers"]
    for origin in ("https://evil.example", "null", "*", f"{APP}.evil.example"):
        answer = await preflight(desk, origin)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    await desk.close()


async def test_options_without_a_question_are_404() -> None:
    desk = Desk()
    answer = await desk.ask(f"OPTIONS / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    assert answer.status == 404
    await desk.close()


async def test_an_answer_names_the_listed_origin_and_never_all() -> None:
    desk = guarded()
    answer = await desk.ask(form_request("Action=ListQueues", f"Origin: {APP}", "Sec-Fetch-Site: cross-site"))
    assert answer.headers["access-control-allow-origin"] == APP
    answer = await desk.ask(form_request("Action=ListQueues"))
    assert "access-control-allow-origin" not in answer.headers
    await desk.close()
