"""One member: follower, candidate or master, by Raft's rules with pre-vote and check-quorum.

    follower --silence--> (pre-vote) candidate --quorum would--> candidate of term + 1
       ^                                                              |
       |<------ higher term, or no quorum heard for election_min -----v
       +-------------------------------------------------------- master

What the replica wants done is left in ``outbox``: records in order, messages
with the sync token they rest on, and events for the node. It knows nothing of
what entries mean. Rules that safety hangs on have a method each, named after
the rule; the simulator plants its faults in exactly these.

A member that is no voter (a learner) gets the log like a follower and counts for
nothing. One that is too far behind for entries is offered a snapshot; until that
is installed, which is a new Replica over it, it neither votes nor stands, and
acknowledges no more than its log holds. So does one whose rows on disk are
damaged: it wants a snapshot by itself, and its log goes on from there.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), §3, §4.2.3,
§6.4, §9.6; deviations: a member keeps its term over a restart, and a master
applies at append (docs/adr/0003).
"""

from collections import deque
from collections.abc import Callable

from msgspec import Struct, field

from elasticq.model.ranges import TERM_MAX
from elasticq.replication.log import Log
from elasticq.replication.lottery import Lottery
from elasticq.replication.membership import Membership
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
from elasticq.replication.records import Durable, Entry, Record, Truncation, Vote, Voter

FOLLOWER, CANDIDATE, MASTER = "follower", "candidate", "master"

APPEND_ENTRIES_MAX = 512
APPEND_BYTES_MAX = 4 * 1_048_576
IN_FLIGHT_ENTRIES_MAX = 4_096  # sent to one follower and not acknowledged
LEARNER_SILENT_MS = 10_000  # a learner not heard for so long is forgotten; it asks again when it is back
PINNED_FACTOR = 16  # times the bytes that are kept anyway: so much log waits for one who takes a snapshot
FSYNC_FACTOR = 10  # an election waits for so many of the disk's slow syncs
LEASE_SHARE = 0.8  # of election_min, counted from the sending of the round (Ongaro 2014, §6.4.1)


class Timing(Struct, frozen=True):
    """heartbeat_ms: between rounds; election: bounds of the random silence before standing."""

    heartbeat_ms: int
    election_min_ms: int
    election_max_ms: int


class Outbox(Struct):
    """What the replica wants done, in order; a message that rests on records waits for their sync."""

    records: list[Record] = field(default_factory=list)
    messages: list[tuple[AnyMessage, bool]] = field(default_factory=list)  # (message, rests on the records so far)


class Observer:
    """What the node hears of. Called inside replica calls; must not call back."""

    def became_master(self, now_ms: int) -> None: ...

    def lost_mastership(self, now_ms: int) -> None: ...

    def commit_moved(self, now_ms: int) -> None: ...

    def linked(self, time_ms: int, now_ms: int) -> None: ...

    def members_changed(self, now_ms: int) -> None:
        """Other voters, or other learners at a master."""

    def dropped(self, entries: list[Entry]) -> None:
        """A newer master's log has others in their place."""

    def fell_behind(self, source: str, index: int) -> None:
        """Only a snapshot helps: ``source`` has one at ``index`` or above."""

    def caught_up(self) -> None:
        """No snapshot is needed any more."""


