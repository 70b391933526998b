"""The page, as a browser without scripts would see it; make ui-test drives a real one."""

import json
import re
from html import unescape
from urllib.parse import urlencode
from zlib import crc32

import pytest

from tests.admin.operator import FORM, Operator

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e'\"&"


def form(**fields: str) -> bytes:
    return urlencode(fields).encode()


def page(operator: Operator, path: str) -> str:
    status, text, headers = operator.ask(path)
    assert status == 200, text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    return text


def test_each_page_answers_and_loads_nothing_from_elsewhere(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "shown"})
    others = ("/topics", "/groups.html", "/consumers", "/cluster.html", "/events", "/definitions", "/api/docs")
    for path in ("/", "/queues", "/queues/000000000000/shown", *others):
        text = page(operator, path)
        loaded = re.findall(r'src="([^"]*)"', text) + re.findall(r'<link rel="[a-z]*" href="([^"]*)"', text)
        assert loaded
        for address in loaded:
            assert address.startswith("/static/")
            assert operator.ask(address)[0] == 200
        assert "<script>" not in text
        assert " style=" not in text
        assert " onclick=" not in text


def test_a_hostile_message_stays_text(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "hostile"})[1]["QueueUrl"]
    attributes = {"kind": {"DataType": "String", "StringValue": HOSTILE}}
    sent = {"QueueUrl": url, "MessageBody": HOSTILE, "MessageAttributes": attributes, "MessageGroupId": "<b>"}
    assert operator.act("SendMessage", sent)[0] == 200
    text = page(operator, "/queues/000000000000/hostile")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "\u202e" not in text.partition('class="attributes"')[0]
    assert "<script>alert(1)</script>" in unescape(text)


def test_partitions_of_a_queue_and_of_its_messages_are_told(operator: Operator) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": "12"}
    url = operator.act("CreateQueue", {"QueueName": "lanes.fifo", "Attributes": attributes})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "customer-1"})
    text = page(operator, "/queues/000000000000/lanes.fifo")
    assert "FIFO queue · 12 partitions" in text
    assert f"partition {crc32(b'customer-1') % 12}<" in text


def test_looking_changes_nothing(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "looked"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": '{"a": 1}'})
    before = operator.act("Peek", {"QueueUrl": url})
    text = page(operator, "/queues/000000000000/looked")
    assert unescape(text).count('"a": 1') >= 1
    assert operator.act("Peek", {"QueueUrl": url}) == before
    (message,) = before[1]["Messages"]
    status, body, headers = operator.ask(f"/queues/000000000000/looked/messages/{message['Sequence']}")
    assert (status, body) == (200, '{"a": 1}')
    assert headers["Content-Disposition"].startswith("attachment")
    assert operator.ask("/queues/000000000000/looked/messages/7")[0] == 404
    assert operator.ask("/queues/000000000000/no-such-queue")[0] == 404


def test_what_a_queue_s_page_asks_for_again_is_without_messages(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "asked-again"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "a body"})
    whole = page(operator, "/queues/000000000000/asked-again")
    (again,) = re.findall(r'hx-get="([^"]*)"[^>]* hx-trigger="every', whole)
    assert 'hx-select="#counts" hx-select-oob="#tasks,#waiting,#in-flight"' in whole
    status, told, _ = operator.ask(unescape(again), headers={"HX-Request": "true"})
    assert (status, "a body" in whole, "a body" in told) == (200, True, False)
    assert "<dt>visible</dt><dd>1</dd>" in told
    for part in ("counts", "tasks", "waiting", "in-flight"):
        assert told.count(f'id="{part}"') == 1


def test_what_is_in_flight_is_told_with_its_times(operator: Operator) -> None:
    attributes = {"VisibilityTimeout": "7200"}
    url = operator.act("CreateQueue", {"QueueName": "flying", "Attributes": attributes})[1]["QueueUrl"]
    empty = page(operator, "/queues/000000000000/flying")
    assert ("Nothing is in flight." in empty, "<dt>longest in flight</dt><dd>–</dd>" in empty) == (True, True)
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": HOSTILE[:8]})
    operator.act("ReceiveMessage", {"QueueUrl": url})
    text = page(operator, "/queues/000000000000/flying")
    (row,) = re.findall(r'<tr><th scope="row"><a id="in-flight-.*</tr>', text)
    (link,) = re.findall(r'href="([^"]*)"', row)
    assert "state inflight" in page(operator, unescape(link))
    assert unescape(row).count(HOSTILE[:8]) == 1
    assert HOSTILE[:8] not in row
    assert re.findall(r">(1 h 59 min|2 h)<", row)
    assert re.search(r"1 in flight, the longest for \d+ s; the next one is visible again in (1 h 59 min|2 h)\.", text)


