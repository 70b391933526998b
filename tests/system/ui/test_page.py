"""The page in a real browser: each action, charts that move, hostile messages, other origins, the keyboard."""

import http.server
import os
import threading
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.admin.operator import Operator
from tests.system.cluster.cluster import until
from tests.system.ui.conftest import picture

HOSTILE = "<script>document.title='stolen'</script><img src=x onerror=\"document.title='stolen'\">\u202egnp.exe\u200b"
QUEUE = "/queues/000000000000/"
LONG = "a-queue-with-a-rather-long-name-as-people-and-programs-write-them-every-day"
ATTACK = """
<form id=f method=post action="ADMIN/page/do/PurgeQueue"><input name=QueueUrl value=wanted></form>
<script>
const send = (path, request) => fetch("ADMIN" + path, {method: "POST", ...request});
const post = (path, headers, body, mode) => send(path, {mode: mode || "cors", headers, body});
const json = '{"QueueUrl": "wanted"}';
const all = [
  post("/api/actions/PurgeQueue", {}, json, "no-cors"),
  post("/api/actions/PurgeQueue", {"Content-Type": "application/json"}, json),
  post("/page/do/PurgeQueue", {"HX-Request": "true"}, new URLSearchParams({QueueUrl: "wanted"})),
  fetch("ADMIN/api/queues"),
];
Promise.allSettled(all).then((done) => {
  document.title = "asked " + done.filter((one) => one.value && one.value.ok).length;
});
</script>"""


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as wait_for

    return wait_for(locator)


def queue(operator: Operator, name: str, *bodies: str, **attributes: str) -> str:
    url: str = operator.act("CreateQueue", {"QueueName": name, "Attributes": attributes})[1]["QueueUrl"]
    for body in bodies:
        assert operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body})[0] == 200
    return url


def counts(operator: Operator, name: str) -> tuple[int, int]:
    (row,) = operator.get(f"/api/queues?prefix={name}")["queues"]
    return row["visible"], row["in_flight"]


def test_the_first_visit_says_what_to_do_and_a_queue_is_made(page: Any, operator: Operator) -> None:
    page.goto(operator.url + "/queues")
    expect(page.get_by_text("There are no queues yet")).to_be_visible()
    picture(page, "first-visit")
    page.get_by_label("Name", exact=True).fill("orders")
    page.locator("fieldset:not(:disabled)").get_by_label("Visibility timeout, s").fill("7")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The queue was created")
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    told = operator.act("GetQueueAttributes", {"QueueUrl": "orders", "AttributeNames": ["VisibilityTimeout"]})[1]
    assert told["Attributes"] == {"VisibilityTimeout": "7"}


def test_queues_are_filtered_sorted_and_follow_what_happens(page: Any, operator: Operator) -> None:
    queue(operator, "alpha", "1")
    url = queue(operator, "beta", "1", "2")
    queue(operator, "x" * 80)
    page.goto(operator.url + "/queues")
    rows = page.locator("#queues tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="Visible").click()
    expect(rows.first).to_contain_text("beta")
    page.get_by_label("Filter").press_sequentially("alph")
    expect(rows).to_have_count(1)
    page.get_by_label("Filter").fill("")
    expect(rows).to_have_count(3)
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "3"})
    expect(page.locator("#queues tr", has_text="beta").locator("td").nth(1)).to_have_text("3", timeout=15_000)
    picture(page, "queues")


def test_charts_move(page: Any, operator: Operator) -> None:
    url = queue(operator, "busy")
    page.goto(operator.url + QUEUE + "busy")

    def drawn() -> int:
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
        return int(page.locator(".charts").get_attribute("data-drawn") or 0)

    until(lambda: drawn() > 2, "a chart that is drawn again")
    expect(page.locator('[data-line="visible"]')).not_to_have_text("0")
    page.get_by_role("button", name="10 min").click()
    expect(page.get_by_role("button", name="10 min")).to_have_attribute("aria-pressed", "true")
    picture(page, "queue-chart")


def test_a_message_is_sent_and_looked_at(page: Any, operator: Operator) -> None:
    queue(operator, "sent")
    page.goto(operator.url + QUEUE + "sent")
    page.get_by_text("Send a message").click()
    page.get_by_label("Body").fill('{"order": 1}')
    page.get_by_label("Attributes, a line each").fill("kind=new\ncount:Number=3")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The message was sent")
    page.reload()
    page.locator(".messages summary").first.click()
    expect(page.locator(".messages pre.body").first).to_have_text('{\n  "order": 1\n}')
    expect(page.locator(".attributes").first).to_contain_text("count")
    assert counts(operator, "sent") == (1, 0)
    picture(page, "message")


