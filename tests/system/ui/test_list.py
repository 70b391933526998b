"""The list of queues, the forms of all kinds, and lists that follow what happens, in a real browser."""

import json
import os
from pathlib import Path
from typing import Any

from tests.admin.operator import Operator
from tests.admin.page.browser import BROWSER
from tests.server.process import Server
from tests.system.cluster.cluster import until
from tests.system.ui.conftest import picture
from tests.system.ui.test_page import QUEUE, expect, queue

ARN = "arn:aws:sqs:us-east-1:000000000000:"


def attributes(operator: Operator, name: str) -> dict[str, str]:
    found = operator.act("GetQueueAttributes", {"QueueUrl": name, "AttributeNames": ["All"]})[1]["Attributes"]
    return dict(found)


def test_the_address_keeps_the_choices_of_the_list(page: Any, operator: Operator) -> None:
    queue(operator, "alpha")
    queue(operator, "alpine", "1")
    queue(operator, "alps.fifo", FifoQueue="true")
    operator.act("CreateQueue", {"QueueName": "alto"}, "?account=111122223333")
    page.goto(operator.url + "/queues")
    rows = page.locator("#queues tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Filter").press_sequentially("al")
    page.get_by_label("Kind", exact=True).first.select_option("standard")
    expect(rows).to_have_count(3)
    page.get_by_label("Account").select_option("000000000000")
    expect(rows).to_have_count(2)
    page.wait_for_url("**/queues?*account=000000000000*")
    page.get_by_role("link", name="Visible").click()
    expect(rows.first).to_contain_text("alpine")
    page.reload()
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("alpine")
    expect(page.get_by_label("Filter")).to_have_value("al")
    expect(page.locator("#kind")).to_have_value("standard")
    expect(page.locator("#account")).to_have_value("000000000000")
    picture(page, "queues-chosen")


def test_messages_follow_the_counts_after_a_redrive_but_leave_an_open_one(page: Any, operator: Operator) -> None:
    redrive = json.dumps({"deadLetterTargetArn": f"{ARN}back-dead", "maxReceiveCount": 1})
    queue(operator, "back-dead", *map(str, range(30)))
    url = queue(operator, "back", RedrivePolicy=redrive)
    page.goto(f"{operator.url}{QUEUE}back-dead")
    expect(page.locator(".messages > li")).to_have_count(30)
    move = {"SourceArn": f"{ARN}back-dead", "DestinationArn": f"{ARN}back"}
    page.get_by_role("button", name="Move them back").click()
    note = page.locator("#notice")
    expect(note).to_contain_text("The messages are being moved.")
    assert note.locator("pre").count() == 0
    operator.act("StartMessageMoveTask", move)
    expect(page.locator("#counts dd").first).to_have_text("0", timeout=20_000)
    expect(page.get_by_text("The queue is empty.")).to_be_visible(timeout=20_000)
    page.goto(f"{operator.url}{QUEUE}back")
    until(lambda: operator.get("/api/queues?prefix=back")["queues"][0]["visible"] == 30, "messages that were moved")
    page.reload()
    expect(page.locator(".messages > li")).to_have_count(30)
    page.locator(".messages summary").first.click()
    operator.act("PurgeQueue", {"QueueUrl": url})
    offer = page.get_by_role("button", name="The queue has changed: show the new list")
    expect(offer).to_be_visible(timeout=20_000)
    expect(page.locator(".messages > li")).to_have_count(30)
    offer.click()
    expect(page.get_by_text("The queue is empty.")).to_be_visible()


