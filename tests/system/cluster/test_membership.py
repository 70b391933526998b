"""Members that come, go and come back without a memory (F26-F29)."""

import pytest

from tests.system.cluster.cluster import Cluster, Member, ask, let_pass, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load, fill
from tests.system.durability.chaos import now_us

MESSAGES = 3_500
BODY = "x" * 10_000  # in all more than the log keeps (32 MiB), so that only a snapshot helps
SLOW_BYTES_PER_S = 500_000  # so that a transfer can be caught in its middle
TRANSFERRED_BYTES = 3_000_000


def stored(cluster: Cluster, messages: int = MESSAGES) -> str:
    url = str(cluster["n1"].call("CreateQueue", QueueName="stored")["QueueUrl"])
    fill(cluster, url, messages, body=BODY)
    return url


def took_snapshot(member: Member) -> bool:
    return "snapshot_installed" in member.log.read_text()


def count(cluster: Cluster, url: str) -> int:
    counts = cluster[cluster.master()].call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(counts["ApproximateNumberOfMessages"])


@pytest.mark.parametrize("memory", [False, pytest.param(True, marks=pytest.mark.chaos)], ids=["disk", "memory"])
def test_joiner_catches_up_under_load(make_cluster: MakeCluster, memory: bool) -> None:  # F26
    cluster = make_cluster(memory=memory).start()
    url = stored(cluster)
    with Load(cluster) as load:
        load.wait_for(150)
        before_ms = load.p99_ms()
        joined_us = now_us()
        cluster.add("n4")
        assert "n4" not in cluster.voters()
        cluster.promote("n4")
        during_ms = load.p99_ms(joined_us)
        print(f"join with {MESSAGES} messages: p99 of sends {before_ms:.0f} ms before, {during_ms:.0f} ms during")
        cluster.wait_ready()
        load.assert_clean()
    cluster.same_rows()
    assert took_snapshot(cluster["n4"])
    assert count(cluster, url) == MESSAGES
    assert cluster.voters() == ["n1", "n2", "n3", "n4"]


@pytest.mark.chaos
def test_transfer_that_is_cut_goes_on(cluster: Cluster) -> None:  # F26
    stored(cluster)
    with Load(cluster) as load:
        cluster.add("n4", start=False)
        for name in ("n1", "n2", "n3"):
            cluster.network.set(name, "n4", bytes_per_s=SLOW_BYTES_PER_S)
        cluster["n4"].start()
        until_transferred(cluster)
        for name in ("n1", "n2", "n3"):
            cluster.network.close("n4", name)
            cluster.network.close(name, "n4")
        cluster.heal()
        cluster.promote("n4")
        assert took_snapshot(cluster["n4"])
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_transfer_outlives_the_master(cluster: Cluster) -> None:  # F26
    stored(cluster)
    with Load(cluster) as load:
        cluster.add("n4", start=False)
        for name in ("n1", "n2", "n3"):
            cluster.network.set(name, "n4", bytes_per_s=SLOW_BYTES_PER_S)
        cluster["n4"].start()
        until_transferred(cluster)
        master = cluster.master(["n1", "n2", "n3"])
        cluster.kill9(master)
        cluster.heal()
        cluster.master(other_than=master)
        cluster.promote("n4")
        assert took_snapshot(cluster["n4"])
        cluster.restart(master)
        load.assert_clean()
    cluster.same_rows()


def until_transferred(cluster: Cluster) -> None:
    def passed() -> int:
        return sum(cluster.network.passed_bytes(name, "n4") for name in ("n1", "n2", "n3"))

    until(lambda: passed() > TRANSFERRED_BYTES, "some of the snapshot has passed")


@pytest.mark.chaos
def test_five_shrink_to_one_and_grow_again(make_cluster: MakeCluster) -> None:  # F27
    cluster = make_cluster(5).start()
    with Load(cluster) as load:
        load.wait_for(100)
        for size in (4, 3, 2, 1):
            removed = cluster.master()
            began_us = now_us()
            cluster.operate("remove", removed)
            left = cluster.master([name for name in cluster.names() if name != removed], other_than=removed)
            until(lambda left=left, size=size: len(cluster.voters(left)) == size, f"{size} voters")
            load.wait_for(20, since_us=began_us)
            print(f"{removed} removed, {size} left: gap {load.gap_ms(began_us):.0f} ms")
            refuses(cluster, removed)
            cluster.forget(removed)
        cluster.add("n6")
        cluster.promote("n6")
        cluster.add("n7")
        cluster.promote("n7")
        load.wait_for(50)
        load.assert_clean()
    assert len(cluster.voters()) == 3
    cluster.same_rows()


def refuses(cluster: Cluster, removed: str) -> None:
    """Restarted or not, it serves nobody."""
    member = cluster[removed]
    until(lambda: member.ask("ListQueues").status == 503, f"{removed} refuses: {member.said()}")
    cluster.restart(removed)
    assert not member.is_ready()
    created = member.ask("CreateQueue", QueueName="removed")
    assert created.status == 503, created


def test_any_member_verifies_all_and_passes_orders_on(cluster: Cluster) -> None:
    follower, other = cluster.followers()
    cluster[follower].call("CreateQueue", QueueName="jobs")
    told = cluster.operate("verify", by=follower)
    assert (told.startswith("equal at index "), sorted(told.rpartition(": ")[2].strip().split(", "))) == (
        True,
        ["n1", "n2", "n3"],
    )
    cluster.operate("transfer", other, by=follower)
    until(lambda: cluster.master() == other, f"{other} is master")
    page = ask(cluster[follower].admin_port, "GET", f"/cluster/members/{other}").body
    assert (page["node"], page["role"]) == (other, "master")


