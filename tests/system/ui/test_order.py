"""What is in flight, and what stands behind what, in a real browser."""

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
    page.get_by_text("In flight", exact=True).click()
    expect(page.locator("#in-flight")).to_contain_text("Nothing is in flight.")
    operator.act("ReceiveMessage", {"QueueUrl": url})
    expect(page.locator("#in-flight tbody tr")).to_have_count(1, timeout=15_000)
    expect(page.locator("#in-flight tbody td").nth(2)).to_contain_text("1 h 59 min", timeout=15_000)
    examine(browser, operator, QUEUE + "flying", "in-flight")
    page.locator("#in-flight tbody a").click()
    expect(page.locator(".messages .state")).to_have_text("inflight")
