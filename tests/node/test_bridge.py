"""A member that does not hear the master is served by way of one that does."""

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult, SendMessageResult
from tests.node.cluster import Cluster

SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", visibility_timeout=600)
POLL = c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20)
CANDIDACY_MS = 3_000  # until a member has missed its master and asked for votes in vain


@pytest.fixture
def cluster() -> Cluster:
    """With a queue; the master and one follower have no link, and the follower has noticed."""
    cluster = Cluster()
    cluster.introduce_all()
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    master, _, deaf = roles(cluster)
    cluster.part(master, deaf)
    cluster.advance(CANDIDACY_MS)
    assert roles(cluster)[0] == master
    return cluster


def roles(cluster: Cluster) -> tuple[str, str, str]:
    """The master, the bridge, and the one that needs it."""
    [master] = cluster.serving()
    relay, deaf = (name for name in cluster.names if name != master)
    return master, relay, deaf


def test_calls_reach_the_master_over_the_bridge(cluster: Cluster) -> None:
    _, _, deaf = roles(cluster)
    sent = cluster.do(deaf, SEND)
    assert isinstance(sent, SendMessageResult)
    received = cluster.do(deaf, RECEIVE)
    assert isinstance(received, ReceiveMessageResult)
    assert [message.message_id for message in received.messages] == [sent.message_id]


def test_wait_over_the_bridge_ends_when_its_client_leaves(cluster: Cluster) -> None:
    master, _, deaf = roles(cluster)
    ticket = cluster.submit(deaf, POLL)
    cluster.settle()
    assert cluster.node(master).status(cluster.now_ms).waiters == 1
    cluster.node(deaf).cancel(ticket, cluster.now_ms)
    cluster.members[deaf].drain()
    cluster.settle()
    assert cluster.node(master).status(cluster.now_ms).waiters == 0


def test_messages_that_no_client_got_return_over_the_bridge(cluster: Cluster) -> None:
    master, _, deaf = roles(cluster)
    cluster.do(master, SEND)
    received = cluster.do(deaf, RECEIVE)
    assert isinstance(received, ReceiveMessageResult)
    cluster.node(deaf).undelivered(received, cluster.now_ms)
    cluster.members[deaf].drain()
    cluster.settle()
    again = cluster.do(master, RECEIVE)
    assert isinstance(again, ReceiveMessageResult)
    assert len(again.messages) == 1


def test_write_is_refused_when_the_bridge_hears_no_master_either(cluster: Cluster) -> None:
    master, _, deaf = roles(cluster)
    cluster.crash(master)
    with pytest.raises(ServiceUnavailable, match="no master yet"):
        cluster.do(deaf, SEND)


def test_deaf_member_follows_again_when_the_link_is_back(cluster: Cluster) -> None:
    master, relay, deaf = roles(cluster)
    cluster.heal()
    cluster.advance(CANDIDACY_MS)
    assert cluster.node(deaf).replica.master == master
    cluster.part(relay, deaf)
    assert isinstance(cluster.do(deaf, SEND), SendMessageResult)
