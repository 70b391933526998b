"""Web pages of others: what they can make a browser send is refused, and curl is not."""

from unittest.mock import patch

import pytest

from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, form_request, json_request
from tests.http.signing import KEY, signed

APP = "https://app.example.com"
FORM = "Action=CreateQueue&QueueName=orders"


def guarded() -> Desk:
    return Desk(browsers=Browsers(["queues.example.com"], [APP]))


def get(*headers: str, query: str = FORM) -> bytes:
    return "\r\n".join([f"GET /?{query} HTTP/1.1", f"Host: {HOST}", *headers, "", ""]).encode()


CHROME = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0"
FIREFOX = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
PRESIGNED = f"{FORM}&X-Amz-Signature={'0' * 64}&X-Amz-Credential=a"
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
    "link or image": get(CHROME),
    "link with a made-up signature": get(CHROME, query=PRESIGNED),
    "receive by GET": get(FIREFOX, query=f"Action=ReceiveMessage&QueueUrl=http://{HOST}/000000000000/orders"),
    "image on a page": get(
        FIREFOX,
        "Accept: image/avif,image/webp,*/*",
        "Accept-Language: en-US,en;q=0.5",
        "Referer: http://localhost:3000/",
        "Sec-Fetch-Dest: image",
        "Sec-Fetch-Mode: no-cors",
        "Sec-Fetch-Site: same-site",
    ),
    "address that was typed": get(CHROME, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none", "Sec-Fetch-User: ?1"),
    "browser without an agent": get("Sec-Fetch-Site: same-origin"),
    "link of another program that renders pages": get("User-Agent: x", "Referer: http://localhost:3000/"),
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
    "curl by GET": get("User-Agent: curl/8.5.0", "Accept: */*"),
    "wget by GET": get("User-Agent: Wget/1.21.4", "Accept: */*", "Accept-Encoding: identity", "Connection: Keep-Alive"),
    "program without an agent": get(),
    "presigned GET of a program": get("User-Agent: curl/8.5.0", "Accept: */*", query=PRESIGNED),
    "GET with an Authorization": get("Authorization: AWS4-HMAC-SHA256 Credential=a/b"),
}


@pytest.mark.parametrize("request_bytes", PASSING.values(), ids=PASSING)
async def test_clients_and_listed_pages_are_served(request_bytes: bytes) -> None:
    desk = guarded()
    assert (await desk.ask(request_bytes)).status == 200
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


GETS = ["curl by GET", "wget by GET", "program without an agent", "presigned GET of a program"]


async def test_the_curl_line_of_elasticmqs_documentation_sends() -> None:
    desk = guarded()
    await desk.ask(form_request("Action=CreateQueue&QueueName=q"))
    line = "GET /queue/q?Action=SendMessage&MessageBody=x HTTP/1.1"
    answer = await desk.ask(f"{line}\r\nHost: {HOST}\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n".encode())
    assert (answer.status, b"<MessageId>" in answer.body) == (200, True)
    await desk.close()


@pytest.mark.parametrize("name", GETS)
async def test_strict_gets_are_signed_whoever_sends_them(name: str) -> None:
    desk = Desk(browsers=Browsers(are_gets_strict=True))
    answer = await desk.ask(PASSING[name])
    assert (answer.status, b"must be signed: use POST" in answer.body) == (403, True)
    for name in ("GET that reads", "GET with an Authorization"):
        assert (await desk.ask(PASSING[name])).status == 200
    await desk.close()


@pytest.mark.parametrize("auth", ["lax", "strict"])
@pytest.mark.parametrize("agent", [CHROME, "User-Agent: curl/8.5.0"])
@pytest.mark.parametrize("are_gets_strict", [False, True])
async def test_a_presigned_url_works_wherever_its_signature_is_checked(
    auth: str, agent: str, are_gets_strict: bool
) -> None:
    desk = Desk(browsers=Browsers(are_gets_strict=are_gets_strict), auth=auth, keys=[KEY])
    request = signed(b"", {}, method="GET", url=f"/?{FORM}", presigned_s=60)
    request = request.replace(b"\r\n\r\n", f"\r\n{agent}\r\n\r\n".encode())
    assert (await desk.ask(request)).status == 200
    forged = request.replace(b"QueueName=orders", b"QueueName=others")
    assert (await desk.ask(forged)).status == 403
    await desk.close()


@pytest.mark.parametrize(("agent", "status"), [(CHROME, 403), ("User-Agent: curl/8.5.0", 200)])
async def test_a_lax_server_takes_a_url_that_an_unknown_key_signed_from_programs_only(agent: str, status: int) -> None:
    desk = Desk(browsers=Browsers(), auth="lax", keys=[KEY])
    assert (await desk.ask(get(agent, query=PRESIGNED))).status == status
    await desk.close()


@pytest.mark.parametrize("request_bytes", [REFUSED["form of a page"], REFUSED["link or image"]])
async def test_the_guard_can_be_switched_off(request_bytes: bytes) -> None:
    desk = Desk(browsers=None)
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
