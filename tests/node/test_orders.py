"""What an operator asks: done and answered when committed, or refused with what to do, and always answered once."""

import pytest

from elasticq.model import commands as c
from elasticq.node.orders import (
    AddVoter,
    Order,
    OrderDone,
    OrderRefused,
    RemoveVoter,
    ReplaceVoter,
    TransferMastership,
    VerifyRows,
)
from tests.node.cluster import Cluster, Solo

SEND = c.SendMessage(queue_url="jobs", message_body="x")
ALL: list[Order] = [AddVoter("b"), RemoveVoter("b"), ReplaceVoter("b"), TransferMastership("b"), TransferMastership()]


def follower_of(cluster: Cluster) -> str:
    master = cluster.elect()
    return next(name for name in cluster.names if name != master)


@pytest.mark.parametrize("volatile", [False, True])
def test_cluster_of_one_answers_every_order_at_once(volatile: bool) -> None:
    solo = Solo(volatile=volatile)
    for order in ALL:
        solo.node.order(order, order, solo.now_ms)
        solo._settle()
        (outcome,) = solo.member.replies[order]
        assert isinstance(outcome, OrderRefused), order
    solo.node.order(VerifyRows(), "verify", solo.now_ms)
    solo._settle()
    (outcome,) = solo.member.replies["verify"]
    assert isinstance(outcome, OrderDone)
    index = int(outcome.text.rpartition(" ")[2])
    assert list(solo.node.status(solo.now_ms).digests) == [index]


@pytest.mark.parametrize("order", [*ALL, VerifyRows()])
def test_member_that_is_not_master_refuses(cluster: Cluster, order: Order) -> None:
    outcome = cluster.obey(follower_of(cluster), order)
    assert isinstance(outcome, OrderRefused)
    assert "not the master" in outcome.reason


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (AddVoter("d"), "d is no learner"),
        (RemoveVoter("d"), "d is no voter"),
        (ReplaceVoter("d"), "no new member has the name of d"),
    ],
)
def test_orders_about_nobody_are_refused(cluster: Cluster, order: Order, reason: str) -> None:
    outcome = cluster.obey(cluster.elect(), order)
    assert isinstance(outcome, OrderRefused)
    assert reason in outcome.reason


def test_last_voter_cannot_be_removed() -> None:
    cluster = Cluster("a")
    cluster.join("b")
    cluster.advance(1_000)
    assert cluster.obey("a", RemoveVoter("a")) == OrderRefused("a is the last voter")


def test_order_is_answered_when_it_is_committed_and_not_before(cluster: Cluster) -> None:
    master, gone = cluster.elect(), follower_of(cluster)
    cluster.held = set(cluster.names)
    ticket = cluster.order(master, RemoveVoter(gone))
    assert cluster.answers(master, ticket) == []
    cluster.held = set()
    cluster.settle()
    assert cluster.answer(master, ticket) == OrderDone(f"{gone} is no voter any more")


def test_second_change_is_refused_while_the_first_is_under_way(cluster: Cluster) -> None:
    master, gone = cluster.elect(), follower_of(cluster)
    cluster.join("d")
    cluster.advance(2_000)
    cluster.held = set(cluster.names)
    first = cluster.order(master, RemoveVoter(gone))
    outcome = cluster.answer(master, cluster.order(master, AddVoter("d")))
    assert isinstance(outcome, OrderRefused)
    assert "try again" in outcome.reason
    cluster.heal()
    assert isinstance(cluster.answer(master, first), OrderDone)
    assert isinstance(cluster.obey(master, AddVoter("d")), OrderDone)


def test_order_of_a_master_that_is_deposed_is_answered_once_as_open(cluster: Cluster) -> None:
    master, gone = cluster.elect(), follower_of(cluster)
    cluster.isolate(master)
    ticket = cluster.order(master, RemoveVoter(gone))
    assert len(cluster.node(master).replica.voters) == 2
    cluster.advance(1_500)
    outcome = cluster.answer(master, ticket)
    assert isinstance(outcome, OrderRefused)
    assert "check the status" in outcome.reason
    cluster.elect_other(master)
    cluster.heal()
    cluster.advance(1_000)
    assert len(cluster.node(master).replica.voters) == 3
    assert len(cluster.answers(master, ticket)) == 1


def test_master_that_takes_itself_out_answers_that_it_is_done_and_hands_over(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.advance(300)
    began_ms = cluster.now_ms
    send = cluster.submit(master, SEND)
    ticket = cluster.order(master, RemoveVoter(master))
    assert cluster.answer(master, ticket) == OrderDone(f"{master} is no voter any more")
    assert not isinstance(cluster.answer(master, send), Exception), "it was committed with it"
    new = cluster.elect_other(master)
    assert cluster.now_ms - began_ms <= 300
    cluster.advance(3_000)
    assert cluster.serving() == [new]
    assert "was removed" in cluster.node(master).status(cluster.now_ms).reason
    assert len(cluster.do(new, c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)).messages) == 1


def test_cluster_shrinks_to_one_and_grows_back(cluster: Cluster) -> None:
    master = cluster.elect()
    others = [name for name in cluster.names if name != master]
    for name in others:
        assert isinstance(cluster.obey(master, RemoveVoter(name)), OrderDone)
        cluster.do(master, SEND)
        cluster.crash(name)
        cluster.advance(500)
    assert cluster.node(master).replica.voters == (master,)
    cluster.advance(20_000)
    cluster.do(master, SEND)
    assert cluster.serving() == [master]
    for name in ("d", "e"):
        cluster.join(name)
        cluster.advance(2_000)
        assert isinstance(cluster.obey(master, AddVoter(name)), OrderDone)
    cluster.crash(master)
    new = cluster.elect()
    assert len(cluster.do(new, c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)).messages) == 3


def test_digests_of_all_members_are_equal_at_the_same_place(cluster: Cluster) -> None:
    for _ in range(3):
        master = cluster.elect()
        for _ in range(5):
            cluster.do(master, SEND)
        outcome = cluster.obey(master, VerifyRows())
        assert isinstance(outcome, OrderDone)
        cluster.advance(300)
        index = int(outcome.text.rpartition(" ")[2])
        digests = {cluster.node(name).status(cluster.now_ms).digests[index] for name in cluster.names}
        assert len(digests) == 1
        cluster.isolate(master)
        cluster.say(master, SEND)  # it sees a later time that comes to nothing
        cluster.elect_other(master)
        cluster.heal()
        cluster.advance(1_000)
