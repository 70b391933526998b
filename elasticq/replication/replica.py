"""One member as follower, candidate or master, by Raft's rules with pre-vote and check-quorum.

    follower --silence--> (pre-vote) candidate --quorum would--> candidate of term + 1
       ^                                                              |
       |<------ higher term, or no quorum heard for election_min -----v
       +-------------------------------------------------------- master

This module holds the roles and the dispatch of messages. The parts are in modules of their own and never call back:
term, log and voters (raft_state.py), votes and timers (election.py), progress of followers (tracker.py), messages to
followers (appends.py), the lease (lease.py), durability (durability.py).

The replica leaves its output in ``ready``: records in order, messages, whether these depend on the records, and events
for the node. It does not know the meaning of entries. Each safety rule is a method, named after the rule, and the
simulator plants its faults in these methods.

A learner gets the log like a follower and does not count. A member that lacks forgotten entries is offered a snapshot.
Until that is installed, under a new Replica, the member neither votes nor becomes a candidate. It acknowledges only
what its log holds. The same is true for a member with damaged rows on disk. It asks for a snapshot itself, and its log
continues from there.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), §3, §4.2.3, §6.4, §9.6.
Deviations: a member keeps its term over a restart, and a master applies at append (docs/adr/0003).
"""

from collections.abc import Callable
from typing import Final

from elasticq.replication.appends import Appender
from elasticq.replication.election import Election, Timing
from elasticq.replication.events import BecameMaster, Campaigned, CaughtUp, FellBehind, HeardMaster, LostMastership
from elasticq.replication.lease import LeaderLease
from elasticq.replication.messages import (
    AnyMessage,
    Append,
    AppendReply,
    Found,
    Join,
    Offer,
    PreVote,
    PreVoteReply,
    RequestVote,
    TimeoutNow,
    VoteReply,
)
from elasticq.replication.progress import Progress
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import Durable, Entry, Voter
from elasticq.replication.seeded_random import SeededRandom
from elasticq.replication.tracker import ProgressTracker

FOLLOWER: Final = "follower"
CANDIDATE: Final = "candidate"
MASTER: Final = "master"
_Entry: Final = Entry  # faster: compiled code finds a name of its own module without a dict lookup


