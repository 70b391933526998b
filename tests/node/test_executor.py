"""Calls on a master: the gate that all of them pass, and answers that came back."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model.results import ReceiveMessageResult, SendMessageBatchResult, SendMessageResult
from elasticq.node import content_cache
from elasticq.node.executor import ENDED_AT_ONCE, SERVED_AT_ONCE
from elasticq.node.housekeeping import RELEASE_MS
from elasticq.node.waits import backpressure
from elasticq.node.waits.backpressure import RELEASED_AT_ONCE
from elasticq.node.waits.waiting_calls import CALL_BYTES
from tests.node.cluster import Cluster, Solo, mutations
from tests.node.test_content_cache import Deep


def test_undelivered_receive_is_visible_at_once_and_counts_as_none(solo: Solo) -> None:
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs", attribute_names=["All"])
    first = solo.do(command, b"r" * 16)
    solo.call_node("undelivered", first)
    assert isinstance(mutations(solo)[-1], m.ReceiveReturned)
    again = solo.do(command, b"r" * 16)
    assert again.messages[0].receipt_handle != first.messages[0].receipt_handle
    assert again.messages[0].attributes["ApproximateReceiveCount"] == "1"


def test_an_undelivered_first_attempt_does_not_take_the_messages_from_the_retry(solo: Solo) -> None:
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    first = solo.do(command, b"r" * 16)
    second = solo.do(command, b"r" * 16)
    assert second.messages == first.messages
    solo.call_node("undelivered", first)
    assert solo.receive() == [], "the message is in the second attempt's hands"
    solo.call_node("undelivered", second)
    assert len(solo.receive()) == 1


def test_a_receive_returned_once_can_be_returned_again(solo: Solo) -> None:
    """The count of answers begins anew when the GUID was forgotten."""
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    for _ in range(2):
        first, second = solo.do(command, b"r" * 16), solo.do(command, b"r" * 16)
        solo.call_node("undelivered", second)
        solo.call_node("undelivered", first)
    assert len(solo.receive()) == 1


def test_a_late_attempt_that_comes_back_leaves_the_messages_with_who_read_the_other(solo: Solo) -> None:
    """Attempts may be executed in any order: the one that nobody waits for any more may be the newest."""
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    solo.do(command, b"r" * 16)
    solo.call_node("undelivered", solo.do(command, b"r" * 16))
    assert solo.receive() == []


def test_undelivered_anything_else_changes_nothing(solo: Solo) -> None:
    before = len(solo.entries)
    solo.call_node("undelivered", solo.do(c.ListQueues()))
    solo.call_node("undelivered", ReceiveMessageResult())
    assert len(solo.entries) == before


@pytest.mark.pure
def test_in_flight_limit_holds_at_the_node(solo: Solo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IN_FLIGHT_MAX", 2)
    for _ in range(4):
        solo.send()
    assert len(solo.receive(10)) == 2
    with pytest.raises(errors.OverLimit):
        solo.receive()
    ticket = solo.poll(wait_s=2)
    assert solo.answers(ticket) == []
    solo.advance(2_000)
    assert solo.answers(ticket) == [ReceiveMessageResult()]


def test_batch_of_which_every_entry_fails_is_answered(solo: Solo) -> None:
    bad = c.SendMessageBatchEntry(id="a", message_body="\x00")
    result = solo.do(c.SendMessageBatch(queue_url="jobs", entries=[bad]))
    assert isinstance(result, SendMessageBatchResult)
    assert ([failure.id for failure in result.failed], result.successful) == (["a"], [])


@pytest.mark.pure
def test_sends_that_waited_for_room_go_on_in_bursts(monkeypatch: pytest.MonkeyPatch) -> None:
    solo = Solo(volatile=False)
    solo.create()
    monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 0)
    solo.send("fills the room")
    batch = c.SendMessageBatch("jobs", [c.SendMessageBatchEntry(str(at), "x") for at in range(10)])
    tickets = [solo.start_call(batch) for _ in range(3 * RELEASED_AT_ONCE // 10)]
    assert not any(solo.answers(ticket) for ticket in tickets)
    monkeypatch.undo()

    def answered() -> list[int]:
        return [ticket for ticket in tickets if solo.answers(ticket)]

    burst = RELEASED_AT_ONCE // 10
    solo.call_node("stored", solo.node.replica.commit_index)
    assert answered() == tickets[:burst], "the oldest first"
    for _ in range(2):
        solo.call_node("tick")
        assert answered() == tickets[: 2 * burst], "the next ones come later"
    solo.advance(RELEASE_MS)
    assert answered() == tickets


@pytest.mark.pure
def test_a_send_that_waited_for_room_waits_during_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it executed when there is room again, the transfer target's log would not be the newest when it stands."""
    cluster = Cluster()
    cluster.introduce_all()
    old = cluster.elect()
    cluster.do(old, c.CreateQueue(queue_name="jobs"))
    node = cluster.node(old)
    monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 0)
    cluster.do(old, c.SendMessage(queue_url="jobs", message_body="fills the room"))
    waiting = cluster.submit(old, c.SendMessage(queue_url="jobs", message_body="waits"))
    cluster.settle()
    assert cluster.answers(old, waiting) == []
    cluster.cut = {(one, other) for one in cluster.names for other in cluster.names}
    assert node.hand_over(cluster.now_ms)
    before = node.replica.log.last_index
    node.stored(node.replica.commit_index, cluster.now_ms)
    assert node.replica.log.last_index == before
    monkeypatch.undo()
    cluster.cut = set()
    cluster.advance(3_000)
    (outcome,) = cluster.answers(old, waiting)
    assert isinstance(outcome, SendMessageResult)


