"""Changes of the voters: replacing a lost member, growing, and what a change has to wait for."""

import pytest

from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.node.membership.voter_changes import CAUGHT_UP_ENTRIES
from elasticq.node.orders import AddVoter, OrderDone, OrderRefused, ReplaceVoter
from tests.node.cluster import Cluster, member_id
from tests.node.membership.test_members import CREATE, RECEIVE, SEND, A, B, C, D, check_equal_states, founded, reason


def test_wiped_disk_comes_as_learner_and_waits_to_be_put_in_its_place() -> None:
    cluster = founded()
    master = cluster.elect()
    wiped = next(name for name in cluster.names if name != master)
    name = wiped[0]
    cluster.crash(wiped)
    again = member_id(name, 2)
    cluster.join(again)
    cluster.advance(3_000)
    assert cluster.node(again).replica.membership.is_voter is False
    assert f"a learner with the name of {wiped}" in reason(cluster, again)
    assert f"'elasticq cluster replace {name}'" in reason(cluster, again)
    cluster.advance(30_000)
    assert wiped in cluster.node(master).replica.voters, "it is not replaced by itself"
    assert "use 'replace'" in str(cluster.obey(master, AddVoter(name)))
    outcome = cluster.obey(master, ReplaceVoter(name))
    assert outcome == OrderDone(f"{again} is a voter in the place of {wiped}")
    voters = cluster.node(master).replica.voters
    assert again in voters
    assert wiped not in voters
    assert len(voters) == 3
    cluster.advance(300)
    assert cluster.node(again).status(cluster.now_ms).ready


def test_dead_predecessor_of_the_dead_voter_is_not_put_in_its_place() -> None:
    """A master knows a voter that was taken out for a while yet, and it has its name: it is gone all the same."""
    cluster = founded()
    master = cluster.elect()
    wiped = next(name for name in cluster.names if name != master)
    name = wiped[0]
    cluster.crash(wiped)
    second, third = member_id(name, 2), member_id(name, 3)
    cluster.join(second)
    cluster.advance(3_000)
    assert isinstance(cluster.obey(master, ReplaceVoter(name)), OrderDone)
    assert wiped in cluster.node(master).replica.tracker.learners, "it is remembered for now"
    cluster.crash(second)
    refused = cluster.obey(master, ReplaceVoter(name))
    assert refused == OrderRefused(f"no new member has the name of {name}")
    cluster.join(third)
    cluster.advance(3_000)
    assert cluster.obey(master, ReplaceVoter(name)) == OrderDone(f"{third} is a voter in the place of {second}")
    assert set(cluster.node(master).replica.voters) == {*cluster.names[:3]} - {wiped} | {third}


def test_memory_only_member_replaces_its_predecessor_by_itself() -> None:
    cluster = founded(volatile=True)
    master = cluster.elect()
    gone = next(name for name in cluster.names if name != master)
    cluster.crash(gone)
    again = member_id(gone[0], 2)
    cluster.join(again, volatile=True)
    cluster.advance(5_000)
    voters = cluster.node(master).replica.voters
    assert again in voters
    assert gone not in voters
    assert len(voters) == 3
    cluster.do(again, SEND)
    check_equal_states(cluster)


def test_memory_only_member_does_not_replace_one_that_is_alive() -> None:
    cluster = founded(volatile=True)
    master = cluster.elect()
    alive = next(name for name in cluster.names if name != master)
    cluster.join(member_id(alive[0], 2), volatile=True)
    cluster.advance(15_000)
    assert cluster.node(master).replica.voters == (A, B, C)


def test_learner_far_behind_is_not_made_a_voter() -> None:
    cluster = founded()
    master = cluster.elect()
    cluster.join(D)
    cluster.advance(2_000)
    cluster.held = {D}
    for _ in range(CAUGHT_UP_ENTRIES + 50):
        cluster.do(master, SEND)
    assert "has not caught up yet" in str(cluster.obey(master, AddVoter("d")))


@pytest.mark.parametrize("volatile", [False, True])
def test_cluster_of_one_grows_to_three_and_loses_nothing(volatile: bool) -> None:
    """Idle between the steps: no write may be needed to go on."""
    cluster = Cluster([A], volatile=volatile)
    cluster.do(A, CREATE)
    for number in range(5):
        cluster.do(A, c.SendMessage(queue_url="jobs", message_body=str(number)))
    cluster.advance(2_000)
    for name in (B, C):
        cluster.join(name, volatile=volatile)
        cluster.advance(3_000)
        assert isinstance(cluster.obey(A, AddVoter(name[0])), OrderDone)
    check_equal_states(cluster)
    cluster.do(B, SEND)
    cluster.crash(A)
    master = cluster.elect()
    assert len(cluster.do(master, RECEIVE).messages) == 6


def test_voter_joins_only_when_all_that_cannot_be_taken_back_is_committed() -> None:
    """The entries of the lonely time have no previous rows."""
    cluster = Cluster([A])
    cluster.do(A, CREATE)
    cluster.advance(1_000)
    cluster.held = {A}
    for _ in range(3):
        cluster.say(A, SEND)
    cluster.join(B)
    cluster.advance(2_000)
    assert "not yet" in str(cluster.obey(A, AddVoter("b")))
    assert cluster.node(A).replica.voters == (A,)
    cluster.held = set()
    cluster.advance(3_000)
    assert isinstance(cluster.obey(A, AddVoter("b")), OrderDone)
    check_equal_states(cluster)
    before = state_digest(cluster.node(A).state)
    cluster.isolate(A)
    for _ in range(3):
        cluster.say(A, SEND)
    assert state_digest(cluster.node(A).state) != before
    cluster.advance(1_500)
    assert state_digest(cluster.node(A).state) == before