def test_removed_member_is_still_removed_when_it_is_started_again(cluster: Cluster) -> None:
    gone = cluster.followers()[0]
    member = cluster[gone]
    cluster.operate("remove", gone)
    until(lambda: "was removed" in member.status().get("reason", ""), f"{gone} knows it: {member.said()}")
    assert member.stop() == 0
    before = len(member.log.read_text())
    member.start()
    member.until_up()

    def is_linked() -> bool:
        members = cluster[cluster.master()].status()["members"]
        return any(each["name"] == gone and each["linked"] for each in members)

    until(is_linked, f"{gone} is linked: {member.said()}")
    until(lambda: member.status().get("master"), f"{gone} hears the master")
    assert not member.is_ready()
    assert "empty its data directory to let it join again (docs/operations.md" in member.status()["reason"]
    for action in ("CreateQueue", "GetQueueUrl"):
        reply = member.ask(action, QueueName="removed")
        assert (reply.status, "was removed from the cluster" in reply.message) == (503, True), reply
    until(lambda: member.log.read_text()[before:].count("this member was removed") == 1, f"it says so: {member.said()}")


@pytest.mark.chaos
def test_removed_member_of_a_dead_machine_shrinks_the_quorum(cluster: Cluster) -> None:
    dead = cluster.followers()[0]
    cluster.kill9(dead)
    cluster.operate("remove", dead)
    assert len(cluster.voters()) == 2
    cluster.forget(dead)
    cluster.add("n4")
    cluster.promote("n4")
    assert len(cluster.voters()) == 3
    cluster.same_rows()


def test_wiped_member_comes_as_learner_and_is_replaced(cluster: Cluster) -> None:  # F28
    with Load(cluster) as load:
        load.wait_for(100)
        wiped = cluster.followers()[0]
        before = ids(cluster, wiped)
        cluster.wipe(wiped)
        cluster[wiped].start()
        cluster[wiped].until_up()
        until(lambda: len(ids(cluster, wiped)) == 2, f"two of the name {wiped}: {cluster.tell()}")
        learner = (ids(cluster, wiped) - before).pop()
        members = {member["id"]: member for member in cluster[cluster.master()].status()["members"]}
        assert not members[learner]["voter"]
        until(lambda: "'replace'" in cluster.try_operate("add", wiped).stderr, f"the order is another for {wiped}")
        until(lambda: cluster.try_operate("replace", wiped).returncode == 0, f"{wiped} is replaced")
        until(lambda: ids(cluster, wiped) == {learner}, "the old one is gone")
        assert cluster.voters() == ["n1", "n2", "n3"]
        cluster.wait_ready()
        load.wait_for(20, by=wiped)
        load.assert_clean()
    cluster.same_rows()


def ids(cluster: Cluster, name: str) -> set[str]:
    """Member ids under a name, as the master knows them."""
    return {member["id"] for member in cluster[cluster.master()].status()["members"] if member["name"] == name}


@pytest.mark.chaos
def test_wiped_majority_cannot_vote_again(cluster: Cluster) -> None:  # F28
    master = cluster.master()
    url = cluster[master].call("CreateQueue", QueueName="amnesia")["QueueUrl"]
    cluster[master].call("SendMessage", QueueUrl=url, MessageBody="stays")
    for name in cluster.followers():
        cluster.wipe(name)
    for name in cluster.names():
        if name != master:
            cluster[name].start()
            cluster[name].until_up()
    let_pass(5)
    assert cluster[master].ask("SendMessage", QueueUrl=url, MessageBody="no").status == 503
    assert not any(member.is_ready() for member in cluster.running())


@pytest.mark.chaos
def test_wiped_memory_member_replaces_itself(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(memory=True).start()
    with Load(cluster) as load:
        load.wait_for(100)
        for name in cluster.names():
            cluster.restart(name)
            cluster.wait_ready()
            until(lambda name=name: len(ids(cluster, name)) == 1, f"{name} replaced itself")
        assert cluster.voters() == ["n1", "n2", "n3"]
        load.assert_clean()
    cluster.same_rows()


@pytest.mark.chaos
def test_two_clusters_refuse_to_mix(make_cluster: MakeCluster) -> None:  # F29
    one = make_cluster().start()
    two = make_cluster(3, prefix="m", network=one.network)
    assert one.secret_file
    two.secret_file = one.secret_file
    two.start()
    for cluster in (one, two):
        cluster.members[cluster.names()[0]].call("CreateQueue", QueueName=f"of-{cluster.prefix}")
    one.meet(two)
    for name in two.names():
        two.restart(name)
        two.wait_ready()
    said = {cluster.prefix: "".join(member.said() for member in cluster.running()) for cluster in (one, two)}
    until(
        lambda: all("never mix" in "".join(m.said() for m in c.running()) for c in (one, two)),
        f"both say why: {said}",
    )
    for cluster in (one, two):
        assert cluster.voters() == sorted(cluster.names())
        for member in cluster.running():
            [url] = member.call("ListQueues")["QueueUrls"]
            assert url.endswith(f"of-{cluster.prefix}")


@pytest.mark.chaos
def test_second_process_of_one_name_is_refused(cluster: Cluster, make_cluster: MakeCluster) -> None:
    twin = make_cluster(1, prefix="t", network=cluster.network)
    twin.secret_file, twin.founders = cluster.secret_file, 3
    double = twin.members["t1"]
    twin.meet(cluster)
    twin.extra = ("--node-id", "n2")
    double.start()
    assert until(lambda: double.process and double.process.poll() is not None, "the twin ends")
    assert double.ended() != 0
    assert "n2" in double.said()
    cluster.wait_ready()
    assert cluster.voters() == ["n1", "n2", "n3"]
