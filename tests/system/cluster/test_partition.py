"""Links that carry nothing, one direction only, late, or on and off (F10-F17)."""

import pytest

from tests.system.cluster.cluster import Cluster, let_pass, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load
from tests.system.durability.chaos import now_us

GAP_MAX_MS = 2_500
LAST_WORD_MS = 1_600  # a master alone steps down by 1.4 s; the rest is for two cores
HEALED_S = 5
APART_S = 20
FLAPS = 8
FLAP_S = 2
BRIDGED_S = 30


def others(cluster: Cluster, *names: str) -> list[str]:
    return [name for name in cluster.names() if name not in names]


def has_healed(cluster: Cluster) -> None:
    """Within the time that the table gives."""
    cluster.heal()
    cluster.master(patience_s=HEALED_S)
    cluster.wait_ready(patience_s=HEALED_S)


def test_master_alone_acknowledges_nothing(cluster: Cluster) -> None:  # F10
    with Load(cluster) as load:
        load.wait_for(100)
        master = cluster.master()
        rest = others(cluster, master)
        cut_us = now_us()
        cluster.partition([master], rest)
        load.wait_for(50, since_us=cut_us)
        gap_ms = load.gap_ms(cut_us)
        assert cluster.master(rest) in rest
        let_pass(2 * LAST_WORD_MS / 1_000)
        late = [write for write in load.after(cut_us, by=master) if write.at_us > cut_us + LAST_WORD_MS * 1_000]
        assert late == []
        assert not cluster[master].is_ready()
        print(f"master cut off: gap {gap_ms:.0f} ms")
        has_healed(cluster)
        load.wait_for(50, by=master)
        load.assert_clean()
    assert gap_ms < GAP_MAX_MS
    cluster.same_rows()


@pytest.mark.chaos
@pytest.mark.parametrize("mode", ["async", "one"])
def test_master_alone_acknowledges_nothing_in_any_mode(make_cluster: MakeCluster, mode: str) -> None:  # F10
    cluster = make_cluster(mode=mode).start()
    master = cluster.master()
    url = cluster[master].call("CreateQueue", QueueName="alone")["QueueUrl"]
    cluster.partition([master], others(cluster, master))
    let_pass(LAST_WORD_MS / 1_000)
    assert cluster[master].ask("SendMessage", QueueUrl=url, MessageBody="no").status == 503
    has_healed(cluster)
    cluster.same_rows()


@pytest.mark.chaos
def test_follower_alone_raises_no_term(cluster: Cluster) -> None:  # F11
    with Load(cluster) as load:
        load.wait_for(100)
        master, term = cluster.master(), cluster.term()
        follower = cluster.followers()[0]
        cluster.partition([follower], others(cluster, follower))
        let_pass(APART_S)
        load.wait_for(50)
        assert cluster[follower].status()["term"] == term
        has_healed(cluster)
        load.wait_for(50, by=follower)
        assert (cluster.master(), cluster.term()) == (master, term)
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_everybody_alone_only_reads_and_heals(cluster: Cluster) -> None:  # F12
    url = cluster["n1"].call("CreateQueue", QueueName="alone")["QueueUrl"]
    with Load(cluster) as load:
        load.wait_for(100)
        cluster.partition()
        let_pass(LAST_WORD_MS / 1_000)
        for member in cluster.running():
            refused = member.ask("SendMessage", QueueUrl=url, MessageBody="no")
            assert refused.status == 503, refused
            listed = member.ask("ListQueues")
            assert listed.status == 200
            assert "x-elasticq-stale" in listed.headers
        healed_us = now_us()
        has_healed(cluster)
        load.wait_for(20, since_us=healed_us)
        print(f"three healed: a write after {(load.after(healed_us)[0].at_us - healed_us) / 1_000:.0f} ms")
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_five_split_one_way_and_then_the_other(make_cluster: MakeCluster) -> None:  # F13
    cluster = make_cluster(5).start()
    with Load(cluster) as load:
        load.wait_for(100)
        for majority in (["n1", "n2", "n3"], ["n3", "n4", "n5"]):
            minority = others(cluster, *majority)
            cut_us = now_us()
            cluster.partition(majority, minority)
            until(lambda of=majority: cluster.master_or_none(of) in of, f"a master among {majority}")
            load.wait_for(50, since_us=cut_us)
            let_pass(LAST_WORD_MS / 1_000)
            last_us = cut_us + LAST_WORD_MS * 1_000
            late = [write for name in minority for write in load.after(cut_us, name) if write.at_us > last_us]
            assert late == []
        has_healed(cluster)
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
@pytest.mark.parametrize("deaf", [True, False], ids=["cannot hear", "cannot send"])
def test_half_deaf_master_is_replaced(cluster: Cluster, deaf: bool) -> None:  # F14
    with Load(cluster) as load:
        load.wait_for(100)
        master = cluster.master()
        rest = others(cluster, master)
        cut_us = now_us()
        for other in rest:
            cluster.silence(*((other, master) if deaf else (master, other)))
        cluster.master(rest, other_than=master)
        load.wait_for(50, since_us=cut_us)
        print(f"master {'deaf' if deaf else 'mute'}: gap {load.gap_ms(cut_us):.0f} ms")
        has_healed(cluster)
        load.wait_for(50, by=master)
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_swallowed_bytes_are_noticed(cluster: Cluster) -> None:
    """A connection that lost bytes in its middle carries no frame of a wrong shape."""
    with Load(cluster) as load:
        load.wait_for(100)
        master, follower = cluster.master(), cluster.followers()[0]
        cluster.silence(master, follower, "swallow")
        let_pass(FLAP_S)
        has_healed(cluster)
        load.wait_for(50, by=follower)
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_two_that_cannot_meet_share_a_bridge(cluster: Cluster) -> None:  # F15
    url = cluster["n1"].call("CreateQueue", QueueName="bridge")["QueueUrl"]
    with Load(cluster) as load:
        load.wait_for(100)
        term = cluster.term()
        master = cluster.master()
        follower = cluster.followers()[0]
        cluster.cut(master, follower)
        let_pass(BRIDGED_S)
        assert cluster.term() - term <= 3
        for name in cluster.names():
            until(
                lambda name=name: cluster[name].ask("SendMessage", QueueUrl=url, MessageBody=name).status == 200,
                f"{name} serves by the bridge",
            )
        has_healed(cluster)
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_late_and_uneven_network_stays_clean(cluster: Cluster) -> None:  # F16
    with Load(cluster) as load:
        load.wait_for(100)
        for name in cluster.names():
            cluster.slow(name, delay_ms=50, jitter_ms=50)
        load.wait_for(200)
        cluster.heal()
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
@pytest.mark.parametrize("whose", ["master", "follower"])
def test_flapping_link_costs_at_most_an_election_a_flap(cluster: Cluster, whose: str) -> None:  # F17
    with Load(cluster) as load:
        load.wait_for(100)
        term = cluster.term()
        elections = 0
        for _ in range(FLAPS):
            name = cluster.master() if whose == "master" else cluster.followers()[0]
            cluster.isolate(name)
            let_pass(FLAP_S)
            cluster.heal()
            let_pass(FLAP_S)
            elections += whose == "master"
        load.wait_for(50)
        assert cluster.term() - term <= elections
        load.assert_clean()
    cluster.same_rows()
