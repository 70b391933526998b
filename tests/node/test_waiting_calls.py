"""Calls that wait for a master: in order, for a time, and not too many."""

from elasticq.model import commands as c
from elasticq.node.waiting_calls import WAITING_CALLS_MAX, WaitingCalls
from tests.node.cluster import call_of

CALL = call_of(c.ListQueues())


def test_calls_come_out_in_the_order_in_which_they_came() -> None:
    waiting_calls = WaitingCalls(3_000)
    assert not waiting_calls
    for ticket in range(5):
        assert waiting_calls.hold(CALL, ticket, 10 * ticket)
    assert waiting_calls
    assert waiting_calls.take_all() == [(CALL, ticket) for ticket in range(5)]
    assert not waiting_calls
    assert waiting_calls.take_all() == []


def test_each_waits_for_its_own_time() -> None:
    waiting_calls = WaitingCalls(3_000)
    waiting_calls.hold(CALL, "first", 0)
    waiting_calls.hold(CALL, "second", 100)
    assert waiting_calls.next_deadline_ms() == 3_000
    assert waiting_calls.pop_expired(2_999) is None
    assert waiting_calls.pop_expired(3_000) == (CALL, "first")
    assert waiting_calls.pop_expired(3_000) is None
    assert waiting_calls.next_deadline_ms() == 3_100


def test_who_left_waits_no_longer() -> None:
    waiting_calls = WaitingCalls(3_000)
    for ticket in ("first", "second", "third"):
        waiting_calls.hold(CALL, ticket, 0)
    waiting_calls.cancel("second")
    waiting_calls.cancel("nobody")
    assert [ticket for _, ticket in waiting_calls.take_all()] == ["first", "third"]
    assert waiting_calls.next_deadline_ms() is None


def test_no_more_than_its_bound_wait() -> None:
    waiting_calls = WaitingCalls(3_000)
    assert all(waiting_calls.hold(CALL, ticket, 0) for ticket in range(WAITING_CALLS_MAX))
    assert not waiting_calls.hold(CALL, "one more", 0)
    waiting_calls.pop_expired(3_000)
    assert waiting_calls.hold(CALL, "one more", 3_000)
