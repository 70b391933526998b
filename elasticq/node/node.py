"""One member of a cluster as a pure object: commands, frames and time go in, effects come out.

Node takes the inputs, passes each to the part that does the work, and moves the results into ``effects``. Each part
owns its fields, and knows only the parts below it:

    Node            inputs, the events of the replica, effects
    StatusReport    the status of a member; EventLog: the events of its cluster
    Housekeeping    background work of a master
    Announcer       reports the master to proxies
    Forwarder       calls of and for other members, a Keeper; PendingCalls: those without an answer
    Executor        calls on a master, from admission to answer
    Waiters, SendBackpressure, WaitingCalls: calls that wait for a message, for space, for a master
    Leadership      when this member may decide; Members, VoterChanges: who belongs to the cluster
    Journal         log entries between decision and commit
    Parts           what all of these use: state, clock, Outlet, Digests, ContentCache
    Replica         the order of entries among the members (replication/)

These rules involve several parts:

1. Reply rule. An answer leaves when the newest entry at the time of its computation is committed. Errors and empty
   receives follow the same rule. Executor gives Replies the journal's head index, which includes the open entry.
2. Serving. A master executes calls only once its own TookOver is committed, and with it everything before it
   (Leadership.commit_moved).
3. Hand-over. No call and no background work makes an entry during a hand-over. Otherwise the target's log would not be
   the newest when it asks for votes. The code that would make an entry checks Leadership.may_write first. Only returned
   messages and orders of the operator are still written, and the target waits for them.
4. Time. Each command has the time at which it came. An entry has that of its last command. Time never falls, neither in
   the open entry nor along the log (Journal.stamp_command).
5. Roll-back. A master applies at append, so the next receive cannot take the same message. A master that loses its term
   rolls back uncommitted entries, the newest first (Journal.lost_mastership). Then state, applied index and clock agree
   again, before any call is passed on.
6. Failures. The execution of a command may fail: its handler, the encoding of its decision, or its own part of the open
   entry. Its caller gets an error and nothing changes (safe_execution.py). Later steps, and entries that others
   committed, must not fail. An exception there is a broken invariant and ends the member.
"""

from collections.abc import Iterable

from elasticq.engine.stored import mutations as m
from elasticq.model.commands import Call
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.announcer import Announcer
from elasticq.node.comparison import Comparison
from elasticq.node.driven import Driven
from elasticq.node.executor import LOST, Executor
from elasticq.node.forwarder import Forwarder
from elasticq.node.forwarding import FORWARDED, ContentRefused, check_sender
from elasticq.node.housekeeping import Housekeeping
from elasticq.node.journal import Journal
from elasticq.node.leadership import Leadership
from elasticq.node.membership.peer import Peer
from elasticq.node.membership.voter_changes import NOT_THE_MASTER
from elasticq.node.orders import Order, OrderDone, OrderRefused, TransferMastership, VerifyRows
from elasticq.node.outputs import Fetch, HeldCall, Ticket, Wanted
from elasticq.node.parts import Parts
from elasticq.node.reply import Reply
from elasticq.node.reports.event_log import EventLog
from elasticq.node.reports.status import StatusReport
from elasticq.node.settings import LeaseStatus, NodeSettings, NodeStatus
from elasticq.replication import messages
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
from elasticq.replication.replica import MASTER
from elasticq.replication.seeded_random import SeededRandom
from elasticq.replication.validation import validate


