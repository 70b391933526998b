"""The rule of priority queues on hand-made histories."""

from typing import Any

import pytest

from elasticq.checks.history import ChangePriority, CreateQueue, Event, HandedOut, Receive, Send, SentMessage
from elasticq.checks.priorities import MISPRIORITISED
from elasticq.checks.queue import check

QUEUE = CreateQueue(client="f", queue="q", invoke_us=0, complete_us=0, outcome="ok", has_priorities=True)


def sent(**priorities: int | None) -> Send:
    messages = [SentMessage(body, [body], priority=priority) for body, priority in priorities.items()]
    return Send(client="p", queue="q", guid="g", invoke_us=1, complete_us=2, outcome="ok", messages=messages)


def received(*bodies: str, at_us: int = 100) -> Receive:
    messages = [HandedOut(body, f"h{body}{at_us}", body) for body in bodies]
    return Receive(
        client="c", queue="q", invoke_us=at_us, complete_us=at_us + 5, outcome="ok", visibility_ms=0, messages=messages
    )


def changed(body: str, priority: int, **more: Any) -> ChangePriority:
    fields = {
        "client": "o", "queue": "q", "invoke_us": 50, "complete_us": 60, "outcome": "ok",
        "message_ids": [body], "changed": [body], "priority": priority,
    }  # fmt: skip
    return ChangePriority(**{**fields, **more})


def names(*events: Event) -> list[str]:
    return [finding.name for finding in check(events)]


def test_lower_number_in_front_is_right_and_equal_ones_tell_nothing() -> None:
    assert names(QUEUE, sent(a=-1, b=0, c=None, d=3), received("a", "b", "c", "d")) == []
    assert names(QUEUE, sent(b=0, c=None), received("c", "b")) == []


def test_higher_number_in_front_is_found() -> None:
    assert names(QUEUE, sent(a=1, b=0), received("a", "b")) == [MISPRIORITISED]
    assert names(QUEUE, sent(a=1, b=None), received("a", "b")) == [MISPRIORITISED]


def test_answers_are_not_compared_with_each_other() -> None:
    assert names(QUEUE, sent(a=1, b=0), received("a"), received("b", at_us=200)) == []


def test_what_a_lease_answers_is_not_judged() -> None:
    answer = received("a", "b")
    answer.lease = "n/1/0"
    assert MISPRIORITISED not in names(QUEUE, sent(a=1, b=0), answer)


def test_queue_without_priorities_has_no_such_rule() -> None:
    assert names(sent(a=1, b=0), received("a", "b")) == []


def test_priority_that_was_changed_before_counts() -> None:
    assert names(QUEUE, sent(a=1, b=0), changed("a", -1), received("a", "b")) == []
    assert names(QUEUE, sent(a=1, b=0), changed("a", -1), received("b", "a")) == [MISPRIORITISED]


@pytest.mark.parametrize(
    "unsure",
    [
        {"outcome": "unknown", "complete_us": None},
        {"complete_us": 101},
        {"changed": []},
    ],
    ids=["unknown", "at the same time", "not found"],
)
def test_change_that_may_have_had_no_effect_makes_the_priority_uncertain(unsure: dict[str, Any]) -> None:
    for answer in (received("a", "b"), received("b", "a")):
        assert names(QUEUE, sent(a=1, b=0), changed("a", -1, **unsure), answer) == []


def test_message_with_an_uncertain_priority_hides_no_other() -> None:
    unsure = changed("b", 9, outcome="unknown", complete_us=None)
    assert names(QUEUE, sent(a=1, b=5, c=0), unsure, received("a", "b", "c")) == [MISPRIORITISED]
