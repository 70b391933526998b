"""FIFO queues on a member: who wakes a waiting receive, contents on disk, a restart on the rows."""

from random import Random

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult
from elasticq.node import content_cache
from tests.node.cluster import Solo
from tests.node.test_content_cache import Deep

URL = "jobs.fifo"


def create(solo: Solo, **attributes: str) -> None:
    given = {"FifoQueue": "true", "ContentBasedDeduplication": "true", **attributes}
    solo.do(c.CreateQueue(queue_name=URL, attributes=given))


def put(solo: Solo, body: str, group: str = "g") -> None:
    solo.do(c.SendMessage(queue_url=URL, message_body=body, message_group_id=group))


def poll(solo: Solo) -> int:
    return solo.start_call(c.ReceiveMessage(queue_url=URL, wait_time_seconds=20))


def bodies(solo: Solo, ticket: int) -> list[str]:
    return [message.body for outcome in solo.answers(ticket) for message in outcome.messages]


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    create(made)
    put(made, "first")
    put(made, "second")
    return made


def take(solo: Solo, limit: int = 1) -> list[ReceivedMessage]:
    result = solo.do(c.ReceiveMessage(queue_url=URL, max_number_of_messages=limit, visibility_timeout=10))
    assert isinstance(result, ReceiveMessageResult)
    return result.messages


def test_delete_of_the_blocking_message_wakes_a_waiting_receive(solo: Solo) -> None:
    (first,) = take(solo)
    ticket = poll(solo)
    put(solo, "third")
    assert bodies(solo, ticket) == [], "a new message of a blocked group wakes nobody"
    solo.do(c.DeleteMessage(queue_url=URL, receipt_handle=first.receipt_handle))
    assert bodies(solo, ticket) == ["second"]


def test_end_of_the_blocking_visibility_wakes_a_waiting_receive(solo: Solo) -> None:
    take(solo)
    ticket = poll(solo)
    solo.advance(9_999)
    assert bodies(solo, ticket) == []
    solo.advance(1)
    assert bodies(solo, ticket) == ["first"]


def test_message_of_another_group_wakes_a_waiting_receive(solo: Solo) -> None:
    take(solo)
    ticket = poll(solo)
    put(solo, "other", "h")
    assert bodies(solo, ticket) == ["other"]


def test_end_of_the_queues_delay_wakes_a_waiting_receive() -> None:
    solo = Solo()
    create(solo, DelaySeconds="5")
    put(solo, "later")
    ticket = poll(solo)
    solo.advance(4_999)
    assert bodies(solo, ticket) == []
    solo.advance(1)
    assert bodies(solo, ticket) == ["later"]


def test_delay_that_is_taken_away_wakes_a_waiting_receive() -> None:
    solo = Solo()
    create(solo, DelaySeconds="900")
    put(solo, "later")
    ticket = poll(solo)
    solo.do(c.SetQueueAttributes(queue_url=URL, attributes={"DelaySeconds": "0"}))
    assert bodies(solo, ticket) == ["later"]


def test_waiting_attempt_whose_message_becomes_a_dead_letter_is_refused_once() -> None:
    """The burial frees the group, which serves the waiting receive while it is being served."""
    solo = Solo()
    create(solo)
    solo.do(c.CreateQueue("dead.fifo", attributes={"FifoQueue": "true"}))
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead.fifo", "maxReceiveCount": 2}'
    solo.do(c.SetQueueAttributes(queue_url=URL, attributes={"RedrivePolicy": policy}))
    put(solo, "first")
    attempt = c.ReceiveMessage(
        queue_url=URL, visibility_timeout=5, wait_time_seconds=20, receive_request_attempt_id="a"
    )
    assert len(solo.do(attempt).messages) == 1
    solo.advance(5_000)
    assert len(take(solo)) == 1
    ticket = solo.start_call(attempt)
    assert solo.answers(ticket) == []
    solo.advance(10_000)
    (refusal,) = solo.answers(ticket)
    assert isinstance(refusal, InvalidParameterValue)
    assert solo.node.status(solo.now_ms).waiters == 0


@pytest.mark.parametrize("mode", ["async", "one"])
def test_send_to_a_fifo_queue_waits_for_the_commit_in_every_mode(mode: str) -> None:
    solo = Solo(volatile=False, mode=mode)
    create(solo)
    solo.synced_at_once = False
    ticket = solo.start_call(c.SendMessage(queue_url=URL, message_body="x", message_group_id="g"))
    assert solo.answers(ticket) == []
    solo.sync()
    assert len(solo.answers(ticket)) == 1


