"""What a node tells the operator's log: each event once, by what really happens to members in memory."""

from collections.abc import Iterable

import pytest

from elasticq.node.orders import AddVoter, OrderDone, RemoveVoter, TransferMastership
from elasticq.node.outputs import News
from tests.node.cluster import Cluster, Solo, member_id

A, B, C, D = map(member_id, "abcd")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster.fresh()
    made.introduce_all()
    made.elect()
    made.advance(1_000)
    return made


def told(cluster: Cluster, name: str) -> list[News]:
    """What the member told since it was asked last."""
    news = cluster.node(name).effects.news
    found = news.copy()
    news.clear()
    return found


def hush(cluster: Cluster) -> None:
    for name in cluster.names:
        told(cluster, name)


def texts(news: Iterable[News], event: str) -> list[str]:
    return [one.text for one in news if one.event == event]


def warnings(news: Iterable[News]) -> list[str]:
    return [one.event for one in news if one.is_warning]


def others(cluster: Cluster, name: str) -> list[str]:
    return [each for each in cluster.names if each != name]


def test_founding_and_the_first_election_are_told_once_by_each_member(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    term = cluster.node(master).replica.term
    cluster_id = cluster.node(master).replica.cluster
    news = {name: told(cluster, name) for name in cluster.names}
    for name in cluster.names:
        assert texts(news[name], "founded") == [f"The cluster {cluster_id} was founded by a, b, c."]
        assert warnings(news[name]) == []
    assert texts(news[master], "election") == [f"This member stands for master of term {term}, as no master was heard."]
    (gained,) = texts(news[master], "mastership_gained")
    assert gained.startswith(f"This member was elected master of term {term}, by ")
    assert texts(news[master], "master") == []
    for name in others(cluster, master):
        assert texts(news[name], "master") == [f"{master[0]} is the master of term {term}."]
    cluster.advance(60_000)
    assert all(told(cluster, name) == [] for name in cluster.names), "nothing is told of heartbeats"


def test_member_alone_tells_that_it_is_master_and_of_no_election() -> None:
    news = Solo().node.effects.news
    assert [one.event for one in news] == ["mastership_gained"]


def test_mastership_that_is_handed_over_is_told_without_a_warning(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    to = others(cluster, master)[0]
    hush(cluster)
    assert isinstance(cluster.obey(master, TransferMastership(to[0])), OrderDone)
    cluster.advance(1_000)
    assert cluster.serving() == [to]
    term = cluster.node(to).replica.term
    lost = told(cluster, master)
    assert texts(lost, "mastership_lost") == [
        f"This member is master no more, as it hands the mastership over: others are in the newer term {term}."
    ]
    assert warnings(lost) == []
    won = told(cluster, to)
    assert texts(won, "election") == [f"This member stands for master of term {term}, as the master hands over."]
    assert len(texts(won, "mastership_gained")) == 1


def test_master_without_a_majority_tells_why_it_is_none_and_both_ends_of_its_read_only_time(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    hush(cluster)
    cluster.isolate(master)
    cluster.advance(20_000)
    news = told(cluster, master)
    assert texts(news, "mastership_lost") == ["This member is master no more: no majority was heard for 700 ms."]
    assert texts(news, "read_only") == [
        "This member is read-only: 1 of 3 members reach each other, 2 are needed for a master."
    ]
    assert warnings(news) == ["mastership_lost", "read_only"]
    assert texts(news, "read_only_ended") == []
    other = cluster.elect_other(master)
    assert texts(told(cluster, other), "read_only") == [], "two of three go on"
    cluster.heal()
    cluster.advance(5_000)
    news = told(cluster, master)
    assert texts(news, "read_only_ended") == [f"This member is read-only no more: {other[0]} is master."]
    assert len(texts(news, "master")) == 1
    assert warnings(news) == []


def test_learner_tells_that_it_joins_and_the_master_that_it_follows(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    hush(cluster)
    cluster.join(D)
    cluster.advance(2_000)
    joined = told(cluster, D)
    cluster_id = cluster.node(master).replica.cluster
    assert texts(joined, "joining") == [f"This member joins the cluster {cluster_id} as a learner."]
    assert texts(joined, "founded") == []
    assert texts(told(cluster, master), "learner") == [f"d ({D}) follows the log as a learner."]
    assert isinstance(cluster.obey(master, AddVoter("d")), OrderDone)
    cluster.advance(1_000)
    for name in cluster.names:
        news = told(cluster, name)
        assert texts(news, "voter_added") == [f"d ({D}) is a voter now: the voters are a, b, c, d."]
        assert texts(news, "learner") == []
        assert warnings(news) == []


def test_removed_voter_is_told_once_by_those_who_stay_and_by_itself(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    gone = others(cluster, master)[0]
    hush(cluster)
    assert isinstance(cluster.obey(master, RemoveVoter(gone[0])), OrderDone)
    cluster.advance(5_000)
    left = ", ".join(name[0] for name in others(cluster, gone))
    for name in cluster.names:
        news = told(cluster, name)
        assert texts(news, "voter_removed") == [f"{gone[0]} ({gone}) is no voter any more: the voters are {left}."]
        assert warnings(news) == ["voter_removed"]


def test_restarted_member_does_not_tell_old_news(cluster: Cluster) -> None:
    (master,) = cluster.serving()
    name = others(cluster, master)[0]
    cluster.crash(name)
    cluster.restart(name)
    cluster.advance(5_000)
    news = told(cluster, name)
    assert [one.event for one in news] == ["master"]