def test_the_order_within_groups_is_shown_with_what_blocks_one(operator: Operator) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "7200"}
    url = operator.act("CreateQueue", {"QueueName": "ordered-page.fifo", "Attributes": attributes})[1]["QueueUrl"]
    place, group = "/queues/000000000000/ordered-page.fifo", "<b>'&"
    assert "No message here is in a group." in page(operator, f"{place}/order")
    for body, each in (("1", group), ("2", group), ("3", "free")):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body, "MessageGroupId": each})
    operator.act("ReceiveMessage", {"QueueUrl": url})
    assert f'<a href="{place}/order?">order within groups</a>' in page(operator, place)
    text = page(operator, f"{place}/order")
    assert "<b>" not in text
    blocked, free = text.partition("<tbody>")[2].split("<tr>")[1:]
    assert re.findall(r'class="state (\w+)"', blocked) == ["inflight", "waits"]
    assert re.search(r">for (1 h 59 min|2 h) more<", blocked)
    assert ("<td>nothing</td>" in free, re.findall(r'class="state (\w+)"', free)) == (True, ["visible"])
    (blocker,) = re.findall(r'id="blocker-1" href="([^"]*)"', blocked)
    assert re.findall(r'class="state (\w+)"', page(operator, unescape(blocker))) == ["inflight", "visible"]
    found = page(operator, f"{place}/order?group=fre")
    assert ("1 of 2 groups." in found, "nothing</td>" in found, ">for " in found) == (True, True, False)
    assert "No group has “none” in its id." in page(operator, f"{place}/order?group=none")
    assert operator.ask("/queues/000000000000/no-such-queue/order")[0] == 404


def test_groups_of_a_standard_queue_are_shown_with_what_they_have_in_flight(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "tenants"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    assert "order within groups" not in page(operator, "/queues/000000000000/tenants")
    for _ in range(2):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "t"})
    operator.act("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 2})
    assert "order within groups" in page(operator, "/queues/000000000000/tenants")
    (row,) = page(operator, "/queues/000000000000/tenants/order").partition("<tbody>")[2].split("<tr>")[1:]
    assert '<td class="number">2</td>\n<td class="number">1</td><td>no</td>' in row
    assert re.findall(r'class="state (\w+)"', row) == ["visible"]


def test_pages_of_messages_follow_each_other(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "paged"})[1]["QueueUrl"]
    for start in range(0, 60, 10):
        entries = [{"Id": str(n), "MessageBody": f"body {n:03}."} for n in range(start, start + 10)]
        operator.act("SendMessageBatch", {"QueueUrl": url, "Entries": entries})
    first = page(operator, "/queues/000000000000/paged")
    assert ("body 049." in first, "body 050." in first) == (True, False)
    following = unescape(first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = page(operator, following)
    assert ("body 049." in second, "body 050." in second) == (False, True)


def test_a_form_does_what_it_says(operator: Operator) -> None:
    status, told, _ = operator.ask("/page/do/CreateQueue", form(QueueName="made-by-form"), FORM)
    assert (status, "CreateQueue" in told) == (200, True)
    sent = form(QueueUrl="made-by-form", MessageBody="from a form", MessageAttributes="n:Number=5")
    assert operator.ask("/page/do/SendMessage", sent, FORM)[0] == 200
    (message,) = operator.act("Peek", {"QueueUrl": "made-by-form"})[1]["Messages"]
    assert message["MessageAttributes"] == {"n": {"DataType": "Number", "StringValue": "5"}}
    status, told, _ = operator.ask("/page/do/SendMessage", form(QueueUrl="made-by-form"), FORM)
    assert (status, "MissingRequiredParameter" in told) == (400, True)


def test_the_name_must_be_typed_before_all_is_deleted(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "typed"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "kept"})
    status, told, _ = operator.ask("/page/do/PurgeQueue", form(QueueUrl=url, _typed="other"), FORM)
    assert (status, "nothing was done" in told) == (400, True)
    assert len(operator.act("Peek", {"QueueUrl": url})[1]["Messages"]) == 1
    assert operator.ask("/page/do/PurgeQueue", form(QueueUrl=url, _typed="typed"), FORM)[0] == 200
    status, _, headers = operator.ask("/page/do/DeleteQueue", form(QueueUrl=url, _typed="typed"), FORM)
    assert (status, headers["HX-Redirect"]) == (200, "/queues")


