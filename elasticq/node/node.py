"""One member of a cluster, whole and pure: commands, frames and time in, effects out.

Node takes the inputs, hands each to the part that does the work, and drains what the parts left into ``effects``. Each
part owns its fields, and knows only parts below it:

    Node            inputs, the events of the replica, draining
    StatusReport    what a member tells of itself; EventLog: what happens to its cluster
    Housekeeping    background work of a master
    Announcer       tells proxies who is master
    Forwarder       calls of and for other members, a Keeper; PendingCalls: those that are under way
    Executor        calls on a master, from admission to answer
    Waiters, SendBackpressure, WaitingCalls: calls that wait for a message, for room, for a master
    Leadership      when this member may decide; Members, VoterChanges: who belongs to the cluster
    Journal         log entries between decision and commit; Outlet, Digests, ContentCache
    Replica         the order of entries among the members (replication/)

These rules cross the parts:

1. Reply index. An answer leaves when the newest entry at its computation is committed, an error or an empty receive
   like any other: Executor tells Replies the journal's head at that moment, the open entry included.
2. Serving. Calls are executed only when the own TookOver is committed, and with it everything before it
   (Leadership.commit_moved).
3. Transfer. While the mastership is handed over no call and no background work makes an entry, or the log of the target
   would not be the newest when it stands: whoever would make one asks Leadership.may_write. Only what is given back and
   what the operator orders is still taken, and then the transfer target waits for it.
4. Time. Each command has the time at which it came, an entry that of its last command, and time never falls, neither
   within the open entry nor along the log (Journal.stamp_command).
5. Roll-back. A master applies at append, so that the next receive cannot take the same message. One that loses its term
   takes back what is not committed, newest first (Journal.lost_mastership): state, applied index and clock agree again
   before any call is passed on.
6. Failing. Judging a command (its handler, the encoding of what it decided, its own part of the open entry) may fail:
   that is an answer to its caller, and nothing was changed (judging.py). What follows an append, and what others
   committed, may not: an exception there is a broken invariant, and ends the member.
"""

from collections.abc import Iterable

from elasticq.engine.redrive.mover import Mover
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.announcer import Announcer
from elasticq.node.clock import ClusterClock
from elasticq.node.comparison import Comparison
from elasticq.node.content_cache import ContentCache
from elasticq.node.digests import Digests
from elasticq.node.driven import Driven
from elasticq.node.effects import Effects
from elasticq.node.executor import LOST, Executor
from elasticq.node.forwarder import Forwarder
from elasticq.node.forwarding import FORWARDED, ContentRefused, check_sender
from elasticq.node.housekeeping import Housekeeping
from elasticq.node.journal import Journal
from elasticq.node.leadership import Leadership
from elasticq.node.membership.members import Members
from elasticq.node.membership.peer import Peer
from elasticq.node.membership.voter_changes import NOT_THE_MASTER, VoterChanges
from elasticq.node.orders import Order, OrderDone, OrderRefused, TransferMastership, VerifyRows
from elasticq.node.outlet import Outlet
from elasticq.node.outputs import Fetch, HeldCall, Reply, Ticket, Wanted
from elasticq.node.reports.event_log import EventLog
from elasticq.node.reports.status import StatusReport
from elasticq.node.restoring import restore
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.settings import LeaseStatus, NodeSettings, NodeStatus
from elasticq.node.waits.backpressure import SendBackpressure
from elasticq.node.waits.replies import Replies
from elasticq.node.waits.waiting_calls import WaitingCalls
from elasticq.replication import messages
from elasticq.replication.election import Timing
from elasticq.replication.events import (
    BecameMaster,
    Campaigned,
    CommitMoved,
    Dropped,
    FellBehind,
    HeardMaster,
    LostMastership,
    MembersChanged,
)
from elasticq.replication.messages import FrameError
from elasticq.replication.records import Durable, Entry, Vote
from elasticq.replication.replica import MASTER, Replica
from elasticq.replication.seeded_random import SeededRandom
from elasticq.replication.validation import validate