# --- bounded turns ----------------------------------------------------------------------


def answered(solo: Solo, tickets: list[int]) -> int:
    return sum(bool(solo.answers(ticket)) for ticket in tickets)


def answered_in_turns(solo: Solo, tickets: list[int], at_once: int) -> None:
    """Let time pass until all are answered. No turn answers more than ``at_once``."""
    before, until_ms = answered(solo, tickets), solo.now_ms + 100
    while before < len(tickets) and solo.now_ms < until_ms:
        solo.advance(1)
        now = answered(solo, tickets)
        assert now - before <= at_once
        before = now
    assert before == len(tickets)


def test_receives_at_a_deleted_queue_are_answered_in_turns(solo: Solo) -> None:
    tickets = [solo.poll() for _ in range(3 * SERVED_AT_ONCE + 1)]
    solo.do(c.DeleteQueue(queue_url="jobs"))
    assert 0 < answered(solo, tickets) <= SERVED_AT_ONCE
    answered_in_turns(solo, tickets, SERVED_AT_ONCE)
    assert {type(*solo.answers(ticket)) for ticket in tickets} == {errors.QueueDoesNotExist}


def test_receives_whose_messages_are_due_together_are_answered_in_turns(solo: Solo) -> None:
    names = [f"q{at}" for at in range(2 * SERVED_AT_ONCE + 1)]
    for name in names:
        solo.create(name)
        solo.do(c.SendMessage(name, "x", delay_seconds=1))
    tickets = [solo.start_call(c.ReceiveMessage(name, wait_time_seconds=20)) for name in names]
    solo.advance(999)
    assert answered(solo, tickets) == 0
    answered_in_turns(solo, tickets, SERVED_AT_ONCE)


def test_waits_that_are_over_together_end_in_turns(solo: Solo) -> None:
    tickets = [solo.poll(1) for _ in range(2 * ENDED_AT_ONCE + 1)]
    solo.advance(999)
    assert answered(solo, tickets) == 0
    answered_in_turns(solo, tickets, ENDED_AT_ONCE)
    assert all(solo.answers(ticket) == [ReceiveMessageResult()] for ticket in tickets)


def test_receives_whose_contents_came_together_are_answered_in_turns() -> None:
    deep = Deep(memory_bytes=1)
    deep.fill(2 * SERVED_AT_ONCE + 20)
    deep.store()
    deep.restart()
    tickets = [deep.start_call(c.ReceiveMessage("jobs")) for _ in range(2 * SERVED_AT_ONCE + 1)]
    assert answered(deep, tickets) == 0
    for _ in range(100):
        before = answered(deep, tickets)
        deep.answer_all()
        deep.advance(1)
        assert answered(deep, tickets) - before <= 2 * SERVED_AT_ONCE, "a fetch and a tick"
    assert answered(deep, tickets) == len(tickets)


@pytest.mark.pure
@pytest.mark.parametrize(("name", "most"), [("HELD_MAX", 2), ("HELD_BYTES_MAX", 2 * CALL_BYTES + 4_000)])
def test_sends_that_wait_for_the_disk_are_bounded(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    solo = Solo(volatile=False)
    solo.create()
    monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 0)
    monkeypatch.setattr(backpressure, name, most)
    solo.send("fills the room")
    for _ in range(2):
        tickets = [solo.start_call(c.SendMessage("jobs", "x" * 2_000)) for _ in range(3)]
        (refused,) = solo.answers(tickets.pop())
        assert isinstance(refused, errors.ServiceUnavailable)
        assert answered(solo, tickets) == 0
        monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 1 << 30)
        solo.call_node("stored", solo.node.replica.commit_index)
        assert answered(solo, tickets) == 2
        monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 0)
        solo.node._backpressure.contents_pinned()
