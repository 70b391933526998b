"""A process that stores nothing and never votes. It takes calls on the machine of an application, and passes them on.

A proxy has links to members of a cluster but belongs to none. Its greeting names no cluster, so members never ask it
for votes, send it entries or count it. Each linked member reports the master to it (announcer.py).

Calls go to the master, or through a member that can hear a master to which this proxy has no link. Without either they
wait. Reads wait as well, because a proxy has no rows. Calls are retried like those of a member (call_holder.py).
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
from elasticq.node.outputs import HeldCall, Ticket
from elasticq.node.reply import Reply
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.settings import LeaseStatus, MemberStatus, NodeSettings, NodeStatus
from elasticq.node.waits.pending_calls import Sent
from elasticq.node.waits.waiting_calls import WaitingCalls, is_read
from elasticq.replication.messages import FrameError
from elasticq.replication.replica import MASTER

PROXY = "proxy"
"""The role that a proxy reports for itself."""


class ProxyCalls(Keeper):
    """The calls of a proxy's clients, and the member that they go to, from the newest reports of linked members.

    linked: the members to which there is a link.
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
        self._reports: dict[str, MasterIs] = {}  # member id -> its last report
        self._newest: MasterIs | None = None  # the newest report that names a master and was not denied
        self._cluster_id = ""  # of the newest known master; a former one still answers while there is no new one
        self._denied: tuple[str, int] | None = None  # (member, term): the member has reported that it is not the master
        self._route_seen: tuple[str, bool] | None = None

    @property
    def master(self) -> str | None:
        """Return the id of the known master; None without one."""
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
        for member_id, report in self._reports.items():
            if (report.term, report.master) == (newest.term, newest.master):
                return member_id, True
        return None

    @property
    def is_ready(self) -> bool:
        """Return whether a call could be passed on now."""
        return self._route() is not None

    @property
    def trouble(self) -> str:
        """Return the problem that waiting does not solve; empty without one."""
        clusters = {report.cluster for report in self._reports.values()}
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
            return "no link to any member: check that cluster.seeds or discovery names running members"
        if not self._reports:
            return f"none of {len(self.linked)} linked members has reported the master yet; try again"
        if self._newest is None:
            return f"no master yet: {len(self.linked)} members are linked; try again"
        return f"The master is {name_of(self._newest.master)}, and no linked member has a link to it."

    # --- links and what comes over them -------------------------------------------------

    def met(self, member_id: str, now_ms: int) -> None:
        """Add a member with a new or renewed link. Pass on the waiting calls if there is a route to the master now."""
        self.linked.add(member_id)
        self._follow(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """Handle the loss of the link to a member. No answer comes from it any more."""
        self.linked.discard(member_id)
        self._reports.pop(member_id, None)
        self._follow(now_ms)
        self._retry_unanswered(self._pending_calls.lost_with(lambda to: to == member_id), now_ms)

    def read(self, forwarded: forwarding.AnyForwardingMessage, now_ms: int) -> None:
        """Handle a message. Raise FrameError if it is refused, and ContentRefused if its answer is."""
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

    def _on_master_is(self, report: MasterIs, now_ms: int) -> None:
        if report.sender not in self.linked:
            return
        self._reports[report.sender] = report
        self._follow(now_ms)
        if report.time_ms and report.term >= self.term():
            self._clock.link(report.term, report.time_ms, now_ms)

    def _follow(self, now_ms: int) -> None:
        """Find the newest master. Go on with the calls that another master had, or that waited for one."""
        known = [
            report
            for report in self._reports.values()
            if report.master and (report.master, report.term) != self._denied
        ]
        self._newest = newest = max(known, key=lambda report: report.term, default=None)
        if newest is not None:
            self._cluster_id = newest.cluster
        route = self._route()
        if route is None:
            self._route_seen = None
            return
        if route != self._route_seen:
            self._route_seen, to_now = route, route[0]
            self._abandon_former_masters(lambda to: to != to_now, now_ms)
        self.go_on_with_waiting_calls(now_ms)

    def go_on_with_waiting_calls(self, now_ms: int) -> None:
        if self._waiting_calls and self._route() is not None:
            for held in self._taken_some(now_ms):
                self._submit(held, now_ms)

    # --- implementation of Keeper ---------------------------------------------------------

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

    def _retry_elsewhere(self, sent: Sent, now_ms: int) -> None:
        """Forget the sender's report until it sends a new one, so that no call bounces between them."""
        self._denied = (sent.to, sent.term)
        self._reports.pop(sent.to, None)
        self._follow(now_ms)
        self._submit(sent.held, now_ms)


class Proxy(Driven):
    """A proxy process as a pure object. Only few of the settings matter to a proxy.

    ``settings.incarnation``: 16 or more hex digits, new at each start.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.effects = effects = Effects()
        self.clock = clock = ClusterClock()
        read_wait_ms = settings.hold_ms or settings.read_wait_ms
        waiting_calls = WaitingCalls(None, settings.hold_ms, read_wait_ms, settings.limits.wait_s)
        safe_executor = SafeExecutor(effects.failures)
        self._calls = ProxyCalls(
            settings.member_id, settings.limits, clock, effects, safe_executor, waiting_calls, settings.incarnation
        )
        self.passed_on = self._calls.passed_on
        self._peers: dict[str, Peer] = {}

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        self.clock.start(now_ms, wall_ms)
        self._finish_input()

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._calls.submit(call, ticket, now_ms)
        self._finish_input()

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        self._calls.cancelled(ticket)
        self._finish_input()

    def undelivered(self, result: Result, now_ms: int) -> None:
        if isinstance(result, ReceiveMessageResult) and result.messages and not result.leased:
            self._calls.undelivered(result)
        self._finish_input()

    def close_waiters(self, now_ms: int) -> None:
        """End the waits of receives. The master answers those that wait there. The others get an empty answer."""
        self._calls.end_waits()
        self._finish_input()

    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        refused: dict[str, FrameError] = {}
        unread: list[tuple[str, FrameError]] = []
        for link, frame in frames:
            if link in refused or frame[:1] != FORWARDED:
                continue  # members never send replication frames to a proxy
            try:
                self._calls.take(frame, link, now_ms)
            except ContentRefused as error:
                unread.append((link, error))
            except FrameError as error:
                refused[link] = error
        self._finish_input()
        return [*refused.items(), *unread]

    def met(self, peer: Peer, now_ms: int) -> None:
        if peer.cluster_name != self.settings.cluster_name or peer.is_proxy:
            return
        known = self._peers.get(peer.id)
        if known is not None and known.incarnation != peer.incarnation:
            self._calls.lost(peer.id, now_ms)
        self._peers[peer.id] = peer
        self._calls.met(peer.id, now_ms)
        self._finish_input()

    def lost(self, member_id: str, now_ms: int) -> None:
        if self._peers.pop(member_id, None) is not None:
            self._calls.lost(member_id, now_ms)
        self._finish_input()

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
            admin_port=settings.admin_port,
        )

    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        self.effects.replies.append(Reply(ticket, OrderRefused("this is a proxy, not a member: ask the master"), 0))

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        return False

    def tick(self, now_ms: int) -> None:
        self._calls.tick(now_ms)
        self._finish_input()

    def _finish_input(self) -> None:
        self.effects.wake_at_ms = self._calls.wake_at_ms

    # --- status -------------------------------------------------------------------------

    def unready_reason(self) -> str:
        """Return why no call can be passed on now; empty if calls can be passed on."""
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
        """Return the status of a linked member. A proxy does not know which members vote."""
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
