"""The log of aiohttp's errors: bounded, and without a word of the request."""

import logging
from unittest.mock import patch

import pytest

from elasticq.http.pages import api_calls
from tests.http.desk import Desk, get, settle

LIST = get("/?Action=ListQueues")
SECRET = "a word of the request"


async def test_a_fault_that_strangers_repeat_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    def broken(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    with caplog.at_level(logging.ERROR), patch.object(api_calls, "serve", broken):
        statuses = {(await desk.ask(LIST)).status for _ in range(200)}
    assert statuses == {500}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "ZeroDivisionError" in line
    assert SECRET not in line
    await desk.close()


async def test_that_a_client_left_before_its_answer_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(LIST)
    with caplog.at_level(logging.ERROR), patch.object(line, "is_closing", lambda: True):
        await settle()  # the loop informs the protocol later than the transport
    assert line.received == b""
    assert caplog.records == []
    await desk.close()
