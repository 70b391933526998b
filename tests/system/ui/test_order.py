"""What is in flight, what stands behind what, and what goes on in the background, in a real browser."""

from typing import Any

from tests.admin.operator import Operator
from tests.system.ui.conftest import picture
from tests.system.ui.test_page import QUEUE, axe, expect, is_serious, queue


def examine(browser: Any, operator: Operator, path: str, name: str) -> None:
    """Let axe look at a page with all its parts open, in the light and in the dark."""
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, bypass_csp=True)
        tab = context.new_page()
        tab.goto(operator.url + path)
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        tab.evaluate(axe())
        found = tab.evaluate("axe.run()")["violations"]
        picture(tab, f"{name}-{scheme}")
        told = [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in found if is_serious(each)]
        assert told == [], (path, told)
        context.close()


def test_a_message_in_flight_is_seen_with_its_times(page: Any, browser: Any, operator: Operator) -> None:
    url = queue(operator, "flying", "x", VisibilityTimeout="7200")
    page.goto(operator.url + QUEUE + "flying")
    page.locator("summary", has_text="In flight").click()
    expect(page.locator("#in-flight")).to_contain_text("Nothing is in flight.")
    operator.act("ReceiveMessage", {"QueueUrl": url})
    expect(page.locator("#in-flight tbody tr")).to_have_count(1, timeout=15_000)
    expect(page.locator("#in-flight tbody td").nth(2)).to_contain_text("1 h 59 min", timeout=15_000)
    examine(browser, operator, QUEUE + "flying", "in-flight")
    page.locator("#in-flight tbody a").click()
    expect(page.locator(".messages .state")).to_have_text("in flight")


def test_the_group_that_a_message_blocks_is_found_by_its_id(page: Any, browser: Any, operator: Operator) -> None:
    settings = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "7200"}
    url = queue(operator, "ordered.fifo", **settings)
    for number in range(12):
        given = {"QueueUrl": url, "MessageBody": str(number), "MessageGroupId": f"customer-{number % 4}"}
        operator.act("SendMessage", given)
    operator.act("ReceiveMessage", {"QueueUrl": url})
    page.goto(operator.url + QUEUE + "ordered.fifo")
    page.get_by_role("link", name="Order within groups").click()
    rows = page.locator("#order tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("for 1 h 59 min more", timeout=15_000)
    expect(rows.first.locator(".state")).to_have_text(["in flight", "blocked", "blocked"])
    examine(browser, operator, QUEUE + "ordered.fifo/order", "order")
    page.get_by_label("Group").press_sequentially("mer-2")
    expect(rows).to_have_count(1)
    with page.expect_response("**/order?*group=mer-2*"):  # the list that asks again keeps the filter
        pass
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("nothing")
    page.locator("#order").get_by_role("link", name="customer-2").click()
    expect(page.locator(".messages > li")).to_have_count(3)


def test_a_move_is_seen_among_the_tasks_until_it_is_over(page: Any, browser: Any, operator: Operator) -> None:
    prefix = "arn:aws:sqs:us-east-1:000000000000:"
    queue(operator, "dead", *map(str, range(30)))
    queue(operator, "source", RedrivePolicy=f'{{"deadLetterTargetArn": "{prefix}dead", "maxReceiveCount": "1"}}')
    queue(operator, "other")
    page.goto(operator.url + "/cluster")
    expect(page.locator("#cluster")).to_contain_text("Background tasks")
    expect(page.locator("#tasks")).to_have_count(0)
    given = {"SourceArn": f"{prefix}dead", "DestinationArn": f"{prefix}other", "MaxNumberOfMessagesPerSecond": 1}
    handle = operator.act("StartMessageMoveTask", given)[1]["TaskHandle"]
    expect(page.locator("#tasks tbody tr")).to_have_count(1, timeout=15_000)
    expect(page.locator("#tasks")).to_contain_text("of 30 moved")
    examine(browser, operator, "/cluster", "tasks")
    operator.act("CancelMessageMoveTask", {"TaskHandle": handle})
    expect(page.locator("#tasks")).to_have_count(0, timeout=15_000)