def test_each_kind_of_queue_is_created_by_its_own_fields(page: Any, operator: Operator) -> None:
    queue(operator, "made-dead")
    page.goto(operator.url + "/queues")
    page.get_by_role("link", name="Create a queue").click()
    form = page.locator("#create form")
    shown = form.locator("fieldset[data-kind]:not(:disabled)")

    def create(name: str, kind: str, fill: dict[str, str]) -> dict[str, str]:
        form.get_by_label("Name", exact=True).fill(name)
        form.get_by_label("Kind").select_option(kind)
        expect(shown).to_have_count(1)
        for label, value in fill.items():
            shown.get_by_label(label).fill(value)
        form.get_by_role("button", name="Create", exact=True).click()
        expect(page.locator("#notice")).to_contain_text(f"{name}: The queue was created.")
        expect(page.locator("#queues").get_by_role("link", name=name, exact=True)).to_be_visible(timeout=15_000)
        return attributes(operator, name)

    form.get_by_label("Dead-letter queue").fill("made-dead")
    form.get_by_label("Receives, at most").fill("4")
    made = create("made-standard", "standard", {"Visibility timeout, s": "7"})
    assert made["VisibilityTimeout"] == "7"
    assert json.loads(made["RedrivePolicy"]) == {"deadLetterTargetArn": f"{ARN}made-dead", "maxReceiveCount": 4}
    form.get_by_label("Dead-letter queue").fill("")
    form.get_by_label("Receives, at most").fill("")
    assert create("made-priority", "priority", {"Default priority": "-2"})["ElasticqDefaultPriority"] == "-2"
    made = create("made.fifo", "FIFO", {"Partitions": "12"})
    assert (made["FifoQueue"], made["ElasticqPartitions"]) == ("true", "12")
    picture(page, "create")


def test_settings_are_fields_and_only_what_changed_is_sent(page: Any, operator: Operator) -> None:
    queue(operator, "set-dead")
    queue(operator, "set", ElasticqFairness="weighted", ElasticqGroupWeights='{"acme": 3}')
    page.goto(f"{operator.url}{QUEUE}set")
    page.locator("summary", has_text="Settings").click()
    form = page.locator("form", has=page.get_by_role("button", name="Save"))
    expect(form.get_by_label("Weights")).to_have_value("acme=3")
    form.get_by_label("Weights").fill("acme=5\nglobex=2")
    form.get_by_role("button", name="as AWS CLI").click()
    command = page.locator("#notice pre")
    expect(command).to_contain_text("ElasticqGroupWeights")
    expect(command).not_to_contain_text("VisibilityTimeout")
    form.get_by_label("Dead-letter queue").fill("set-dead")
    form.get_by_label("Receives, at most").fill("9")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("The settings were saved.")
    found = attributes(operator, "set")
    assert json.loads(found["ElasticqGroupWeights"]) == {"acme": 5, "globex": 2}
    assert json.loads(found["RedrivePolicy"])["maxReceiveCount"] == 9
    page.reload()
    page.locator("summary", has_text="Settings").click()
    form.get_by_label("Dead-letter queue").fill("")
    form.get_by_label("Receives, at most").fill("")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("The settings were saved.")
    assert "RedrivePolicy" not in attributes(operator, "set")
    form.get_by_role("button", name="Save").click()


def test_charts_show_a_day_in_utc(page: Any, operator: Operator) -> None:
    queue(operator, "charted", "1", "2")
    page.goto(f"{operator.url}{QUEUE}charted")
    page.get_by_role("button", name="24 h").click()
    expect(page.locator('[data-line="visible"]')).to_have_text("2", timeout=15_000)  # the first sample takes 2 s
    with page.expect_response("**/api/history?*window_s=86400") as answered:
        pass
    series = answered.value.json()
    assert (series["period_s"], len(series["visible"]) >= 1) == (300, True)
    plot = page.locator(".plot .u-over").first
    plot.hover(position={"x": plot.bounding_box()["width"] - 2, "y": 40})
    expect(page.locator(".at").first).to_contain_text(" UTC")
    expect(page.get_by_text("All times are UTC")).to_be_visible()


def test_a_thousand_queues_are_painted_at_once(page: Any, server: Server) -> None:
    operator, loads = Operator(server.admin()), 20
    for number in range(1_000):
        queue(operator, f"many-{number:04}")
    operator.ask("/queues", headers=BROWSER)
    before_s = cpu_s(server)
    for _ in range(loads):
        operator.ask("/queues", headers=BROWSER)
    cost_ms = (cpu_s(server) - before_s) * 1_000 / loads
    page.goto(operator.url + "/queues")
    expect(page.locator("#queues tbody tr")).to_have_count(1_000)
    print(f"1,000 queues: {cost_ms:.0f} ms of the server's CPU, painted after {page.evaluate(PAINTED_MS):.0f} ms")
    assert cost_ms < 60, "it is 22 ms on an idle machine"


PAINTED_MS = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def cpu_s(server: Server) -> float:
    """Return the processor time that a server used so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
