"""Responses of the slow path: headers, and errors in the protocol of the request."""

import pytest

from elasticq.http.connection.exchange import Answer
from elasticq.http.pages.answers import not_found, respond
from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, form_request, json_request, post


def test_a_plain_answer_has_its_type_and_its_request_id() -> None:
    response = respond(Answer(200, b"text/xml", b"<a/>"), "one")
    assert (response.status, response.body) == (200, b"<a/>")
    assert dict(response.headers) == {"Content-Type": "text/xml", "x-amzn-RequestId": "one"}


def test_an_error_names_its_code_for_query_clients_and_when_to_try_again() -> None:
    response = respond(Answer(503, b"text/xml", b"", query_error="ServiceUnavailable;Receiver"), "one")
    assert response.headers["x-amzn-query-error"] == "ServiceUnavailable;Receiver"
    assert (response.headers["Retry-After"], response.headers["x-amz-retry-after"]) == ("1", "1000")


def test_a_stale_answer_has_its_age() -> None:
    assert respond(Answer(200, b"text/xml", b"", stale_ms=0), "one").headers["x-elasticq-stale"] == "0"
    assert "x-elasticq-stale" not in respond(Answer(200, b"text/xml", b""), "one").headers


def test_what_is_not_found_is_an_unknown_operation() -> None:
    assert (not_found().status, not_found().body) == (404, b"<UnknownOperationException/>")


@pytest.mark.parametrize(
    ("request_bytes", "content_type"),
    [
        (json_request("ListQueues", {}), "application/x-amz-json-1.0"),
        (form_request("Action=ListQueues"), "text/xml"),
        (post(b"{}", path="/api/v1/queues"), "application/problem+json"),
    ],
)
async def test_a_refusal_has_the_protocol_of_its_request(request_bytes: bytes, content_type: str) -> None:
    desk = Desk(browsers=Browsers())
    answer = await desk.ask(request_bytes.replace(HOST.encode(), b"evil.example"))
    assert (answer.status, b"AccessDenied" in answer.body) == (403, True)
    assert answer.headers["content-type"].partition(";")[0] == content_type
    await desk.close()
