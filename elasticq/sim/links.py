"""The simulated links between processes: greetings, repeated greetings, and the detection of broken links.

If a link is cut in both directions, both ends notice it after a random time. If a process ends, all processes that it
can still reach notice it at once. A process greets again after its own description (``Peer``) has changed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from elasticq.node.membership.peer import Peer
from elasticq.sim.cluster import Cluster
from elasticq.sim.member import Member
from elasticq.sim.process import Process
from elasticq.sim.proxy import ProxyProcess

AnyProcess = Process[Any]

LOOK_US = 200_000
NOTICED_MAX_US = 3_000_000
GREETING_US = (1_000, 60_000)
BELOW_QUORUM_MAX_US = 2_500_000  # the minimal election timeout plus time for slow frames on their way


class Links:
    """All links of a cluster.

    below_quorum_us: by member id, the time since which the member cannot exchange frames with a quorum.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.random = self.scheduler.random("links")
        self.greeted: dict[tuple[str, str], Peer] = {}  # by member ids (receiver, sender)
        self._missed_us: dict[tuple[str, str], int] = {}  # when a broken link will be noticed
        self.below_quorum_us: dict[str, int] = {}

    def start(self) -> None:
        self._check_all()

    def _check_all(self) -> None:
        self.scheduler.schedule(LOOK_US, self._check_all)
        living = [process for process in self.cluster.processes if process.node is not None]
        peers = {process.id: process.introduce() for process in living if not process.is_paused}
        for process in living:
            for other in living:
                if process is not other and process.node is not None and not _are_proxies(process, other):
                    self._check_pair(process, other, peers.get(other.id))
        self.count()

    def count(self) -> None:
        """Record which members reach a quorum. Called regularly, and whenever a cut ends or a member is back."""
        for member in self.cluster.members:
            if member.node is not None:
                self._count(member)

    def _check_pair(self, process: AnyProcess, other: AnyProcess, peer: Peer | None) -> None:
        pair = process.id, other.id
        cuts = self.cluster.network.cuts
        there, back = cuts[process.id, other.id] > 0, cuts[other.id, process.id] > 0
        if there and back:
            self._notice_break(process, other)
            return
        self._missed_us.pop(pair, None)
        if there or back or peer is None or process.is_paused or self.greeted.get(pair) == peer:
            return
        self.greeted[pair] = peer
        self.scheduler.schedule(self.random.randint(*GREETING_US), partial(self._greet, process, process.process, peer))

    def _greet(self, process: AnyProcess, number: int, peer: Peer) -> None:
        """Report a greeting to the current node of the process, unless the process has ended since.

        The node may be a new one after the install of a snapshot; links outlive that.
        """
        if process.process == number and self.greeted.get((process.id, peer.id)) == peer:
            process.call(lambda node: node.met(peer, process.boot_ms))

    def _notice_break(self, process: AnyProcess, other: AnyProcess) -> None:
        pair = process.id, other.id
        if pair not in self.greeted:
            return
        now_us = self.scheduler.now_us
        noticed_us = self._missed_us.setdefault(pair, now_us + self.random.randint(0, NOTICED_MAX_US))
        if now_us >= noticed_us:
            self._break(process, other.id)

    def _break(self, process: AnyProcess, other: str) -> None:
        if self.greeted.pop((process.id, other), None) is not None:
            self._missed_us.pop((process.id, other), None)
            process.call(lambda node: node.lost(other, process.boot_ms))

    def ended(self, ended_id: str) -> None:
        """Remove the links of an ended process. The others notice it at once, or later if they are cut from it."""
        for heard, of in list(self.greeted):
            if heard == ended_id:
                del self.greeted[heard, of]
        self.below_quorum_us.pop(ended_id, None)
        for other in self.cluster.processes:
            if other.node is not None and (other.id, ended_id) in self.greeted:
                is_cut = self.cluster.network.cuts[ended_id, other.id] > 0
                delay_us = self.random.randint(0, NOTICED_MAX_US) if is_cut else self.random.randint(50, 1_000)
                peer = self.greeted[other.id, ended_id]
                self.scheduler.schedule(delay_us, partial(self._notice_end, other, other.process, peer))

    def _notice_end(self, process: AnyProcess, number: int, peer: Peer) -> None:
        if process.process == number and self.greeted.get((process.id, peer.id)) == peer:
            self._break(process, peer.id)

    def _count(self, member: Member) -> None:
        if member.is_paused or self._reaches_quorum(member):  # a paused member cannot notice anything
            self.below_quorum_us.pop(member.id, None)
        else:
            self.below_quorum_us.setdefault(member.id, self.scheduler.now_us)

    def _reaches_quorum(self, member: Member) -> bool:
        """Return whether the network lets a member reach a quorum, regardless of what the member believes."""
        node = member.node
        if node is None:  # the call that reported the change made it fail
            return True
        voters, cuts = node.replica.voters, self.cluster.network.cuts
        reached = sum(
            other.id in voters
            and other.node is not None
            and not other.is_paused
            and (other is member or not (cuts[member.id, other.id] or cuts[other.id, member.id]))
            for other in self.cluster.members
        )
        return reached >= node.replica.membership.quorum

    def is_below_quorum(self, member: Member) -> bool:
        """Return whether a member has reached no quorum for over BELOW_QUORUM_MAX_US. It must have noticed by then."""
        since_us = self.below_quorum_us.get(member.id)
        is_long = since_us is not None and self.scheduler.now_us - since_us > BELOW_QUORUM_MAX_US
        return is_long and not self._reaches_quorum(member)


def _are_proxies(one: AnyProcess, other: AnyProcess) -> bool:
    """Return whether both processes are proxies. Proxies have no links to each other, because nobody can dial them."""
    return isinstance(one, ProxyProcess) and isinstance(other, ProxyProcess)