def test_what_a_button_does_is_shown_as_code(page: Any, operator: Operator) -> None:
    queue(operator, "coded")
    page.goto(operator.url + QUEUE + "coded")
    page.get_by_text("Send a message").click()
    page.get_by_label("Body").fill("hello")
    form = page.locator("form", has=page.get_by_role("button", name="Send", exact=True))
    form.get_by_role("button", name="as AWS CLI").click()
    expect(page.locator("#notice pre")).to_contain_text("send-message")
    form.get_by_role("button", name="as boto3").click()
    expect(page.locator("#notice pre")).to_contain_text("sqs.send_message(")
    picture(page, "code")
    page.get_by_role("button", name="Close this note").click()
    expect(page.locator("#notice")).to_be_empty()
    assert counts(operator, "coded") == (0, 0)


def test_a_note_is_come_to_and_left_by_the_keyboard(page: Any, operator: Operator) -> None:
    queue(operator, "noted")
    page.goto(operator.url + QUEUE + "noted")
    page.get_by_text("Settings", exact=True).click()
    button = page.locator("form", has=page.get_by_role("button", name="Save")).get_by_role("button", name="as boto3")
    for leave in ("Escape", "Enter"):
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Copy", exact=True)).to_be_focused()
        if leave == "Enter":
            page.keyboard.press("Tab")
            expect(page.get_by_role("button", name="Close this note")).to_be_focused()
        page.keyboard.press(leave)
        expect(page.locator("#notice")).to_be_empty()
        expect(button).to_be_focused()


def test_what_is_refreshed_keeps_the_focus(page: Any, operator: Operator) -> None:
    operator.act("CreateTopic", {"Name": "kept"})
    page.goto(operator.url + "/topics")
    page.get_by_role("link", name="kept").focus()
    with page.expect_response("**/topics?*"):
        pass
    page.wait_for_function("!document.querySelector('#topics.htmx-swapping, #topics.htmx-settling')")
    expect(page.get_by_role("link", name="kept")).to_be_focused()


def test_settings_and_tags_are_changed(page: Any, operator: Operator) -> None:
    queue(operator, "changed")
    page.goto(operator.url + QUEUE + "changed")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Visibility timeout, s").fill("11")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("The settings were saved")
    page.get_by_label("Tags, a line each").fill("team=payments")
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The tags were saved")
    page.reload()
    page.get_by_text("Settings", exact=True).click()
    picture(page, "settings")
    page.get_by_role("button", name="Remove tag team").click()
    expect(page.locator("#notice")).to_contain_text("The tag was removed")
    page.get_by_label("Visibility timeout, s").fill("never")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("InvalidAttributeValue")
    assert operator.act("ListQueueTags", {"QueueUrl": "changed"})[1] == {}


def test_dead_letters_are_linked_both_ways_and_moved_back(page: Any, operator: Operator) -> None:
    queue(operator, "dead")
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": "1"}'
    url = queue(operator, "source", "poison", RedrivePolicy=policy, VisibilityTimeout="0")
    for _ in range(2):
        operator.act("ReceiveMessage", {"QueueUrl": url})
    assert counts(operator, "dead") == (1, 0)
    page.goto(operator.url + QUEUE + "source")
    page.locator("summary", has_text="Dead letters").click()
    page.locator("details").get_by_role("link", name="dead").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("dead")
    expect(page.get_by_role("link", name="source")).to_be_visible()
    page.get_by_role("button", name="Move them back").click()
    expect(page.locator("#tasks")).to_contain_text("completed: 1", timeout=20_000)
    assert counts(operator, "source") == (1, 0)
    picture(page, "dead-letters")


def test_a_scheduled_message_is_given_another_time_and_cancelled(page: Any, operator: Operator) -> None:
    queue(operator, "plans")
    page.goto(operator.url + QUEUE + "plans")
    page.get_by_text("Send a message").click()
    page.get_by_label("Body").fill("remember the milk")
    page.get_by_label("Deliver at, UTC").fill(typed_in_s(3_600))
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The message was sent")
    page.locator("#counts").get_by_role("link", name="1").click()
    page.locator("#scheduled summary").click()
    page.get_by_label("Deliver at, UTC").fill(typed_in_s(7_200))
    page.get_by_role("button", name="as curl").first.click()
    expect(page.locator("#notice pre")).to_contain_text("/api/actions/ElasticqReschedule")
    page.get_by_role("button", name="Reschedule").click()
    expect(page.locator("#notice")).to_contain_text("has another time")
    expect(page.locator("#scheduled .tag")).to_contain_text("1 h 59 min")
    picture(page, "scheduled")
    page.locator("#scheduled summary").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel this message").click()
    expect(page.get_by_text("Nothing is scheduled here.")).to_be_visible()
    assert operator.act("Peek", {"QueueUrl": "plans"})[1]["Messages"] == []


