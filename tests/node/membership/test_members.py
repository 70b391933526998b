"""Founding, joining, replacing: who is a member, and what is said where somebody cannot become one."""

import pytest

from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.model import commands as c
from elasticq.node.orders import AddVoter, OrderDone, RemoveVoter
from elasticq.node.outputs import Frame
from elasticq.replication import messages
from elasticq.replication.messages import Append
from elasticq.replication.records import Durable
from tests.node.cluster import Cluster, Member, member_id

A, B, C, D = map(member_id, "abcd")
CREATE = c.CreateQueue(queue_name="jobs")
SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)


def founded(*, volatile: bool = False, names: str = "abc", **settings: object) -> Cluster:
    cluster = Cluster.fresh(names, nodes=len(names), volatile=volatile, **settings)
    cluster.introduce_all()
    cluster.elect()
    cluster.do(cluster.elect(), CREATE)
    return cluster


def check_equal_states(cluster: Cluster) -> None:
    cluster.advance(300)
    nodes = [member.node for member in cluster.members.values()]
    assert len({node.applied_index for node in nodes}) == 1
    assert len({state_digest(node.state) for node in nodes}) == 1


def reason(cluster: Cluster, name: str) -> str:
    return cluster.node(name).status(cluster.now_ms).reason


# --- founding ----------------------------------------------------------------------


def test_nobody_founds_before_all_have_met() -> None:
    cluster = Cluster.fresh()
    cluster.advance(5_000)
    assert all(cluster.node(name).members.is_fresh for name in cluster.names)
    assert reason(cluster, A) == "waiting to found the cluster: 1 of 3 members have met"
    cluster.introduce(A, B)
    cluster.introduce(B, C)
    cluster.advance(5_000)
    assert all(cluster.node(name).members.is_fresh for name in cluster.names), "a and c have not met"
    assert reason(cluster, A) == "waiting to found the cluster: 2 of 3 members have met"
    assert cluster.masters() == []
    cluster.introduce(A, C)
    assert cluster.elect() in cluster.names


@pytest.mark.parametrize("volatile", [False, True])
def test_all_founders_have_the_same_first_entry_and_cluster(volatile: bool) -> None:
    cluster = founded(volatile=volatile)
    firsts = [cluster.node(name).replica.log.entry(1) for name in cluster.names]
    assert firsts[0] == firsts[1] == firsts[2]
    assert [voter.id for voter in firsts[0].voters or ()] == [A, B, C]
    assert len({cluster.node(name).replica.cluster for name in cluster.names}) == 1
    check_equal_states(cluster)
    assert all(cluster.node(name).status(cluster.now_ms).ready for name in cluster.names)


def test_the_lowest_id_proposes_and_nobody_else() -> None:
    cluster = Cluster.fresh()
    for name in (B, C):
        cluster.introduce(A, name)
    assert cluster.node(A).replica.cluster, "it has met all"
    assert cluster.node(B).replica.log.entry(1) == cluster.node(A).replica.log.entry(1)


def test_founding_entry_that_was_lost_comes_through_when_they_meet_again() -> None:
    cluster = Cluster.fresh()
    cluster.drops = lambda sender, frame: frame.to == C
    cluster.introduce_all()
    assert cluster.node(C).replica.log.last_index == 0
    cluster.drops = None
    cluster.part(A, C)
    cluster.heal()
    cluster.advance(3_000)
    assert cluster.node(C).replica.membership.is_voter
    check_equal_states(cluster)


def test_founder_that_dies_before_it_signed_is_waited_for() -> None:
    """Two of the three have signed: that is a quorum, and the third one's vote is not needed."""
    cluster = Cluster.fresh()
    cluster.drops = lambda sender, frame: frame.to == C
    cluster.introduce_all()
    cluster.crash(C)
    cluster.drops = None
    master = cluster.elect()
    assert cluster.node(master).replica.voters == (A, B, C)
    cluster.restart(C)
    cluster.advance(2_000)
    assert cluster.node(C).replica.membership.is_voter
    check_equal_states(cluster)


