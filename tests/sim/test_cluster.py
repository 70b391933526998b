"""What is said of all members together: the master, the phases, and what may be lost."""

from msgspec.structs import replace

from elasticq.sim import phases
from elasticq.sim.cluster import Cluster
from elasticq.sim.faults import scenario
from elasticq.sim.member import Member
from elasticq.sim.world import World

ELECTED_US = 4_000_000


def _world(members: int = 3, spares: int = 0) -> World:
    made = scenario(1, members, kinds=("cut",), background=(), count=1, mode="majority", volatile=(), features=())
    return World(replace(made, faults=(), spares=spares, is_founded_by_meeting=False))


def _started(members: int = 3) -> Cluster:
    """A cluster that has a master, without clients."""
    world = _world(members)
    for member in world.cluster.members:
        member.start()
    world.links.start()
    world.scheduler.run_until(ELECTED_US)
    assert not world.trace.findings
    return world.cluster


def _master(cluster: Cluster) -> Member:
    assert cluster.master is not None
    return cluster.master


def test_founders_know_each_other_and_spares_wait() -> None:
    members = _world(3, spares=1).cluster.members
    founders = tuple(member.id for member in members[:3])
    assert [member.voters for member in members] == [founders, founders, founders, ()]
    assert [member.is_wanted for member in members] == [True, True, True, False]


def test_there_is_no_master_before_an_election_and_then_there_is_one() -> None:
    assert _world().cluster.master is None
    assert _world().cluster.phases == {phases.ELECTION}
    cluster = _started()
    assert cluster.master in cluster.members
    assert cluster.phases == set()


def test_of_two_masters_the_one_with_the_higher_term_counts() -> None:
    cluster = _started()
    old = _master(cluster)
    for other in cluster.members:
        if other is not old:
            cluster.network.cut(old.id, other.id)
            cluster.network.cut(other.id, old.id)
    cluster.scheduler.run_until(cluster.scheduler.now_us + 1_000_000)
    new = _master(cluster)
    assert new is not old
    assert new.node is not None
    assert old.node is None or old.node.replica.term < new.node.replica.term


def test_voter_whose_disk_is_lost_leaves_no_other_to_spare() -> None:
    cluster = _started()
    master = _master(cluster)
    follower, other = (member for member in cluster.members if member is not master)
    assert cluster.lost_voters == []
    assert cluster.may_forget(follower)
    lost = follower.id
    follower.crash()
    follower.become_another()
    assert cluster.lost_voters == [lost]
    assert list(cluster.gone) == [lost]
    assert not cluster.may_forget(other)
    assert cluster.may_forget(follower), "it is no voter under its new id"


def test_frame_for_an_id_that_a_member_had_once_reaches_nobody() -> None:
    cluster = _started()
    follower = next(member for member in cluster.members if member is not cluster.master)
    heard: list[bytes] = []
    follower.receive = lambda sender, data: heard.append(data)  # type: ignore[method-assign]
    old = follower.id
    cluster._deliver("m", old, b"for the old")
    follower.crash()
    follower.become_another()
    cluster._deliver("m", old, b"late")
    cluster._deliver("m", follower.id, b"for the new")
    assert heard == [b"for the old", b"for the new"]
