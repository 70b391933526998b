"""Below quorum a member still reads: after a moment, from what is committed, and says how old it may be."""

import pytest

from elasticq.model import commands as c
from elasticq.model.actions import READ_ONLY
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable
from elasticq.model.results import ListQueuesResult, QueueUrlResult, StaleResult
from elasticq.node.waits.waiting_calls import WAITING_CALLS_MAX
from tests.node.cluster import Cluster
from tests.peers.test_schema import subclasses

SEND = c.SendMessage(queue_url="jobs", message_body="x")
READ_WAIT_MS = 3_000
READS = [
    c.ListQueues(),
    c.GetQueueUrl(queue_name="jobs"),
    c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"]),
]
WRITES = [
    SEND,
    c.SendMessageBatch(queue_url="jobs", entries=[c.SendMessageBatchEntry(id="1", message_body="x")]),
    c.ReceiveMessage(queue_url="jobs"),
    c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20),
    c.DeleteMessage(queue_url="jobs", receipt_handle="x"),
    c.DeleteMessageBatch(queue_url="jobs", entries=[c.DeleteMessageBatchEntry(id="1", receipt_handle="x")]),
    c.ChangeMessageVisibility(queue_url="jobs", receipt_handle="x", visibility_timeout=1),
    c.CreateQueue(queue_name="more"),
    c.DeleteQueue(queue_url="jobs"),
    c.PurgeQueue(queue_url="jobs"),
    c.SetQueueAttributes(queue_url="jobs", attributes={"DelaySeconds": "1"}),
]


@pytest.fixture
def alone() -> Cluster:
    """One of three members is left; it has been master."""
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    for name in cluster.names:
        if name != master:
            cluster.crash(name)
    cluster.names = (master,)
    cluster.advance(2_000)
    return cluster


@pytest.mark.parametrize("command", READS)
def test_read_waits_for_a_master_and_is_answered_stale_then(alone: Cluster, command: c.Command) -> None:
    (name,) = alone.names
    ticket = alone.say(name, command)
    alone.advance(READ_WAIT_MS - 1)
    assert alone.answers(name, ticket) == []
    alone.advance(1)
    outcome = alone.answer(name, ticket)
    assert isinstance(outcome, StaleResult)
    assert type(outcome.result) in (ListQueuesResult, QueueUrlResult) or "QueueArn" in outcome.result.attributes  # type: ignore[attr-defined]
    assert 4_000 <= outcome.age_ms <= 60_000


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_every_read_of_the_table_of_actions_waits_for_a_master(alone: Cluster, name: str) -> None:
    """A read that is none for the node would be refused here at once."""
    kind = next(each for each in subclasses(c.Command) if each.__name__ == name)
    (member,) = alone.names
    ticket = alone.say(member, kind())
    assert alone.answers(member, ticket) == []
    alone.advance(READ_WAIT_MS)
    outcome = alone.answer(member, ticket)
    assert not isinstance(outcome, ServiceUnavailable)


@pytest.mark.parametrize("command", WRITES)
def test_write_is_refused_at_once_with_the_count(alone: Cluster, command: c.Command) -> None:
    """A receive is a write."""
    (name,) = alone.names
    last = alone.node(name).replica.log.last_index
    outcome = alone.answer(name, alone.say(name, command))
    assert isinstance(outcome, ServiceUnavailable)
    assert outcome.status == 503
    assert outcome.message == "read-only: 1 of 3 members, 2 needed"
    assert alone.node(name).replica.log.last_index == last
    assert not alone.node(name).status(alone.now_ms).ready


def test_reads_know_only_what_is_committed() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    cluster.isolate(master)
    cluster.say(master, c.CreateQueue(queue_name="lost"))
    cluster.advance(1_500)
    ticket = cluster.say(master, c.ListQueues())
    cluster.advance(READ_WAIT_MS)
    outcome = cluster.answer(master, ticket)
    assert isinstance(outcome, StaleResult)
    assert [url.rpartition("/")[2] for url in outcome.result.queue_urls] == ["jobs"]  # type: ignore[attr-defined]


def test_read_that_fails_says_so_and_not_that_it_is_stale(alone: Cluster) -> None:
    (name,) = alone.names
    ticket = alone.say(name, c.GetQueueUrl(queue_name="none"))
    alone.advance(READ_WAIT_MS)
    assert isinstance(alone.answer(name, ticket), QueueDoesNotExist)


def test_read_goes_on_when_a_master_comes_in_time() -> None:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    cluster.crash(master)
    other = next(name for name in cluster.names if name != master)
    cluster.advance(800)
    ticket = cluster.say(other, c.ListQueues())
    cluster.advance(READ_WAIT_MS - 1)
    assert isinstance(cluster.answer(other, ticket), ListQueuesResult)


def test_read_is_not_answered_from_rows_that_run_ahead_of_commit(alone: Cluster) -> None:
    """A member that is taking over has applied what may never be committed."""
    (name,) = alone.names
    node = alone.node(name)
    ticket = alone.say(name, c.ListQueues())
    node.replica.role = "master"
    node._forwarder.tick(alone.now_ms + READ_WAIT_MS)
    alone.members[name].drain()
    outcome = alone.answer(name, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "taking over" in outcome.message


def test_client_that_leaves_is_not_waited_for(alone: Cluster) -> None:
    (name,) = alone.names
    ticket = alone.say(name, c.ListQueues())
    alone.node(name).cancel(ticket, alone.now_ms)
    alone.advance(READ_WAIT_MS)
    assert alone.answers(name, ticket) == []
    assert not alone.node(name)._waiting_calls


def test_waiting_reads_are_bounded(alone: Cluster) -> None:
    (name,) = alone.names
    tickets = [alone.submit(name, c.ListQueues()) for _ in range(WAITING_CALLS_MAX + 5)]
    refused = [ticket for ticket in tickets if alone.answers(name, ticket)]
    assert refused == tickets[WAITING_CALLS_MAX:]
    alone.advance(READ_WAIT_MS)
    assert all(len(alone.answers(name, ticket)) == 1 for ticket in tickets)


def test_fresh_member_says_whom_it_waits_for() -> None:
    cluster = Cluster.fresh()
    cluster.introduce(*cluster.names[:2])
    name = cluster.names[0]
    waiting = "waiting to found the cluster: 2 of 3 members have met"
    assert str(cluster.answer(name, cluster.say(name, SEND))) == waiting
    ticket = cluster.say(name, c.ListQueues())
    cluster.advance(READ_WAIT_MS)
    assert str(cluster.answer(name, ticket)) == waiting