def test_contradicting_numbers_found_nothing_and_are_named() -> None:
    cluster = Cluster.fresh("ab", nodes=2)
    cluster.add(C, nodes=3)
    for one, other in ((A, C), (B, C), (A, B)):
        cluster.introduce(one, other)
    cluster.advance(3_000)
    assert cluster.masters() == []
    assert "--nodes differs: 2 here, 3 elsewhere" in reason(cluster, A)
    assert "--nodes differs: 3 here, 2 elsewhere" in reason(cluster, C)


def test_too_many_fresh_members_found_nothing_until_one_leaves() -> None:
    cluster = Cluster.fresh("abcd", nodes=3)
    greetings = {name: cluster.node(name).introduce() for name in cluster.names}
    for one in cluster.names:  # nobody hears of fewer than all
        members = cluster.node(one).members
        members.peers = {other: greetings[other] for other in cluster.names if other != one}
        members.linked = set(members.peers)
    cluster.node(A).met(greetings[B], cluster.now_ms)
    assert "4 fresh members (a, b, c, d) for --nodes 3" in reason(cluster, A)
    assert cluster.node(A).members.is_fresh
    for one in (C, B, A):
        cluster.node(one).lost(D, cluster.now_ms)
        cluster.members[one].drain()
    cluster.settle()
    assert not cluster.node(A).members.is_fresh, "the three that are left found without meeting anew"
    assert cluster.elect() in (A, B, C)


def test_other_cluster_names_are_strangers() -> None:
    cluster = Cluster.fresh("ab", nodes=2)
    cluster.add(C, nodes=2, cluster_name="other")
    cluster.introduce(A, C)
    cluster.advance(2_000)
    assert cluster.node(A).members.is_fresh
    assert cluster.node(A).members.linked == set()


# --- joining -----------------------------------------------------------------------


@pytest.mark.parametrize("volatile", [False, True])
def test_fresh_member_that_meets_a_cluster_joins_it_as_learner(volatile: bool) -> None:
    cluster = founded(volatile=volatile)
    cluster.join(D, nodes=3, volatile=volatile)
    cluster.advance(3_000)
    node = cluster.node(D)
    assert not node.replica.membership.is_voter
    assert node.replica.cluster == cluster.node(A).replica.cluster
    check_equal_states(cluster)
    assert node.status(cluster.now_ms).ready
    cluster.do(D, SEND)
    roles = {status.name: status.role for status in cluster.node(cluster.elect()).status(cluster.now_ms).members}
    assert sorted(roles.values()) == ["follower", "follower", "learner", "master"]


@pytest.mark.parametrize("volatile", [False, True])
def test_learner_takes_a_snapshot_and_goes_on_from_it(volatile: bool) -> None:
    cluster = founded(volatile=volatile)
    master = cluster.elect()
    for _ in range(20):
        cluster.do(master, SEND)
    cluster.advance(300)
    cluster.forget_log(master)
    assert cluster.node(master).replica.log.base_index > 1
    cluster.join(D, volatile=volatile)
    cluster.advance(3_000)
    assert cluster.node(D).replica.log.base_index > 0, "it came by a snapshot"
    assert cluster.node(D).replica.cluster == cluster.node(master).replica.cluster
    for _ in range(5):
        cluster.do(master, SEND)
    check_equal_states(cluster)
    assert cluster.node(D).effects.wanted is None
    assert cluster.obey(master, AddVoter("d")) == OrderDone(f"{D} is a voter")
    check_equal_states(cluster)
    assert cluster.node(D).replica.membership.is_voter


