"""The list of queues."""

import re
from html import unescape
from typing import Any

import pytest

from elasticq.admin.page.queue_list import COLUMNS, UNFETCHED_MS, Choice, chosen, unusual
from elasticq.admin.shapes import QueueRow
from tests.admin.operator import Operator
from tests.admin.page.browser import page


def test_queues_are_filtered_and_sorted(operator: Operator) -> None:
    for name, count in (("sort-a", 1), ("sort-b", 3), ("sort-c", 2)):
        url = operator.act("CreateQueue", {"QueueName": name})[1]["QueueUrl"]
        for _ in range(count):
            operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    text = page(operator, "/queues?filter=sort-&sort=visible&down=1")
    assert text.index(">sort-b<") < text.index(">sort-c<") < text.index(">sort-a<")
    assert "with “nothing-like-it” in its name" in page(operator, "/queues?filter=nothing-like-it")


def names(text: str) -> list[str]:
    return re.findall(r'<a id="queue-\d+" href="[^"]*">([^<]*)</a>', text)


def test_kinds_consumers_and_dead_letters_are_shown(operator: Operator) -> None:
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:list-dead", "maxReceiveCount": 1}'
    dead = operator.act("CreateQueue", {"QueueName": "list-dead"})[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": dead, "MessageBody": "x"})
    operator.act("CreateQueue", {"QueueName": "list-work", "Attributes": {"RedrivePolicy": policy}})
    operator.act("CreateQueue", {"QueueName": "list-line.fifo", "Attributes": {"FifoQueue": "true"}})
    text = page(operator, "/queues?filter=list-")
    assert names(text) == ["list-dead", "list-line.fifo", "list-work"]
    rows = text.partition("<tbody>")[2].split("<tr>")[1:]
    assert [re.findall(r'class="kind">([^<]*)<', row) for row in rows] == [["standard"], ["FIFO"], ["standard"]]
    assert [">dead letters</span>" in row for row in rows] == [True, False, False]
    assert '<td class="number unusual" title="1 in list-dead">1</td>' in rows[2]
    assert '<td class="number unusual" title="dead letters wait here">1</td>' in rows[0]
    assert names(page(operator, "/queues?filter=list-&unusual=1")) == ["list-dead", "list-work"]
    assert names(page(operator, "/queues?filter=list-&kind=FIFO")) == ["list-line.fifo"]
    assert names(page(operator, "/queues?filter=list-&kind=none-such")) == names(text)


def test_queues_of_another_account_are_found_by_it(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "of-another"}, "?account=111122223333")
    operator.act("CreateQueue", {"QueueName": "of-another-not"})
    text = page(operator, "/queues?account=111122223333")
    assert names(text) == ["of-another"]
    assert "<option selected>111122223333</option>" in text


def test_each_column_sorts_both_ways_and_keeps_the_other_choices(operator: Operator) -> None:
    operator.act("CreateQueue", {"QueueName": "sorted-one"})
    for key, _ in COLUMNS:
        text = page(operator, f"/queues?filter=sorted-&kind=standard&sort={key}")
        (link,) = re.findall(rf'id="sort-{key}" href="([^"]*)"', text)
        down = page(operator, unescape(link))
        assert ('aria-sort="ascending"' in text, 'aria-sort="descending"' in down) == (True, True), key
        assert names(down) == names(text) == ["sorted-one"]
        (refreshed,) = re.findall(r'id="queues" hx-get="([^"]*)"', down)
        assert chosen(dict(each.split("=") for each in unescape(refreshed).partition("?")[2].split("&"))) == Choice(
            "sorted-", "standard", "", "", key, "1"
        )


def row(**changes: Any) -> QueueRow:
    figures = {"visible": 0, "in_flight": 0, "delayed": 0, "oldest_age_ms": None, "dead_letter_queue": ""}
    more = {"dead_letters": 0, "is_dead_letter_queue": False, "consumers": 0}
    rates = {"sent_per_s": 0.0, "received_per_s": 0.0, "deleted_per_s": 0.0}
    known = {"name": "q", "account": "0" * 12, "region": "us-east-1", "url": "u", "kind": "standard"}
    return QueueRow(**{**known, **figures, **more, **rates, **changes})


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({}, set()),
        ({"visible": 5, "oldest_age_ms": UNFETCHED_MS}, set()),
        ({"visible": 5, "oldest_age_ms": UNFETCHED_MS + 1}, {"visible"}),
        ({"visible": 5, "oldest_age_ms": UNFETCHED_MS + 1, "consumers": 1}, set()),
        ({"visible": 5, "oldest_age_ms": UNFETCHED_MS + 1, "received_per_s": 0.1}, set()),
        ({"dead_letters": 1, "dead_letter_queue": "dead"}, {"dead_letters"}),
        ({"visible": 1, "is_dead_letter_queue": True}, {"visible"}),
    ],
)
def test_unusual_is_what_an_operator_should_see(changes: dict[str, Any], columns: set[str]) -> None:
    assert set(unusual(row(**changes))) == columns