class Replica(RaftState):
    """One member. ``receive``, ``tick``, ``propose`` and ``synced`` change it. All times are ms of the boot clock."""

    def __init__(
        self,
        member_id: str,
        voters: tuple[str, ...],
        durable: Durable,
        timing: Timing,
        random: SeededRandom,
        clock: Callable[[int], tuple[int, int]],
        *,
        is_volatile: bool = False,
    ) -> None:
        """Restore the member from ``durable``.

        is_volatile: records are durable when they are made.
        clock: returns (term, time_ms) for ``now_ms``: cluster time by the master of that term, or 0 and the wall clock.
        """
        super().__init__(member_id, voters, durable, clock, is_volatile=is_volatile)
        self.timing = timing
        self.known_peers: set[str] = set()  # met members of the cluster, which a learner asks
        self.role = FOLLOWER
        self.master: str | None = None
        self.election = Election(self, timing, random)
        self.lease = LeaderLease(timing.broken_link_ms)
        self.tracker = ProgressTracker(self)
        self.appender = Appender(self, self.tracker, self.lease, timing.heartbeat_ms)

    # --- life ---------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        # This voter may have answered a master's round before the restart. Until the silence is over it must not vote
        # for another one, because that master may still have its lease.
        self.election.heard_ms = now_ms
        self.election.set_timer(now_ms)
        if not self.is_whole:
            self.is_whole = not self.others  # a member that is alone continues with the remaining rows
            self._want_rows()
        if self.is_alone:
            self._become_candidate(now_ms, transfer=False)

    # --- members ------------------------------------------------------------

    def found(self, entry: Entry, now_ms: int) -> None:
        """Become a founder. The first entry is the same for all founders, and its term has no master."""
        assert self.log.last_index == 0
        assert self.term == 0
        assert entry.index == 1
        self.term = entry.term
        self.persist_vote()
        self.append(entry)
        self.election.set_timer(now_ms)

    def send_founding(self, to: str, entry: Entry) -> None:
        """Ask a fresh member that ``entry`` names to become a founder, too. The entry must be durable here first."""
        self.send(
            Found(cluster="", group=0, sender=self.member_id, to=to, term=entry.term, entry=entry),
            rests_on_records=True,
        )

    def may_change(self) -> bool:
        """Return whether the voters may change: one change at a time, by a master that has committed an entry of its
        term."""
        return (
            self.role == MASTER
            and self.membership.index <= self.commit_index
            and self.log.term_at(self.commit_index) == self.term
        )

    def lost_rows(self, now_ms: int) -> None:
        """Stop serving until a snapshot of another member is installed, because some rows on disk cannot be read."""
        if not self.is_whole:
            return
        self.is_whole = False
        if self.role != FOLLOWER:
            self._step_down(self.term, now_ms, reason="its rows on the disk are damaged")
        self._want_rows()

    def _want_rows(self) -> None:
        """Ask another voter for a snapshot from which the log can continue."""
        if not self.is_whole and self.others:
            source = self.master if self.master in self.others else self.others[0]
            assert source is not None
            self.wanted = (source, max(1, self.commit_index))
            self.tell(FellBehind(*self.wanted))

    def _forget_follower(self, other: str) -> None:
        self.tracker.forget(other)
        self.members_changed()

    def _add_learner(self, other: str, now_ms: int) -> None:
        self.tracker.add(other, now_ms)
        self.members_changed()
        self.appender.send_append(other, now_ms, force=True)

    def _ask_to_join(self, now_ms: int) -> None:
        self.election.set_timer(now_ms)
        self.master = None
        for other in sorted(self.known_peers):  # sorted, so that the order of frames does not depend on string hashes
            self.send(
                Join(cluster=self.cluster, group=0, sender=self.member_id, to=other, term=self.term),
                rests_on_records=False,
            )

    @property
    def wake_at_ms(self) -> int:
        """Return the time at which ``tick`` has something to do next."""
        return self.appender.heartbeat_at_ms if self.role == MASTER else self.election.at_ms

    def tick(self, now_ms: int) -> None:
        if self.role == MASTER:
            if now_ms < self.appender.heartbeat_at_ms:
                return
            patience_ms = self.election.patience_ms
            if not self.tracker.majority_heard_since(now_ms - patience_ms):
                # Check-quorum: other members may have another master.
                self._step_down(self.term, now_ms, reason=f"no majority was heard for {patience_ms} ms")
                return
            for other in self.tracker.drop_silent(now_ms):
                self._forget_follower(other)
            self.appender.broadcast(now_ms)
        elif now_ms >= self.election.at_ms:
            if not self.membership.is_voter:
                self._ask_to_join(now_ms)
            elif self.may_stand:
                self._ask_pre_votes(now_ms)
            else:
                self.election.set_timer(now_ms)

    def synced(self, token: int, now_ms: int) -> None:
        """Note that all records up to ``token`` are durable."""
        self.durability.synced(token)
        if self.role == MASTER:
            self._advance_commit(now_ms)
        elif self.role == CANDIDATE:
            self._count_votes(now_ms)

    # --- terms and elections --------------------------------------------------

    def _step_down(self, term: int, now_ms: int, master: str | None = None, *, reason: str = "") -> None:
        """Become a follower of ``term``, which is not below the current one.

        ``reason`` explains it without a newer term.
        """
        assert term >= self.term
        was_master = self.role == MASTER
        if term > self.term:
            self.term, self.voted_for = term, None
            self.persist_vote()
        self.role = FOLLOWER
        self.master = master
        self.lease.end()
        self.election.end()
        if was_master:
            self.tracker.end()
            self.take_members()
            self.election.set_timer(now_ms)
            self.tell(LostMastership(self.commit_index, reason or f"others are in the newer term {term}"))

    def _ask_pre_votes(self, now_ms: int) -> None:
        self.election.set_timer(now_ms)
        if self.is_alone:
            self._become_candidate(now_ms, transfer=False)
            return
        self.role = CANDIDATE
        self.master = None
        self.tell(Campaigned(self.term + 1, is_pre_vote=True))
        self.election.ask_pre_votes()

    def _become_candidate(self, now_ms: int, *, transfer: bool) -> None:
        """Become a candidate of the next term. The own vote counts once it is durable."""
        self.role = CANDIDATE
        self.master = None
        self.term += 1
        self.voted_for = self.member_id
        self.persist_vote()
        self.tell(Campaigned(self.term, is_asked=transfer))
        self.election.ask_votes(now_ms, self.durability.token + 1, transfer=transfer)

    def _count_votes(self, now_ms: int) -> None:
        if self.role == CANDIDATE and self.election.is_won(self.durability.synced_token):
            self._win(now_ms)

    def _win(self, now_ms: int) -> None:
        self.role = MASTER
        self.master = self.member_id
        self.election.refused_by = None
        self.tracker.begin(now_ms)
        self.take_members()
        self.lease.begin()
        self.appender.heartbeat_at_ms = now_ms  # the node asks for a round at once, after the first entry of the term
        self.tell(BecameMaster())

    def _hears_master(self, now_ms: int) -> bool:
        return self.role == MASTER or self.election.heard_lately(now_ms)

    def link_broke(self, other: str, now_ms: int) -> None:
        """Handle a broken connection to another member. If that is the master or about to be, its process may be
        gone."""
        if self.role == FOLLOWER and other == (self.master or self.voted_for) and self.membership.is_voter:
            rivals = sorted({*self.voters} - {other})
            self.election.link_broke(rivals.index(self.member_id), now_ms)

    # --- messages ---------------------------------------------------------------

    def receive(self, message: AnyMessage, now_ms: int) -> None:
        if message.to != self.member_id:
            return
        match message:
            case Append():
                self._on_append(message, now_ms)
            case AppendReply():
                if message.sender in self.followers or message.term > self.term:
                    self._on_append_reply(message, now_ms)
            case PreVote():
                self._on_pre_vote(message, now_ms)
            case PreVoteReply():
                self._on_pre_vote_reply(message, now_ms)
            case RequestVote():
                self._on_request_vote(message, now_ms)
            case VoteReply():
                self._on_vote_reply(message, now_ms)
            case TimeoutNow():
                is_asked = message.term == self.term and self.role == FOLLOWER and message.sender == self.master
                if is_asked and self.may_stand:
                    self._become_candidate(now_ms, transfer=True)
            case Join():
                if self.role == MASTER and message.sender not in self.followers:
                    self._add_learner(message.sender, now_ms)
            case Offer():
                self._on_offer(message, now_ms)
            case Found():
                if self.log.last_index == 0 and self.term == 0 and not self.voters:
                    self.found(message.entry, now_ms)

    def _on_pre_vote(self, message: PreVote, now_ms: int) -> None:
        if self.role == MASTER and message.sender not in self.followers:
            # it was removed and does not know: the log will show it
            self._add_learner(message.sender, now_ms)
        granted = (
            message.term > self.term
            and self.may_vote
            and not self._hears_master(now_ms)
            and self.election.is_up_to_date(message.last_term, message.last_index)
        )
        self.election.answer_pre_vote(message, granted=granted)

    def _on_pre_vote_reply(self, message: PreVoteReply, now_ms: int) -> None:
        if message.term > self.term:
            self._step_down(message.term, now_ms)
        elif self.role == CANDIDATE and self.election.take_pre_vote(message):
            self._become_candidate(now_ms, transfer=False)

    def _on_request_vote(self, message: RequestVote, now_ms: int) -> None:
        if message.term > self.term and (message.transfer or not self._hears_master(now_ms)):
            self._step_down(message.term, now_ms)
        granted = (
            message.term == self.term
            and self.role == FOLLOWER
            and self.may_vote
            and self.voted_for in (None, message.sender)
            and self.election.is_up_to_date(message.last_term, message.last_index)
        )
        if granted:
            if self.voted_for is None:
                self.voted_for = message.sender
                self.persist_vote()
            self.election.set_timer(now_ms)
        self.election.answer_vote(message, now_ms, granted=granted)

    def _on_vote_reply(self, message: VoteReply, now_ms: int) -> None:
        if message.term > self.term:
            self._step_down(message.term, now_ms)
        elif self.role == CANDIDATE and self.election.take_vote(message):
            self._count_votes(now_ms)

    # --- replication: follower ----------------------------------------------------

    def _on_append(self, message: Append, now_ms: int) -> None:
        if message.term < self.term:
            self._answer_append(message, ok=False, match_index=self.log.last_index)
            return
        assert self.role != MASTER or message.term > self.term, "one master a term"
        if message.term > self.term or self.role != FOLLOWER:
            self._step_down(message.term, now_ms, master=message.sender)
        self.master = message.sender
        self.election.heard(now_ms)
        self.tell(HeardMaster(message.term, message.time_ms))
        if message.prev_index < self.log.base_index:
            # Everything up to the base is committed, so it matches.
            self._answer_append(message, ok=True, match_index=self.log.base_index)
            return
        if self.log.term_at(message.prev_index) != message.prev_term:
            hint = self.log.conflict_hint(message.prev_index, self.commit_index)
            self._answer_append(message, ok=False, match_index=hint)
            return
        self.store(message.entries)
        if self.wanted is not None and self.is_whole and message.entries:
            self.wanted = None  # the log continues without a snapshot
            self.tell(CaughtUp())
        matched = message.prev_index + len(message.entries)
        if self.membership.knows(message.sender):  # otherwise the log does not show yet that the sender may be master
            self.move_commit(min(message.commit_index, matched), is_master=False)
        if not message.is_news:
            self._answer_append(message, ok=True, match_index=matched)

    def _answer_append(self, message: Append, *, ok: bool, match_index: int) -> None:
        # An Append of an older term is refused and proves no contact. Its sender may have restarted and now be master
        # of the current term. It would mistake the round of its earlier life for a current one, and its lease would be
        # wrong.
        round_ = message.round if message.term == self.term else 0
        self.send(
            AppendReply(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=message.sender,
                term=self.term,
                ok=ok,
                match_index=match_index,
                round=round_,
            ),
            rests_on_records=True,
        )

    def _on_offer(self, message: Offer, now_ms: int) -> None:
        if message.term == self.term and message.sender == self.master and message.index > self.commit_index:
            if self.wanted is None:
                self.tell(FellBehind(message.sender, message.index))
            self.wanted = (message.sender, message.index)

    # --- replication: master --------------------------------------------------------

    def propose(
        self,
        payload: bytes,
        time_ms: int,
        now_ms: int,
        *,
        voters: tuple[Voter, ...] | None = None,
        acked_before_commit: bool = False,
    ) -> int:
        """Append an entry of the own term and return its index.

        Only a master may call this. With ``voters``, ``may_change`` must be true.
        """
        assert self.role == MASTER
        assert time_ms >= self.log.last_time_ms, "cluster time never falls along the log"
        index = self.log.last_index + 1
        entry = _Entry(index, self.term, time_ms, payload, voters, acked_before_commit)
        if voters is not None:
            self._assert_change(voters)
        elif self.commits_alone:
            self.log.append(entry)
            self.durability.durable_index = self.commit_index = index
            return index
        before = self.others
        self.append(entry)
        if voters is not None:
            self.tracker.follow_voters(before, now_ms)
        if self.followers:
            self.appender.replicate(now_ms)
        return index

    def _assert_change(self, voters: tuple[Voter, ...]) -> None:
        """Assert that the change is allowed. Two changes at once could have majorities that share no member."""
        assert self.may_change(), "one change of the voters at a time"
        assert self.membership.allows(voters), "a change of one voter"

    def _on_append_reply(self, message: AppendReply, now_ms: int) -> None:
        if message.term > self.term:
            self._step_down(message.term, now_ms)
            return
        if self.role != MASTER or message.term < self.term:
            return
        progress = self.followers[message.sender]
        progress.heard_ms = now_ms
        if message.round > progress.round:
            progress.round = message.round
            self.lease.extend(self.tracker.majority_round())
        if message.ok:
            self._on_match(message, progress, now_ms)
        elif progress.take_hint(message.match_index):
            self.appender.send_append(message.sender, now_ms, force=True)

    def _on_match(self, message: AppendReply, progress: Progress, now_ms: int) -> None:
        match_index = min(message.match_index, self.log.last_index)
        if match_index < self.log.base_index and progress.next_index <= self.log.base_index:
            return  # it answered a heartbeat, and has no snapshot yet
        progress.offered_index = 0
        was_probing = progress.probing
        progress.probing = False
        if match_index > progress.match_index:
            progress.match_index = match_index
            self._advance_commit(now_ms)
            if message.sender not in self.followers:
                return  # this commit removed it, or this master
        progress.next_index = max(progress.next_index, progress.match_index + 1)
        if progress.is_leaving and match_index >= self.membership.index and self.commit_index >= self.membership.index:
            # with the commit index, so that it learns of its removal
            self.appender.send_append(message.sender, now_ms, force=True)
            self._forget_follower(message.sender)
            return
        if was_probing or progress.next_index <= self.log.last_index:
            self.appender.send_append(message.sender, now_ms, force=False)

    def lease_is_valid(self, now_ms: int) -> bool:
        """Return whether no other master can exist now. That is always so in a cluster of one."""
        return self.role == MASTER and (self.is_alone or self.lease.is_valid(now_ms))

    def ask_round(self, now_ms: int) -> None:
        """Send a heartbeat round now instead of when it is due. It renews the lease and announces a new master."""
        if self.role == MASTER:
            self.appender.broadcast(now_ms)

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Ask ``to``, or the voter with the newest log, to start an election if it has the whole log.

        Return whether it was asked.
        """
        if self.role != MASTER or not self.others or (to and to not in self.others):
            return False
        best = to or self.tracker.transfer_target()
        if self.followers[best].match_index < self.log.last_index:
            return False
        # The follower may win at once, without the members that answered our rounds. So there is no lease until the
        # time in which it may win is over.
        self.lease.give_up(now_ms + self.timing.election_max_ms)
        self.send(
            TimeoutNow(cluster=self.cluster, group=0, sender=self.member_id, to=best, term=self.term),
            rests_on_records=False,
        )
        return True

    # --- commit -------------------------------------------------------------------------

    def _advance_commit(self, now_ms: int) -> None:
        index = self.tracker.majority_index()
        if index > self.commit_index and self._may_commit(index):
            names_voters = self.commit_index < self.membership.index <= index
            self.move_commit(index, is_master=True)
            if names_voters:
                self.appender.push_commit(now_ms)
                self._voters_committed(now_ms)

    def _voters_committed(self, now_ms: int) -> None:
        """Forget the removed members, which learned it from the last push. A master that removed itself steps down."""
        for other in self.tracker.told_to_leave():
            self._forget_follower(other)
        if not self.membership.is_voter:
            self.hand_over(now_ms)
            self._step_down(self.term, now_ms, reason="it was removed from the voters")

    def _may_commit(self, index: int) -> bool:
        """Return whether the entry may be committed. Raft counts copies only for entries of the own term.

        Entries of older terms are committed with one of those.
        """
        return self.log.term_at(index) == self.term

    def settle(self, now_ms: int) -> None:
        """Send the commit index now if the log is idle, not at the next heartbeat. Call this after each input."""
        if self.role == MASTER and self.commit_index == self.log.last_index:
            self.appender.push_commit(now_ms)

    def compact(self, index: int, kept_bytes: int = 0) -> None:
        """Forget committed entries up to ``index``, but keep within ``kept_bytes`` what other members may need."""
        floor = min(index, self.commit_index)
        if self.has_company or not self.is_alone:
            floor = min(floor, self.log.floor_of(kept_bytes))
        self.log.compact(self.tracker.compaction_floor(floor, kept_bytes))