def test_learner_knows_its_cluster_again_after_a_restart_over_its_snapshot() -> None:
    cluster = founded()
    master = cluster.elect()
    cluster.forget_log(master)
    cluster.join(D)
    cluster.advance(3_000)
    assert cluster.node(D).replica.log.base_index > 0
    cluster.crash(D)
    cluster.restart(D)
    assert cluster.node(D).introduce().cluster == cluster.node(master).replica.cluster
    cluster.do(master, SEND)
    cluster.advance(2_000)
    check_equal_states(cluster)


def test_learner_that_went_down_before_it_heard_of_a_commit_knows_its_cluster_again() -> None:
    """It has entries of a cluster that was one member's alone, and has applied none of them."""
    cluster = Cluster([A])
    cluster.do(A, CREATE)
    cluster.join(B)
    cluster.advance(3_000)
    cluster.crash(B)
    cluster.isolate(A)
    cluster.restart(B)
    assert (cluster.node(B).applied_index, cluster.node(B).replica.log.base_index) == (0, 0)
    assert cluster.node(B).introduce().cluster == cluster.node(A).replica.cluster
    cluster.heal()
    cluster.do(A, SEND)
    cluster.advance(3_000)
    check_equal_states(cluster)


def test_calls_of_a_member_that_installed_a_second_snapshot_are_executed() -> None:
    """Its numbers begin anew, so its forwarded messages must be of another life."""
    cluster = founded()
    master = cluster.elect()
    cluster.forget_log(master)
    cluster.join(D)
    cluster.advance(2_000)
    for _ in range(3):
        cluster.do(D, SEND)
    cluster.isolate(D)
    for _ in range(3):
        cluster.do(master, SEND)
    cluster.forget_log(master)
    cluster.advance(20_000)
    cluster.forget_log(master)
    base = cluster.node(D).replica.log.base_index
    cluster.heal()
    cluster.advance(2_000)
    assert cluster.node(D).replica.log.base_index > base
    cluster.do(D, SEND)
    check_equal_states(cluster)


def test_two_clusters_refuse_to_mix_and_both_say_why() -> None:
    one, other = founded(), Cluster.fresh("xyz", offsets_ms=(7, 7, 7))
    other.introduce_all()
    other.elect()
    stranger = other.node(other.names[0]).introduce()
    own = one.node(A).introduce()
    before = one.node(A).status(one.now_ms)
    assert before.ready
    one.node(A).met(stranger, one.now_ms)
    other.node(other.names[0]).met(own, other.now_ms)
    for status in (one.node(A).status(one.now_ms), other.node(other.names[0]).status(other.now_ms)):
        assert not status.ready
        assert "another cluster" in status.reason
        assert "--cluster-name" in status.reason
    assert one.node(A).replica.voters == before.voters
    one.node(A).lost(stranger.id, one.now_ms)
    assert one.node(A).status(one.now_ms).ready


def test_fresh_member_between_two_clusters_joins_neither_until_one_is_gone() -> None:
    cluster = founded()
    other = Cluster.fresh("xyz", offsets_ms=(7, 7, 7))
    other.introduce_all()
    other.elect()
    strangers = [other.node(name).introduce() for name in other.names]
    cluster.add(D)
    known = cluster.node(A).introduce()
    for peer in strangers[:1]:
        cluster.node(D).members.peers[peer.id] = peer
        cluster.node(D).members.linked.add(peer.id)
    cluster.node(D).met(known, cluster.now_ms)
    assert "there are 2 clusters of this name" in reason(cluster, D)
    assert cluster.node(D).members.is_fresh
    cluster.node(D).lost(strangers[0].id, cluster.now_ms)
    assert cluster.node(D).replica.cluster == known.cluster


# --- replacing ---------------------------------------------------------------------


def test_removed_member_knows_it_and_serves_nobody() -> None:
    cluster = founded()
    master = cluster.elect()
    gone = next(name for name in cluster.names if name != master)
    assert isinstance(cluster.obey(master, RemoveVoter(gone[0])), OrderDone)
    cluster.advance(2_000)
    assert "was removed from the cluster" in reason(cluster, gone)
    outcome = cluster.answer(gone, cluster.say(gone, SEND))
    assert "was removed" in str(outcome)
    assert cluster.node(master).replica.voters == tuple(name for name in (A, B, C) if name != gone)


