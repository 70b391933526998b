"""The simulated transfers of snapshots between members, in chunks, over links that can be cut.

A source makes an immutable copy of its rows and serves it while its process lives. While the link is cut, the transfer
waits. If the source dies, the transfer starts again at another member whose snapshot reaches the wanted index. The copy
is installed after a delay for its verification, and only if the node still wants it.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct

from elasticq.sim.cluster import Cluster
from elasticq.sim.disk import Copy
from elasticq.sim.member import Member

STEP_US = 50_000
AGAIN_US = 200_000
BYTES_PER_S = (40_000, 1_000_000)
CHECK_US = (5_000, 150_000)


class Transfers(Struct):
    """The numbers of transfers that were started, interrupted and installed."""

    begun: int = 0
    cut: int = 0
    installed: int = 0


class Transfer:
    """A transfer of a snapshot to a member. It ends with the life of the member."""

    def __init__(self, cluster: Cluster, member: Member, random: Random, counts: Transfers) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.trace = cluster.trace
        self.counts = counts
        self.member = member
        self.life = member.life
        self.random = random
        self.rate_bytes = self.random.randint(*BYTES_PER_S)
        self.source: Member | None = None
        self.source_life = 0
        self.source_id = ""
        self.copy: Copy | None = None
        self.got_bytes = 0
        self.is_interrupted = False
        self.begin()

    @property
    def _index(self) -> int:
        """Return the index of the wanted snapshot, 0 if the member does not want one any more."""
        node = self.member.node
        if node is None or self.member.life != self.life or node.effects.wanted is None:
            return 0
        return node.effects.wanted.index

    def _over(self) -> None:
        if self.member.transfer is self:
            self.member.transfer = None

    def begin(self) -> None:
        """Start a transfer from a member that can serve the snapshot. If none can, try again later.

        In 7 of 10 cases, try the member that offered the snapshot before all others; else try it last.
        """
        index, node = self._index, self.member.node
        if not index or node is None or node.effects.wanted is None:
            self._over()
            return
        wanted = node.effects.wanted
        others = [other for other in self.cluster.members if other is not self.member and other.node is not None]
        others.sort(key=lambda other: other.id != wanted.source)
        if len(others) > 1 and self.random.random() < 0.3:
            others.append(others.pop(0))
        for other in others:
            if self._is_whole(other) and not other.is_paused:
                self.copy = other.snapshot(index)
                if self.copy is not None:
                    self.source, self.source_life, self.source_id = other, other.life, other.id
                    self.got_bytes = 0
                    self.counts.begun += 1
                    self.trace.note("transfer", self.member.name, f"{other.name} {self.copy.base.index}")
                    self.scheduler.schedule(STEP_US, self.step)
                    return
        self.scheduler.schedule(AGAIN_US, self.begin)

    def _is_whole(self, other: Member) -> bool:
        cuts = self.cluster.network.cuts
        return not (cuts[self.member.id, other.id] or cuts[other.id, self.member.id])

    def step(self) -> None:
        source, copy = self.source, self.copy
        assert source is not None
        assert copy is not None
        if not self._index:
            self._over()
        elif source.node is None or (source.life, source.id) != (self.source_life, self.source_id):
            self._cut()
            self.begin()
        elif not self._is_whole(source) or source.is_paused:
            self._cut()
            self.scheduler.schedule(STEP_US, self.step)
        else:
            self.is_interrupted = False
            self.got_bytes += self.rate_bytes * STEP_US // 1_000_000
            if self.got_bytes < len(copy.data):
                self.scheduler.schedule(STEP_US, self.step)
            else:
                self.scheduler.schedule(self.random.randint(*CHECK_US), self.install)

    def _cut(self) -> None:
        if not self.is_interrupted:
            self.is_interrupted = True
            self.counts.cut += 1

    def install(self) -> None:
        index, copy = self._index, self.copy
        assert copy is not None
        if self.member.is_paused and index:
            self.scheduler.schedule(STEP_US, self.install)
            return
        if not index or copy.base.index < index:
            self.begin()
            return
        self._over()
        self.counts.installed += 1
        self.member.install(copy)