def typed_in_s(seconds: int) -> str:
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def test_a_topic_is_made_asked_about_and_published_to(page: Any, operator: Operator) -> None:
    queue(operator, "reds")
    page.goto(operator.url + "/topics")
    expect(page.get_by_text("There are no topics yet")).to_be_visible()
    picture(page, "topics-first-visit")
    page.get_by_label("Name", exact=True).fill("colours")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("link", name="colours").click()
    page.get_by_text("Subscribe", exact=True).first.click()
    page.get_by_label("Endpoint").fill("arn:aws:sqs:us-east-1:000000000000:reds")
    page.get_by_label("Filter policy").fill('{"colour": ["red"]}')
    page.get_by_role("button", name="Subscribe", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The subscription was created")
    page.reload()
    page.get_by_text("Publish a message").click()
    page.get_by_label("Message", exact=True).fill("hello")
    page.get_by_label("Attributes, a line each").fill("colour=blue")
    page.get_by_role("button", name="Who would get it?").click()
    expect(page.locator("#notice")).to_contain_text("0 would get it, 1 would not")
    page.get_by_label("Attributes, a line each").fill("colour=red")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("The message was published")
    until(lambda: counts(operator, "reds") == (1, 0), "a message that was published")
    page.locator("#subscriptions summary").click()
    picture(page, "topic")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Unsubscribe").click()
    expect(page.locator("#notice")).to_contain_text("The subscription was ended")
    page.goto(operator.url + "/topics")
    expect(page.locator("#topics")).to_contain_text("none")
    picture(page, "topics")


def test_a_consumer_of_a_group_is_drained(page: Any, operator: Operator) -> None:
    queue(operator, "shared")
    operator.act("ElasticqSetGroup", {"GroupName": "sharing", "QueueNames": ["shared"]})
    operator.act("ElasticqJoinGroup", {"GroupName": "sharing", "ConsumerName": "tired"})
    page.goto(operator.url + "/groups")
    page.get_by_role("button", name="as curl").click()
    expect(page.locator("#notice pre")).to_contain_text("/api/actions/ElasticqDrainConsumer")
    picture(page, "groups")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Drain").click()
    expect(page.locator("#notice")).to_contain_text("The consumer gives back")


def test_purging_wants_the_name(page: Any, operator: Operator) -> None:
    queue(operator, "purged", "a", "b")
    page.goto(operator.url + QUEUE + "purged")
    page.get_by_text("Purge or delete").click()
    box = page.get_by_label("to delete all its messages", exact=False).first
    box.fill("purge")
    page.get_by_role("button", name="Purge", exact=True).click()
    assert counts(operator, "purged") == (2, 0)
    box.fill("purged")
    page.get_by_role("button", name="Purge", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("All its messages are deleted")
    until(lambda: counts(operator, "purged") == (0, 0), "a purged queue")
    page.get_by_label("to delete the queue", exact=False).fill("purged")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url(operator.url + "/queues")
    page.goto(operator.url + "/events")
    expect(page.locator("#events")).to_contain_text("queue_deleted")
    picture(page, "events")


@pytest.mark.parametrize("body", [HOSTILE, "x" * 1_048_576])
def test_a_hostile_body_stays_text(page: Any, operator: Operator, body: str) -> None:
    queue(operator, "hostile", body)
    page.goto(operator.url + QUEUE + "hostile")
    page.locator(".messages summary").first.click()
    shown = page.locator(".messages pre.body").first
    expect(shown).to_contain_text(body[:8])
    assert page.locator("#main script, #main img").count() == 0
    assert "stolen" not in page.title()
    if body == HOSTILE:
        expect(shown).to_contain_text("\\u202e")
        picture(page, "hostile")


def test_a_page_of_another_origin_can_do_nothing(page: Any, operator: Operator) -> None:
    queue(operator, "wanted", "a")
    attack = ATTACK.replace("ADMIN", operator.url)

    class Attacker(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(attack.encode())

        def log_message(self, *_: object) -> None:
            """Be silent."""

    attacker = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    try:
        page.goto(f"http://localhost:{attacker.server_address[1]}/")
        page.wait_for_function("document.title.startsWith('asked')")
        assert page.title() == "asked 0"
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_load_state()
        assert counts(operator, "wanted") == (1, 0)
    finally:
        attacker.shutdown()
        attacker.server_close()


def axe() -> str:
    """axe-core's script: the file that ELASTICQ_AXE names, or the one in the package that make ui-test installs."""
    found = find_spec("axe_core_python")
    installed = Path(found.origin).with_name("axe.min.js") if found and found.origin else None
    named = os.environ.get("ELASTICQ_AXE")
    file = Path(named) if named else installed
    assert file is not None, "make ui-test installs axe-core"
    return file.read_text()


def is_serious(violation: dict[str, Any]) -> bool:
    return violation["impact"] in ("serious", "critical")