def test_removed_member_that_was_away_learns_it_when_it_is_back() -> None:
    cluster = founded()
    master = cluster.elect()
    gone = next(name for name in cluster.names if name != master)
    cluster.isolate(gone)
    assert isinstance(cluster.obey(master, RemoveVoter(gone[0])), OrderDone)
    cluster.advance(30_000)
    term = cluster.node(master).replica.term
    cluster.heal()
    cluster.advance(5_000)
    assert "was removed from the cluster" in reason(cluster, gone)
    assert cluster.node(master).replica.term == term


def test_removed_member_whose_storage_remembers_it_serves_nobody_after_a_restart() -> None:
    cluster = founded()
    master = cluster.elect()
    gone = next(name for name in cluster.names if name != master)
    assert isinstance(cluster.obey(master, RemoveVoter(gone[0])), OrderDone)
    cluster.advance(2_000)
    old = cluster.members[gone]
    replica = old.node.replica
    base = replica.log.base_at(replica.commit_index, replica.membership.committed_voters)
    cluster.crash(gone)
    cluster.names = tuple(name for name in cluster.names if name != gone)
    durable = Durable(old.node.vote, [], base, base.index, was_removed=True)
    rows = [mutation for chunk in dump(cluster.node(master).state) for mutation in chunk]
    cluster.members[gone] = Member(old.settings, durable, old.entropy, rows)
    cluster.start(gone)
    cluster.introduce_all()
    cluster.advance(5_000)
    assert cluster.node(gone).replica.master == master
    assert "was removed from the cluster" in reason(cluster, gone)
    assert "was removed" in str(cluster.answer(gone, cluster.say(gone, SEND)))


def test_member_that_crashed_before_its_removal_was_committed_learns_it_at_its_restart() -> None:
    cluster = founded()
    master = cluster.elect()
    gone = next(name for name in cluster.names if name != master)
    before = cluster.node(master).replica.log.last_index

    def tells_of_the_commit(sender: str, frame: Frame) -> bool:
        message = messages.decode(frame.data)
        return frame.to == gone and isinstance(message, Append) and message.commit_index > before

    cluster.drops = tells_of_the_commit
    assert isinstance(cluster.obey(master, RemoveVoter(gone[0])), OrderDone)
    assert not cluster.node(gone).members.was_removed
    assert not cluster.node(gone).replica.membership.is_voter
    cluster.crash(gone)
    cluster.drops = None
    cluster.restart(gone)
    cluster.advance(5_000)
    assert "was removed from the cluster" in reason(cluster, gone)


def test_learner_that_is_gone_is_forgotten_and_asks_again_when_it_is_back() -> None:
    cluster = founded()
    master = cluster.elect()
    cluster.join(D)
    cluster.advance(2_000)
    assert cluster.node(master).replica.tracker.learners == (D,)
    cluster.crash(D)
    cluster.advance(15_000)
    assert cluster.node(master).replica.tracker.learners == ()
    cluster.restart(D)
    cluster.advance(3_000)
    assert cluster.node(master).replica.tracker.learners == (D,)
    check_equal_states(cluster)


@pytest.mark.parametrize("volatile", [False, True])
def test_cluster_of_one_goes_on_when_its_learner_knows_a_higher_term(volatile: bool) -> None:
    cluster = Cluster([A], volatile=volatile)
    cluster.do(A, CREATE)
    cluster.join(B, volatile=volatile)
    cluster.advance(2_000)
    cluster.node(B).replica._step_down(9, cluster.now_ms)
    cluster.node(B)._finish_input(cluster.now_ms)
    cluster.members[B].drain()
    cluster.advance(5_000)
    assert cluster.serving() == [A]
    cluster.do(A, SEND)
    check_equal_states(cluster)
