"""A member that has the secret and says what it likes: it costs itself its links, and nobody else anything."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from time import monotonic
from uuid import uuid4

import pytest

from elasticq.node import forwarding as f
from elasticq.node.outputs import Frame
from elasticq.replication import messages as r
from tests.node.intruder import Frames
from tests.peers.community import Member, make_peer, running
from tests.system.cluster.cluster import Cluster, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.durability.chaos import now_us

MINUTES = float(os.environ.get("ELASTICQ_INTRUDER_MINUTES", "3"))
FIRST_SEED = int(os.environ.get("ELASTICQ_INTRUDER_SEED", "1"))


@asynccontextmanager
async def intruding(cluster: Cluster, victim: str) -> AsyncIterator[tuple[Member, str, str]]:
    """It, the victim's id and the cluster's."""
    assert cluster.secret_file is not None
    secret = cluster.secret_file.read_bytes().strip()
    status = cluster[victim].status()
    name = f"e{uuid4().hex[:8]}"
    peer = make_peer(name, incarnation=uuid4().hex, cluster_name="elasticq", cluster=status["cluster"], is_fresh=False)
    member = Member(name, peer=peer, secret=secret, seeds=(cluster[victim].address,))
    async with running(member):
        await member.until(lambda: any(met.name == victim for met in member.mets))
        yield member, next(met.id for met in member.mets if met.name == victim), status["cluster"]


def assert_unharmed(cluster: Cluster) -> None:
    for member in cluster.members.values():
        assert member.is_running(), member.said()
    cluster.wait_ready()
    cluster[cluster.master()].call("SendMessage", QueueUrl="jobs", MessageBody="afterwards")


async def test_frames_that_cannot_be_cost_their_link_and_no_process(cluster: Cluster) -> None:
    master = cluster.master()
    cluster[master].call("CreateQueue", QueueName="jobs")
    for forged in ("term", "answer", "mark"):
        async with intruding(cluster, master) as (member, to, cluster_id):
            head = {"cluster": cluster_id, "sender": member.id, "to": to}
            frames = {
                "term": r.encode(r.PreVoteReply(**head, group=0, term=(1 << 64) - 2, asked_term=1, granted=False)),
                "answer": r.encode(
                    r.AppendReply(**head, group=0, term=cluster.term(), ok=True, match_index=1, round=-1)
                ),
                "mark": f.encode(
                    f.Forward(
                        **head,
                        incarnation="b",
                        number=-1,
                        kind="ListQueues",
                        command=r.msgspec.Raw(b"\x80"),
                        principal="p",
                        account="000000000000",
                        endpoint="http://h",
                        invocation=b"abc",
                    )
                ),
            }
            member.peers.send([Frame(to, frames[forged], 0)])
            await member.until(lambda: to in member.losts)
        until(lambda: "refused_frame" in cluster[master].said(), "the refusal is logged")
    assert_unharmed(cluster)


@pytest.mark.chaos
async def test_minutes_of_odd_frames_end_nobody(make_cluster: MakeCluster) -> None:
    """ELASTICQ_INTRUDER_MINUTES, from seed ELASTICQ_INTRUDER_SEED on; each round a new cluster and one victim."""
    until_s = monotonic() + MINUTES * 60
    seed, said = FIRST_SEED, 0
    while monotonic() < until_s:
        chance = Random(seed)
        cluster = make_cluster(memory=chance.random() < 0.3).start()
        master = cluster.master()
        cluster[master].call("CreateQueue", QueueName="jobs")
        victim = master if chance.random() < 0.6 else cluster.followers()[0]
        round_until_s = monotonic() + 15
        while monotonic() < min(round_until_s, until_s):
            async with intruding(cluster, victim) as (member, to, cluster_id):
                said += await talk(member, to, cluster_id, cluster, victim, chance)
        print(f"seed {seed}: {said} frames so far")
        assert_no_one_ended(cluster, seed)
        cluster.end()
        seed += 1
    assert said


async def talk(member: Member, to: str, cluster_id: str, cluster: Cluster, victim: str, chance: Random) -> int:
    """Some frames over one link, until the victim has read or refused them; how many were sent."""
    status = cluster[victim].status()
    if not status:
        return 0
    frames = Frames(chance, cluster_id, to, status["term"], status["commit"], now_us() // 1_000, member.id)
    drawn = [Frame(to, frames.draw(), 0) for _ in range(chance.randint(1, 8))]
    member.peers.send(drawn)
    link = member.peers._links.live(to)
    if link is not None:
        await link.answers()
    return len(drawn)


def assert_no_one_ended(cluster: Cluster, seed: int) -> None:
    for name in cluster.names():
        assert cluster[name].is_running(), f"seed {seed}: {cluster[name].said()}"
    until(lambda: creates(cluster), f"seed {seed}: the cluster serves again")


def creates(cluster: Cluster) -> bool:
    master = cluster.master_or_none()
    return master is not None and cluster[master].ask("CreateQueue", QueueName="afterwards").status == 200
