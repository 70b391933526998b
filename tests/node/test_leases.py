"""Leased receives at a node: long polls, retries, answers that reached nobody, failovers."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model.errors import LeaseExpired, ServiceUnavailable
from elasticq.model.results import EmptyResult, ReceiveMessageResult
from elasticq.node.settings import LeaseStatus
from tests.node.cluster import Cluster, Solo

SEALED = ReceiveMessageResult(leased=True)


def leased(attempt_id: str, wait_s: int = 0, *, limit: int = 10, lease_s: int = 600) -> c.ReceiveMessage:
    return c.ReceiveMessage("jobs", None, None, None, limit, lease_s, wait_s, attempt_id)


def bodies(solo: Solo, ticket: int) -> list[str]:
    (outcome,) = solo.answers(ticket)
    assert isinstance(outcome, ReceiveMessageResult)
    assert outcome.leased
    return [message.body for message in outcome.messages]


def state_of(solo: Solo) -> list[str]:
    return [lease.state for lease in solo.node.leases(solo.now_ms, 10)]


def test_short_poll_of_an_empty_queue_seals_at_once(solo: Solo) -> None:
    assert solo.do(leased("q/1/0/0")) == SEALED
    solo.send("late")
    assert solo.do(leased("q/1/0/0")) == SEALED
    assert solo.do(leased("q/1/0/1", 20)) == SEALED, "it does not wait"
    assert state_of(solo) == ["sealed"]


def test_long_poll_seals_only_when_its_time_is_up(solo: Solo) -> None:
    ticket = solo.start_call(leased("q/1/0/0", 5))
    solo.advance(4_999)
    assert solo.answers(ticket) == []
    assert state_of(solo) == []
    solo.advance(1)
    assert solo.answers(ticket) == [SEALED]
    assert state_of(solo) == ["sealed"]


def test_long_poll_wakes_with_messages_and_opens_the_lease_then(solo: Solo) -> None:
    ticket = solo.start_call(leased("q/1/0/0", 20, lease_s=100))
    solo.advance(7_000)
    solo.send("hello")
    assert bodies(solo, ticket) == ["hello"]
    (lease,) = solo.node.leases(solo.now_ms, 10)
    assert lease == LeaseStatus("000000000000", "jobs", "q", 1, 0, 1, solo.time_ms, solo.time_ms + 100_000, "open", 0)


def test_same_id_twice_waiting_gets_one_answer_twice(solo: Solo) -> None:
    other = solo.poll()
    tickets = [solo.start_call(leased("q/1/0/0", 20)) for _ in range(3)]
    stranger = solo.start_call(leased("q/1/1/0", 20))
    solo.send("for the poll")
    assert all(solo.answers(ticket) == [] for ticket in tickets)
    solo.send("hello")
    assert [bodies(solo, ticket) for ticket in tickets] == [["hello"]] * 3
    assert len({solo.answers(ticket)[0].messages[0].receipt_handle for ticket in tickets}) == 1
    assert solo.answers(stranger) == []
    assert len(solo.answers(other)) == 1


def test_retry_of_an_sdk_waits_beside_the_attempt_before_it(solo: Solo) -> None:
    """That attempt may still be read: an empty answer to it would say that the lease is sealed."""
    tickets = [solo.start_call(leased("q/1/0/0", 20), b"g" * 16) for _ in range(2)]
    assert all(solo.answers(ticket) == [] for ticket in tickets)
    solo.call_node("cancel", tickets[0])
    solo.send("hello")
    assert bodies(solo, tickets[1]) == ["hello"]
    assert solo.answers(tickets[0]) == []


def test_one_that_waits_is_told_what_another_sealed(solo: Solo) -> None:
    waiting = solo.start_call(leased("q/1/0/0", 20))
    behind = solo.poll()
    assert solo.do(leased("q/1/0/0")) == SEALED
    solo.send("x")
    assert solo.answers(waiting) == [SEALED]
    assert [message.body for message in solo.answers(behind)[0].messages] == ["x"], "it did not stand in the way"


def test_graceful_stop_seals_what_waits(solo: Solo) -> None:
    ticket = solo.start_call(leased("q/1/0/0", 20))
    solo.call_node("close_waiters")
    assert solo.answers(ticket) == [SEALED]
    solo.send("x")
    assert solo.do(leased("q/1/0/0")) == SEALED


def test_graceful_stop_looks_at_the_time_before_it_seals(solo: Solo) -> None:
    solo.send("x")
    solo.do(leased("q/1/0/0", lease_s=5))
    ticket = solo.start_call(leased("q/1/0/1", 20, lease_s=5))
    solo.now_ms += 5_000  # no tick: the stop comes first
    solo.call_node("close_waiters")
    (refusal,) = solo.answers(ticket)
    assert isinstance(refusal, LeaseExpired)


@pytest.mark.parametrize("attempt_id", [None, "dead/1/0/0"])
def test_graceful_stop_answers_a_receive_once_that_a_dead_letter_woke(solo: Solo, attempt_id: str | None) -> None:
    """The leased receive that ends finds a dead letter, for which another waits at the dead-letter queue."""
    solo.create("dead")
    policy = '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": 1}'
    solo.do(c.SetQueueAttributes("jobs", {"RedrivePolicy": policy}))
    solo.send("x")
    solo.receive(visibility_s=5)
    ended = solo.start_call(leased("q/1/0/0", 20))
    woken = solo.start_call(
        c.ReceiveMessage("dead", visibility_timeout=9, wait_time_seconds=20, receive_request_attempt_id=attempt_id)
    )
    solo.now_ms += 5_000  # no tick: the stop comes first
    solo.call_node("close_waiters")
    assert solo.answers(ended) == [SEALED]
    assert [[message.body for message in answer.messages] for answer in solo.answers(woken)] == [["x"]]
    assert solo.node.status(solo.now_ms).waiters == 0


def test_answer_that_reached_nobody_stays_with_the_lease(solo: Solo) -> None:
    solo.send("x")
    result = solo.do(leased("q/1/0/0"), b"g" * 16)
    solo.call_node("undelivered", result)
    assert solo.receive() == []
    assert solo.do(leased("q/1/0/0"), b"g" * 16) == result
    solo.call_node("undelivered", result)
    assert solo.do(leased("q/1/0/0"), b"h" * 16) == result


def test_given_back_messages_wake_a_waiting_receive(solo: Solo) -> None:
    solo.send("x")
    solo.do(leased("q/1/0/0"))
    ticket = solo.poll()
    solo.do(c.ChangeMessageVisibility("jobs", "lease:q/1/", 0))
    assert [message.body for message in solo.answers(ticket)[0].messages] == ["x"]
    with pytest.raises(LeaseExpired):
        solo.do(leased("q/1/0/0"))


def test_messages_of_an_expired_lease_wake_a_waiting_receive(solo: Solo) -> None:
    solo.send("x")
    solo.do(leased("q/1/0/0", lease_s=5))
    ticket = solo.poll()
    solo.advance(4_999)
    assert solo.answers(ticket) == []
    solo.advance(1)
    assert [message.body for message in solo.answers(ticket)[0].messages] == ["x"]
    with pytest.raises(LeaseExpired):
        solo.do(leased("q/1/0/0"))
    assert [lease.state for lease in solo.node.state.leases.ended.values()] == [m.LEASE_EXPIRED]


def test_lease_that_wants_contents_from_disk_waits_for_them() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.send("a")
    solo.send("b")
    first = solo.do(leased("q/1/0/0", limit=1))
    queue = solo.node.state.queue("000000000000", "jobs")
    kept = dict(queue.contents)
    queue.contents.clear()
    again, more = solo.start_call(leased("q/1/0/0")), solo.start_call(leased("q/1/0/1"))
    assert solo.answers(again) == solo.answers(more) == []
    for fetch in list(solo.node.effects.fetches):
        solo.call_node("fetched", fetch, list(kept.values()))
    assert solo.answers(again) == [first]
    assert bodies(solo, more) == ["b"]


# --- several members --------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.introduce_all()
    return made


def test_lease_outlives_its_master(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    for body in ("a", "b", "c"):
        cluster.do(master, c.SendMessage(queue_url="jobs", message_body=body))
    first = cluster.do(master, leased("q/1/0/0", limit=2))
    sealed = cluster.do(master, leased("q/2/0/0", limit=1)), cluster.do(master, leased("q/2/0/1"))
    cluster.crash(master)
    transfer_target = cluster.elect_other(master)
    assert cluster.do(transfer_target, leased("q/1/0/0", limit=2)) == first
    cluster.do(transfer_target, c.SendMessage(queue_url="jobs", message_body="d"))
    assert (cluster.do(transfer_target, leased("q/2/0/0")), cluster.do(transfer_target, leased("q/2/0/1"))) == sealed
    assert cluster.do(transfer_target, c.DeleteMessage("jobs", "lease:q/1/")) == EmptyResult()
    assert cluster.do(transfer_target, c.DeleteMessage("jobs", "lease:q/2/")) == EmptyResult()
    assert cluster.node(transfer_target).state.queue("000000000000", "jobs").count == 1


def test_seal_that_was_not_committed_was_told_to_nobody(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.settle()
    cluster.isolate(master)
    ticket = cluster.submit(master, leased("q/1/0/0"))
    assert cluster.answers(master, ticket) == []
    transfer_target = cluster.elect_other(master)
    cluster.do(transfer_target, c.SendMessage(queue_url="jobs", message_body="x"))
    assert [message.body for message in cluster.do(transfer_target, leased("q/1/0/0")).messages] == ["x"]
    cluster.heal()
    cluster.advance(2_000)
    assert all(isinstance(outcome, ServiceUnavailable) for outcome in cluster.answers(master, ticket))
    assert len(cluster.node(master).state.leases) == 1


def test_wait_that_ends_during_a_hand_over_goes_to_the_heir(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    node = cluster.node(master)
    ticket = cluster.submit(master, leased("q/1/0/0", 20))
    assert node.hand_over(cluster.now_ms)
    node.close_waiters(cluster.now_ms)
    assert cluster.answers(master, ticket) == []
    cluster.settle()
    cluster.advance(1_000)
    transfer_target = cluster.serving()[0]
    cluster.do(transfer_target, c.SendMessage(queue_url="jobs", message_body="x"))
    cluster.settle()
    assert [message.body for message in cluster.answers(master, ticket)[0].messages] == ["x"]
