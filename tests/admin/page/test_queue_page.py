"""The pages of one queue."""

import re
from html import unescape
from zlib import crc32

from tests.admin.operator import FORM, Operator
from tests.admin.page.browser import HOSTILE, form, page


def test_a_hostile_message_stays_text(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "hostile"})[1]["QueueUrl"]
    attributes = {"kind": {"DataType": "String", "StringValue": HOSTILE}}
    sent = {"QueueUrl": url, "MessageBody": HOSTILE, "MessageAttributes": attributes, "MessageGroupId": "<b>"}
    assert operator.act("SendMessage", sent)[0] == 200
    text = page(operator, "/queues/000000000000/hostile")
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "<b>" not in text
    assert "\u202e" not in text.partition('class="attributes"')[0]
    assert "<script>alert(1)</script>" in unescape(text)


def test_partitions_of_a_queue_and_of_its_messages_are_told(operator: Operator) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": "12"}
    url = operator.act("CreateQueue", {"QueueName": "lanes.fifo", "Attributes": attributes})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "customer-1"})
    text = page(operator, "/queues/000000000000/lanes.fifo")
    assert ">FIFO queue · 12 partitions<" in text
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
    (again,) = re.findall(r'id="counts"[^>]* hx-get="([^"]*)"[^>]* hx-trigger="every', whole)
    assert 'hx-select="#counts" hx-select-oob="#tasks,#waiting,#in-flight,' in whole
    status, told, _ = operator.ask(unescape(again), headers={"HX-Request": "true"})
    assert (status, "a body" in whole, "a body" in told) == (200, True, False)
    assert "<dt>visible</dt><dd>1</dd>" in told
    for part in ("counts", "tasks", "waiting", "in-flight"):
        assert told.count(f'id="{part}"') == 1


def test_what_is_in_flight_is_told_with_its_times(operator: Operator) -> None:
    attributes = {"VisibilityTimeout": "7200"}
    url = operator.act("CreateQueue", {"QueueName": "flying", "Attributes": attributes})[1]["QueueUrl"]
    empty = page(operator, "/queues/000000000000/flying")
    assert ("Nothing is in flight." in empty, re.search(r">up to [0-9]+ (s|min)", empty)) == (True, None)
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
    assert f'<a href="{place}/order?">Order within groups</a>' in page(operator, place)
    text = page(operator, f"{place}/order")
    assert "<b>" not in text
    blocked, free = text.partition("<tbody>")[2].split("<tr>")[1:]
    assert re.findall(r'class="state (\w+)"', blocked) == ["inflight", "waits"]
    assert re.search(r">for (1 h 59 min|2 h) more<", blocked)
    assert ("<td>nothing</td>" in free, re.findall(r'class="state (\w+)"', free)) == (True, ["visible"])
    (blocker,) = re.findall(r'id="blocker-1" href="([^"]*)"', blocked)
    assert re.findall(r'class="state (\w+)"', page(operator, unescape(blocker))) == ["inflight", "waits"]
    found = page(operator, f"{place}/order?group=fre")
    assert ("1 of 2 groups." in found, "nothing</td>" in found, ">for " in found) == (True, True, False)
    assert "No group has “none” in its id." in page(operator, f"{place}/order?group=none")
    assert operator.ask("/queues/000000000000/no-such-queue/order")[0] == 404


