"""The pages for tests: closed unless testing is enabled, JSON in and out, an account's own queues under strict."""

from typing import Any

import msgspec
import pytest

from elasticq.http.pages.testing import METHODS
from elasticq.wire.browsers import Browsers
from tests.http.desk import HOST, Desk, Response, json_request, post
from tests.http.signing import KEY, OTHER_KEY, signed


async def ask(desk: Desk, path: str, body: Any = None, *headers: str, method: str = "POST") -> Response:
    data = b"" if body is None else msgspec.json.encode(body)
    return await desk.ask(post(data, *headers, path=path).replace(b"POST", method.encode(), 1))


@pytest.mark.parametrize("path", METHODS)
async def test_page_is_closed_unless_testing_is_enabled(path: str) -> None:
    desk = Desk()
    for method in METHODS[path]:
        answer = await ask(desk, path, method=method)
        assert answer.status == 403
        assert "testing.enabled is off" in answer.json()["message"]
    await desk.close()


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
async def test_clock_is_turned_whatever_content_type_a_tool_sends(content_type: str) -> None:
    desk = Desk(has_testing=True)
    before = (await ask(desk, "/_elasticq/clock", method="GET")).json()["time"]
    answer = await ask(desk, "/_elasticq/clock", {"advance": 30}, f"Content-Type: {content_type}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == {"time": before + 30}
    await desk.close()


@pytest.mark.parametrize("body", [{}, {"advance": -1}, {"advance": "30"}, {"advance": 1e30}, {"retreat": 1}, [], "x"])
async def test_clock_refuses_what_it_does_not_understand(body: object) -> None:
    desk = Desk(has_testing=True)
    answer = await ask(desk, "/_elasticq/clock", body)
    assert (answer.status, answer.json()["code"]) == (400, "InvalidParameterValue")
    await desk.close()


async def test_wrong_method_is_told_which_ones_there_are() -> None:
    desk = Desk(has_testing=True)
    answer = await ask(desk, "/_elasticq/reset", method="PUT")
    assert (answer.status, answer.json()["message"]) == (405, "/_elasticq/reset allows only POST.")
    await desk.close()


async def test_reset_takes_one_account_or_all() -> None:
    desk = Desk(has_testing=True)
    for account in ("1" * 12, "2" * 12, "3" * 12):
        credential = f"Authorization: AWS4-HMAC-SHA256 Credential={account}/x"
        await desk.ask(json_request("CreateQueue", {"QueueName": "jobs"}, credential))
    assert (await ask(desk, "/_elasticq/reset")).json() == {"deleted": 0}  # of who does not say who it is
    assert (await ask(desk, "/_elasticq/reset", {"account": "1" * 12})).json() == {"deleted": 1}
    own = "Authorization: AWS4-HMAC-SHA256 Credential=222222222222/x"
    assert (await ask(desk, "/_elasticq/reset", {}, own)).json() == {"deleted": 1}
    assert (await ask(desk, "/_elasticq/reset", {"account": "*"})).json() == {"deleted": 1}
    assert (await ask(desk, "/_elasticq/reset", {"account": "me"})).status == 400
    await desk.close()


async def test_reset_of_all_ends_the_faults() -> None:
    desk = Desk(has_testing=True)
    made = (await ask(desk, "/_elasticq/faults", {"kind": "error500", "action": "ListQueues"})).json()
    assert (made["id"], made["struck"], made["spent"]) == (1, 0, False)
    assert (await desk.ask(json_request("ListQueues", {}))).status == 500
    (row,) = (await ask(desk, "/_elasticq/faults", method="GET")).json()["faults"]
    assert row["struck"] == 1
    assert (await ask(desk, "/moto-api/reset")).json() == {"status": "ok"}
    assert (await ask(desk, "/_localstack/state/reset")).json() == {"status": "ok"}
    assert (await ask(desk, "/_elasticq/faults", method="GET")).json() == {"faults": []}
    assert (await desk.ask(json_request("ListQueues", {}))).status == 200
    await desk.close()


async def test_there_is_a_bound_on_faults_and_all_are_removed_at_once() -> None:
    desk = Desk(has_testing=True)
    answers = [await ask(desk, "/_elasticq/faults", {"kind": "error503", "times": 1}) for _ in range(101)]
    assert [answer.status for answer in answers] == [200] * 100 + [400]
    assert len((await ask(desk, "/_elasticq/faults", {}, method="DELETE")).json()["faults"]) == 100
    await desk.close()


async def test_strict_server_wants_a_signature_and_lets_nobody_reset_another() -> None:
    desk = Desk(has_testing=True, auth="strict", keys=[KEY, OTHER_KEY])
    assert (await ask(desk, "/_elasticq/clock", {"advance": 1})).status == 403
    plain = {"Content-Type": "application/json"}
    clock = signed(b'{"advance": 1}', plain, url="/_elasticq/clock")
    assert (await desk.ask(clock)).status == 200
    for body in (b'{"account": "222222222222"}',):
        assert (await desk.ask(signed(body, plain, url="/_elasticq/reset"))).status == 403
    made = (await desk.ask(signed(b'{"kind": "error500"}', plain, url="/_elasticq/faults"))).json()
    assert made["order"]["account"] == KEY.account
    await desk.close()


async def test_page_of_somebody_else_cannot_turn_the_clock() -> None:
    desk = Desk(has_testing=True, browsers=Browsers(["127.0.0.1"], []))
    answer = await ask(desk, "/_elasticq/clock", {"advance": 1}, "Origin: https://evil.example")
    assert answer.status == 403
    assert HOST
    await desk.close()


async def test_calls_after_the_fault_was_removed_go_straight_on_open_connections() -> None:
    desk = Desk(has_testing=True)
    protocol, line = desk.connect()
    made = (await ask(desk, "/_elasticq/faults", {"kind": "error503"})).json()
    protocol.data_received(json_request("ReceiveMessage", {"QueueUrl": "x"}))
    protocol.flush()
    assert b" 503 " in line.received
    await ask(desk, "/_elasticq/faults", {"id": made["id"]}, method="DELETE")
    line.received.clear()
    protocol.data_received(json_request("ReceiveMessage", {"QueueUrl": "x"}))
    protocol.flush()
    assert b" 400 " in line.received
    await desk.close()