class Node(Driven):
    """One member. All times are ms; ``now_ms`` is the boot-time clock. Effects are drained after each call."""

    def __init__(
        self, settings: NodeSettings, durable: Durable, entropy: bytes, rows: Iterable[m.Mutation] = ()
    ) -> None:
        """``rows``: what the rows on disk hold, up to ``durable.applied_index``."""
        self.settings = settings
        self.effects = effects = Effects()
        self.state = state = State()
        set_aside = restore(state, rows, effects)
        self.clock = clock = ClusterClock()
        clock.ahead_ms = state.ahead_ms
        random = SeededRandom(entropy)
        timing = Timing(
            settings.heartbeat_ms, settings.election_min_ms, settings.election_max_ms, settings.broken_link_ms
        )
        is_volatile, replies = settings.volatile, effects.replies
        self.replica = replica = Replica(
            settings.member_id, settings.voters, durable, timing, random, clock.reading, is_volatile=is_volatile
        )
        self.members = members = Members(settings, replica, random, was_removed=durable.was_removed)
        members.founded()
        if state.cluster_id:
            replica.cluster = state.cluster_id
        self._event_log = EventLog(replica, members, effects)
        self._voter_changes = changes = VoterChanges(settings, replica, members)
        incarnation = random.token(b"courier %d" % durable.applied_index, 8).hex()  # the entropy may be an older node's
        index = durable.applied_index
        safe_executor, mover = SafeExecutor(effects.failures), Mover()
        waiting_calls = WaitingCalls(state, settings.hold_ms, settings.read_wait_ms)
        outlet, digests = Outlet(replica, effects, is_volatile=is_volatile), Digests(state, replica)
        content_cache = ContentCache(state, effects.fetches, settings.memory_bytes)
        backpressure = SendBackpressure(state, content_cache, replies, settings.memory_bytes_max if is_volatile else 0)
        held = Replies(replica, replies, settings.mode, settings.all_timeout_ms)

        self.journal = journal = Journal(
            settings, state, replica, clock, effects, outlet, safe_executor, content_cache, digests, mover, index
        )
        self.leadership = leadership = Leadership(state, replica, clock, random, safe_executor, journal)
        self._executor = executor = Executor(
            settings,
            state,
            replica,
            clock,
            safe_executor,
            journal,
            leadership,
            held,
            content_cache,
            backpressure,
            waiting_calls,
            replies,
        )
        self.waiters = executor.waiters
        self._undecided = executor.undecided
        comparison = Comparison(replica, changes, safe_executor, journal, digests)
        self.housekeeping = Housekeeping(
            settings,
            state,
            replica,
            changes,
            safe_executor,
            journal,
            executor,
            content_cache,
            backpressure,
            mover,
            comparison,
        )
        self._forwarder = forwarder = Forwarder(
            settings,
            state,
            replica,
            members,
            clock,
            effects,
            safe_executor,
            leadership,
            executor,
            waiting_calls,
            incarnation,
        )
        self._announcer = Announcer(replica, clock, effects, forwarder)
        self._report = StatusReport(
            state, replica, members, clock, journal, digests, leadership, executor, forwarder, set_aside
        )
        self._outlet, self._comparison, self._content_cache = outlet, comparison, content_cache
        self._backpressure, self._waiting_calls, self._replies = backpressure, waiting_calls, held
        self._stored_index = index
        self._master_seen: str | None = None

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start the clock and the replica. A cluster of one is master when this returns if its storage is volatile."""
        self.clock.start(now_ms, wall_ms)
        self.replica.start(now_ms)
        self._leave(now_ms)

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call; its answer comes out as a Reply, now or after a later input."""
        if not self.leadership.serving:
            self._forwarder.submit(call, ticket, now_ms)
            if self._waiting_calls:
                self._leave(now_ms)
            return
        self._executor.admit(call, ticket, now_ms)
        executor = self._executor
        is_awaited = executor.waiters.count or executor.heartbeats.count
        if is_awaited or not (self.replica.commits_alone or self.journal.is_only_joining()):
            self._leave(now_ms)
        else:
            self.effects.wake_at_ms = self.housekeeping.next_at_ms()  # nothing else can be due

    @property
    def applied_index(self) -> int:
        """The newest log entry that is applied."""
        return self.journal.applied_index

    @property
    def ignored_attributes(self) -> set[str]:
        """Unknown attributes of queues that calls to this master gave and that were passed over (limits = relaxed)."""
        return self.journal.context.ignored

    @property
    def serving(self) -> bool:
        """This member is master, and executes calls."""
        return self.leadership.serving

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """The client of a waiting receive left; harmless for any other ticket."""
        self._executor.cancel(ticket)
        self._forwarder.cancelled(ticket)
        self._leave(now_ms)

    def undelivered(self, result: Result, now_ms: int) -> None:
        """The answer of a receive could not be written: its messages become visible again."""
        if isinstance(result, ReceiveMessageResult) and result.messages and not result.leased:
            if self.leadership.serving:
                self._executor.give_back(result, now_ms)
            else:
                self._forwarder.undelivered(result)
        self._leave(now_ms)

    def receive(self, frame: bytes, now_ms: int, link: str = "") -> None:
        """Take a frame of another member. Raises FrameError for one that is refused, which changes nothing.

        ``link``: the id that the other end has proved, empty if unknown; a frame of another sender is refused.
        """
        self._take_frame(frame, now_ms, link)
        self._leave(now_ms)

    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        """Take frames that came together, each with its link; their calls share one entry. Returns refusals by link.

        Frames behind a refused one of the same link are not read, as that link is about to be cut.
        """
        refused: dict[str, FrameError] = {}
        unread: list[tuple[str, FrameError]] = []
        self.journal.gathers = True
        for link, frame in frames:
            if link in refused:
                continue
            try:
                self._take_frame(frame, now_ms, link)
            except ContentRefused as error:
                unread.append((link, error))
            except FrameError as error:
                refused[link] = error
        self.journal.gathers = False
        self._leave(now_ms)
        return [*refused.items(), *unread]

    def _take_frame(self, frame: bytes, now_ms: int, link: str) -> None:
        if frame[:1] == FORWARDED:
            self._forwarder.take(frame, link, now_ms)
            return
        message = messages.decode(frame)
        check_sender(message.sender, link)
        if message.to == self.settings.member_id and self.members.is_ours(message):
            validate(message, self.replica)
            if isinstance(message, messages.Append):
                self.journal.read_ahead(message)
            self.replica.receive(message, now_ms)
            self._handle_events(now_ms)
            if type(message) is messages.Found:
                self.members.founded()
                self._event_log.look()

    def met(self, peer: Peer, now_ms: int) -> None:
        """Take the greeting of another member, its first or a renewed one."""
        known = self.members.peers.get(peer.id)
        if known is not None and known.incarnation != peer.incarnation:
            self._executor.forget_waiting_of(peer.id)
            self._forwarder.master_changed(now_ms)
        self.members.met(peer, now_ms)
        self._announcer.met(peer, now_ms)
        self._event_log.look()
        self._leave(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """The link to another member broke: the receives that wait here for its clients are dropped."""
        self.members.lost(member_id, now_ms)
        self._announcer.lost(member_id)
        self.replica.link_broke(member_id, now_ms)
        self._executor.forget_waiting_of(member_id)
        self._forwarder.master_changed(now_ms)
        self._event_log.look()
        self._leave(now_ms)

    def introduce(self) -> Peer:
        """The greeting by which this member tells others what it is."""
        return self.members.introduce()

    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        """Carry out an order of the operator; the reply's outcome is an OrderDone or an OrderRefused."""
        if isinstance(order, VerifyRows):
            self._compare(ticket, now_ms)
        elif isinstance(order, TransferMastership):
            self._transfer(order.member, ticket, now_ms)
        elif self.leadership.serving and not self.journal.may_be_taken_back:
            self._voter_changes.answered.append((ticket, OrderRefused("not yet: try again")))
        else:
            voters = self._voter_changes.order(order, ticket)
            if voters is not None:
                self.journal.propose_voters(voters, now_ms)
        self._leave(now_ms)

    def _transfer(self, name: str, ticket: Ticket, now_ms: int) -> None:
        to = self._voter_changes.other_voter(name) if name else ""
        if (name and not to) or not self.hand_over(now_ms, to):
            self._voter_changes.refuse_transfer(name, ticket)
        else:
            self._voter_changes.answered.append((ticket, OrderDone("the mastership is being handed over")))

    def _compare(self, ticket: Ticket, now_ms: int) -> None:
        if self.leadership.serving:
            self._comparison.order(ticket, now_ms)
        else:
            self._voter_changes.answered.append((ticket, OrderRefused(NOT_THE_MASTER)))

    def synced(self, token: int, now_ms: int) -> None:
        """All records handed out up to ``token`` are durable."""
        self.replica.synced(token, now_ms)
        self._leave(now_ms)

    def stored(self, index: int, now_ms: int) -> None:
        """The rows on disk hold everything up to ``index``: its contents may leave memory, its entries the log."""
        assert self._stored_index <= index <= self.replica.commit_index, "rows hold committed entries only"
        self._stored_index = index
        self._content_cache.stored(index)
        if self.replica.is_whole:  # else the log goes on from whichever snapshot comes
            self.replica.compact(index, self.settings.log_kept_bytes)
            self.effects.log_floor = self.replica.log.base_index
        self._executor.release_senders(now_ms)
        self._leave(now_ms)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """Take the answer to a fetch: at least the first of the asked messages that still exist."""
        if not self.replica.is_whole:
            return  # the rows may lack any of them
        self._executor.fetched(fetch, contents, now_ms)
        self._leave(now_ms)

    def damaged(self, queue_id: int, sequences: list[int], now_ms: int) -> bool:
        """The contents of these messages cannot be read any more; if ``sequences`` is empty nobody knows of which.

        With other voters this member wants a snapshot. Alone it deletes the messages in an entry. It returns False if
        it is alone and does not know which: then only a node over new rows helps, and this one serves nobody.
        """
        if self.replica.others or not sequences:
            self.replica.lost_rows(now_ms)
        elif self.leadership.serving:
            self._executor.lose_contents(queue_id, sequences, now_ms)
        self._leave(now_ms)
        return bool(self.replica.others or sequences)

    def set_full(self, reason: str | None, now_ms: int) -> None:
        """The disk is full: sends are refused with ``reason`` until it is None again."""
        if reason is not None and self._backpressure.full_reason is None:
            self.hand_over(now_ms)  # another one may have space
        self._backpressure.full_reason = reason
        self._executor.release_senders(now_ms)
        self._leave(now_ms)

    def tick(self, now_ms: int) -> None:
        """Do what time made due: elections, heartbeats, ends of waits, deadlines of messages, background work."""
        self.replica.tick(now_ms)
        self._handle_events(now_ms)
        self._forwarder.tick(now_ms)
        if self._undecided:
            self.effects.replies += _unknown(self._undecided.expired(now_ms))
        self._announcer.tick(now_ms)
        if self.settings.volatile:
            self.housekeeping.compact()
        if self.leadership.serving:
            self.clock.keep(now_ms)
            self._executor.end_waits(now_ms)
            if self.leadership.may_write:  # else the transfer target's log would not be the newest when it stands
                self.housekeeping.work(now_ms)
        else:
            self.housekeeping.give_back(now_ms)
        self._leave(now_ms)

    def close_waiters(self, now_ms: int) -> None:
        """End all long polls, for a graceful stop."""
        self._executor.close_waiters(now_ms)
        self._forwarder.end_waits()
        self._leave(now_ms)

    def fsync_measured(self, slow_ms: int) -> None:
        """Note how many ms the disk's slow syncs take: elections wait for them."""
        self.replica.election.fsync_ms = slow_ms

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Begin to give the mastership to ``to``, or to the voter with the newest log; False if it cannot be given."""
        is_due = self.leadership.hand_over(now_ms, to)
        if is_due:
            self._leave(now_ms)
        return is_due

    @property
    def vote(self) -> Vote:
        """The term of this member, and whom it voted for in that term."""
        return Vote(self.replica.term, self.replica.voted_for)

    def retire(self, now_ms: int) -> list[HeldCall]:
        """Return the calls with which the node over a snapshot that takes this one's place shall go on; answer others.

        The log of this node is lost: nobody can tell any more whether entries are committed that it did not know to be.
        """
        self.journal.retire()
        held = self._forwarder.retire(now_ms)
        self.effects.replies += _unknown(self._undecided.take_all())
        self._forwarder.mail_answers(now_ms)
        return held

    def go_on_with(self, held: list[HeldCall], now_ms: int) -> None:
        """Take the calls that waited at the node whose place this one has taken."""
        self._forwarder.go_on_with(held, now_ms)
        self._leave(now_ms)

    # --- what the replica tells ---------------------------------------------------------

    def _handle_events(self, now_ms: int) -> None:
        """Handle the events of the replica in their order; the replica may be further by now than an event tells."""
        ready = self.replica.ready
        while ready.events:
            events, ready.events = ready.events, []
            for event in events:
                if isinstance(event, CommitMoved):  # a match would cost each committed entry twice as much
                    self._commit_moved(event.index, is_master=event.is_master)
                elif isinstance(event, HeardMaster):
                    self.clock.link(event.term, event.time_ms, now_ms)
                elif isinstance(event, BecameMaster):
                    self._became_master(now_ms)
                elif isinstance(event, LostMastership):
                    is_handed_over = self.leadership.hands_over_until_ms > 0
                    self._event_log.lost_mastership(event.reason, is_handed_over=is_handed_over)
                    self._lost_mastership(event.commit_index, now_ms)
                elif isinstance(event, Campaigned):
                    self._event_log.campaigned(event)
                elif isinstance(event, MembersChanged):
                    self.journal.members_changed(event.last_index)
                    self.members.voters_changed(is_voter=event.is_voter)
                    self._event_log.members_changed()
                elif isinstance(event, Dropped):
                    self._dropped(event.entries, now_ms)
                elif isinstance(event, FellBehind):
                    self.effects.wanted = Wanted(event.source, event.index)
                else:
                    self.effects.wanted = None

    def _became_master(self, now_ms: int) -> None:
        self._event_log.became_master()
        self.leadership.take_over(now_ms)
        if self.replica.commits_alone:
            self._commit_moved(self.replica.commit_index, is_master=True)

    def _lost_mastership(self, commit_index: int, now_ms: int) -> None:
        """Take back what is not committed, newest first; calls that may run again go on at the next master."""
        self.leadership.lost_mastership()
        self.journal.lost_mastership(commit_index)
        self._forwarder.go_on_with(self._executor.lost_mastership(now_ms), now_ms)
        self._comparison.lost_mastership()
        self._voter_changes.lost_mastership()

    def _dropped(self, entries: list[Entry], now_ms: int) -> None:
        """Let calls go on whose entries were cut off the log: they had no effect."""
        self.journal.dropped(entries)
        if self._undecided and entries:
            self._forwarder.go_on_with(self._undecided.cut_off(entries[0].index), now_ms)

    def _commit_moved(self, commit_index: int, *, is_master: bool) -> None:
        self.journal.commit_moved(commit_index, is_master=is_master)
        if self._undecided:
            self.effects.replies += self._undecided.committed(commit_index)
        if is_master:
            self.leadership.commit_moved(commit_index)
            self._voter_changes.keep_promises()
        self._backpressure.contents_pinned()
        if self.state.cluster_id:
            self.replica.cluster = self.state.cluster_id
        if self.members.commit_moved():
            self._event_log.voters_committed()

    # --- effects ----------------------------------------------------------------------

    def _leave(self, now_ms: int) -> None:
        """Do everything that is due after an input, and tell the shell when to wake the node."""
        self._drain(now_ms)
        if self.journal.is_open:
            self.journal.close_if_free(now_ms)
        if self.replica.followers:
            self.replica.settle(now_ms)
        self._drain(now_ms)
        if self.replica.master != self._master_seen or self._waiting_calls or self._voter_changes.answered:
            self._leave_company(now_ms)
        if self._replies:
            self._replies.release(now_ms)
        if self.leadership.hands_over_until_ms:
            self.leadership.go_on_handing_over(now_ms)
            self._drain(now_ms)
        if self.effects.replies and self.members.peers:  # also when the last link is gone
            self._forwarder.mail_answers(now_ms)
        self.effects.wake_at_ms = self._wake_at(now_ms)

    def _drain(self, now_ms: int) -> None:
        """Hear the replica's events and let its records and frames leave, until neither makes more of the other."""
        ready = self.replica.ready
        if ready.events:
            self._handle_events(now_ms)
        while ready.records or ready.messages:
            self._outlet.drain(now_ms)
            self._handle_events(now_ms)

    def _leave_company(self, now_ms: int) -> None:
        """Follow a change of the master, go on with calls that wait for one, and answer orders."""
        master = self.replica.master
        if master != self._master_seen:
            self._master_seen = master
            self._announcer.tell(now_ms)
            self._forwarder.master_changed(now_ms)
            self._event_log.look()
        elif self._waiting_calls:
            self._forwarder.go_on_with_waiting_calls(now_ms)
        answered = self._voter_changes.answered
        for ticket, outcome in answered:
            self.effects.replies.append(Reply(ticket, outcome, 0))
        answered.clear()

    def _wake_at(self, now_ms: int) -> int | None:
        replica = self.replica
        wake_ms: int | None = None
        if replica.has_company or replica.role != MASTER:
            wake_ms = replica.wake_at_ms
        leadership = self.leadership
        undecided_ms = self._undecided.next_deadline_ms if self._undecided else None
        give_back_ms = None if leadership.serving else self.housekeeping.give_back_at_ms()
        for due_ms in (self._forwarder.wake_at_ms, self._announcer.wake_at_ms, undecided_ms, give_back_ms):
            if due_ms is not None and (wake_ms is None or due_ms < wake_ms):
                wake_ms = due_ms
        if not leadership.serving:
            return wake_ms
        for candidate_ms in (
            self._executor.wake_at_ms(),
            self.housekeeping.next_at_ms() if leadership.may_write and self.housekeeping.has_work() else None,
            self._replies.wake_at_ms,
            leadership.hands_over_until_ms or None,
        ):
            if candidate_ms is not None and (wake_ms is None or candidate_ms < wake_ms):
                wake_ms = candidate_ms
        return wake_ms

    # --- status -------------------------------------------------------------------------

    def status(self, now_ms: int, groups_max: int = 0) -> NodeStatus:
        """What ``/ready`` and ``/cluster`` tell of this member."""
        return self._report.status(now_ms, groups_max)

    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """Up to ``limit`` leases as this member knows them: the living ones, and then those that ended last."""
        return self._report.leases(now_ms, limit)


def _unknown(calls: list[HeldCall]) -> list[Reply]:
    """The answers to calls of which nobody will know whether they had an effect."""
    return [Reply(held.ticket, ServiceUnavailable(LOST), 0) for held in calls]