def test_duplicate_is_answered_when_the_first_is_committed() -> None:
    solo = Solo(volatile=False)
    create(solo)
    solo.synced_at_once = False
    command = c.SendMessage(queue_url=URL, message_body="x", message_group_id="g")
    tickets = [solo.start_call(command), solo.start_call(command)]
    assert [solo.answers(ticket) for ticket in tickets] == [[], []]
    solo.sync()
    (first,), (second,) = map(solo.answers, tickets)
    assert first == second


# --- contents on disk -----------------------------------------------------------------


def filled(count: int, groups: int, memory_bytes: int = 0) -> Deep:
    deep = Deep(memory_bytes)
    create(deep)
    for first in range(0, count, 10):
        entries = [
            c.SendMessageBatchEntry(id=str(at), message_body=str(at), message_group_id=f"g{at % groups}")
            for at in range(first, first + 10)
        ]
        deep.do(c.SendMessageBatch(queue_url=URL, entries=entries))
    deep.store()
    return deep


def received(deep: Deep, limit: int, **fields: object) -> list[ReceivedMessage]:
    command = c.ReceiveMessage(queue_url=URL, max_number_of_messages=limit, attribute_names=["All"], **fields)
    result = deep.deep_do(command)
    assert isinstance(result, ReceiveMessageResult)
    return result.messages


def drop(deep: Deep, messages: list[ReceivedMessage]) -> None:
    entries = [c.DeleteMessageBatchEntry(str(at), x.receipt_handle) for at, x in enumerate(messages)]
    result = deep.do(c.DeleteMessageBatch(queue_url=URL, entries=entries))
    assert result.failed == []


def test_groups_stay_in_order_when_their_contents_are_on_disk() -> None:
    deep = filled(3_000, 7)
    assert deep.resident == 0
    random = Random(1)
    seen: dict[str, list[int]] = {}
    while messages := received(deep, random.randint(1, 10)):
        for message in messages:
            seen.setdefault(message.attributes["MessageGroupId"], []).append(int(message.body))
        drop(deep, messages)
        if random.random() < 0.05:
            deep.store()
        if random.random() < 0.02:
            deep.store()
            deep.restart()
    assert sum(map(len, seen.values())) == 3_000
    assert all(numbers == sorted(numbers) for numbers in seen.values())
    assert deep.node.state.contents_bytes == 0


def test_deep_backlog_is_fetched_in_pages_ahead_of_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_cache, "FETCHED_BYTES_MAX", 1_048_576)
    deep = filled(4_000, 100)
    misses = 0
    for _ in range(400):
        ticket = deep.start_call(c.ReceiveMessage(queue_url=URL, max_number_of_messages=10))
        if not deep.answers(ticket):
            misses += 1
        deep.answer_all()
        ((outcome),) = deep.answers(ticket)
        drop(deep, outcome.messages)
    assert misses < 20


def test_restart_keeps_what_is_in_flight_its_groups_and_ids() -> None:
    deep = filled(30, 3)
    held = received(deep, 5, receive_request_attempt_id="a", visibility_timeout=60)
    drop(deep, held[:1])
    held_on = received(deep, 10, receive_request_attempt_id="b", visibility_timeout=60)
    deep.do(c.SetQueueAttributes(queue_url=URL, attributes={"VisibilityTimeout": "77"}))
    deep.store()
    deep.restart()
    again = received(deep, 10, receive_request_attempt_id="b", visibility_timeout=60)
    assert [x.receipt_handle for x in again] == [x.receipt_handle for x in held_on]
    assert again[0].attributes == held_on[0].attributes
    sent = deep.do(c.SendMessage(queue_url=URL, message_body="0", message_group_id="g0"))
    assert sent.message_id == held[0].message_id, "deleted, but its id is taken"
    drop(deep, held[1:])
    more = received(deep, 10)
    assert {x.attributes["MessageGroupId"] for x in more} <= {"g0", "g1", "g2"}
    by_group: dict[str, list[int]] = {}
    for message in (*held, *held_on, *more):
        by_group.setdefault(message.attributes["MessageGroupId"], []).append(int(message.body))
    assert all(numbers == sorted(numbers) for numbers in by_group.values())