class Replica:
    """``receive``, ``tick``, ``propose`` and ``synced`` move it; all times are boot-clock ms."""

    def __init__(
        self,
        member_id: str,
        voters: tuple[str, ...],
        durable: Durable,
        timing: Timing,
        lottery: Lottery,
        observer: Observer,
        clock: Callable[[int], tuple[int, int]],
        *,
        is_volatile: bool = False,
    ) -> None:
        """``is_volatile``: records are durable when made.

        ``clock(now_ms)`` gives (term, time_ms): cluster time by the master of that term, or 0 and the wall clock.
        """
        self.member_id = member_id
        self.is_volatile = is_volatile
        self.membership = Membership(member_id, voters, durable.base)
        for entry in durable.entries:
            self.membership.appended(entry)
        self.cluster = ""  # the cluster id, once it is committed or this member wants to join it
        self.acquaintances: set[str] = set()  # members of the cluster that were met: whom a learner asks
        self.fsync_ms = 0  # the disk's slow syncs
        self.in_flight_entries_max = IN_FLIGHT_ENTRIES_MAX
        self.wanted: tuple[str, int] | None = None  # (source, index) of the snapshot that is being taken
        self.timing = timing
        self.lottery = lottery
        self.observer = observer
        self.clock = clock
        self.outbox = Outbox()

        self.term = durable.vote.term
        self.voted_for = durable.vote.voted_for
        self.log = Log(durable.entries, durable.base)
        self.durable_index = self.log.last_index
        self._syncing: deque[tuple[int, int]] = deque()  # (token, last index) not durable yet
        self.synced_token = 0
        self.token = 0  # the last one that covers records handed out

        self.role = FOLLOWER
        self.master: str | None = None
        self.commit_index = durable.applied_index  # rows hold committed entries only
        self.is_whole = durable.is_whole
        self.membership.committed(self.commit_index)
        self.followers: dict[str, Progress] = {}  # the other voters, and the learners
        self._refresh()
        self.round = 0
        self._round_sent_ms: deque[tuple[int, int]] = deque()  # (round, sent) not known to a quorum yet
        self.lease_until_ms = 0
        self._no_lease_before_ms = 0  # rounds sent before it give none: the mastership was being handed over
        self.heard_ms: int | None = None  # newest Append of a master, of any term
        self.votes: dict[str, tuple[int, int]] = {}  # grants: voter -> its clock
        self._pre_votes: set[str] = set()
        self._own_vote_token = 0
        self._campaign_term = 0  # of the pre-vote under way
        self.refused_by: str | None = None  # a voter: it may hear a master that is not heard here
        self.election_at_ms = 0
        self.heartbeat_at_ms = 0

    # --- life ---------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        self._restart_term()
        # Before the restart this voter may have answered a master's round: until election_min
        # has passed it must not help another one, or that master's lease would lie.
        self.heard_ms = now_ms
        self._set_election_timer(now_ms)
        if not self.is_whole:
            self.is_whole = not self.others  # alone it goes on with what is left
            self._want_rows()
        if self._is_alone:
            self._stand(now_ms, transfer=False)

    # --- members ------------------------------------------------------------

    def _refresh(self) -> None:
        """What follows from who the members are."""
        membership = self.membership
        self.others = membership.others
        self.quorum = membership.quorum
        self.has_company = bool(self.others or self.followers)
        self._is_alone = membership.is_voter and not self.others
        self.commits_alone = self.is_volatile and self._is_alone and not self.followers  # nobody to ask or tell

    @property
    def voters(self) -> tuple[str, ...]:
        return self.membership.ids

    @property
    def may_vote(self) -> bool:
        """Not while a snapshot is on its way or its rows have holes, and not before it belongs to a cluster."""
        return self.is_whole and self.wanted is None and (self.membership.is_voter or bool(self.cluster))

    @property
    def may_stand(self) -> bool:
        """Not where there is no higher term: what a master of it made could not be numbered."""
        return self.may_vote and self.membership.is_voter and self.term < TERM_MAX

    @property
    def learners(self) -> tuple[str, ...]:
        """Members that this master sends the log to without counting them."""
        return tuple(each for each in self.followers if each not in self.others)

    def found(self, entry: Entry, now_ms: int) -> None:
        """Be a founder: the first entry is the same for all of them, and nobody is master in its term."""
        assert self.log.last_index == 0
        assert self.term == 0
        assert entry.index == 1
        self.term = entry.term
        self._persist_vote()
        self._append(entry, now_ms)
        self._set_election_timer(now_ms)

    def send_founding(self, to: str, entry: Entry) -> None:
        """Let a fresh member that ``entry`` names be a founder, too; what it says is durable here first."""
        self._send(
            Found(cluster="", group=0, sender=self.member_id, to=to, term=entry.term, entry=entry),
            rests_on_records=True,
        )

    def may_change(self) -> bool:
        """One change at a time, by a master that has committed an entry of its own term."""
        return (
            self.role == MASTER
            and self.membership.index <= self.commit_index
            and self.log.term_at(self.commit_index) == self.term
        )

    def lost_rows(self, now_ms: int) -> None:
        """Some of what the rows on disk held cannot be read: until others gave it back, this member serves nobody."""
        if not self.is_whole:
            return
        self.is_whole = False
        if self.role != FOLLOWER:
            self._step_down(self.term, now_ms)
        self._want_rows()

    def _want_rows(self) -> None:
        """From where the log can go on; whoever has them will do."""
        if not self.is_whole and self.others:
            source = self.master if self.master in self.others else self.others[0]
            assert source is not None
            self.wanted = (source, max(1, self.commit_index))
            self.observer.fell_behind(*self.wanted)

    def _append(self, entry: Entry, now_ms: int) -> None:
        self.log.append(entry)
        self._record(entry)
        if self.membership.appended(entry):
            self._members_changed(now_ms)

    def _members_changed(self, now_ms: int) -> None:
        if self.role == MASTER:
            for other in self.membership.others:
                if other not in self.followers:
                    self.followers[other] = Progress(self.log.last_index + 1, heard_ms=now_ms)
            for other, progress in self.followers.items():
                progress.is_leaving = other in self.others and other not in self.membership.others
        self._refresh()
        self.observer.members_changed(now_ms)

    def _forget_follower(self, other: str, now_ms: int) -> None:
        del self.followers[other]
        self._refresh()
        self.observer.members_changed(now_ms)

    def _forget_silent(self, now_ms: int) -> None:
        """Learners wholly; of a voter that its snapshot must be waited for."""
        for other, progress in list(self.followers.items()):
            if now_ms - progress.heard_ms > LEARNER_SILENT_MS:
                progress.offered_index = 0
                if other not in self.others:
                    self._forget_follower(other, now_ms)

    def _on_join(self, message: Join, now_ms: int) -> None:
        if self.role == MASTER and message.sender not in self.followers:
            self._add_learner(message.sender, now_ms)

    def _add_learner(self, other: str, now_ms: int) -> None:
        self.followers[other] = Progress(self.log.last_index + 1, heard_ms=now_ms)
        self._refresh()
        self.observer.members_changed(now_ms)
        self._send_append(other, now_ms, force=True)

    def _ask_to_join(self, now_ms: int) -> None:
        self._set_election_timer(now_ms)
        self.master = None
        for other in sorted(self.acquaintances):  # the same frames in the same order, whatever strings hash to
            self._send(
                Join(cluster=self.cluster, group=0, sender=self.member_id, to=other, term=self.term),
                rests_on_records=False,
            )

    def _restart_term(self) -> None:
        """A member keeps its term over a restart: raising it would depose the master."""

    @property
    def wake_at_ms(self) -> int:
        """When ``tick`` has something to do next."""
        return self.heartbeat_at_ms if self.role == MASTER else self.election_at_ms

    def tick(self, now_ms: int) -> None:
        if self.role == MASTER:
            if now_ms >= self.heartbeat_at_ms and self._has_quorum(now_ms):
                self._forget_silent(now_ms)
                self._broadcast(now_ms)
        elif now_ms >= self.election_at_ms:
            if not self.membership.is_voter:
                self._ask_to_join(now_ms)
            elif self.may_stand:
                self._ask_pre_votes(now_ms)
            else:
                self._set_election_timer(now_ms)

    def synced(self, token: int, now_ms: int) -> None:
        """All records up to ``token`` are durable."""
        if token > self.synced_token:
            self.synced_token = token
        while self._syncing and self._syncing[0][0] <= token:
            self.durable_index = max(self.durable_index, self._syncing.popleft()[1])
        if self.role == MASTER:
            self._advance_commit(now_ms)
        elif self.role == CANDIDATE:
            self._count_votes(now_ms)

    # --- records ------------------------------------------------------------

    def _record(self, record: Record) -> None:
        self.outbox.records.append(record)

    def _send(self, message: AnyMessage, *, rests_on_records: bool) -> None:
        self.outbox.messages.append((message, rests_on_records))

    def handed_out(self, token: int) -> None:
        """The node gave the outbox's records to the storage under ``token``."""
        self.token = token
        last_index = self.log.last_index
        if last_index > self.durable_index and (not self._syncing or self._syncing[-1][1] != last_index):
            self._syncing.append((token, last_index))

    def _persist_vote(self) -> None:
        self._record(Vote(self.term, self.voted_for))

    # --- terms and elections --------------------------------------------------

    def _set_election_timer(self, now_ms: int) -> None:
        timing = self.timing
        silence_ms = self.lottery.between(timing.election_min_ms, timing.election_max_ms)
        self.election_at_ms = now_ms + max(silence_ms, silence_ms * self._patience_ms // timing.election_min_ms)

    @property
    def _patience_ms(self) -> int:
        """How long silence is nothing: raised where the disk is slow. The lease never counts on more than the least."""
        return max(self.timing.election_min_ms, FSYNC_FACTOR * self.fsync_ms)

    def _step_down(self, term: int, now_ms: int, master: str | None = None) -> None:
        """Become a follower of ``term`` (≥ ours)."""
        assert term >= self.term
        was_master = self.role == MASTER
        if term > self.term:
            self.term, self.voted_for = term, None
            self._persist_vote()
        self.role = FOLLOWER
        self.master = master
        self.lease_until_ms = 0
        self._pre_votes = set()
        self.votes = {}
        self.refused_by = None
        if was_master:
            self.followers = {}
            self._refresh()
            self._set_election_timer(now_ms)
            self.observer.lost_mastership(now_ms)

    def _ask_pre_votes(self, now_ms: int) -> None:
        self._set_election_timer(now_ms)
        if self._is_alone:
            self._stand(now_ms, transfer=False)
            return
        self.role = CANDIDATE
        self.master = None
        self.votes = {}
        self._pre_votes = {self.member_id}
        self._campaign_term = self.term + 1
        for other in self.others:
            self._send(
                PreVote(
                    cluster=self.cluster,
                    group=0,
                    sender=self.member_id,
                    to=other,
                    term=self._campaign_term,
                    last_index=self.log.last_index,
                    last_term=self.log.last_term,
                ),
                rests_on_records=False,
            )

    def _stand(self, now_ms: int, *, transfer: bool) -> None:
        """Candidate of the next term; the own vote counts once it is durable."""
        self.role = CANDIDATE
        self.master = None
        self.term += 1
        self.voted_for = self.member_id
        self._pre_votes = set()
        self.votes = {self.member_id: self.clock(now_ms)}
        self._persist_vote()
        self._own_vote_token = self.token + 1
        self._set_election_timer(now_ms)
        for other in self.others:
            self._send(
                RequestVote(
                    cluster=self.cluster,
                    group=0,
                    sender=self.member_id,
                    to=other,
                    term=self.term,
                    last_index=self.log.last_index,
                    last_term=self.log.last_term,
                    transfer=transfer,
                ),
                rests_on_records=True,
            )

    def _count_votes(self, now_ms: int) -> None:
        if self.role != CANDIDATE or len(self.votes) < self.quorum:
            return
        if self.synced_token >= self._own_vote_token:
            self._win(now_ms)

    def _win(self, now_ms: int) -> None:
        self.role = MASTER
        self.master = self.member_id
        self.refused_by = None
        self.followers = {other: Progress(self.log.last_index + 1, heard_ms=now_ms) for other in self.others}
        self._refresh()
        self._round_sent_ms.clear()
        self.lease_until_ms = 0
        self.observer.became_master(now_ms)
        self._broadcast(now_ms)

    def _is_up_to_date(self, last_term: int, last_index: int) -> bool:
        """The newest log wins: what was committed stands in the log of whoever may win."""
        return (last_term, last_index) >= (self.log.last_term, self.log.last_index)

    def _hears_master(self, now_ms: int) -> bool:
        """Stickiness: whoever heard a master within election_min helps nobody to depose it."""
        if self.role == MASTER:
            return True
        return self.heard_ms is not None and now_ms - self.heard_ms < self.timing.election_min_ms

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
                    self._stand(now_ms, transfer=True)
            case Join():
                self._on_join(message, now_ms)
            case Offer():
                self._on_offer(message, now_ms)
            case Found():
                if self.log.last_index == 0 and self.term == 0 and not self.voters:
                    self.found(message.entry, now_ms)

    def _on_pre_vote(self, message: PreVote, now_ms: int) -> None:
        if self.role == MASTER and message.sender not in self.followers:
            self._add_learner(message.sender, now_ms)  # it was taken out and missed it: let it know
        granted = (
            message.term > self.term
            and self.may_vote
            and not self._hears_master(now_ms)
            and self._is_up_to_date(message.last_term, message.last_index)
        )
        self._send(
            PreVoteReply(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=message.sender,
                term=self.term,
                asked_term=message.term,
                granted=granted,
            ),
            rests_on_records=True,
        )

    def _on_pre_vote_reply(self, message: PreVoteReply, now_ms: int) -> None:
        if message.term > self.term:
            self._step_down(message.term, now_ms)
            return
        if self.role != CANDIDATE or message.asked_term != self._campaign_term:
            return
        if not message.granted:
            self.refused_by = message.sender
            return
        if not self._pre_votes or self._campaign_term != self.term + 1:
            return
        if message.sender in self.others:
            self._pre_votes.add(message.sender)
        if len(self._pre_votes) >= self.quorum:
            self._stand(now_ms, transfer=False)

    def _on_request_vote(self, message: RequestVote, now_ms: int) -> None:
        if message.term > self.term and (message.transfer or not self._hears_master(now_ms)):
            self._step_down(message.term, now_ms)
        granted = (
            message.term == self.term
            and self.role == FOLLOWER
            and self.may_vote
            and self.voted_for in (None, message.sender)
            and self._is_up_to_date(message.last_term, message.last_index)
        )
        if granted:
            if self.voted_for is None:
                self.voted_for = message.sender
                self._persist_vote()
            self._set_election_timer(now_ms)
        linked_term, time_ms = self.clock(now_ms)
        self._send(
            VoteReply(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=message.sender,
                term=self.term,
                granted=granted,
                linked=linked_term > 0,
                time_ms=time_ms,
                linked_term=linked_term,
            ),
            rests_on_records=True,
        )

    def _on_vote_reply(self, message: VoteReply, now_ms: int) -> None:
        if message.term > self.term:
            self._step_down(message.term, now_ms)
        elif (
            message.granted
            and message.term == self.term
            and self.role == CANDIDATE
            and not self._pre_votes
            and message.sender in self.others
        ):
            # Who does not tell the term of its link is taken for linked to the first master there was.
            self.votes[message.sender] = (message.linked_term or int(message.linked), message.time_ms)
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
        self.heard_ms = now_ms
        self._set_election_timer(now_ms)
        self.observer.linked(message.time_ms, now_ms)
        if message.prev_index < self.log.base_index:
            # Everything up to the base is committed, so it matches by itself.
            self._answer_append(message, ok=True, match_index=self.log.base_index)
            return
        if self.log.term_at(message.prev_index) != message.prev_term:
            self._answer_append(message, ok=False, match_index=self._conflict_hint(message.prev_index))
            return
        self._store(message.entries, now_ms)
        if self.wanted is not None and self.is_whole and message.entries:
            self.wanted = None  # the log goes on without a snapshot
            self.observer.caught_up()
        matched = message.prev_index + len(message.entries)
        if self.membership.knows(message.sender):  # else its log has yet to say that it may be master
            self._move_commit(min(message.commit_index, matched), now_ms)
        if not message.is_news:
            self._answer_append(message, ok=True, match_index=matched)

    def _conflict_hint(self, prev_index: int) -> int:
        """Where the master should try next: before the whole term that conflicts, never below commit."""
        term = self.log.term_at(prev_index)
        if term is None:
            return self.log.last_index
        hint = prev_index - 1
        while hint > self.commit_index and self.log.term_at(hint) == term:
            hint -= 1
        return max(hint, self.commit_index)

    def _store(self, entries: list[Entry], now_ms: int) -> None:
        for entry in entries:
            if entry.index <= self.log.last_index:
                if self._agrees(entry):
                    continue
                self._truncate(entry.index, now_ms)
            self._append(entry, now_ms)

    def _agrees(self, entry: Entry) -> bool:
        """Truncate on a real conflict only: a late frame must not cut what it does not know of."""
        return self.log.term_at(entry.index) == entry.term

    def _truncate(self, index: int, now_ms: int) -> None:
        assert index > self.commit_index, "what is committed is never cut"
        self.observer.dropped(self.log.truncate(index))
        self._record(Truncation(index))
        if self.membership.truncated(index):
            self._members_changed(now_ms)
        self.durable_index = min(self.durable_index, index - 1)
        self._syncing = deque((token, min(last, index - 1)) for token, last in self._syncing)

    def _answer_append(self, message: Append, *, ok: bool, match_index: int) -> None:
        self._send(
            AppendReply(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=message.sender,
                term=self.term,
                ok=ok,
                match_index=match_index,
                round=message.round,
            ),
            rests_on_records=True,
        )

    def _on_offer(self, message: Offer, now_ms: int) -> None:
        if message.term == self.term and message.sender == self.master and message.index > self.commit_index:
            if self.wanted is None:
                self.observer.fell_behind(message.sender, message.index)
            self.wanted = (message.sender, message.index)

    # --- replication: master --------------------------------------------------------

    def propose(
        self,
        payload: bytes,
        time_ms: int,
        now_ms: int,
        *,
        voters: tuple[Voter, ...] | None = None,
        is_early: bool = False,
    ) -> int:
        """Append an entry of the own term; returns its index. Only a master may (``voters``: if ``may_change``)."""
        assert self.role == MASTER
        assert time_ms >= self.log.last_time_ms, "cluster time never falls along the log"
        entry = Entry(self.log.last_index + 1, self.term, time_ms, payload, voters, is_early)
        if voters is not None:
            self._assert_change(voters)
        elif self.commits_alone:
            self.log.append(entry)
            self.durable_index = self.commit_index = entry.index
            return entry.index
        self._append(entry, now_ms)
        if self.followers:
            self._replicate(now_ms)
        return entry.index

    def _assert_change(self, voters: tuple[Voter, ...]) -> None:
        """Two changes at once could have majorities that share nobody."""
        assert self.may_change(), "one change of the voters at a time"
        assert self.membership.allows(voters), "of one voter"

    def _broadcast(self, now_ms: int) -> None:
        """A heartbeat round: every follower hears, behind or not."""
        self.heartbeat_at_ms = now_ms + self.timing.heartbeat_ms
        if not self.followers:
            return
        self._new_round(now_ms)
        for other in self.followers:
            self._send_append(other, now_ms, force=True)

    def _replicate(self, now_ms: int) -> None:
        for other, progress in self.followers.items():
            if not progress.probing:
                self._send_append(other, now_ms, force=False)

    def _new_round(self, now_ms: int) -> None:
        self.round += 1
        self._round_sent_ms.append((self.round, now_ms))
        if len(self._round_sent_ms) > 1_024:
            self._round_sent_ms.popleft()

    def _send_append(self, other: str, now_ms: int, *, force: bool) -> None:
        progress = self.followers[other]
        if progress.next_index <= self.log.base_index:
            self._offer(other, progress)
            self._send_heartbeat(other, now_ms)
            return
        window = progress.match_index + self.in_flight_entries_max
        entries: list[Entry] = []
        if progress.next_index <= min(self.log.last_index, window):
            count = 1 if progress.probing else APPEND_ENTRIES_MAX
            entries = self.log.slice(progress.next_index, count, APPEND_BYTES_MAX)
        elif not force:
            return
        prev_index = progress.next_index - 1
        prev_term = self.log.term_at(prev_index)
        assert prev_term is not None
        self._send_entries(other, prev_index, prev_term, entries, now_ms)
        if not progress.probing:
            progress.next_index += len(entries)

    def _send_entries(
        self,
        other: str,
        prev_index: int,
        prev_term: int,
        entries: list[Entry],
        now_ms: int,
        *,
        is_news: bool = False,
    ) -> None:
        _, time_ms = self.clock(now_ms)
        self.followers[other].told_index = self.commit_index
        self._send(
            Append(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=other,
                term=self.term,
                prev_index=prev_index,
                prev_term=prev_term,
                commit_index=self.commit_index,
                round=self.round,
                time_ms=time_ms,
                entries=entries,
                is_news=is_news,
            ),
            rests_on_records=False,
        )

    def _send_heartbeat(self, other: str, now_ms: int) -> None:
        """To a member whose log ends below ours begins: it agrees with all logs on the place before the first entry."""
        self._send_entries(other, 0, 0, [], now_ms)

    def _offer(self, other: str, progress: Progress) -> None:
        """A snapshot; the log stays from here on, so that it can go on from whichever the member takes."""
        progress.offered_index = max(progress.offered_index, self.log.base_index)  # the log may have outgrown the pin
        self._send(
            Offer(
                cluster=self.cluster,
                group=0,
                sender=self.member_id,
                to=other,
                term=self.term,
                index=progress.offered_index,
            ),
            rests_on_records=False,
        )

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
            self._extend_lease()
        if message.ok:
            self._on_match(message, progress, now_ms)
        elif message.match_index >= progress.match_index:
            progress.next_index = max(progress.match_index, min(message.match_index, progress.next_index - 1)) + 1
            progress.probing = True
            self._send_append(message.sender, now_ms, force=True)

    def _on_match(self, message: AppendReply, progress: Progress, now_ms: int) -> None:
        match_index = min(message.match_index, self.log.last_index)
        if match_index < self.log.base_index and progress.next_index <= self.log.base_index:
            return  # a heartbeat's answer; it has no snapshot yet
        progress.offered_index = 0
        was_probing = progress.probing
        progress.probing = False
        if match_index > progress.match_index:
            progress.match_index = match_index
            self._advance_commit(now_ms)
            if message.sender not in self.followers:
                return  # that committed its removal, or this master's own
        progress.next_index = max(progress.next_index, progress.match_index + 1)
        if progress.is_leaving and match_index >= self.membership.index and self.commit_index >= self.membership.index:
            self._send_append(message.sender, now_ms, force=True)  # with the commit index, so that it knows
            self._forget_follower(message.sender, now_ms)
            return
        if was_probing or progress.next_index <= self.log.last_index:
            self._send_append(message.sender, now_ms, force=False)

    def _extend_lease(self) -> None:
        """The lease runs from the sending of the newest round that a quorum answered."""
        rounds = sorted((self.followers[other].round for other in self.others), reverse=True)
        needed = self.quorum - self.membership.is_voter
        if not 0 < needed <= len(rounds):
            return
        known = rounds[needed - 1]
        while self._round_sent_ms and self._round_sent_ms[0][0] <= known:
            _, sent_ms = self._round_sent_ms.popleft()
            if sent_ms >= self._no_lease_before_ms:
                self.lease_until_ms = sent_ms + int(LEASE_SHARE * self.timing.election_min_ms)

    def lease_is_valid(self, now_ms: int) -> bool:
        """No other master can exist now; a cluster of one has no other."""
        return self.role == MASTER and (self._is_alone or now_ms < self.lease_until_ms)

    def ask_round(self, now_ms: int) -> None:
        """Renew the lease now instead of at the next heartbeat."""
        if self.role == MASTER:
            self._broadcast(now_ms)

    def _has_quorum(self, now_ms: int) -> bool:
        """Check-quorum: a master that a quorum has not answered for election_min steps down."""
        limit_ms = now_ms - self._patience_ms
        heard = sum(self.followers[other].heard_ms >= limit_ms for other in self.others) + self.membership.is_voter
        if heard >= self.quorum:
            return True
        self._step_down(self.term, now_ms)
        return False

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Ask ``to``, or the voter with the newest log, to stand now; True if it has everything."""
        if self.role != MASTER or not self.others or (to and to not in self.others):
            return False
        best = to or self.heir()
        if self.followers[best].match_index < self.log.last_index:
            return False
        # The follower may win at once, without asking those who answered our rounds: no lease until it
        # cannot have been asked in vain any more.
        self.lease_until_ms = 0
        self._no_lease_before_ms = now_ms + self.timing.election_max_ms
        self._send(
            TimeoutNow(cluster=self.cluster, group=0, sender=self.member_id, to=best, term=self.term),
            rests_on_records=False,
        )
        return True

    def heir(self) -> str:
        """The other voter that is the fittest now; empty without any."""
        return max(self.others, key=self._fitness, default="")

    def _fitness(self, other: str) -> tuple[int, int]:
        """Of an heir: that it has everything, and that it was heard lately."""
        progress = self.followers[other]
        return progress.match_index, progress.heard_ms

    # --- commit -------------------------------------------------------------------------

    def _advance_commit(self, now_ms: int) -> None:
        index = self._majority_index()
        if index > self.commit_index and self._may_commit(index):
            names_voters = self.commit_index < self.membership.index <= index
            self._move_commit(index, now_ms)
            if names_voters:
                self._push_commit(now_ms)
                self._voters_committed(now_ms)

    def _voters_committed(self, now_ms: int) -> None:
        """Those who were taken out were told by the last push; a master that took itself out ends here."""
        for other, progress in list(self.followers.items()):
            if progress.is_leaving and progress.match_index >= self.membership.index:
                self._forget_follower(other, now_ms)
        if not self.membership.is_voter:
            self.hand_over(now_ms)
            self._step_down(self.term, now_ms)

    def _majority_index(self) -> int:
        """The newest index that a majority of voters has durable; the master's own sync is one vote."""
        others = self.others
        if not others:
            return self.durable_index
        matches = [self.followers[other].match_index for other in others]
        if self.membership.is_voter:
            matches.append(self.durable_index)
        matches.sort(reverse=True)
        return matches[self.quorum - 1]

    def durable_on(self, others: int) -> int:
        """The newest index that this master and so many other voters have durable."""
        matches = sorted((self.followers[other].match_index for other in self.others), reverse=True)
        return min(self.durable_index, matches[others - 1]) if 0 < others <= len(matches) else self.durable_index

    def _may_commit(self, index: int) -> bool:
        """An entry of an older term is committed by one of the own term above it, never by counting."""
        return self.log.term_at(index) == self.term

    def settle(self, now_ms: int) -> None:
        """At the end of an input: if the log went idle tell the commit index now, not at the next heartbeat."""
        if self.role == MASTER and self.commit_index == self.log.last_index:
            self._push_commit(now_ms)

    def _push_commit(self, now_ms: int) -> None:
        """To all that have not heard of it with an entry."""
        for other, progress in self.followers.items():
            if progress.told_index < self.commit_index and not progress.probing:
                prev_index = progress.next_index - 1
                prev_term = self.log.term_at(prev_index)
                if prev_term is not None:
                    self._send_entries(other, prev_index, prev_term, [], now_ms, is_news=True)

    def _move_commit(self, index: int, now_ms: int) -> None:
        if index > self.commit_index:
            assert index <= self.log.last_index
            self.commit_index = index
            self.membership.committed(index)
            self.observer.commit_moved(now_ms)

    def compact(self, index: int, kept_bytes: int = 0) -> None:
        """Forget committed entries up to ``index``, but keep what others may want within ``kept_bytes``.

        A voter that is down is waited for within that bound only; whoever takes a snapshot is, until it has it.
        """
        floor = min(index, self.commit_index)
        if self.has_company or not self._is_alone:
            floor = min(floor, self.log.floor_of(kept_bytes))
        waits = not kept_bytes or self.log.size_bytes <= kept_bytes * PINNED_FACTOR
        for progress in self.followers.values() if waits else ():
            if progress.offered_index:
                floor = min(floor, progress.offered_index)
            elif progress.match_index + self.in_flight_entries_max >= self.log.last_index:
                floor = min(floor, progress.match_index)
        self.log.compact(floor)