class Node(Driven):
    """One member. All times are ms, and ``now_ms`` is the boot clock. The caller drains the effects after each call."""

    def __init__(
        self, settings: NodeSettings, durable: Durable, entropy: bytes, rows: Iterable[m.Mutation] = ()
    ) -> None:
        """Create the member. ``rows`` yields the content of the rows on disk, up to ``durable.applied_index``."""
        parts = Parts(settings, durable, SeededRandom(entropy), rows)
        self.settings = settings
        self.effects, self.state, self.clock = parts.effects, parts.state, parts.clock
        self.replica, self.members = parts.replica, parts.members
        self._event_log = EventLog(parts.replica, parts.members, parts.effects)
        # not from the entropy alone, which may be that of an earlier node
        incarnation = parts.random.token(b"courier %d" % durable.applied_index, 8).hex()
        self.journal = journal = Journal(parts, durable.applied_index)
        self.leadership = leadership = Leadership(parts, journal)
        self._executor = executor = Executor(parts, journal, leadership)
        self.waiters, self._undecided = executor.waiters, executor.undecided
        self._comparison = comparison = Comparison(parts, journal)
        self.housekeeping = Housekeeping(parts, journal, executor, comparison)
        self._forwarder = forwarder = Forwarder(parts, leadership, executor, incarnation)
        self.passed_on = forwarder.passed_on
        self._announcer = Announcer(parts.replica, parts.clock, parts.effects, forwarder)
        self._report = StatusReport(parts, journal, leadership, executor, forwarder)
        self._voter_changes, self._outlet, self._content_cache = parts.voter_changes, parts.outlet, parts.content_cache
        self._backpressure, self._waiting_calls = parts.backpressure, parts.waiting_calls
        self._replies = parts.replies
        self._stored_index = durable.applied_index
        self._master_seen: str | None = None

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start the clock and the replica.

        A cluster of one with memory-only storage is master when this returns.
        """
        self.clock.start(now_ms, wall_ms)
        self.replica.start(now_ms)
        self._finish_input(now_ms)

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call. Its answer comes out as a Reply, at once or after a later input."""
        if not self.leadership.serving:
            self._forwarder.submit(call, ticket, now_ms)
            if self._waiting_calls:
                self._finish_input(now_ms)
            return
        self._executor.admit(call, ticket, now_ms)
        executor = self._executor
        is_awaited = executor.waiters.count or executor.heartbeats.count
        if is_awaited or not (self.replica.commits_alone or self.journal.is_only_joining()):
            self._finish_input(now_ms)
        else:
            self.effects.wake_at_ms = self.housekeeping.next_at_ms()  # nothing else can be due

    @property
    def applied_index(self) -> int:
        """Return the index of the newest applied log entry."""
        return self.journal.applied_index

    @property
    def ignored_attributes(self) -> set[str]:
        """Return the unknown queue attributes of calls that this master ignored (limits = relaxed)."""
        return self.journal.context.ignored

    @property
    def serving(self) -> bool:
        """Return whether this member is master and executes calls."""
        return self.leadership.serving

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """Forget the waiting call of a client that disconnected. Any other ticket changes nothing."""
        self._executor.cancel(ticket)
        self._forwarder.cancelled(ticket)
        self._finish_input(now_ms)

    def undelivered(self, result: Result, now_ms: int) -> None:
        """Make the messages of a receive visible again, because its answer could not be written."""
        if isinstance(result, ReceiveMessageResult) and result.messages and not result.leased:
            if self.leadership.serving:
                self._executor.give_back(result, now_ms)
            else:
                self._forwarder.undelivered(result)
        self._finish_input(now_ms)

    def receive(self, frame: bytes, now_ms: int, link: str = "") -> None:
        """Handle a frame of another member. Raise FrameError for a refused frame, which changes nothing.

        ``link`` is the id that the other end has proved, empty if unknown. A frame of another sender is refused.
        """
        self._take_frame(frame, now_ms, link)
        self._finish_input(now_ms)

    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        """Handle frames that arrived together, each with its link. Their calls share one entry.

        Return the refusals, each with its link. Frames after a refused one of the same link are not read, because that
        link is about to be closed.
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
        self._finish_input(now_ms)
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
        """Handle the greeting of another member, its first one or a renewed one."""
        known = self.members.peers.get(peer.id)
        if known is not None and known.incarnation != peer.incarnation:
            self._executor.forget_waiting_of(peer.id)
            self._forwarder.master_changed(now_ms)
        self.members.met(peer, now_ms)
        self._announcer.met(peer, now_ms)
        self._event_log.look()
        self._finish_input(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """Handle the loss of the link to another member. The receives that wait here for its clients are removed."""
        self.members.lost(member_id, now_ms)
        self._announcer.lost(member_id)
        self.replica.link_broke(member_id, now_ms)
        self._executor.forget_waiting_of(member_id)
        self._forwarder.master_changed(now_ms)
        self._event_log.look()
        self._finish_input(now_ms)

    def introduce(self) -> Peer:
        """Return the greeting by which this member describes itself to others."""
        return self.members.introduce()

    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        """Carry out an order of the operator. The outcome of its reply is an OrderDone or an OrderRefused."""
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
        self._finish_input(now_ms)

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
        """Note that all records handed out up to ``token`` are durable."""
        self.replica.synced(token, now_ms)
        self._finish_input(now_ms)

    def stored(self, index: int, now_ms: int) -> None:
        """Note that the rows on disk hold everything up to ``index``.

        Contents up to it may leave memory, and entries up to it may leave the log.
        """
        assert self._stored_index <= index <= self.replica.commit_index, "rows hold committed entries only"
        self._stored_index = index
        self._content_cache.stored(index)
        if self.replica.is_whole:  # otherwise the log must continue from the snapshot that replaces the rows
            self.replica.compact(index, self.settings.log_kept_bytes)
            self.effects.log_floor = self.replica.log.base_index
        self._executor.release_senders(now_ms)
        self._finish_input(now_ms)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """Handle the answer to a fetch: at least the first of the requested messages that still exist."""
        if not self.replica.is_whole:
            return  # the rows may lack some of the messages
        self._executor.fetched(fetch, contents, now_ms)
        self._finish_input(now_ms)

    def damaged(self, queue_id: int, sequences: list[int], now_ms: int) -> bool:
        """Handle the loss of message contents that cannot be read any more.

        With empty ``sequences`` the messages are unknown.

        If there are other voters, this member requests a snapshot. A member that is alone deletes the messages in an
        entry. Return False if it is alone and the messages are unknown. Then only a node over new rows helps, and the
        caller must replace this one.
        """
        if self.replica.others or not sequences:
            self.replica.lost_rows(now_ms)
        elif self.leadership.serving:
            self._executor.lose_contents(queue_id, sequences, now_ms)
        self._finish_input(now_ms)
        return bool(self.replica.others or sequences)

    def set_full(self, reason: str | None, now_ms: int) -> None:
        """Refuse sends with ``reason``, because the disk is full. None ends that."""
        if reason is not None and self._backpressure.full_reason is None:
            self.hand_over(now_ms)  # another member may have space
        self._backpressure.full_reason = reason
        self._executor.release_senders(now_ms)
        self._finish_input(now_ms)

    def tick(self, now_ms: int) -> None:
        """Do what is due: elections, heartbeats, ends of waits, deadlines of messages and background work."""
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
            if self.leadership.may_write:  # otherwise the log of the hand-over's target would not be the newest
                self.housekeeping.work(now_ms)
        else:
            self.housekeeping.give_back(now_ms)
        self._finish_input(now_ms)

    def close_waiters(self, now_ms: int) -> None:
        """End all long polls, for a graceful stop."""
        self._executor.close_waiters(now_ms)
        self._forwarder.end_waits()
        self._finish_input(now_ms)

    def fsync_measured(self, slow_ms: int) -> None:
        """Set how many ms a slow sync of the disk takes. Elections allow for that time."""
        self.replica.election.fsync_ms = slow_ms

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Begin to hand over the mastership to ``to``, or to the voter with the newest log.

        Return False if that is impossible.
        """
        is_due = self.leadership.hand_over(now_ms, to)
        if is_due:
            self._finish_input(now_ms)
        return is_due

    @property
    def vote(self) -> Vote:
        """Return the term of this member, and its vote in that term."""
        return Vote(self.replica.term, self.replica.voted_for)

    def retire(self, now_ms: int) -> list[HeldCall]:
        """Stop this node, because a node over a snapshot replaces it.

        Return the calls that the new node continues with.

        All other calls are answered. The log of this node is lost, so the outcome of its uncommitted entries stays
        unknown.
        """
        self.journal.retire()
        held = self._forwarder.retire(now_ms)
        self.effects.replies += _unknown(self._undecided.take_all())
        self._forwarder.mail_answers(now_ms)
        return held

    def go_on_with(self, held: list[HeldCall], now_ms: int) -> None:
        """Go on with the calls that waited at the node that this one replaces."""
        self._forwarder.go_on_with(held, now_ms)
        self._finish_input(now_ms)

    # --- events of the replica ----------------------------------------------------------

    def _handle_events(self, now_ms: int) -> None:
        """Handle the events of the replica in order. The replica may have advanced since an event was made."""
        ready = self.replica.ready
        while ready.events:
            events, ready.events = ready.events, []
            for event in events:
                if isinstance(event, CommitMoved):  # a match statement would double the cost of each committed entry
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
        """Roll back what is not committed. Calls that may be executed again go on at the next master."""
        self.leadership.lost_mastership(now_ms)
        self.journal.lost_mastership(commit_index)
        self._forwarder.go_on_with(self._executor.lost_mastership(now_ms), now_ms)
        self._comparison.lost_mastership()
        self._voter_changes.lost_mastership()

    def _dropped(self, entries: list[Entry], now_ms: int) -> None:
        """Go on with calls whose entries were cut off the log, because they had no effect."""
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

    def _finish_input(self, now_ms: int) -> None:
        """Do everything that is due after an input, and set the time at which the shell wakes the node."""
        self._drain(now_ms)
        if self.journal.is_open:
            self.journal.close_if_free(now_ms)
        if self.replica.followers:
            self.replica.settle(now_ms)
        self._drain(now_ms)
        if self.replica.master != self._master_seen or self._waiting_calls or self._voter_changes.answered:
            self._follow_master(now_ms)
        if self._replies:
            self._replies.release(now_ms)
        if self.leadership.hands_over_until_ms:
            self.leadership.go_on_handing_over(now_ms)
            self._drain(now_ms)
        if self.effects.replies and self.members.peers:  # also when the last link is gone
            self._forwarder.mail_answers(now_ms)
        self.effects.wake_at_ms = self._wake_at(now_ms)

    def _drain(self, now_ms: int) -> None:
        """Handle the replica's events and release its records and frames, until there are no more of either."""
        ready = self.replica.ready
        if ready.events:
            self._handle_events(now_ms)
        while ready.records or ready.messages:
            self._outlet.drain(now_ms)
            self._handle_events(now_ms)

    def _follow_master(self, now_ms: int) -> None:
        """Handle a change of the master, go on with calls that wait for one, and answer orders."""
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
        """Return the status that ``/ready`` and ``/cluster`` show for this member."""
        return self._report.status(now_ms, groups_max)

    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """Return up to ``limit`` leases known here: first the active ones, then those that ended last."""
        return self._report.leases(now_ms, limit)


def _unknown(calls: list[HeldCall]) -> list[Reply]:
    """Return the replies to calls whose outcome will stay unknown."""
    return [Reply(held.ticket, ServiceUnavailable(LOST), 0) for held in calls]
