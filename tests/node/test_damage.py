"""Rows on the disk that cannot be read: alone the messages are lost and told, among others the others have them."""

from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult
from elasticq.node.digests import DAMAGED
from elasticq.node.orders import VerifyRows
from elasticq.replication.messages import RequestVote
from elasticq.replication.records import Durable, Vote
from elasticq.replication.replica import FOLLOWER
from tests.node.cluster import Cluster, Solo, call_of
from tests.node.test_content_cache import RECEIVE, Deep


def test_a_receive_that_meets_damage_gets_503_once_and_the_next_goes_on_around_it() -> None:
    deep = Deep()
    deep.fill(20)
    deep.store()
    (queue,) = deep.node.state.queues.values()
    ticket = deep.start_call(RECEIVE)
    (fetch,) = deep.take_fetches()
    assert deep.node.damaged(queue.id, fetch.sequences[:7], deep.now_ms) is True
    deep.answer(fetch)
    (outcome,) = deep.answers(ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "cannot be read from disk" in str(outcome)
    assert deep.bodies(10) == [f"m{number}" for number in range(7, 17)]
    deep.store()
    deep.restart()
    assert queue.count == 13  # the loss is in the log and in the rows


def test_a_long_poll_is_not_ended_by_damage_that_is_read_ahead() -> None:
    deep = Deep()
    ticket = deep.poll()
    (queue,) = deep.node.state.queues.values()
    deep.node.damaged(queue.id, [1], deep.now_ms)
    deep._settle()
    assert deep.answers(ticket) == []
    deep.send("new")
    (result,) = deep.answers(ticket)
    assert isinstance(result, ReceiveMessageResult)
    assert [message.body for message in result.messages] == ["new"]


def test_a_member_alone_whose_rows_are_lost_serves_nobody_until_it_has_new_ones() -> None:
    solo = Solo(volatile=False)
    solo.create()
    assert solo.node.damaged(0, [], solo.now_ms) is False
    assert not solo.node.serving
    status = solo.node.status(solo.now_ms)
    assert not status.ready
    assert "damaged" in status.reason
    solo.advance(10_000)
    assert solo.node.replica.role == FOLLOWER


def test_a_member_alone_goes_on_with_rows_that_have_holes() -> None:
    assert Solo(volatile=False, durable=Durable(Vote(1, None), [], is_whole=False)).node.serving


def with_queue() -> tuple[Cluster, str]:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.node(master).submit(call_of(c.CreateQueue(queue_name="jobs")), "created", cluster.now_ms)
    cluster.members[master].drain()
    cluster.settle()
    cluster.advance(1_000)
    return cluster, master


def damage(cluster: Cluster, name: str) -> None:
    assert cluster.node(name).damaged(1, [1], cluster.now_ms) is True
    cluster.members[name].drain()


def test_a_follower_with_damaged_rows_takes_those_of_another_member() -> None:
    cluster, master = with_queue()
    follower = next(name for name in cluster.names if name != master)
    old = cluster.node(follower)
    damage(cluster, follower)
    assert old.effects.wanted is not None
    assert not old.status(cluster.now_ms).ready
    cluster.settle()
    cluster.advance(1_000)
    assert cluster.node(follower) is not old
    assert cluster.node(follower).status(cluster.now_ms).ready
    assert [queue.name for queue in cluster.node(follower).state.queues.values()] == ["jobs"]
    assert cluster.serving() == [master]


def test_a_master_with_damaged_rows_lets_another_one_be_it() -> None:
    cluster, master = with_queue()
    cluster.transfers = False
    damage(cluster, master)
    assert not cluster.node(master).serving
    other = cluster.elect_other(master)
    cluster.advance(20_000)
    assert cluster.serving() == [other]
    assert cluster.node(master).effects.wanted is not None  # entries that come do not fill holes
    cluster.transfers = True
    cluster.settle()
    cluster.advance(1_000)
    assert cluster.node(master).status(cluster.now_ms).ready


def test_a_member_with_damaged_rows_neither_votes_nor_stands() -> None:
    cluster, master = with_queue()
    follower, third = (name for name in cluster.names if name != master)
    cluster.transfers = False
    damage(cluster, follower)
    cluster.crash(master)
    cluster.advance(30_000)
    assert cluster.serving() == []  # the third one needs a vote
    replica = cluster.node(follower).replica
    assert replica.role == FOLLOWER
    replica.receive(
        RequestVote(
            cluster=replica.cluster,
            group=0,
            sender=third,
            to=follower,
            term=replica.term + 1,
            last_index=99,
            last_term=99,
            transfer=True,
        ),
        cluster.now_ms,
    )
    assert replica.voted_for is None
    cluster.transfers = True
    cluster.restart(master)
    assert cluster.elect()
    cluster.settle()
    assert cluster.node(follower).replica.is_whole


def test_verify_says_that_a_member_is_damaged() -> None:
    cluster, master = with_queue()
    follower = next(name for name in cluster.names if name != master)
    cluster.transfers = False
    damage(cluster, follower)
    cluster.node(master).order(VerifyRows(), "verify", cluster.now_ms)
    cluster.members[master].drain()
    cluster.settle()
    cluster.advance(1_000)
    assert DAMAGED in cluster.node(follower).status(cluster.now_ms).digests.values()
    assert DAMAGED not in cluster.node(master).status(cluster.now_ms).digests.values()


def test_the_log_of_a_damaged_member_is_kept_until_its_snapshot_is_there() -> None:
    deep = Deep()
    deep.fill(20)
    deep.node.replica.is_whole = False
    floor = deep.node.effects.log_floor
    deep.store()
    assert deep.node.effects.log_floor == floor
