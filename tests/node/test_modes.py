"""Acknowledgement modes: when exactly the answer of a send leaves, and what may be lost then."""

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import SendMessageResult
from elasticq.node.orders import OrderDone, RemoveVoter
from tests.node.cluster import Cluster

SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)
MODES = ("async", "one", "majority", "all")


def made(mode: str, names: str = "abc") -> Cluster:
    cluster = Cluster(names, mode=mode)
    cluster.introduce_all()
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    return cluster


def others(cluster: Cluster, master: str) -> list[str]:
    return [name for name in cluster.names if name != master]


def synced_when_answered(mode: str, names: str) -> int:
    """How many disks, the master's first, must have the send before it is answered."""
    cluster = made(mode, names)
    master = cluster.elect()
    cluster.held = set(names)
    ticket = cluster.say(master, SEND)
    for count, name in enumerate([master, *others(cluster, master)]):
        if cluster.answers(master, ticket):
            return count
        cluster.held.discard(name)
        cluster.settle()
    assert isinstance(cluster.answer(master, ticket), SendMessageResult)
    return len(names)


@pytest.mark.parametrize(
    ("mode", "names", "disks"),
    [
        ("async", "abc", 0),
        ("one", "abc", 2),
        ("majority", "abc", 2),
        ("all", "abc", 3),
        ("async", "abcde", 0),
        ("one", "abcde", 2),
        ("majority", "abcde", 3),
        ("all", "abcde", 5),
    ],
)
def test_send_is_answered_when_the_mode_says_so(mode: str, names: str, disks: int) -> None:
    assert synced_when_answered(mode, names) == disks


@pytest.mark.parametrize("mode", MODES)
def test_everything_but_a_send_waits_for_commit_in_every_mode(mode: str) -> None:
    cluster = made(mode)
    master = cluster.elect()
    cluster.do(master, SEND)
    cluster.held = set(cluster.names)
    tickets = [cluster.say(master, command) for command in (RECEIVE, c.CreateQueue(queue_name="q"))]
    assert all(cluster.answers(master, ticket) == [] for ticket in tickets)
    cluster.held = {others(cluster, master)[0]}
    cluster.settle()
    assert all(len(cluster.answers(master, ticket)) == 1 for ticket in tickets)


def test_receive_of_an_early_send_waits_for_its_commit() -> None:
    cluster = made("async")
    master = cluster.elect()
    cluster.held = set(cluster.names)
    cluster.do(master, SEND)
    ticket = cluster.say(master, RECEIVE)
    assert cluster.answers(master, ticket) == []
    cluster.heal()
    assert len(cluster.answer(master, ticket).messages) == 1  # type: ignore[union-attr]


def test_mode_all_gives_up_after_its_time_and_the_outcome_is_stored() -> None:
    cluster = made("all")
    master = cluster.elect()
    away = others(cluster, master)[0]
    cluster.held = {away}
    ticket = cluster.say(master, SEND)
    cluster.advance(4_999)
    assert cluster.answers(master, ticket) == []
    cluster.advance(1)
    outcome = cluster.answer(master, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "ReplicationTimeout" in outcome.message
    cluster.heal()
    cluster.advance(1_000)
    assert len(cluster.answers(master, ticket)) == 1, "not answered twice"
    assert len(cluster.do(master, RECEIVE).messages) == 1
    cluster.do(master, SEND)


def test_mode_all_waits_for_no_learner_and_for_no_removed_voter() -> None:
    cluster = made("all")
    master = cluster.elect()
    away = others(cluster, master)[0]
    cluster.join("d")
    cluster.advance(2_000)
    cluster.held = {"d"}
    cluster.do(master, SEND)
    cluster.held = {"d", away}
    ticket = cluster.say(master, SEND)
    assert cluster.answers(master, ticket) == []
    assert isinstance(cluster.obey(master, RemoveVoter(away)), OrderDone)
    assert isinstance(cluster.answer(master, ticket), SendMessageResult)


@pytest.mark.parametrize("mode", MODES)
def test_below_quorum_every_mode_refuses_writes(mode: str) -> None:
    cluster = made(mode)
    master = cluster.elect()
    for name in others(cluster, master):
        cluster.crash(name)
    cluster.advance(1_400)
    ticket = cluster.say(master, SEND)
    outcome = cluster.answer(master, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert outcome.message == "read-only: 1 of 3 members, 2 needed"


@pytest.mark.parametrize("mode", MODES)
def test_only_what_was_answered_early_comes_out_as_discarded(mode: str) -> None:
    cluster = made(mode)
    old = cluster.elect()
    cluster.isolate(old)
    cluster.say(old, SEND)
    cluster.say(old, RECEIVE)
    cluster.say(old, c.CreateQueue(queue_name="q"))
    new = cluster.elect_other(old)
    cluster.do(new, c.CreateQueue(queue_name="kept"))
    cluster.heal()
    cluster.advance(1_000)
    cluster.do(new, SEND)
    effects = cluster.node(old).effects
    expected = 1 if mode in ("async", "one") else 0
    assert len(effects.discarded) == expected
    assert cluster.node(old).status(cluster.now_ms).discarded == expected
    assert all(entry.acked_before_commit for entry in effects.discarded)
    assert len(cluster.do(new, RECEIVE).messages) == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_waited_when_the_mastership_was_lost_is_answered_once_as_unknown(mode: str) -> None:
    cluster = made(mode)
    old = cluster.elect()
    cluster.isolate(old)
    ticket = cluster.say(old, SEND)
    cluster.advance(8_000)
    outcome = cluster.answer(old, ticket)
    assert isinstance(outcome, SendMessageResult if mode == "async" else ServiceUnavailable)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("volatile", [False, True])
def test_cluster_of_one_answers_in_every_mode(mode: str, volatile: bool) -> None:
    cluster = Cluster("a", volatile=volatile, mode=mode)
    cluster.do("a", c.CreateQueue(queue_name="jobs"))
    cluster.do("a", SEND)
    cluster.held = {"a"}
    ticket = cluster.say("a", SEND)
    assert bool(cluster.answers("a", ticket)) == (volatile or mode == "async")
    cluster.heal()
    assert isinstance(cluster.answer("a", ticket), SendMessageResult)
