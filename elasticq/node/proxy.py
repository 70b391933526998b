"""A process that stores nothing and never votes: it takes calls beside an application, and passes them on.

It is linked to the members of a cluster but belongs to none: its greeting names no cluster, so that it is never asked
for a vote, sent entries or counted. Each member that it is linked to tells it who is master (announcer.py). Calls go
there, or through a member that hears a master which has no link to this proxy. Without either they wait, reads too,
as there are no rows here to answer them from; and they are passed on again like those of a member (keeper.py).
"""

from elasticq.model.commands import Call
from elasticq.model.limits import Limits
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node import forwarding
from elasticq.node.call_holder import Keeper
from elasticq.node.clock import ClusterClock
from elasticq.node.driven import Driven
from elasticq.node.effects import Effects
from elasticq.node.forwarding import FORWARDED, Answer, ContentRefused, Header, MasterIs, NotMaster
from elasticq.node.membership.members import GREETED_LEVEL, name_of
from elasticq.node.membership.peer import Peer
from elasticq.node.orders import Order, OrderRefused
from elasticq.node.outputs import HeldCall, Reply, Ticket
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.settings import LeaseStatus, MemberStatus, NodeSettings, NodeStatus
from elasticq.node.waits.pending_calls import Sent
from elasticq.node.waits.waiting_calls import WaitingCalls, is_read
from elasticq.replication.messages import FrameError
from elasticq.replication.replica import MASTER

PROXY = "proxy"
"""The role that a proxy tells of itself."""