def test_groups_of_a_standard_queue_are_shown_with_what_they_have_in_flight(operator: Operator) -> None:
    url = operator.act("CreateQueue", {"QueueName": "tenants"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    assert "Order within groups" not in page(operator, "/queues/000000000000/tenants")
    for _ in range(2):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "t"})
    operator.act("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 2})
    assert "Order within groups" in page(operator, "/queues/000000000000/tenants")
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


def test_a_message_behind_another_of_its_group_is_blocked_and_not_visible(operator: Operator) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "7200"}
    url = operator.act("CreateQueue", {"QueueName": "blocked.fifo", "Attributes": attributes})[1]["QueueUrl"]
    for body, group in (("first", "a"), ("behind", "a"), ("free", "b"), ("behind too", "a")):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body, "MessageGroupId": group})
    operator.act("ReceiveMessage", {"QueueUrl": url})
    text = page(operator, "/queues/000000000000/blocked.fifo")
    states = re.findall(r'<span class="state (\w+)"[^>]*>([^<]*)<', text)
    assert states == [("inflight", "in flight"), ("waits", "blocked"), ("visible", "visible"), ("waits", "blocked")]
    (first,) = re.findall(r'<code class="id">(\d+)</code> <span class="state inflight">', text)
    assert text.count(f"It waits for message {first} of its group, until ") == 2
    only_late = page(operator, f"/queues/000000000000/blocked.fifo?from={int(first) + 3}")
    assert re.findall(r'class="state (\w+)"', only_late) == ["waits"]


def test_a_priority_queue_is_named_and_a_changed_priority_is_shown(operator: Operator) -> None:
    attributes = {"ElasticqOrder": "priority", "ElasticqDefaultPriority": "5"}
    url = operator.act("CreateQueue", {"QueueName": "urgent", "Attributes": attributes})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    text = page(operator, "/queues/000000000000/urgent")
    assert (">Priority queue<" in text, "Standard queue" in text) == (True, False)
    assert ">priority 5<" in text
    (message,) = operator.act("Peek", {"QueueUrl": url})[1]["Messages"]
    given = form(QueueUrl=url, Sequence=str(message["Sequence"]), Priority="-3")
    status, words, _ = operator.ask("/page/do/PrioritiseBySequence", given, FORM)
    assert (status, "The message has another priority." in words) == (200, True), words
    text = page(operator, "/queues/000000000000/urgent")
    assert (">priority -3<" in text, ">priority 5<" in text) == (True, False)


def test_the_kind_names_what_else_shapes_the_order(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "fair", "Attributes": {"ElasticqFairness": "round_robin"}})
    assert ">Standard queue · round robin fair share<" in page(operator, "/queues/000000000000/fair")


def test_the_list_of_messages_has_the_counts_with_which_it_was_made(operator: Operator) -> None:
    """The script compares both, and gets the list again when the counts have changed (tests/system/ui)."""
    url = operator.act("CreateQueue", {"QueueName": "counted"})[1]["QueueUrl"]
    before = re.findall(r'data-state="([^"]*)"', page(operator, "/queues/000000000000/counted"))
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "new"})
    after = re.findall(r'data-state="([^"]*)"', page(operator, "/queues/000000000000/counted"))
    assert (before[0] == before[1], after[0] == after[1], before[0] == after[0]) == (True, True, False)
    asked = {"HX-Request": "true", "HX-Target": "messages"}
    status, text, _ = operator.ask("/queues/000000000000/counted", headers=asked)
    assert (status, ">new<" in text) == (200, True)


def test_all_settings_of_a_kind_are_fields_with_their_values(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "set-dead"})
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:set-dead", "maxReceiveCount": 7}'
    attributes = {
        "ElasticqFairness": "weighted",
        "ElasticqGroupWeights": '{"acme": 3, "b c": 2}',
        "ElasticqMaxInFlightPerGroup": "10",
        "RedrivePolicy": policy,
        "RedriveAllowPolicy": '{"redrivePermission": "denyAll"}',
    }
    assert operator.act("CreateQueue", {"QueueName": "set", "Attributes": attributes})[0] == 200
    text = page(operator, "/queues/000000000000/set")
    assert ">acme=3\nb c=2</textarea>" in text
    assert 'name="Attributes.ElasticqMaxInFlightPerGroup" value="10"' in text
    assert '<option value="weighted" selected>weighted</option>' in text
    assert 'name="Attributes.RedrivePolicy/deadLetterTargetArn+" value="set-dead"' in text
    assert 'name="Attributes.RedrivePolicy/maxReceiveCount+" value="7"' in text
    assert '<option value="denyAll" selected>no queue</option>' in text
    assert "{&#34;" not in text
    assert "FifoThroughputLimit" not in text
    assert '<a href="/queues/000000000000/set-dead?">set-dead</a>' in text
