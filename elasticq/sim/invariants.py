"""The rules that must hold after every step of a run (docs/guarantees.md). Each rule has a name.

A step changes one member. So the checks look only at what that member did: its new records, the frames and replies that
it sent, and changes of its role, term and indexes. Most checks are a dictionary look-up or less. Two cost more: a new
master's log is compared with everything that was ever committed, and hashes of all rows are compared sometimes.
"""

from __future__ import annotations

from elasticq.checks.history import Event, Send
from elasticq.checks.queue_history import Jump
from elasticq.engine.stored import mutations
from elasticq.engine.views.digest import state_digest
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult
from elasticq.node.membership.members import FOUNDING_TERM
from elasticq.node.reply import Reply
from elasticq.node.settings import Mode
from elasticq.replication.membership import Membership
from elasticq.replication.messages import AnyMessage, AppendReply, PreVote, RequestVote, VoteReply
from elasticq.replication.records import Entry, Record, Truncation, Vote, Voter
from elasticq.sim.cluster import Cluster
from elasticq.sim.disk import Copy, DurableView
from elasticq.sim.group_log import GroupLog
from elasticq.sim.links import Links
from elasticq.sim.member import Member
from elasticq.sim.process import TRUE_EPOCH_MS
from elasticq.sim.repeats import Repeats
from elasticq.sim.scheduled import Scheduled
from elasticq.sim.turns import wrong_turns

TWO_MASTERS = "two_masters"
LOG_MISMATCH = "log_mismatch"
COMMITTED_CHANGED = "committed_changed"
COMMITTED_MISSING = "committed_missing"
OLD_TERM_COMMITTED = "old_term_committed"
TRUNCATED_WITHOUT_CONFLICT = "truncated_without_conflict"
TERM_FELL, COMMIT_FELL, APPLIED_BEHIND = "term_fell", "commit_fell", "applied_behind"
TERM_RAISED_AT_RESTART = "term_raised_at_restart"
VOTED_TWICE = "voted_twice"
VOTE_NOT_DURABLE = "vote_not_durable"
VOTE_FOR_STALE_LOG = "vote_for_stale_log"
ACK_NOT_DURABLE = "ack_not_durable"
REPLY_NOT_ON_ALL = "reply_not_on_all"
REPLY_NOT_ON_MAJORITY = "reply_not_on_majority"
IDENTITY_REUSED = "identity_reused"
ROWS_DIFFER = "rows_differ"
TURNS_DIFFER = "turns_differ"
DELIVERED_EARLY = "delivered_early"
IDENTITY_UNKNOWN = "identity_unknown"
VOTERS_JUMPED = "voters_jumped"
VOTERS_CHANGED_TWICE = "voters_changed_twice"
ACTED_WHILE_WANTING = "acted_while_wanting"
WRITE_BELOW_QUORUM = "write_below_quorum"
WENT_BACK = "went_back_to_a_snapshot"
LOST_UNTOLD = "lost_untold"
SERVING_BEFORE_TAKEOVER = "serving_before_takeover"
CLOCK_AHEAD, CLOCK_FELL, CLOCK_JUMPED = "clock_ahead", "clock_fell", "clock_jumped"

CLOCK_AHEAD_MAX_MS = 510  # the greatest error of a right wall clock, and 10 for rounding; the median drops a wrong one
ROUNDING_MS = 1  # when two clocks of whole milliseconds are compared
DIGEST_EVERY = 60  # entries between two comparisons of all rows


class _Seen:
    """The state of a running member at the last check."""

    def __init__(self, term: int) -> None:
        self.role = ""
        self.term = term
        self.commit_index = 0
        self.applied_index = 0
        self.digest_index = 0


