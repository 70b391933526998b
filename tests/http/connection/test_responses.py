"""Responses as bytes: dates, ids of requests, and the headers that depend on the answer."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.http.connection.exchange import JSON_TYPE, Answer
from elasticq.http.connection.responses import Responses, http_date


@given(st.integers(0, 4_102_444_800))
def test_a_date_is_that_of_rfc_9110_in_any_locale(wall_s: int) -> None:
    assert http_date(wall_s) == formatdate(wall_s, usegmt=True)


def test_the_date_is_that_of_the_last_refresh() -> None:
    responses = Responses(b"e" * 16, 0)
    assert b"\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n" in responses.json_ok
    responses.refresh(86_400)
    assert b"\r\nDate: Fri, 02 Jan 1970 00:00:00 GMT\r\n" in responses.json_ok
    assert b"\r\nDate: Fri, 02 Jan 1970 00:00:00 GMT\r\n" in responses.xml_ok
    assert b"text/xml" in responses.xml_ok
    assert b"json" not in responses.xml_ok


def test_an_id_is_a_uuid_of_the_process_and_the_number() -> None:
    responses, other = Responses(bytes(range(16)), 0), Responses(b"e" * 16, 0)
    assert responses.request_id(255) == "00010203-0405-0607-0809-0000000000ff"
    assert responses.request_id(255) != other.request_id(255)


@pytest.mark.parametrize(
    ("answer", "close", "lines"),
    [
        (Answer(200, JSON_TYPE, b"{}"), False, set()),
        (Answer(200, JSON_TYPE, b"{}"), True, {b"Connection: close"}),
        (Answer(503, JSON_TYPE, b"{}"), False, {b"Retry-After: 1", b"x-amz-retry-after: 1000"}),
        (Answer(400, JSON_TYPE, b"{}", query_error="A;Sender"), False, {b"x-amzn-query-error: A;Sender"}),
        (Answer(200, JSON_TYPE, b"{}", stale_ms=0), False, {b"x-elasticq-stale: 0"}),
    ],
)
def test_a_response_has_what_its_answer_needs_and_nothing_else(answer: Answer, close: bool, lines: set[bytes]) -> None:
    head, body = Responses(b"e" * 16, 0).write(answer, "id", close).split(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    assert status.startswith(b"HTTP/1.1 %d " % answer.status)
    assert body == b"{}"
    always = {
        b"Content-Type: " + JSON_TYPE,
        b"Date: Thu, 01 Jan 1970 00:00:00 GMT",
        b"x-amzn-RequestId: id",
        b"Content-Length: 2",
    }
    assert set(headers) == always | lines