class ProxyCalls(Keeper):
    """The calls of a proxy's clients, and where they go: what the linked members told of the master last.

    linked: the members that there is a link to.
    """

    def __init__(
        self,
        member_id: str,
        limits: Limits,
        clock: ClusterClock,
        effects: Effects,
        safe_executor: SafeExecutor,
        waiting_calls: WaitingCalls,
        incarnation: str,
    ) -> None:
        super().__init__(member_id, limits, clock, effects, safe_executor, waiting_calls, incarnation)
        self.linked: set[str] = set()
        self._told: dict[str, MasterIs] = {}  # by the linked member
        self._newest: MasterIs | None = None  # of those that name a master, and were not denied
        self._cluster_id = ""  # of the newest master that was known; a former one still answers without a new one
        self._denied: tuple[str, int] | None = None  # (member, term): it said that it is not the master
        self._route_seen: tuple[str, bool] | None = None

    @property
    def master(self) -> str | None:
        """The id of the master as far as is known, None without one."""
        return None if self._newest is None else self._newest.master

    def cluster(self) -> str:
        return self._cluster_id

    def term(self) -> int:
        return 0 if self._newest is None else self._newest.term

    def may_make_guids(self) -> bool:
        return self._newest is None or self._newest.may_make_guids

    def _route(self) -> tuple[str, bool] | None:
        newest = self._newest
        if newest is None or self.trouble:
            return None
        if newest.master in self.linked:
            return newest.master, False
        for member_id, told in self._told.items():
            if (told.term, told.master) == (newest.term, newest.master):
                return member_id, True
        return None

    @property
    def is_ready(self) -> bool:
        """A call would be passed on now."""
        return self._route() is not None

    @property
    def trouble(self) -> str:
        """Why waiting does not help; empty if nothing is wrong."""
        clusters = {told.cluster for told in self._told.values()}
        if len(clusters) < 2:
            return ""
        return (
            f"there are {len(clusters)} clusters of this name: give them different names (--cluster-name), "
            "and this proxy the name of its own"
        )

    def unready_reason(self) -> str:
        if self.trouble:
            return self.trouble
        if not self.linked:
            return "no link to any member: cluster.seeds or discovery must lead to some that run"
        if not self._told:
            return f"none of {len(self.linked)} linked members has told who is master: older versions tell no proxy"
        if self._newest is None:
            return f"no master yet: {len(self.linked)} members are linked; try again"
        return f"The master is {name_of(self._newest.master)}, and there is no way to it."

    # --- links and what comes over them -------------------------------------------------

    def met(self, member_id: str, now_ms: int) -> None:
        """There is a link to a member, old or new."""
        self.linked.add(member_id)
        self._follow(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """The link to a member broke: no answer comes from it any more."""
        self.linked.discard(member_id)
        self._told.pop(member_id, None)
        self._follow(now_ms)
        self._go_on_without_answer(self._pending_calls.lost_with(lambda to: to == member_id), now_ms)

    def read(self, forwarded: forwarding.AnyForwardingMessage, now_ms: int) -> None:
        """Take a message. Raises FrameError if it is refused, ContentRefused if the answer in it is."""
        if forwarded.to != self._member_id:
            return
        if isinstance(forwarded, MasterIs):
            self._on_master_is(forwarded, now_ms)
        elif forwarded.cluster != self.cluster():
            return
        elif isinstance(forwarded, Answer):
            self._on_answer(forwarded)
        elif isinstance(forwarded, NotMaster):
            self._on_not_master(forwarded, now_ms)

    def content_refused(self, header: Header, reason: str) -> None:
        if header.to == self._member_id and header.cluster == self.cluster():
            self._answer_refused(header, reason)

    def _on_master_is(self, told: MasterIs, now_ms: int) -> None:
        if told.sender not in self.linked:
            return
        self._told[told.sender] = told
        self._follow(now_ms)
        if told.time_ms and told.term >= self.term():
            self._clock.link(told.term, told.time_ms, now_ms)

    def _follow(self, now_ms: int) -> None:
        """Find the newest master again, and go on with the calls that another one had or that waited for one."""
        known = [told for told in self._told.values() if told.master and (told.master, told.term) != self._denied]
        self._newest = newest = max(known, key=lambda told: told.term, default=None)
        if newest is not None:
            self._cluster_id = newest.cluster
        route = self._route()
        if route is None:
            self._route_seen = None
            return
        if route != self._route_seen:
            self._route_seen, to_now = route, route[0]
            self._leave_former_masters(lambda to: to != to_now, now_ms)
        for held in self._waiting_calls.take_all():
            self._submit(held, now_ms)

    # --- what a Keeper does not know -------------------------------------------------------

    def _submit(self, held: HeldCall, now_ms: int) -> None:
        route = self._route()
        if route is not None:
            self._forward(held, route[0], now_ms, is_relayed=route[1])
        elif not self.trouble and (self._waiting_calls.hold_ms or is_read(held.call)):
            self._hold(held, now_ms)
        else:
            self._refuse(held)

    def _give_up(self, held: HeldCall, now_ms: int) -> None:
        self._refuse(held)

    def _go_on_elsewhere(self, sent: Sent, now_ms: int) -> None:
        """What the sender told is void until it tells again, so that no call goes to and fro."""
        self._denied = (sent.to, sent.term)
        self._told.pop(sent.to, None)
        self._follow(now_ms)
        self._submit(sent.held, now_ms)


class Proxy(Driven):
    """``settings.incarnation``: 16 hex digits or more, new at each start. Of the settings few matter to a proxy."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.effects = effects = Effects()
        self.clock = clock = ClusterClock()
        read_wait_ms = settings.hold_ms or settings.read_wait_ms
        waiting_calls = WaitingCalls(None, settings.hold_ms, read_wait_ms)
        safe_executor = SafeExecutor(effects.failures)
        self._calls = ProxyCalls(
            settings.member_id, settings.limits, clock, effects, safe_executor, waiting_calls, settings.incarnation
        )
        self._peers: dict[str, Peer] = {}

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        self.clock.start(now_ms, wall_ms)
        self._leave()

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._calls.submit(call, ticket, now_ms)
        self._leave()

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        self._calls.cancelled(ticket)
        self._leave()

    def undelivered(self, result: Result, now_ms: int) -> None:
        if isinstance(result, ReceiveMessageResult) and result.messages and not result.leased:
            self._calls.undelivered(result)
        self._leave()

    def close_waiters(self, now_ms: int) -> None:
        """End the waits of receives: they are answered by the master, where they wait, or are empty."""
        self._calls.end_waits()
        self._leave()

    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        refused: dict[str, FrameError] = {}
        unread: list[tuple[str, FrameError]] = []
        for link, frame in frames:
            if link in refused or frame[:1] != FORWARDED:
                continue  # nobody sends replication's frames to a proxy; they would mean nothing here
            try:
                self._calls.take(frame, link, now_ms)
            except ContentRefused as error:
                unread.append((link, error))
            except FrameError as error:
                refused[link] = error
        self._leave()
        return [*refused.items(), *unread]

    def met(self, peer: Peer, now_ms: int) -> None:
        if peer.cluster_name != self.settings.cluster_name or peer.is_proxy:
            return
        known = self._peers.get(peer.id)
        if known is not None and known.incarnation != peer.incarnation:
            self._calls.lost(peer.id, now_ms)
        self._peers[peer.id] = peer
        self._calls.met(peer.id, now_ms)
        self._leave()

    def lost(self, member_id: str, now_ms: int) -> None:
        if self._peers.pop(member_id, None) is not None:
            self._calls.lost(member_id, now_ms)
        self._leave()

    def introduce(self) -> Peer:
        settings = self.settings
        return Peer(
            id=settings.member_id,
            name=name_of(settings.member_id),
            incarnation=settings.incarnation,
            cluster_name=settings.cluster_name,
            cluster="",
            nodes=settings.nodes,
            is_fresh=False,
            is_volatile=True,
            level=GREETED_LEVEL,
            address="",
            http=settings.http,
            admin=settings.admin,
            is_proxy=True,
            region=settings.region,
            has_one_region=settings.single_region,
            http_port=settings.http_port,
        )

    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        self.effects.replies.append(Reply(ticket, OrderRefused("this is a proxy, not a member: ask the master"), 0))

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        return False

    def tick(self, now_ms: int) -> None:
        self._calls.tick(now_ms)
        self._leave()

    def _leave(self) -> None:
        self.effects.wake_at_ms = self._calls.wake_at_ms

    # --- status -------------------------------------------------------------------------

    def unready_reason(self) -> str:
        """Why no call can be passed on now; empty if calls can be."""
        return "" if self._calls.is_ready else self._calls.unready_reason()

    def status(self, now_ms: int, groups_max: int = 0) -> NodeStatus:
        calls = self._calls
        reason = self.unready_reason()
        return NodeStatus(
            member_id=self.settings.member_id,
            role=PROXY,
            master=calls.master,
            term=calls.term(),
            commit_index=0,
            applied_index=0,
            last_index=0,
            ready=not reason,
            reason=reason,
            time_ms=self.clock.time_ms(now_ms),
            voters=(),
            match={},
            queues=0,
            waiters=0,
            contents_bytes=0,
            cluster_id=calls.cluster(),
            members=tuple(self._status_of(peer) for _, peer in sorted(self._peers.items())),
            held_calls=calls.held_calls,
        )

    def _status_of(self, peer: Peer) -> MemberStatus:
        """A linked member; who votes is known to members only."""
        return MemberStatus(
            id=peer.id,
            name=peer.name,
            role=MASTER if peer.id == self._calls.master else "unknown",
            voter=False,
            is_linked=True,
            lag=None,
            address=peer.address,
            http=peer.http,
            admin=peer.admin,
        )

    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        return []

    @property
    def ignored_attributes(self) -> set[str]:
        return set()
