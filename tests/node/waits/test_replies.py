"""The reply rule in a cluster: no answer leaves before what it rests on is committed, and reads need a lease."""

import pytest

from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.results import ReceiveMessageResult, SendMessageResult
from tests.node.cluster import Cluster

SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)
COUNTS = c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"])


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    return made


def others(cluster: Cluster, master: str) -> list[str]:
    return [name for name in cluster.names if name != master]


def test_send_is_answered_after_a_majority_and_not_before(cluster: Cluster) -> None:
    master = cluster.elect()
    one, two = others(cluster, master)
    cluster.held = {master, one, two}
    ticket = cluster.submit(master, SEND)
    cluster.settle()
    assert cluster.answers(master, ticket) == []
    cluster.held = {one, two}
    cluster.settle()
    assert cluster.answers(master, ticket) == [], "one of three is no majority"
    cluster.held = {two}
    cluster.settle()
    (outcome,) = cluster.answers(master, ticket)
    assert isinstance(outcome, SendMessageResult)


def test_two_followers_are_a_majority_without_the_masters_disk(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.held = {master}
    ticket = cluster.submit(master, SEND)
    cluster.settle()
    assert len(cluster.answers(master, ticket)) == 1


def test_everything_that_rests_on_an_uncommitted_entry_waits_for_it(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.held = set(cluster.names)
    guid = b"g" * 16
    commands = [
        (SEND, guid),
        (SEND, guid),
        (RECEIVE, b""),
        (RECEIVE, b""),
        (COUNTS, b""),
        (c.SendMessage(queue_url="jobs"), b""),
    ]
    tickets = [cluster.submit(master, command, invocation) for command, invocation in commands]
    cluster.settle()
    assert all(cluster.answers(master, ticket) == [] for ticket in tickets)
    cluster.heal()
    outcomes = [cluster.answers(master, ticket)[0] for ticket in tickets]
    assert outcomes[0] == outcomes[1]
    assert [len(outcome.messages) for outcome in outcomes[2:4]] == [1, 0]
    assert isinstance(outcomes[5], errors.MissingParameter)


def test_commands_during_a_sync_share_one_entry(cluster: Cluster) -> None:
    master = cluster.elect()
    before = cluster.node(master).replica.log.last_index
    cluster.held = {master}
    tickets = [cluster.submit(master, SEND) for _ in range(10)]
    assert cluster.node(master).replica.log.last_index == before + 1
    cluster.heal()
    assert cluster.node(master).replica.log.last_index == before + 2
    assert all(len(cluster.answers(master, ticket)) == 1 for ticket in tickets)


def test_master_that_loses_its_term_answers_unknown_and_takes_back(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.do(old, SEND)
    cluster.isolate(old)
    send = cluster.submit(old, c.SendMessage(queue_url="jobs", message_body="lost"))
    receive = cluster.submit(old, RECEIVE)
    poll = cluster.submit(old, c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20))
    new = cluster.elect_other(old)
    cluster.advance(4_000)  # the poll, of which nothing was done, waits for a master meanwhile
    for ticket in (send, receive, poll):
        (outcome,) = cluster.answers(old, ticket)
        assert isinstance(outcome, errors.ServiceUnavailable)
    result = cluster.do(new, RECEIVE)
    assert isinstance(result, ReceiveMessageResult)
    assert [message.body for message in result.messages] == ["x"]


def test_retry_after_a_failover_has_one_effect(cluster: Cluster) -> None:
    """Committed though never answered: the same GUID tells."""
    old = cluster.elect()
    guid = b"g" * 16
    cluster.held = {old}
    ticket = cluster.submit(old, SEND, guid)
    cluster.cut |= {(other, old) for other in others(cluster, old)}
    cluster.settle()
    assert cluster.answers(old, ticket) == []
    new = cluster.elect_other(old)
    again = cluster.do(new, SEND, guid)
    assert cluster.do(new, SEND, guid) == again
    assert len(cluster.do(new, RECEIVE).messages) == 1


def test_handle_given_before_a_failover_works_after_it(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.do(old, SEND)
    (message,) = cluster.do(old, RECEIVE).messages
    cluster.crash(old)
    new = cluster.elect_other(old)
    cluster.do(new, c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))
    cluster.advance(60_000)
    assert cluster.do(cluster.elect(), RECEIVE).messages == []


def test_message_in_flight_before_a_failover_is_in_flight_after_it(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.do(old, SEND)
    cluster.do(old, RECEIVE)
    cluster.crash(old)
    new = cluster.elect_other(old)
    assert cluster.do(new, RECEIVE).messages == []
    cluster.advance(32_000)
    assert len(cluster.do(cluster.elect(), RECEIVE).messages) == 1


# --- reads and leases ----------------------------------------------------------------------


def test_idle_master_answers_reads_at_once(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.advance(500)
    ticket = cluster.submit(master, COUNTS)
    assert len(cluster.answers(master, ticket)) == 1


def test_partitioned_master_answers_no_read_after_its_lease(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.advance(500)
    cluster.isolate(master)
    cluster.advance(600)
    assert master in cluster.masters()
    ticket = cluster.submit(master, COUNTS)
    empty = cluster.submit(master, RECEIVE)
    cluster.settle()
    assert cluster.answers(master, ticket) == cluster.answers(master, empty) == []
    cluster.advance(1_000)
    for held in (ticket, empty):
        (outcome,) = cluster.answers(master, held)
        assert isinstance(outcome, errors.ServiceUnavailable)


def test_read_without_a_lease_asks_a_round_and_is_answered_by_it(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.advance(500)
    one, two = others(cluster, master)
    cluster.cut = {(one, master), (two, master)}
    cluster.advance(600)
    cluster.cut.clear()
    tickets = [cluster.submit(master, COUNTS) for _ in range(2)]
    assert [cluster.answers(master, ticket) for ticket in tickets] == [[], []]
    cluster.settle()
    assert all(len(cluster.answers(master, ticket)) == 1 for ticket in tickets)


def test_never_two_members_that_answer_reads(cluster: Cluster) -> None:
    """The old master's lease has ended before another one can serve."""
    old = cluster.elect()
    cluster.advance(500)
    cluster.isolate(old)
    for _ in range(300):
        cluster.advance(10)
        with_lease = [
            name
            for name in cluster.names
            if cluster.node(name).serving and cluster.node(name).replica.lease_is_valid(cluster.now_ms)
        ]
        assert len(with_lease) <= 1
    assert with_lease != [old]


# --- where there is no master ------------------------------------------------------------------


def test_follower_names_the_master_and_does_nothing(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.advance(500)
    follower = others(cluster, master)[0]
    before = cluster.node(follower).replica.log.last_index
    ticket = cluster.submit(follower, SEND)
    (outcome,) = cluster.answers(follower, ticket)
    assert isinstance(outcome, errors.ServiceUnavailable)
    assert f"the master is {master}" in outcome.message
    assert cluster.node(follower).replica.log.last_index == before


def test_below_quorum_no_write_is_acknowledged(cluster: Cluster) -> None:
    master = cluster.elect()
    for name in others(cluster, master):
        cluster.crash(name)
    ticket = cluster.submit(master, SEND)
    cluster.advance(2_000)
    (outcome,) = cluster.answers(master, ticket)
    assert isinstance(outcome, errors.ServiceUnavailable)
    late = cluster.submit(master, SEND)
    (outcome,) = cluster.answers(master, late)
    assert outcome.status == 503
    assert not cluster.node(master).status(cluster.now_ms).ready
    assert "read-only: 1 of 3 members, 2 needed" in outcome.message
