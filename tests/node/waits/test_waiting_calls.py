"""Calls that wait for a master: in order, each for its time, and not too many."""

import pytest

from elasticq.engine.state import State
from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.commands import Call
from elasticq.model.limits import RELAXED
from elasticq.node.outputs import HeldCall
from elasticq.node.waits.waiting_calls import WAITING_BYTES_MAX, WAITING_CALLS_MAX, WaitingCalls
from tests.node.cluster import Solo, call_of

READ = call_of(c.ListQueues())
WRITE = call_of(c.DeleteQueue("jobs"), b"g" * 16)
POLL = call_of(c.ReceiveMessage("jobs", wait_time_seconds=10), b"g" * 16)


@pytest.fixture
def waiting_calls() -> WaitingCalls:
    return WaitingCalls(State(), 25_000, 3_000)


def hold(waiting_calls: WaitingCalls, call: Call, ticket: object, now_ms: int = 0) -> bool:
    return waiting_calls.hold(waiting_calls.from_now(call, ticket, now_ms), now_ms)


def test_calls_come_out_in_the_order_in_which_they_came(waiting_calls: WaitingCalls) -> None:
    assert not waiting_calls
    for ticket in range(5):
        assert hold(waiting_calls, WRITE, ticket, 10 * ticket)
    assert len(waiting_calls) == 5
    assert [held.ticket for held in waiting_calls.take_all()] == list(range(5))
    assert not waiting_calls
    assert waiting_calls.take_all() == []
    assert waiting_calls.next_deadline_ms() is None


def test_each_waits_for_its_own_time(waiting_calls: WaitingCalls) -> None:
    hold(waiting_calls, POLL, "poll", 0)
    hold(waiting_calls, WRITE, "write", 100)
    hold(waiting_calls, READ, "read", 200)
    ends = []
    while (end_ms := waiting_calls.next_deadline_ms()) is not None:
        assert waiting_calls.pop_expired(end_ms - 1) is None
        expired = waiting_calls.pop_expired(end_ms)
        assert expired is not None
        ends.append((expired.ticket, end_ms))
    assert ends == [("read", 3_200), ("write", 25_100), ("poll", 35_000)]
    assert waiting_calls.pop_expired(1 << 60) is None


def test_receive_ends_before_its_sdk_stops_reading() -> None:
    waiting_calls = WaitingCalls(State(), 50_000, 3_000)
    poll = call_of(c.ReceiveMessage("jobs", wait_time_seconds=20), b"g" * 16)
    held = waiting_calls.from_now(poll, "poll", 1_000)
    assert held.until_ms == 56_000
    assert waiting_calls.call_now(held, 1_000) is poll, "it may wait for all of its time"
    assert waiting_calls.from_now(WRITE, "write", 1_000).until_ms == 51_000


def test_call_keeps_what_is_left_of_its_own_wait() -> None:
    waiting_calls = WaitingCalls(State(), 25_000, 3_000, RELAXED.wait_s)
    poll = call_of(c.ReceiveMessage("jobs", wait_time_seconds=60), b"g" * 16)
    beat = call_of(g.ElasticqHeartbeat("g", "c", wait_time_seconds=20), b"h" * 16)
    for call, wait_ms, until_ms in ((poll, 60_000, 70_000), (beat, 20_000, 45_000), (WRITE, 0, 25_000)):
        held = waiting_calls.from_now(call, "ticket", 0)
        assert (held.until_ms, waiting_calls.left_ms(held, 0)) == (until_ms, wait_ms)
        left_ms = waiting_calls.left_ms(held, 15_000)
        assert left_ms == max(wait_ms - 15_000, 0)
        moved = waiting_calls.call_now(held, 15_000)
        assert getattr(moved.command, "wait_time_seconds", 0) == left_ms // 1_000


def test_without_hold_all_wait_as_reads_do() -> None:
    waiting_calls = WaitingCalls(State(), 0, 3_000)
    assert hold(waiting_calls, WRITE, "write", 5)
    assert waiting_calls.next_deadline_ms() == 3_005


def test_call_whose_time_is_over_does_not_wait(waiting_calls: WaitingCalls) -> None:
    assert not waiting_calls.hold(HeldCall(WRITE, "late", 1_000), 1_000)
    assert not waiting_calls


