"""What an operator's page needs to know of a queue."""

import pytest

from elasticq.engine.tally import OFTEN, OFTEN_MAX
from elasticq.engine.views import condition as module
from elasticq.engine.views.condition import QueueCondition, condition
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.engine.desk import START_MS, Desk


def seen(desk: Desk, name: str = "jobs") -> QueueCondition:
    queue = desk.queue(name)
    return condition(queue, desk.state.grace, desk.context.now_ms, desk.context.tally.often.get(queue.id, ()))


def send_to_group(desk: Desk, group: str, *bodies: str) -> None:
    for body in bodies:
        given = {"message_group_id": group, "message_deduplication_id": body}
        desk.do(c.SendMessage(queue_url="jobs.fifo", message_body=body, **given))


def test_the_message_that_is_held_for_longest_comes_first() -> None:
    desk = Desk()
    desk.create("jobs", VisibilityTimeout="7")
    for body in ("a", "b"):
        desk.send(body)
        desk.receive_one(visibility_s=600)
        desk.wait(1)
    told = seen(desk)
    assert (told.visibility_ms, told.dead_letters_to) == (7_000, None)
    assert [each.received_ms for each in told.held] == [START_MS, START_MS + 1_000]
    assert [each.until_ms for each in told.held] == [START_MS + 600_000, START_MS + 601_000]
    assert [(each.group, each.behind, each.receive_count) for each in told.held] == [(None, 0, 1)] * 2


def test_the_look_at_messages_in_flight_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT_MAX", 2)
    desk = Desk()
    desk.create()
    for number in range(5):
        desk.send(str(number))
    assert len(desk.receive(5)) == 5
    told = seen(desk)
    assert (told.figures.in_flight, len(told.held)) == (5, 2)


def test_a_group_says_how_many_messages_wait_behind_the_one_in_flight() -> None:
    desk = Desk()
    desk.create("jobs.fifo", FifoQueue="true")
    send_to_group(desk, "g", "1", "2", "3")
    assert len(desk.receive(url="jobs.fifo")) == 1
    [held] = seen(desk, "jobs.fifo").held
    assert (held.group, held.behind) == ("g", 2)


def test_a_message_that_is_received_often_is_told_until_it_is_deleted() -> None:
    desk = Desk()
    desk.create()
    desk.send("poison")
    for _ in range(OFTEN - 1):
        desk.receive_one(visibility_s=0)
    assert seen(desk).often == []
    received = desk.receive_one(visibility_s=0)
    [held] = seen(desk).often
    assert held.receive_count == OFTEN
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=received.receipt_handle))
    assert seen(desk).often == []


def test_messages_that_are_received_often_are_bounded() -> None:
    desk = Desk()
    desk.create()
    for number in range(OFTEN_MAX + 5):
        desk.context.tally.received_often(1, number)
    assert list(desk.context.tally.often[1]) == list(range(5, OFTEN_MAX + 5))
    desk.context.tally.received_often(99, 1)
    desk.context.tally.fetched |= {98: 1, 99: 1}
    desk.context.tally.forget(desk.state)
    assert 99 not in desk.context.tally.often
    assert desk.context.tally.fetched == {}


def test_the_last_receive_and_the_dead_letter_queue_are_known() -> None:
    desk = Desk()
    desk.create("dead")
    target = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:dead"
    desk.create("jobs", RedrivePolicy=f'{{"deadLetterTargetArn": "{target}", "maxReceiveCount": 3}}')
    assert seen(desk).dead_letters_to == (DEFAULT_ACCOUNT, "dead")
    assert desk.context.tally.fetched == {}
    desk.wait(4)
    assert desk.receive() == []
    assert desk.context.tally.fetched == {desk.queue().id: START_MS + 4_000}
