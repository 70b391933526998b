"""The list of the messages that wait for their time."""

import re
import time
from html import unescape
from typing import Any

from elasticq.admin.page import scheduled
from tests.admin.operator import FORM, Operator
from tests.admin.page.browser import form, page

PLACE = "/queues/000000000000/"
HOUR_MS = 3_600_000


def send(operator: Operator, name: str, body: str, time_ms: int) -> str:
    at = {"ElasticqDeliverAt": {"DataType": "Number", "StringValue": str(time_ms)}}
    given = {"QueueUrl": name, "MessageBody": body, "MessageAttributes": at}
    status, told = operator.act("SendMessage", given)
    assert status == 200, told
    return str(told["MessageId"])


def waiting(operator: Operator, name: str) -> dict[str, int]:
    found = operator.act("Peek", {"QueueUrl": name, "States": ["delayed"]})[1]["Messages"]
    return {each["MessageId"]: each["DeliverAt"] for each in found}


async def test_the_next_one_comes_first_and_the_queue_is_looked_through_in_parts() -> None:
    asked: list[dict[str, Any]] = []

    async def ask(action: str, given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given)
        at = int(given["FromSequence"])
        later = {"Sequence": at, "DeliverAt": 1_000 - at}
        return {"Messages": [later, {"Sequence": at + 1}], "NextSequence": at + 10_000}

    found, following = await scheduled.found(ask, "url", 5)
    assert following == 5 + scheduled.LOOKS_MAX * 10_000
    assert [each["FromSequence"] for each in asked] == [5 + 10_000 * at for at in range(scheduled.LOOKS_MAX)]
    assert all(each["States"] == ["delayed"] for each in asked)
    times = [each["DeliverAt"] for each in found if "DeliverAt" in each]
    assert times == sorted(times)
    assert [each for each in found if "DeliverAt" not in each] == found[len(times) :]


async def test_a_full_page_ends_the_look() -> None:
    async def ask(action: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"Messages": [{"Sequence": at} for at in range(scheduled.PAGE)], "NextSequence": None}

    found, following = await scheduled.found(ask, "url", 0)
    assert (len(found), following) == (scheduled.PAGE, None)


def test_scheduled_messages_are_listed_by_their_time(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "plans"})
    now_ms = round(time.time() * 1_000)
    send(operator, "plans", "the later one", now_ms + 3 * HOUR_MS)
    send(operator, "plans", "the next one", now_ms + 2 * HOUR_MS)
    operator.act("SendMessage", {"QueueUrl": "plans", "MessageBody": "not scheduled"})
    text = page(operator, f"{PLACE}plans/scheduled")
    assert text.index("the next one") < text.index("the later one")
    assert "not scheduled" not in text
    assert f'href="{PLACE}plans/scheduled?"' in page(operator, f"{PLACE}plans")
    operator.act("CreateQueue", {"QueueName": "no-plans"})
    assert "Nothing is scheduled here." in page(operator, f"{PLACE}no-plans/scheduled")
    assert operator.ask(f"{PLACE}no-such-queue/scheduled")[0] == 404


def test_one_is_given_another_time_and_then_cancelled(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "moved"})
    name = send(operator, "moved", "x", round(time.time() * 1_000) + HOUR_MS)
    (before_ms,) = waiting(operator, "moved").values()
    text = unescape(page(operator, f"{PLACE}moved/scheduled"))
    (shown,) = re.findall(r'name="DeliverAt"[^>]* value="([^"]*)"', text)
    moved = form(QueueUrl="moved", MessageIds=name, DeliverAt=shown)
    status, told, headers = operator.ask("/page/do/ElasticqReschedule", moved, FORM)
    assert (status, headers["HX-Trigger"], "has another time" in told) == (200, "done", True)
    assert waiting(operator, "moved") == {name: before_ms // 1_000 * 1_000}
    gone = form(QueueUrl="moved", MessageIds=name)
    assert "was cancelled" in operator.ask("/page/do/ElasticqCancelScheduled", gone, FORM)[1]
    assert waiting(operator, "moved") == {}
    status, told, headers = operator.ask("/page/do/ElasticqCancelScheduled", gone, FORM)
    assert ("Not done." in told, "HX-Trigger" in headers) == (True, False)
