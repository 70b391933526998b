"""Our own faults in the log: bounded, and without a word of the request."""

import logging
from unittest.mock import patch

import pytest

from elasticq.http.connection import exchange
from elasticq.http.connection.failures import PLACES_MAX, QUIET_MS, Failures
from elasticq.http.pages.slow import SlowPath
from tests.http.desk import HOST, Desk, json_request, settle

SECRET = "a word of the request"


def fail() -> None:
    raise ValueError(SECRET)


def caught() -> ValueError:
    try:
        fail()
    except ValueError as failure:
        return failure
    raise AssertionError


def test_a_place_tells_once_a_minute_and_then_how_often_it_did_not() -> None:
    now_ms = 0
    failures = Failures(lambda: now_ms)

    def line() -> str:
        failure = caught()
        return failures.line("broken", failure, failure.__traceback__)

    first = line()
    assert first.startswith("broken ValueError\n")
    assert "in fail" in first
    assert SECRET not in first
    now_ms = QUIET_MS - 1
    assert [line() for _ in range(1_000)] == [""] * 1_000
    now_ms = QUIET_MS
    assert line().startswith("broken ValueError (1000 more since the last line about this)\n")
    assert line() == ""


def test_other_places_are_told_meanwhile_and_bounded() -> None:
    failures = Failures(lambda: 0)
    for number in range(3 * PLACES_MAX):
        kind = type(f"Error{number}", (Exception,), {})
        assert failures.line("broken", kind(), None)
    assert 0 < len(failures._logged) <= PLACES_MAX


@pytest.mark.parametrize(
    ("place", "request_bytes"),
    [
        pytest.param("decode", json_request("ListQueues", {}), marks=pytest.mark.pure),
        ("slow", f"GET /?Action=ListQueues HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()),
    ],
)
async def test_a_fault_that_strangers_repeat_fills_no_log(
    place: str, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()

    def broken(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    target = (
        patch.object(exchange.json, "decode", broken) if place == "decode" else patch.object(SlowPath, "_serve", broken)
    )
    with caplog.at_level(logging.ERROR), target:
        statuses = {(await desk.ask(request_bytes)).status for _ in range(200)}
    assert statuses == {500}
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "ZeroDivisionError" in told[0]
    assert SECRET not in told[0]
    await desk.close()


async def test_that_a_client_left_before_its_answer_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(f"GET /?Action=ListQueues HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    with caplog.at_level(logging.ERROR), patch.object(line, "is_closing", lambda: True):
        await settle()  # the loop tells the protocol of it later than the transport
    assert line.received == b""
    assert caplog.records == []
    await desk.close()
