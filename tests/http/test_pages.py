"""Web pages of others: what they can make a browser send is refused, and curl is not."""

from unittest.mock import patch

import pytest

from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, Response, form_request, json_request, responses, until
from tests.http.signing import KEY, signed

APP = "https://app.example.com"
FORM = "Action=CreateQueue&QueueName=orders"


def guarded() -> Desk:
    return Desk(browsers=Browsers(["queues.example.com"], [APP]))


def get(*headers: str, query: str = FORM) -> bytes:
    return "\r\n".join([f"GET /?{query} HTTP/1.1", f"Host: {HOST}", *headers, "", ""]).encode()


REFUSED = {
    "form of a page": form_request(FORM, "Origin: https://evil.example"),
    "form of a sandboxed page": form_request(FORM, "Origin: null"),
    "form of a page of another site": form_request(FORM, "Sec-Fetch-Site: cross-site"),
    "JSON of a page": json_request("CreateQueue", {"QueueName": "orders"}, "Origin: http://localhost:3000"),
    "form of a rebound page": form_request(FORM, "Origin: http://evil.example").replace(HOST.encode(), b"evil.example"),
    "GET of a rebound page": get("User-Agent: Mozilla/5.0", query="Action=ListQueues").replace(
        HOST.encode(), b"evil.example"
    ),
    "GET of a rebound page that takes its marks away": get("User-Agent: x", "Authorization: x").replace(
        HOST.encode(), b"evil.example"
    ),
    "JSON under a foreign name": json_request("CreateQueue", {"QueueName": "orders"}).replace(
        HOST.encode(), b"evil.example"
    ),
    "form under a foreign name": form_request(FORM).replace(HOST.encode(), b"evil.example:9324"),
    "link or image": get(),
    "link with a made-up signature": get(query=f"{FORM}&X-Amz-Signature={'0' * 64}&X-Amz-Credential=a"),
    "receive by GET": get(query=f"Action=ReceiveMessage&QueueUrl=http://{HOST}/000000000000/orders"),
}


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED)
async def test_what_a_page_can_send_is_refused_and_changes_nothing(request_bytes: bytes) -> None:
    desk = guarded()
    index = desk.runtime.status().last_index
    answer = await desk.ask(request_bytes)
    assert answer.status == 403
    assert b"AccessDenied" in answer.body
    assert "access-control-allow-origin" not in answer.headers
    assert desk.runtime.status().last_index == index
    await desk.close()


PASSING = {
    "curl": form_request(FORM, "User-Agent: curl/8.5.0"),
    "curl in a container": form_request(FORM).replace(HOST.encode(), b"elasticq:9324"),
    "page of this server": form_request(FORM, f"Origin: http://{HOST}", "Sec-Fetch-Site: same-origin"),
    "page of a listed origin": form_request(FORM, f"Origin: {APP}", "Sec-Fetch-Site: cross-site"),
    "page under a listed name": form_request(FORM, "Sec-Fetch-Site: same-origin").replace(
        HOST.encode(), b"queues.example.com"
    ),
    "GET that reads": get(query="Action=ListQueues"),
    "GET with an Authorization": get("Authorization: AWS4-HMAC-SHA256 Credential=a/b"),
}


@pytest.mark.parametrize("request_bytes", PASSING.values(), ids=PASSING)
async def test_clients_and_listed_pages_are_served(request_bytes: bytes) -> None:
    desk = guarded()
    assert (await desk.ask(request_bytes)).status == 200
    await desk.close()


async def test_a_foreign_name_is_refused_in_the_protocol_of_the_request_and_keeps_the_connection() -> None:
    desk = guarded()
    foreign = REFUSED["JSON under a foreign name"]
    answers = await desk.exchange(foreign + PASSING["curl"] + foreign, replies=3)
    assert [answer.status for answer in answers] == [403, 200, 403]
    assert answers[0].headers["x-amzn-query-error"] == "AccessDenied;Sender"
    assert "auth.allowed_hosts" in answers[0].json()["message"]
    await desk.close()


async def test_a_foreign_name_does_not_hide_behind_a_second_one() -> None:
    desk = guarded()
    both = REFUSED["JSON under a foreign name"].replace(b"\r\n", b"\r\nHost: localhost\r\n", 1)
    assert (await desk.ask(both)).status == 400
    await desk.close()


async def test_with_signatures_no_client_is_asked_for_its_host() -> None:
    desk = Desk(browsers=Browsers(), auth="strict", keys=[KEY])
    with patch("tests.http.signing.HOST", "sqs.example.com"):
        request = signed()
    assert b"Host: sqs.example.com" in request
    assert (await desk.ask(request)).status == 200
    assert desk.context.slow_requests == 0
    marked = request.replace(b"Content-Length", b"Sec-Fetch-Mode: cors\r\nContent-Length")
    assert (await desk.ask(marked)).status == 403
    await desk.close()


async def test_a_probe_may_use_any_name_and_a_client_of_http_1_0_none() -> None:
    desk = guarded()
    for page in ("/health", "/ready"):
        assert (await desk.ask(f"GET {page} HTTP/1.1\r\nHost: lb.example.com\r\n\r\n".encode())).status == 200
    old = form_request(FORM).replace(b"HTTP/1.1", b"HTTP/1.0").replace(f"Host: {HOST}\r\n".encode(), b"")
    _, line = desk.connect()
    line.protocol.data_received(old)
    await until(lambda: line.ended)
    assert [answer.status for answer in responses(line.received)] == [200]
    await desk.close()


@pytest.mark.parametrize("request_bytes", [REFUSED["form of a page"], REFUSED["link or image"]])
async def test_the_guard_can_be_switched_off(request_bytes: bytes) -> None:
    desk = Desk(browsers=None)
    assert (await desk.ask(request_bytes)).status == 200
    await desk.close()


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


async def test_an_answer_names_the_listed_origin_and_never_all() -> None:
    desk = guarded()
    answer = await desk.ask(PASSING["page of a listed origin"])
    assert answer.headers["access-control-allow-origin"] == APP
    answer = await desk.ask(PASSING["curl"])
    assert "access-control-allow-origin" not in answer.headers
    await desk.close()


async def test_health_is_shown_to_every_page() -> None:
    desk = guarded()
    answer = await desk.ask(f"GET /health HTTP/1.1\r\nHost: {HOST}\r\nOrigin: https://evil.example\r\n\r\n".encode())
    assert answer.status == 200
    await desk.close()
