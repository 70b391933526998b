"""Whose turn it is outlives a restart on rows and a failover; a slot that comes back wakes who waits for it."""

from elasticq.model import commands as c
from elasticq.model.results import ReceiveMessageResult
from tests.node.cluster import Cluster, Solo
from tests.node.test_content_cache import Deep

SHARED = {
    "ElasticqFairness": "weighted",
    "ElasticqGroupSeparator": ".",
    "ElasticqGroupWeights": '{"a": 3, "b": 2}',
    "ElasticqMaxInFlightPerGroup": "40",
}
CREATE = c.CreateQueue("shared", SHARED)
GROUPS = ("a.1", "a.2", "b", "c", None)
ONE = c.ReceiveMessage("shared", visibility_timeout=600)


def messages(count: int) -> list[c.SendMessage]:
    found = [
        c.SendMessage("shared", f"{group}/{at}", message_group_id=group) for at in range(count) for group in GROUPS
    ]
    assert len(found) == count * len(GROUPS)
    return found


def groups(deep: Deep, count: int) -> list[str]:
    found = []
    for _ in range(count):
        result = deep.deep_do(ONE)
        assert isinstance(result, ReceiveMessageResult)
        found += [message.body.split("/")[0] for message in result.messages]
    return found


def test_restart_in_the_middle_changes_no_turn() -> None:
    lives = Deep(), Deep()
    for at, deep in enumerate(lives):
        deep.do(CREATE)
        for message in messages(30):
            deep.do(message)
        deep.store()
        for _ in range(6):
            groups(deep, 7)
            deep.store()
            if at:
                deep.restart()
    never, often = [groups(deep, 60) for deep in lives]
    assert often == never
    assert never.count("a.1") + never.count("a.2") > never.count("b") > never.count("c")


def test_rows_of_turns_go_with_their_queue() -> None:
    deep = Deep()
    deep.do(CREATE)
    for message in messages(2):
        deep.do(message)
    groups(deep, 4)
    deep.store()
    assert deep.connection.execute("SELECT count(*) FROM turns").fetchone()[0] > 3
    deep.do(c.DeleteQueue("shared"))
    deep.advance(120_000)
    deep.store()
    assert deep.connection.execute("SELECT count(*) FROM turns").fetchone() == (0,)
    deep.restart()
    assert not any(deep.node.state.turns.values())


def cluster_groups(cluster: Cluster, master: str, count: int) -> list[str]:
    found = []
    for _ in range(count):
        result = cluster.do(master, ONE)
        assert isinstance(result, ReceiveMessageResult)
        found += [message.body.split("/")[0] for message in result.messages]
    return found


def filled() -> tuple[Cluster, str]:
    cluster = Cluster()
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, CREATE)
    for message in messages(20):
        cluster.do(master, message)
    return cluster, master


def test_next_master_goes_on_with_the_turns_of_the_last_one() -> None:
    cluster, master = filled()
    undisturbed = cluster_groups(cluster, master, 60)
    cluster, master = filled()
    found = cluster_groups(cluster, master, 23)
    cluster.advance(300)
    cluster.crash(master)
    successor = cluster.elect()
    assert found + cluster_groups(cluster, successor, 37) == undisturbed


def test_slot_that_a_delete_gives_back_wakes_a_receive() -> None:
    solo = Solo()
    solo.do(c.CreateQueue("jobs", {"ElasticqFairness": "round_robin", "ElasticqMaxInFlightPerGroup": "1"}))
    for body in ("first", "second"):
        solo.do(c.SendMessage("jobs", body, message_group_id="a"))
    (taken,) = solo.receive(10, visibility_s=600)
    ticket = solo.poll(20)
    assert not solo.answers(ticket)
    solo.do(c.DeleteMessage("jobs", taken.receipt_handle))
    (answer,) = solo.answers(ticket)
    assert isinstance(answer, ReceiveMessageResult)
    assert [message.body for message in answer.messages] == ["second"]
