"""Long polls: who wakes whom, when a wait ends, and who joins whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.results import ReceiveMessageResult
from elasticq.node import executor as executor_module
from elasticq.node.waits.waiters import Waiters
from tests.node.cluster import Cluster, Solo, call_of

EMPTY = [ReceiveMessageResult()]


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    made.create()
    return made


def bodies(solo: Solo, ticket: int) -> list[str]:
    (outcome,) = solo.answers(ticket)
    assert isinstance(outcome, ReceiveMessageResult)
    return [message.body for message in outcome.messages]


def test_waiting_receive_wakes_on_send(solo: Solo) -> None:
    ticket = solo.poll()
    assert solo.answers(ticket) == []
    assert solo.node.status(solo.now_ms).waiters == 1
    solo.advance(5_000)
    solo.send("hello")
    assert bodies(solo, ticket) == ["hello"]
    assert solo.node.status(solo.now_ms).waiters == 0


def test_receives_that_wait_are_counted_by_queue(solo: Solo) -> None:
    first = solo.poll()
    solo.poll()
    (queue_id,) = solo.node.state.queues
    assert solo.node.waiters.counts() == {queue_id: 2}
    solo.node.cancel(first, solo.now_ms)
    assert solo.node.waiters.counts() == {queue_id: 1}
    solo.send("hello")
    assert solo.node.waiters.counts() == {}


def test_wait_ends_when_another_attempt_of_the_same_call_has_got_what_there_was(solo: Solo) -> None:
    """Nothing that comes later is for it, and it must hold up nobody."""
    solo.send("x", delay_s=3)
    command = c.ReceiveMessage("jobs", wait_time_seconds=20)
    first = solo.start_call(command, b"g" * 16)
    solo.now_ms += 3_000  # no tick: the second attempt comes first
    second = solo.start_call(command, b"g" * 16)
    (outcome,) = solo.answers(second)
    solo.do(c.DeleteMessage("jobs", outcome.messages[0].receipt_handle))
    other = solo.poll()
    solo.send("y")
    assert [answer.messages for answer in solo.answers(first)] == [[]]
    assert bodies(solo, other) == ["y"]
    solo.advance(1_000)
    assert solo.node.status(solo.now_ms).waiters == 0


def test_waiting_attempt_that_comes_back_does_not_take_the_messages_from_the_attempt_that_got_them(solo: Solo) -> None:
    """Both are answered with the message, and whichever answer does not reach its client leaves it with the other."""
    solo.send("x", delay_s=3)
    command = c.ReceiveMessage("jobs", wait_time_seconds=20)
    waiting = solo.start_call(command, b"g" * 16)
    solo.now_ms += 3_000  # no tick: the second attempt comes first
    (read,) = solo.answers(solo.start_call(command, b"g" * 16))
    solo.advance(0)
    (unread,) = solo.answers(waiting)
    assert [message.receipt_handle for message in unread.messages] == [read.messages[0].receipt_handle]
    solo.call_node("undelivered", unread)
    assert solo.receive() == []
    solo.call_node("undelivered", read)
    assert len(solo.receive()) == 1, "both came back"


def test_message_that_is_there_is_given_without_waiting(solo: Solo) -> None:
    solo.send("x")
    assert bodies(solo, solo.poll()) == ["x"]


def test_waiting_receive_wakes_when_a_delay_ends(solo: Solo) -> None:
    ticket = solo.poll()
    solo.send("later", delay_s=3)
    solo.advance(2_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert bodies(solo, ticket) == ["later"]


def test_waiting_receive_wakes_when_a_visibility_timeout_ends(solo: Solo) -> None:
    solo.send("back")
    solo.receive(visibility_s=4)
    ticket = solo.poll()
    solo.advance(3_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert bodies(solo, ticket) == ["back"]


def test_waiting_receive_wakes_when_visibility_is_set_to_zero(solo: Solo) -> None:
    solo.send("back")
    (message,) = solo.receive(visibility_s=600)
    ticket = solo.poll()
    solo.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=message.receipt_handle, visibility_timeout=0))
    assert bodies(solo, ticket) == ["back"]


def test_waiting_receive_wakes_at_a_shortened_deadline_not_at_the_old_one(solo: Solo) -> None:
    solo.send("back")
    (message,) = solo.receive(visibility_s=600)
    ticket = solo.poll()
    solo.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=message.receipt_handle, visibility_timeout=2))
    solo.advance(2_000)
    assert bodies(solo, ticket) == ["back"]


def test_lengthened_deadline_wakes_nobody_early(solo: Solo) -> None:
    solo.send("back")
    (message,) = solo.receive(visibility_s=2)
    ticket = solo.poll()
    solo.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=message.receipt_handle, visibility_timeout=9))
    solo.advance(8_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert bodies(solo, ticket) == ["back"]


def test_waiting_receive_gets_what_could_not_be_delivered_to_another(solo: Solo) -> None:
    solo.send("x")
    lost = solo.do(c.ReceiveMessage(queue_url="jobs"))
    ticket = solo.poll()
    solo.call_node("undelivered", lost)
    assert bodies(solo, ticket) == ["x"]


def test_wait_ends_empty_at_its_deadline_and_not_before(solo: Solo) -> None:
    ticket = solo.poll(wait_s=7)
    solo.advance(6_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert solo.answers(ticket) == EMPTY
    assert solo.node.status(solo.now_ms).waiters == 0


def test_queues_wait_time_is_used_when_the_call_names_none() -> None:
    solo = Solo()
    solo.create(ReceiveMessageWaitTimeSeconds="3")
    ticket = solo.start_call(c.ReceiveMessage(queue_url="jobs"))
    assert solo.answers(ticket) == []
    solo.advance(3_000)
    assert solo.answers(ticket) == EMPTY
    assert solo.receive() == []  # a wait of 0 in the call beats the queue's


def test_waiters_are_served_in_the_order_they_came(solo: Solo) -> None:
    first, second, third = solo.poll(), solo.poll(limit=10), solo.poll()
    entries = [c.SendMessageBatchEntry(id=str(at), message_body=str(at)) for at in range(3)]
    solo.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    assert [bodies(solo, ticket) for ticket in (first, second)] == [["0"], ["1", "2"]]
    assert solo.answers(third) == []
    solo.send("3")
    assert bodies(solo, third) == ["3"]


def test_one_send_wakes_one_waiter(solo: Solo) -> None:
    first, second = solo.poll(), solo.poll()
    solo.send("x")
    assert bodies(solo, first) == ["x"]
    assert solo.answers(second) == []


def test_message_to_another_queue_wakes_nobody(solo: Solo) -> None:
    solo.create("other")
    ticket = solo.poll()
    solo.do(c.SendMessage(queue_url="other", message_body="x"))
    assert solo.answers(ticket) == []


def test_cancelled_wait_takes_no_message_and_gets_no_answer(solo: Solo) -> None:
    ticket = solo.poll()
    solo.call_node("cancel", ticket)
    solo.send("x")
    assert solo.answers(ticket) == []
    assert len(solo.receive()) == 1
    solo.call_node("cancel", ticket)
    solo.call_node("cancel", "never seen")


def test_a_retry_joins_the_wait_and_takes_the_first_attempts_place(solo: Solo) -> None:
    first = solo.poll(invocation=b"r" * 16)
    solo.poll()
    second = solo.poll(invocation=b"r" * 16)
    assert solo.node.status(solo.now_ms).waiters == 2
    assert solo.answers(first) == EMPTY
    solo.send("x")
    assert bodies(solo, second) == ["x"]
    assert len(solo.answers(first)) == 1


def test_a_joined_wait_keeps_the_first_attempts_deadline(solo: Solo) -> None:
    solo.poll(wait_s=10, invocation=b"r" * 16)
    solo.advance(6_000)
    second = solo.poll(wait_s=10, invocation=b"r" * 16)
    solo.advance(4_000)
    assert solo.answers(second) == EMPTY


@pytest.mark.parametrize("wait_s", [None, 0, 20])
def test_a_retry_of_a_receive_whose_queue_is_gone_gets_nothing_at_once(solo: Solo, wait_s: int | None) -> None:
    solo.send("x")
    receive = c.ReceiveMessage(queue_url="jobs", wait_time_seconds=wait_s)
    assert bodies(solo, solo.start_call(receive, b"r" * 16)) == ["x"]
    solo.do(c.DeleteQueue(queue_url="jobs"))
    assert solo.answers(solo.start_call(receive, b"r" * 16)) == EMPTY


def test_cancelling_the_displaced_attempt_does_not_end_the_wait(solo: Solo) -> None:
    first = solo.poll(invocation=b"r" * 16)
    second = solo.poll(invocation=b"r" * 16)
    solo.call_node("cancel", first)
    solo.send("x")
    assert bodies(solo, second) == ["x"]


def test_a_joined_wait_can_be_left_and_begun_anew(solo: Solo) -> None:
    for _ in range(2):
        solo.poll(invocation=b"r" * 16)
        solo.call_node("cancel", solo.poll(invocation=b"r" * 16))
        assert solo.node.status(solo.now_ms).waiters == 0


def test_a_retry_of_an_answered_wait_gets_the_same_messages(solo: Solo) -> None:
    first = solo.poll(invocation=b"r" * 16)
    solo.send("x")
    second = solo.poll(invocation=b"r" * 16)
    (one,), (two,) = solo.answers(first), solo.answers(second)
    assert one.messages == two.messages != []


def test_waiters_learn_that_their_queue_was_deleted(solo: Solo) -> None:
    tickets = [solo.poll(), solo.poll()]
    solo.do(c.DeleteQueue(queue_url="jobs"))
    for ticket in tickets:
        (outcome,) = solo.answers(ticket)
        assert isinstance(outcome, errors.QueueDoesNotExist)


def test_purge_does_not_end_a_wait(solo: Solo) -> None:
    ticket = solo.poll()
    solo.do(c.PurgeQueue(queue_url="jobs"))
    assert solo.answers(ticket) == []
    solo.send("after")
    assert bodies(solo, ticket) == ["after"]


def test_graceful_stop_answers_all_waits_empty(solo: Solo) -> None:
    tickets = [solo.poll(), solo.poll(invocation=b"r" * 16), solo.poll(invocation=b"r" * 16)]
    solo.call_node("close_waiters")
    assert all(solo.answers(ticket) == EMPTY for ticket in tickets)  # the second one was displaced by the third
    solo.send("x")
    assert all(len(solo.answers(ticket)) == 1 for ticket in tickets)


@pytest.mark.pure
def test_number_of_waiters_is_bounded(solo: Solo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "WAITERS_MAX", 2)
    tickets = [solo.poll() for _ in range(3)]
    assert [solo.answers(ticket) for ticket in tickets[:2]] == [[], []]
    (outcome,) = solo.answers(tickets[2])
    assert isinstance(outcome, errors.ServiceUnavailable)


def test_wake_up_is_asked_for_the_first_thing_that_can_happen(solo: Solo) -> None:
    solo.advance(1_500)
    solo.send("later", delay_s=15)
    solo.receive()
    began_ms = solo.now_ms
    solo.poll(wait_s=20)
    wakes = []
    while solo.now_ms < began_ms + 15_000:
        wake_ms = solo.node.effects.wake_at_ms
        assert wake_ms is not None
        assert wake_ms <= began_ms + 15_000
        wakes.append(wake_ms)
        solo.advance(wake_ms - solo.now_ms)
    assert wakes[-1] == began_ms + 15_000
    assert solo.node.status(solo.now_ms).waiters == 0


def test_waiting_receive_waits_for_its_sync_before_it_is_answered() -> None:
    solo = Solo(volatile=False)
    solo.create()
    ticket = solo.poll()
    solo.synced_at_once = False
    send = solo.start_call(c.SendMessage(queue_url="jobs", message_body="x"))
    while not solo.answers(ticket):
        assert solo.member.synced_token < solo.node.effects.token, "an answer that nothing is waited for"
        solo.sync()
    assert bodies(solo, ticket) == ["x"]
    assert len(solo.answers(send)) == 1


# --- the list itself ------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["add", "cancel", "expire", "serve"]), st.integers(0, 5)), max_size=60))
def test_waiters_lose_and_invent_nobody(steps: list[tuple[str, int]]) -> None:
    waiters, waiting, now_ms = Waiters(), dict[int, int](), 0
    for ticket, (action, number) in enumerate(steps):
        call = call_of(c.ReceiveMessage(queue_url="jobs"), bytes([number]) * 16)
        if action == "add":
            displaced = waiters.take_over(call, ticket)
            assert (displaced is not None) == (number in waiting.values())
            waiting.pop(displaced, None)
            if displaced is None:
                waiters.add(call, ticket, number % 2, now_ms + 10 * number)
            waiting[ticket] = number
        elif action == "cancel" and waiting:
            left = sorted(waiting)[number % len(waiting)]
            waiters.cancel(left)
            del waiting[left]
        elif action == "serve" and (waiter := waiters.first(number % 2)) is not None:
            waiters.remove(waiter)
            del waiting[waiter.ticket]
        elif action == "expire":
            now_ms += 5 * number
            while (waiter := waiters.pop_expired(now_ms)) is not None:
                assert waiter.deadline_ms <= now_ms
                waiters.remove(waiter)
                del waiting[waiter.ticket]
        assert sorted(waiter.ticket for waiter in waiters.all()) == sorted(waiting)
        assert waiters.count == len(waiting)
        assert waiters.next_deadline_ms() == min((waiter.deadline_ms for waiter in waiters.all()), default=None)


def test_due_times_keep_the_earliest_for_each_queue() -> None:
    waiters = Waiters()
    waiters.expect(1, 5)
    assert waiters.next_due_ms() is None  # nobody waits there
    for queue_id in (1, 2):
        waiters.add(call_of(c.ReceiveMessage()), f"t{queue_id}", queue_id, 100)
    for queue_id, due_ms in ((1, 50), (2, 40), (1, 30), (1, 45), (2, None)):
        waiters.expect(queue_id, due_ms)
    assert waiters.next_due_ms() == 30
    assert waiters.pop_due(29) is None
    assert [waiters.pop_due(60) for _ in range(3)] == [1, 2, None]


def test_left_waits_do_not_pile_up() -> None:
    waiters = Waiters()
    for ticket in range(10_000):
        waiters.add(call_of(c.ReceiveMessage()), ticket, 1, 20_000 + ticket)
        waiters.cancel(ticket)
    assert len(waiters._deadlines) <= 130


def test_member_that_is_master_no_more_shows_no_waiting_receive() -> None:
    """The page and the metrics read what the node holds: it must be what the executor fills."""
    cluster = Cluster(hold_ms=25_000)
    cluster.introduce_all()
    former = cluster.elect()
    cluster.do(former, c.CreateQueue(queue_name="jobs"))
    for guid in (b"1" * 16, b"2" * 16):
        cluster.submit(former, c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20), guid)
        assert cluster.node(former).waiters.count == 1
        cluster.isolate(former)
        other = cluster.elect_other(than=former)
        cluster.heal()
        cluster.advance(1_000)
        assert cluster.node(former).waiters.count == 0
        assert cluster.node(other).waiters.count == 1
        cluster.do(other, c.SendMessage(queue_url="jobs", message_body="x"))
        former = other