class Invariants:
    """The checks of a run. Members report everything that they do, and the trace records which rule is broken."""

    def __init__(self, cluster: Cluster, links: Links) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.trace = cluster.trace
        self.links = links
        self.repeats = Repeats(cluster.trace)
        self._scheduled = Scheduled()
        self.group_log = GroupLog()
        self.elections = 0
        self.masters: dict[int, str] = {}
        self.entries: dict[tuple[int, int], Entry] = {}  # (index, term)
        self.committed: list[int] = [0]  # term by index
        self.takeovers: dict[int, int] = {}  # term -> index of its first entry
        self.votes: dict[tuple[str, int], str] = {}  # (voter, term) -> candidate
        self.candidacies: dict[tuple[str, int], tuple[int, int]] = {}  # (candidate, term) -> (last term, last index)
        self.term_shown: dict[str, int] = {}  # the highest term in a member's sent frames
        self.identities: dict[tuple[str, *tuple[int, ...]], tuple[int, int]] = {}
        self.attempts: dict[tuple[str, *tuple[int, ...]], bytes] = {}  # delivery -> ReceiveRequestAttemptId's key
        self.made_at: dict[str, tuple[int, int]] = {}  # message id or receipt handle -> (index, term)
        self.digests: dict[tuple[int, int], tuple[bytes, str]] = {}
        self.compared: set[int] = set()  # applied indexes at which the rows of some member were hashed
        self.seen: dict[str, _Seen] = {}  # by name of the member
        self.early_on: dict[tuple[int, int], set[str]] = {}  # entry acknowledged early -> members with it on disk
        self.told_discarded: set[tuple[int, int]] = set()
        self.served_us: int | None = None  # when a master first served after the faults ended
        self.voteless_us = 0  # the last time before served_us, after the faults, at which no quorum could vote
        self.jumps: list[Jump] = []
        # How far a master's clock was ahead of true time when it won; negative if it was behind.
        self._ahead_ms: dict[int, int] = {}  # term -> that of its master
        self._slowest_ms: dict[int, int] = {}  # term -> the least of its master and of those whose clock it continues
        self.advanced: list[tuple[int, int]] = []  # (index, ms ahead of real time) of every proposed AdvanceClock

    def _found(self, name: str, evidence: str) -> None:
        self.trace.found(name, evidence)

    # --- life -----------------------------------------------------------------

    def starting(self, member: Member, vote: Vote) -> None:
        self.seen[member.name] = _Seen(vote.term)

    def installing(self, member: Member, copy: Copy) -> None:
        """Check that the snapshot is committed, and does not undo entries that the member reported as committed."""
        node = member.core
        replica = node.replica
        if copy.base.index < replica.commit_index:
            self._found(WENT_BACK, f"{member.name} installs {copy.base.index}, committed {replica.commit_index}")
        index = copy.base.index
        if index >= len(self.committed) or self.committed[index] != copy.base.term:
            self._found(COMMITTED_CHANGED, f"{member.name} installs index {index} of term {copy.base.term}")

    def installed(self, member: Member) -> None:
        """Check that the installed rows are equal to the rows of the other members."""
        self.compare_rows(member)

    def started(self, member: Member, vote: Vote) -> None:
        node = member.core
        term, shown = node.replica.term, self.term_shown.get(member.id, 0)
        if term < shown:
            self._found(TERM_FELL, f"{member.name} let out term {shown} and is in {term} after its restart")
        if term > vote.term and len(node.replica.voters) > 1:
            self._found(TERM_RAISED_AT_RESTART, f"{member.name}: term {vote.term} on disk, {term} after its start")

    def crashed(self, member: Member) -> None:
        self.seen.pop(member.name, None)

    # --- records ----------------------------------------------------------------

    def recorded(self, member: Member, records: list[Record]) -> None:
        truncated: Truncation | None = None
        for record in records:
            if type(record) is Entry:
                if truncated is not None:
                    self._truncated(member, truncated, record)
                    truncated = None
                self._recorded_entry(member, record)
            elif type(record) is Truncation:
                truncated = record

    def _truncated(self, member: Member, truncation: Truncation, entry: Entry) -> None:
        """Check that the entry that replaces a truncated one differs from it. Otherwise there was no conflict."""
        before = self._last_known(member, truncation.index)
        if before is not None and before.term == entry.term:
            self._found(
                TRUNCATED_WITHOUT_CONFLICT, f"{member.name} cut its log at {truncation.index} for the same entry"
            )

    @staticmethod
    def _last_known(member: Member, index: int) -> Entry | None:
        """Return the entry at ``index`` before the newest truncation, None if unknown. It may be unsynced."""
        found: Entry | None = None
        newest: Entry | None = member.disk.view.entries.get(index)
        for record, _ in member.disk.unsynced:
            if type(record) is Truncation and record.index <= index:
                found, newest = newest, None
            elif type(record) is Entry and record.index == index:
                newest = record
        return found

    def _recorded_entry(self, member: Member, entry: Entry) -> None:
        known = self.entries.setdefault((entry.index, entry.term), entry)
        if entry.term == FOUNDING_TERM and known != entry and not self._is_on_a_disk(entry.index, entry.term):
            # Nobody votes in that term. A founder that crashed before it synced or sent its entry founds again.
            known = self.entries[entry.index, entry.term] = entry
        if known is not entry and known != entry:
            self._found(LOG_MISMATCH, f"{member.name}: another entry at index {entry.index}, term {entry.term}")
        node = member.core
        if known is entry and node.replica.role == "master" and entry.term == node.replica.term:
            self._proposed(member, entry)

    def _is_on_a_disk(self, index: int, term: int) -> bool:
        return any(_holds(view, index, term) for view in self._views().values())

    def _views(self) -> dict[str, DurableView]:
        """Return the durable contents of all disks by member id, lost disks included."""
        return {member.id: member.disk.view for member in self.cluster.members} | self.cluster.gone

    def _proposed(self, member: Member, entry: Entry) -> None:
        self.takeovers.setdefault(entry.term, entry.index)
        made = mutations.decode(entry.payload)
        advanced_ms = max([ms for index, ms in self.advanced if index < entry.index], default=0)
        self.advanced += [(entry.index, each.ahead_ms) for each in made if type(each) is mutations.ClockAdvanced]
        ahead_ms = entry.time_ms - TRUE_EPOCH_MS - self.scheduler.now_us // 1_000 - advanced_ms
        if ahead_ms > CLOCK_AHEAD_MAX_MS:
            self._found(CLOCK_AHEAD, f"{member.name} stamped entry {entry.index} {ahead_ms} ms ahead of true time")
        if entry.voters is not None:
            self._named(member, entry, entry.voters)
        before = self._before(member, entry)
        if before is not None and before.time_ms > entry.time_ms:
            self._found(CLOCK_FELL, f"{member.name}: entry {entry.index} is older than the one before it")
        place = entry.index, entry.term
        self.repeats.proposed(place, made)
        self.group_log.proposed(place, made, entry.time_ms, self.scheduler.now_us)
        for evidence in self._scheduled.early(made):
            self._found(DELIVERED_EARLY, f"{member.name} at {entry.index}: {evidence}")
        attempts = _attempts(made)
        for mutation in made:
            for identity in _identities(mutation):
                first = self.identities.setdefault(identity, place)
                attempt = attempts.get(identity)
                if attempt is not None and first == place:
                    self.attempts[identity] = attempt
                elif attempt is not None and self.attempts.get(identity) == attempt:
                    continue  # a repeated attempt keeps the numbers of its deliveries
                if first != place:
                    self._found(IDENTITY_REUSED, f"{member.name}: {identity} in {first} and {place} (index, term)")
                self._record_place(member, identity, place)

    def _named(self, member: Member, entry: Entry, voters: tuple[Voter, ...]) -> None:
        """Check a change of the voters. It may change one voter, and the change before it must be committed.

        Then the majorities of adjacent configurations always have a common member.
        """
        node = member.core
        named = node.replica.membership._named
        at = next(at for at, (index, _) in enumerate(named) if index == entry.index)
        if at == 0:
            return
        before_index, before = named[at - 1]
        difference = {voter.id for voter in before} ^ {voter.id for voter in voters}
        if len(difference) > 1:
            self._found(VOTERS_JUMPED, f"{member.name} at {entry.index}: {sorted(difference)} at once")
        if before_index >= len(self.committed) and before_index > node.replica.commit_index:
            evidence = f"{member.name} at {entry.index}: the change at {before_index} is not committed"
            self._found(VOTERS_CHANGED_TWICE, evidence)

    def _record_place(self, member: Member, identity: tuple[str, *tuple[int, ...]], place: tuple[int, int]) -> None:
        """Record the entry in which an id or a receipt handle was created."""
        node = member.core
        match identity:
            case "message", queue_id, sequence:
                self.made_at[node.state.identity.message_id(queue_id, sequence)] = place
            case "hand-out", queue_id, sequence, delivery_number:
                self.made_at[node.state.identity.receipt_handle(queue_id, sequence, delivery_number)] = place

    @staticmethod
    def _before(member: Member, entry: Entry) -> Entry | None:
        node = member.core
        log = node.replica.log
        return log.entry(entry.index - 1) if entry.index > log.first_index else None

    # --- frames -----------------------------------------------------------------

    def released(self, member: Member, message: AnyMessage) -> None:
        """Check that a sent frame promises only what is on the member's disk."""
        name, view = member.id, member.disk.view
        # A PreVote names a term that its sender has not entered.
        if message.term > self.term_shown.get(name, 0) and type(message) is not PreVote:
            self.term_shown[name] = message.term
        if type(message) is AppendReply:
            matched, last = message.match_index, view.last_index
            is_newer = view.vote.term > message.term  # the entry was durable, but a newer master truncated it
            if message.ok and matched > last and not is_newer:
                self._found(ACK_NOT_DURABLE, f"{name} acknowledged {matched}, its disk has {last}")
        elif type(message) is RequestVote:
            self.candidacies[name, message.term] = message.last_term, message.last_index
        elif type(message) is VoteReply and message.granted:
            self._granted(member, message)

    def _granted(self, member: Member, message: VoteReply) -> None:
        name, view, candidate, term = member.id, member.disk.view, message.to, message.term
        if self.votes.setdefault((name, term), candidate) != candidate:
            self._found(VOTED_TWICE, f"{name} voted for {self.votes[name, term]} and {candidate} in term {term}")
        is_newer = view.vote.term > term  # the member has a newer term and cannot repeat that vote
        if not is_newer and (view.vote.term, view.vote.voted_for) != (term, candidate):
            self._found(VOTE_NOT_DURABLE, f"{name} votes for {candidate} in {term}, on its disk stands {view.vote}")

    def decided(self, member: Member, vote: VoteReply) -> None:
        """Check that no voter votes for a shorter log. The frame is sent later, when its own log may be longer."""
        node = member.core
        log = node.replica.log
        own, asked = (log.last_term, log.last_index), self.candidacies.get((vote.to, vote.term))
        if vote.granted and node.replica.wanted is not None:
            self._found(ACTED_WHILE_WANTING, f"{member.name} votes for {vote.to} and wants a snapshot")
        if vote.granted and asked is not None and asked < own:
            evidence = f"{member.name} at (term, index) {own} votes for {vote.to} at {asked}, term {vote.term}"
            self._found(VOTE_FOR_STALE_LOG, evidence)

    # --- replies ----------------------------------------------------------------

    def replied(self, member: Member, reply: Reply, outcome: Result | SqsError) -> None:
        """Check the reply rule: the entries that an answer depends on are on as many disks as its mode requires.

        An answer depends on the entry at the index that the node names. Independently of that, it depends on the
        entries that created the ids and handles in the answer.
        """
        self.repeats.replied(member.name, reply.ticket, outcome)
        if isinstance(outcome, ServiceUnavailable):
            return
        node = member.core
        identities = _ids_in_answer(outcome)
        is_send = _is_standard_send(outcome)
        if reply.index and not (is_send and self._mode != "majority"):
            self._check_disks(member, outcome, (reply.index, node.replica.log.term_at(reply.index)), "majority")
        for identity in identities:
            place = self.made_at.get(identity)
            if place is None and is_send and self._mode == "async":
                continue  # the entry is still open
            if place is None:
                self._found(IDENTITY_UNKNOWN, f"{member.name} told {identity}, which no entry made")
            else:
                self._check_disks(member, outcome, place, self._mode if is_send else "majority")
        if _is_send(outcome) and reply.index and self.links.is_below_quorum(member):
            self._found(WRITE_BELOW_QUORUM, f"{member.name} answered {type(outcome).__name__} at {reply.index}")

    def passed_on(self, name: str, reply: Reply, outcome: Result | SqsError) -> None:
        """Check the reply rule for a proxy's answer: the entries that created its ids must be committed by now."""
        self.repeats.replied(name, reply.ticket, outcome)
        if _is_standard_send(outcome) and self._mode in ("async", "one"):
            return
        for identity in _ids_in_answer(outcome):
            place = self.made_at.get(identity)
            if place is None:
                self._found(IDENTITY_UNKNOWN, f"{name} told {identity}, which no entry made")
            elif not self._is_committed(*place):
                self._found(REPLY_NOT_ON_MAJORITY, f"{name} told {identity} of index {place[0]}, not committed")

    @property
    def _mode(self) -> Mode:
        return self.cluster.scenario.mode

    def _check_disks(
        self, member: Member, outcome: Result | SqsError, place: tuple[int, int | None], mode: Mode
    ) -> None:
        index, term = place
        if mode == "async" or (term is not None and mode != "all" and self._is_committed(index, term)):
            return
        node = member.core
        master = self.cluster.master  # the answering member may not know the newest voters
        voters = set((node if master is None or master.node is None else master.node).replica.voters)
        if mode == "one":  # the master counts the newest voters in its log, committed or not
            named = [entry.voters for (_, of), entry in self.entries.items() if of == term and entry.voters]
            voters |= {voter.id for some in named for voter in some}
        needed = {"one": min(2, len(voters)), "all": len(voters)}.get(mode, len(voters) // 2 + 1)
        views = self._views()  # with lost disks, whose acknowledgement may still be on its way
        holders = 0
        for voter in voters:
            has_it = _holds(views[voter], index, term or 0)
            holders += has_it or (voter in self.cluster.gone and mode in ("one", "all"))
        if term is None or holders < needed:
            answer = type(outcome).__name__
            evidence = f"{member.name} answered {answer} resting on index {index}: {holders} of {needed}, mode {mode}"
            self._found(REPLY_NOT_ON_MAJORITY if mode != "all" else REPLY_NOT_ON_ALL, evidence)

    def _is_committed(self, index: int, term: int) -> bool:
        return index < len(self.committed) and self.committed[index] == term

    # --- modes ------------------------------------------------------------------

    def synced(self, member: Member, records: list[Record]) -> None:
        """Record entries acknowledged before commit that are now on a disk. They may be dropped, but not silently."""
        for record in records:
            if type(record) is Entry and record.acked_before_commit:
                self.early_on.setdefault((record.index, record.term), set()).add(member.id)

    def discarded(self, member: Member, entries: list[Entry]) -> None:
        self.told_discarded.update((entry.index, entry.term) for entry in entries)

    def without_excused(self, history: list[Event]) -> list[Event]:
        """Return the history after setting sends that may be lost to unknown outcome.

        In the modes async and one, sends to standard queues are acknowledged before commit, and may be lost.
        """
        if self._mode in ("async", "one"):
            for event in history:
                if isinstance(event, Send) and not event.queue.endswith(".fifo"):
                    self._excuse(event)
        return history

    def _excuse(self, send: Send) -> None:
        for message in send.messages:
            for message_id in list(message.message_ids):
                place = self.made_at.get(message_id)
                if place is None or not self._is_committed(*place):
                    message.message_ids.remove(message_id)
                if place is not None and not self._is_committed(*place):
                    self._report_if_silent(place)
        if not all(message.message_ids for message in send.messages):
            send.outcome = "unknown"

    def _report_if_silent(self, place: tuple[int, int]) -> None:
        living = {member.id for member in self.cluster.members if member.is_wanted}
        had = self.early_on.get(place, set()) & living  # neither wiped disks nor members that left can report it
        if had and place not in self.told_discarded:
            self._found(LOST_UNTOLD, f"entry {place} was on {sorted(had)}, was dropped, and nobody said so")

    # --- steps ------------------------------------------------------------------

    def stepped(self, member: Member) -> None:
        node = member.core
        replica, seen = node.replica, self.seen[member.name]
        if replica.term != seen.term:
            if replica.term < seen.term:
                self._found(TERM_FELL, f"{member.name}: from {seen.term} to {replica.term}")
            seen.term, seen.role = replica.term, ""
        if replica.role != seen.role:
            seen.role = replica.role
            if replica.role == "master":
                self._became_master(member)
        if replica.commit_index != seen.commit_index:
            self._commit_moved(member, seen)
        if node.applied_index < replica.commit_index:
            evidence = f"{member.name}: applied {node.applied_index}, committed {replica.commit_index}"
            self._found(APPLIED_BEHIND, evidence)
        if self.served_us is None and self.cluster.is_healed:
            if node.serving and replica.role == "master":
                self.served_us = self.scheduler.now_us
            elif self._lacks_votes(replica.membership):
                self.voteless_us = self.scheduler.now_us
        if node.serving and replica.commit_index < self.takeovers.get(replica.term, 1 << 62):
            self._found(SERVING_BEFORE_TAKEOVER, f"{member.name} in term {replica.term}")
        if node.applied_index != seen.digest_index:
            is_due = node.applied_index >= seen.digest_index + DIGEST_EVERY
            if is_due or node.applied_index in self.compared:
                self.compare_rows(member)

    def _lacks_votes(self, membership: Membership) -> bool:
        """Return whether no quorum can vote, because too many voters are down or wait for a snapshot."""
        nodes = [member.node for member in self.cluster.members if member.id in membership.ids]
        able = [node for node in nodes if node is not None and node.replica.may_vote]
        return len(able) < membership.quorum

    def _became_master(self, member: Member) -> None:
        node = member.core
        replica, term = node.replica, node.replica.term
        self.elections += 1
        self.trace.note("master", member.name, term)
        if self.masters.setdefault(term, member.id) != member.id:
            self._found(TWO_MASTERS, f"{self.masters[term]} and {member.id} in term {term}")
        if self.votes.setdefault((member.id, term), member.id) != member.id:
            self._found(VOTED_TWICE, f"{member.id} won term {term} and voted for {self.votes[member.id, term]}")
        if replica.wanted is not None:
            self._found(ACTED_WHILE_WANTING, f"{member.name} won term {term} and wants a snapshot")
        self._check_clock(member)
        for index in range(replica.log.first_index, len(self.committed)):
            # A paused candidate may learn late that it won, when newer masters have committed entries already.
            if self.committed[index] < term and replica.log.term_at(index) != self.committed[index]:
                self._found(COMMITTED_MISSING, f"{member.name} is master of {term} without the committed entry {index}")
                return

    def _check_clock(self, member: Member) -> None:
        """Check a new master's clock. It may be ahead of the last master's only if its voters never heard that one."""
        node = member.core
        ahead_ms = node.clock.reading(member.boot_ms)[1] - TRUE_EPOCH_MS - self.scheduler.now_us // 1_000
        linked_term, _ = max(node.replica.election.votes.values())
        slowest_ms = ahead_ms
        if not linked_term or linked_term < self._newest_served_term():
            if self._ahead_ms:
                self.jumps.append(Jump(self.scheduler.now_us, max(0, ahead_ms - min(self._ahead_ms.values()))))
        else:  # a master in between is ignored if it served nobody and none of these voters heard it
            slowest_ms = self._slowest_ms[linked_term]
            if ahead_ms > slowest_ms + ROUNDING_MS:
                self._found(CLOCK_JUMPED, f"{member.name} won at {ahead_ms} ms ahead, the others at {slowest_ms}")
        self._ahead_ms[node.replica.term] = ahead_ms
        self._slowest_ms[node.replica.term] = min(slowest_ms, ahead_ms)

    def _newest_served_term(self) -> int:
        """Return the term of the newest master whose takeover is committed, 0 if there is none. It may have served."""
        committed = self.committed
        return max(
            (term for term, at in self.takeovers.items() if at < len(committed) and committed[at] == term), default=0
        )

    def _commit_moved(self, member: Member, seen: _Seen) -> None:
        node = member.core
        replica, log = node.replica, node.replica.log
        if replica.commit_index < seen.commit_index:
            self._found(COMMIT_FELL, f"{member.name}: from {seen.commit_index} to {replica.commit_index}")
        for index in range(max(seen.commit_index + 1, log.first_index), replica.commit_index + 1):
            self._committed(member, index, log.term_at(index))
        if replica.role == "master" and log.term_at(replica.commit_index) != replica.term:
            evidence = f"{member.name} commits {replica.commit_index}, not an entry of its term {replica.term}"
            self._found(OLD_TERM_COMMITTED, evidence)
        seen.commit_index = replica.commit_index

    def _committed(self, member: Member, index: int, term: int | None) -> None:
        assert term is not None
        if index == len(self.committed):
            self.committed.append(term)
            self.repeats.committed((index, term))
            self.group_log.committed((index, term))
        elif index > len(self.committed) or self.committed[index] != term:
            self._found(COMMITTED_CHANGED, f"{member.name} holds index {index} of term {term} for committed")

    def compare_rows(self, member: Member) -> None:
        """Check that a member's rows have the same hash as those of other members at the same applied index.

        Called sometimes during the run, and at its end.
        """
        node = member.core
        index = node.applied_index
        term = node.replica.log.term_at(index)
        if term is None or node.journal.is_open:  # while an entry is open, the state is ahead of any index
            return
        self.seen[member.name].digest_index = index
        digest = state_digest(node.state, read=member.disk.read)
        self.compared.add(index)
        first, name = self.digests.setdefault((index, term), (digest, member.name))
        if first != digest:
            self._found(ROWS_DIFFER, f"{name} and {member.name} at applied index {index}")
        if node.serving:
            for queue in wrong_turns(node.state, node.clock.time_ms(member.boot_ms)):
                self._found(TURNS_DIFFER, f"{member.name}, {queue.name}: at applied index {index}")


def _holds(view: DurableView, index: int, term: int) -> bool:
    return index <= view.base_index or view.has(index, term)


def _is_send(outcome: Result | SqsError) -> bool:
    return isinstance(outcome, (SendMessageResult, SendMessageBatchResult))


def _is_standard_send(outcome: Result | SqsError) -> bool:
    """Return whether a result answers a send to a standard queue. Acknowledgement modes apply only to these."""
    if isinstance(outcome, SendMessageBatchResult):
        return any(entry.sequence_number is None for entry in outcome.successful)
    return isinstance(outcome, SendMessageResult) and outcome.sequence_number is None


def _ids_in_answer(outcome: Result | SqsError) -> list[str]:
    """Return the message ids or receipt handles in an answer."""
    match outcome:
        case SendMessageResult():
            return [outcome.message_id]
        case SendMessageBatchResult():
            return [entry.message_id for entry in outcome.successful]
        case ReceiveMessageResult():
            return [message.receipt_handle for message in outcome.messages]
    return []


def _attempts(made: list[mutations.Mutation]) -> dict[tuple[str, *tuple[int, ...]], bytes]:
    """Return the key of the receive attempt of each delivery in an entry.

    In an entry, the AttemptRecorded mutation follows the MessagesReceived mutation of its attempt.
    """
    found: dict[tuple[str, *tuple[int, ...]], bytes] = {}
    received: mutations.MessagesReceived | None = None
    for mutation in made:
        if type(mutation) is mutations.MessagesReceived:
            received = mutation
        elif type(mutation) is mutations.AttemptRecorded and mutation.detail and received is not None:
            found.update(dict.fromkeys(_identities(received), mutation.attempt))
            received = None  # a repeated attempt only restarts its visibility timeout
    return found


def _identities(mutation: mutations.Mutation) -> list[tuple[str, *tuple[int, ...]]]:
    match mutation:
        case mutations.QueueCreated():
            return [("queue", mutation.queue_id)]
        case mutations.MessageStored():
            return [("message", mutation.queue_id, mutation.sequence)]
        case mutations.MessagesReceived():
            pairs = zip(mutation.sequences, mutation.delivery_numbers, strict=True)
            return [("hand-out", mutation.queue_id, sequence, delivery_number) for sequence, delivery_number in pairs]
    return []