def test_who_left_waits_no_longer(waiting_calls: WaitingCalls) -> None:
    for ticket in ("first", "second", "third"):
        hold(waiting_calls, WRITE, ticket)
    waiting_calls.cancel("second")
    waiting_calls.cancel("nobody")
    assert [held.ticket for held in waiting_calls.take_all()] == ["first", "third"]
    waiting_calls.cancel("first")
    assert waiting_calls.next_deadline_ms() is None


def test_no_more_than_its_bound_wait(waiting_calls: WaitingCalls) -> None:
    assert all(hold(waiting_calls, WRITE, ticket) for ticket in range(WAITING_CALLS_MAX))
    assert not hold(waiting_calls, WRITE, "one more")
    waiting_calls.cancel(17)
    assert hold(waiting_calls, WRITE, "one more")


@pytest.mark.parametrize("is_batch", [False, True])
def test_no_more_bytes_than_their_bound_wait(waiting_calls: WaitingCalls, is_batch: bool) -> None:
    body = "x" * 1_000_000
    entries = [
        c.SendMessageBatchEntry("a", body[: len(body) // 2]),
        c.SendMessageBatchEntry("b", body[len(body) // 2 :]),
    ]
    send = c.SendMessageBatch("jobs", entries) if is_batch else c.SendMessage("jobs", body)
    held = 0
    while hold(waiting_calls, call_of(send), held):
        held += 1
    assert held == WAITING_BYTES_MAX // (len(body) + 1_024 + 512 * is_batch)
    waiting_calls.pop_expired(25_000)
    assert hold(waiting_calls, call_of(send), "one more")
    waiting_calls.take_all()
    assert hold(waiting_calls, call_of(send), "and another")


def test_receive_that_has_waited_waits_for_the_rest_of_its_time(waiting_calls: WaitingCalls) -> None:
    held = waiting_calls.from_now(POLL, "poll", 1_000)
    for now_ms, left_s in ((1_000, 10), (1_001, 10), (5_000, 6), (10_999, 1), (11_000, 0), (30_000, 0)):
        command = waiting_calls.call_now(held, now_ms).command
        assert isinstance(command, c.ReceiveMessage)
        assert command.wait_time_seconds == left_s, now_ms
    again = waiting_calls.after_wait(POLL, "poll", 11_000)
    assert again == held


@pytest.mark.parametrize("wait_s", [-1, 10**12])
def test_wait_that_no_receive_may_ask_for_is_bounded_all_the_same(waiting_calls: WaitingCalls, wait_s: int) -> None:
    held = waiting_calls.from_now(call_of(c.ReceiveMessage("jobs", wait_time_seconds=wait_s)), "poll", 0)
    assert 25_000 <= held.until_ms <= 45_000


def test_only_what_has_one_effect_goes_on_after_it_may_have_had_it(waiting_calls: WaitingCalls) -> None:
    send = call_of(c.SendMessage("jobs", "x"))
    for call, goes_on in ((READ, True), (WRITE, True), (POLL, True), (send, False)):
        assert waiting_calls.may_go_on(waiting_calls.from_now(call, "t", 0), 1) == goes_on
    assert not waiting_calls.may_go_on(waiting_calls.from_now(WRITE, "t", 0), 25_000), "its time is over"
    disabled = WaitingCalls(State(), 0, 3_000)
    assert not disabled.may_go_on(disabled.from_now(WRITE, "t", 0), 1)


def test_receive_that_names_no_wait_has_that_of_its_queue() -> None:
    solo = Solo()
    solo.create("jobs", ReceiveMessageWaitTimeSeconds="7")
    waiting_calls = WaitingCalls(solo.node.state, 25_000, 3_000)
    assert waiting_calls.from_now(call_of(c.ReceiveMessage("jobs")), "poll", 0).until_ms == 32_000
    assert waiting_calls.from_now(call_of(c.ReceiveMessage("nowhere")), "poll", 0).until_ms == 25_000


def test_large_batches_without_bodies_are_counted_as_large(waiting_calls: WaitingCalls) -> None:
    entries = [c.DeleteMessageBatchEntry(str(at), "h" * 80) for at in range(1_000)]
    held = 0
    while hold(waiting_calls, call_of(c.DeleteMessageBatch("jobs", entries)), held):
        held += 1
    assert held * 180_000 < WAITING_BYTES_MAX
