"""Our own faults in the log: bounded, and without a word of the request."""

import logging
from unittest.mock import patch

import pytest

from elasticq.http.connection import exchange
from elasticq.http.connection.failures import PLACES_MAX, QUIET_MS, Failures
from tests.http.desk import Desk, json_request

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


@pytest.mark.pure
async def test_a_fault_that_strangers_repeat_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    def broken(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    with caplog.at_level(logging.ERROR), patch.object(exchange.json, "decode", broken):
        statuses = {(await desk.ask(json_request("ListQueues", {}))).status for _ in range(200)}
    assert statuses == {500}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "ZeroDivisionError" in line
    assert SECRET not in line
    await desk.close()
