"""Calls of SQS on the slow path get the same answers as on the hot one."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.http.calls import CALLS, SHAPES
from tests.http.desk import Desk, post


async def run_all(shape: Any) -> tuple[list[Any], Desk]:
    desk, handle, answers = Desk(), "", []
    for call in CALLS:
        request = shape(*call)
        quoted = handle if b"x-amz-json" in request else quote(handle)
        request_bytes = shape(call[0], _filled(call[1], handle), call[2].replace("HANDLE", quoted))
        answer = await desk.ask(request_bytes)
        answers.append((call[0], answer.essence()))
        body = answer.body.decode()
        if call[0] == "ReceiveMessage":
            start, end = ("<ReceiptHandle>", "</") if body.startswith("<") else ('"ReceiptHandle":"', '"')
            handle = body.partition(start)[2].partition(end)[0]
            assert handle
    return answers, desk


def _filled(members: Any, handle: str) -> Any:
    if isinstance(members, dict):
        return {name: _filled(value, handle) for name, value in members.items()}
    if isinstance(members, list):
        return [_filled(value, handle) for value in members]
    return handle if members == "HANDLE" else members


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_action_gives_the_same_bytes_on_both_paths(shape: str) -> None:
    hot, hot_desk = await run_all(SHAPES[shape][0])
    slow, slow_desk = await run_all(SHAPES[shape][1])
    assert hot == slow
    assert (hot_desk.context.hot_requests, hot_desk.context.slow_requests) == (len(CALLS), 0)
    assert (slow_desk.context.hot_requests, slow_desk.context.slow_requests) == (0, len(CALLS))
    assert [essence[0] for _, essence in hot] == [200] * 14 + [400] * 3
    await hot_desk.close()
    await slow_desk.close()


async def test_json_with_another_content_type_is_known_by_its_target() -> None:
    desk = Desk()
    answer = await desk.ask(post(b"{}", "Content-Type: application/json", "X-Amz-Target: AmazonSQS.ListQueues"))
    assert (answer.status, answer.json()) == (200, {})
    await desk.close()
