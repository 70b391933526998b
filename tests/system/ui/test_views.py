"""Every view of the page in a real browser: on a desk and on a phone, light and dark, for axe and by the keyboard."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.admin.operator import Operator
from tests.server.process import Server
from tests.system.ui.conftest import picture
from tests.system.ui.test_page import HOSTILE, LONG, QUEUE, axe, queue

ARN = "arn:aws:sqs:us-east-1:000000000000:"
WIDTHS = (1280, 390)
VIEWS = {
    "overview": "/",
    "queues": "/queues",
    "queues-none": "/queues?filter=none-such",
    "queue": f"{QUEUE}orders",
    "queue-empty": f"{QUEUE}empty",
    "queue-long": QUEUE + LONG,
    "queue-fifo": f"{QUEUE}ledger.fifo",
    "queue-priority": f"{QUEUE}alerts",
    "dead-letter-queue": f"{QUEUE}orders-dead",
    "scheduled": f"{QUEUE}orders/scheduled",
    "order": f"{QUEUE}ledger.fifo/order",
    "topics": "/topics",
    "topic": "/topics/000000000000/order-events",
    "groups": "/groups",
    "consumers": "/consumers",
    "cluster": "/cluster",
    "events": "/events",
    "definitions": "/definitions",
    "api": "/api/docs",
    "missing": "/no/such/page",
}
REACHED = """() => {
  const controls = ":is(a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex])";
  const hidden = (each) => each.closest("details:not([open]) > :not(summary)");
  const wanted = [...document.querySelectorAll(`main ${controls}`)];
  return wanted.filter((each) => each.checkVisibility() && !each.disabled && !hidden(each)).length;
}"""
PLACE = "[...document.querySelectorAll('main *')].indexOf(document.activeElement)"


@pytest.fixture(scope="module")
def filled() -> Iterator[Operator]:
    """An operator of a server that has all that a page can show."""
    with Server() as server:
        operator = Operator(server.admin())
        redrive = json.dumps({"deadLetterTargetArn": f"{ARN}orders-dead", "maxReceiveCount": 3})
        queue(operator, "orders-dead", "failed", "failed too")
        url = queue(operator, "orders", *map(str, range(12)), HOSTILE, '{"a": 1}', RedrivePolicy=redrive)
        at = f"{datetime.now(UTC).timestamp() * 1_000 + 3_600_000:.0f}"
        later = {"ElasticqDeliverAt": {"DataType": "Number", "StringValue": at}}
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "later", "MessageAttributes": later})
        operator.act("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 3, "VisibilityTimeout": 7_200})
        operator.act("TagQueue", {"QueueUrl": url, "Tags": {"team": "payments"}})
        queue(operator, "empty")
        queue(operator, LONG, "x" * 300)
        queue(operator, "alerts", "1", "2", ElasticqOrder="priority", ElasticqDefaultPriority="5")
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "7200"}
        url = queue(operator, "ledger.fifo", ElasticqPartitions="4", **fifo)
        for number in range(8):
            given = {"QueueUrl": url, "MessageBody": str(number), "MessageGroupId": f"account-{number % 3}"}
            operator.act("SendMessage", given)
        operator.act("ReceiveMessage", {"QueueUrl": url})
        operator.act("CreateQueue", {"QueueName": "far-away"}, "?region=eu-west-1")
        operator.act("CreateQueue", {"QueueName": "of-another"}, "?account=111122223333")
        topic = operator.act("CreateTopic", {"Name": "order-events"})[1]["TopicArn"]
        policy = {"FilterPolicy": '{"kind": ["order"]}'}
        operator.act(
            "Subscribe", {"TopicArn": topic, "Protocol": "sqs", "Endpoint": f"{ARN}empty", "Attributes": policy}
        )
        operator.act("Subscribe", {"TopicArn": topic, "Protocol": "sqs", "Endpoint": ARN + LONG})
        operator.act("ElasticqSetGroup", {"GroupName": "workers", "QueueNames": ["orders", "empty"]})
        operator.act("ElasticqJoinGroup", {"GroupName": "workers", "ConsumerName": "worker-1"})
        yield operator


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    browser: Any, filled: Operator, scheme: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    tab, script, found = context.new_page(), axe(), dict[str, Any]()
    for name, path in VIEWS.items():
        tab.goto(filled.url + path)
        tab.wait_for_function("[...document.querySelectorAll('.charts')].every((each) => each.dataset.drawn)")
        picture(tab, f"{name}-{scheme}-{width}")
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        picture(tab, f"{name}-open-{scheme}-{width}")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
        tab.evaluate(script)
        for each in tab.evaluate("axe.run()")["violations"]:
            found.setdefault(each["id"], []).append((name, [node["html"][:140] for node in each["nodes"][:3]]))
    context.close()
    assert found == {}


@pytest.mark.parametrize("view", ["overview", "queues", "queue", "topic", "cluster", "groups", "missing"])
def test_all_controls_of_a_view_are_reached_by_the_keyboard(page: Any, filled: Operator, view: str) -> None:
    page.goto(filled.url + VIEWS[view])
    wanted = page.evaluate(REACHED)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    seen = set()
    for _ in range(wanted + 40):
        page.keyboard.press("Tab")
        place = page.evaluate(PLACE)
        if place >= 0:
            seen.add(place)
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if len(seen) >= wanted:
            break
    assert len(seen) >= wanted
