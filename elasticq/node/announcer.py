"""Announcements of the master to the proxies that are linked to this member. Proxies get no Appends to learn it
from."""

from typing import Final

from elasticq.node.clock import ClusterClock
from elasticq.node.effects import Effects
from elasticq.node.forwarder import Forwarder
from elasticq.node.forwarding import MasterIs, encode
from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import Frame
from elasticq.replication.replica import Replica

TELL_MS: Final = 1_000
"""The interval of announcements to a proxy, which also sets deadlines by the time in them.

The announcer also sends one at once when the master changes.
"""
LOOK_MS: Final = 100  # how often a member without a cluster checks whether it has one


class Announcer:
    """The linked proxies and the next announcement to them. ``now_ms`` is the boot clock in ms.

    Every member announces the master, because a proxy may have only one link.
    """

    def __init__(self, replica: Replica, clock: ClusterClock, effects: Effects, forwarder: Forwarder) -> None:
        self._replica = replica
        self._clock = clock
        self._effects = effects
        self._forwarder = forwarder
        self._proxies: dict[str, None] = {}  # in the order in which they connected
        self.wake_at_ms: int | None = None

    def met(self, peer: Peer, now_ms: int) -> None:
        """Announce the master to a proxy that sent its greeting."""
        if peer.is_proxy:
            self._proxies[peer.id] = None
            self.tell(now_ms)

    def lost(self, member_id: str) -> None:
        """Forget a member or proxy whose link broke."""
        self._proxies.pop(member_id, None)
        if not self._proxies:
            self.wake_at_ms = None

    def tick(self, now_ms: int) -> None:
        if self.wake_at_ms is not None and now_ms >= self.wake_at_ms:
            self.tell(now_ms)

    def tell(self, now_ms: int) -> None:
        """Announce the master to all proxies, if this member belongs to a cluster."""
        if not self._proxies:
            return
        replica = self._replica
        self.wake_at_ms = now_ms + (TELL_MS if replica.cluster else LOOK_MS)
        if not replica.cluster:
            return
        linked_term, time_ms = self._clock.reading(now_ms)
        for proxy in self._proxies:
            report = MasterIs(
                cluster=replica.cluster,
                sender=replica.member_id,
                to=proxy,
                incarnation="",
                term=replica.term,
                master=replica.master or "",
                time_ms=time_ms if linked_term else 0,
                may_make_guids=self._forwarder.may_make_guids(),
            )
            self._effects.frames.append(Frame(proxy, encode(report), 0))