def test_code_is_shown_and_not_executed(operator: Operator) -> None:
    for tool, word in (("cli", "create-queue"), ("boto3", "create_queue")):
        status, told, _ = operator.ask(f"/page/as/{tool}/CreateQueue", form(QueueName="only-shown"), FORM)
        assert (status, word in told) == (200, True)
    assert operator.get("/api/queues?prefix=only-shown") == {"queues": []}


def test_what_aws_has_not_is_shown_for_curl_alone(operator: Operator) -> None:
    asked = form(QueueUrl="q", MessageIds="a", _region="eu-west-1")
    status, told, _ = operator.ask("/page/as/curl/ElasticqCancelScheduled", asked, FORM)
    assert status == 200
    assert f"curl -s '{operator.url}/api/actions/ElasticqCancelScheduled?region=eu-west-1'" in unescape(told)
    status, told, _ = operator.ask("/page/order-as/curl/transfer", form(member="n2"), FORM)
    assert (status, f"curl -s {operator.url}/cluster/orders" in unescape(told), '"member": "n2"' in unescape(told)) == (
        200,
        True,
        True,
    )
    assert f"curl -s -X PUT {operator.url}/api/definitions" in unescape(page(operator, "/definitions"))
    for path in ("cli/ElasticqCancelScheduled", "boto3/DeleteBySequence", "curl/SendMessage"):
        assert operator.ask(f"/page/as/{path}", asked, FORM)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/x-www-form-urlencoded"},
        {**FORM, "Origin": "http://evil.example"},
        {**FORM, "Sec-Fetch-Site": "cross-site"},
        {**FORM, "Host": "evil.example"},
    ],
)
def test_a_page_of_another_origin_can_do_nothing(operator: Operator, headers: dict[str, str]) -> None:
    assert operator.ask("/page/do/CreateQueue", form(QueueName="foreign"), headers)[0] == 403
    assert operator.get("/api/queues?prefix=foreign") == {"queues": []}


def test_definitions_can_be_pasted(operator: Operator) -> None:
    pasted = json.dumps({"elasticq": 1, "queues": [{"name": "pasted", "attributes": {"DelaySeconds": "3"}}]})
    status, told, _ = operator.ask("/page/definitions", form(definitions=pasted), FORM)
    assert (status, "1 queues and 0 topics were created" in told) == (200, True)


def test_queues_are_filtered_and_sorted(operator: Operator) -> None:
    for name, count in (("sort-a", 1), ("sort-b", 3), ("sort-c", 2)):
        url = operator.act("CreateQueue", {"QueueName": name})[1]["QueueUrl"]
        for _ in range(count):
            operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    text = page(operator, "/queues?filter=sort-&sort=visible&down=1")
    assert text.index(">sort-b<") < text.index(">sort-c<") < text.index(">sort-a<")
    assert "No queue has" in page(operator, "/queues?filter=nothing-like-it")


def test_one_message_is_given_back_or_deleted(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "one-of-two"})[1]["QueueUrl"]
    for body in ("first", "second"):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body})
    assert "Make it visible now" not in page(operator, "/queues/000000000000/one-of-two")
    operator.act("ReceiveMessage", {"QueueUrl": url})
    first, second = operator.act("Peek", {"QueueUrl": url})[1]["Messages"]
    assert (first["State"], second["State"]) == ("inflight", "visible")
    assert "Make it visible now" in page(operator, "/queues/000000000000/one-of-two")
    given = form(QueueUrl=url, Sequence=str(first["Sequence"]), VisibilityTimeout="0")
    assert operator.ask("/page/do/HideBySequence", given, FORM)[0] == 200
    first, second = operator.act("Peek", {"QueueUrl": url})[1]["Messages"]
    assert (first["State"], second["State"]) == ("visible", "visible")
    gone = form(QueueUrl=url, Sequence=str(second["Sequence"]))
    assert operator.ask("/page/do/DeleteBySequence", gone, FORM)[0] == 200
    assert [each["Body"] for each in operator.act("Peek", {"QueueUrl": url})[1]["Messages"]] == ["first"]
    status, told, _ = operator.ask("/page/do/DeleteBySequence", gone, FORM)
    assert (status, "refused" in told) == (404, True), told
