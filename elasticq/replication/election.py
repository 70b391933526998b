"""Elections: the silence after which a voter becomes a candidate, and its pre-votes and votes.

A voter that hears no master for a random time asks the other voters whether they would vote for it. This pre-vote
changes nothing at any member. Only if a quorum would, it raises its term and asks for votes. Replica decides whether
this member may vote, and what follows from a majority.

A process that dies closes its connections. So a voter whose link to the master broke waits only for ``broken_link_ms``
of silence. That is longer than the master's lease, as the normal silence is. Such voters become candidates in turn, in
the order of their ids, so that they do not split the votes.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), §3.4, §4.2.3, §9.6.
"""

from msgspec import Struct

from elasticq.replication.messages import PreVote, PreVoteReply, RequestVote, VoteReply
from elasticq.replication.raft_state import RaftState
from elasticq.replication.seeded_random import SeededRandom

FSYNC_FACTOR = 10  # an election waits for at least this many slow syncs of the disk
# between the candidacies of two voters whose links to the master broke: time for a pre-vote, a sync and a vote
TURN_MS = 40


class Timing(Struct, frozen=True):
    """The times of elections in ms.

    heartbeat_ms: time between heartbeat rounds.
    election_min_ms, election_max_ms: bounds of the random silence before an election.
    broken_link_ms: the silence after which a voter may vote for a new master if its link to the old one is broken.
    """

    heartbeat_ms: int
    election_min_ms: int
    election_max_ms: int
    broken_link_ms: int


class Election:
    """The election timer of a member, and the votes of its candidacy. All times are ms of the boot clock."""

    def __init__(self, state: RaftState, timing: Timing, random: SeededRandom) -> None:
        self._state = state
        self._timing = timing
        self._random = random
        self.fsync_ms = 0  # how long a slow sync of the disk takes
        self.at_ms = 0  # when this member becomes a candidate if it hears no master until then
        self.heard_ms: int | None = None  # when the newest Append of any master came
        self._is_link_broken = False  # the link to the master that was heard then
        self.votes: dict[str, tuple[int, int]] = {}  # granted votes: voter -> its clock reading
        self.refused_by: str | None = None  # a voter that may hear a master that this member does not hear
        self._pre_votes: set[str] = set()
        self._campaign_term = 0  # of the pre-vote in progress
        self._own_vote_token = 0

    # --- silence --------------------------------------------------------------

    @property
    def patience_ms(self) -> int:
        """Return how many ms of silence are normal; more on a slow disk. The lease does not depend on it."""
        return max(self._timing.election_min_ms, FSYNC_FACTOR * self.fsync_ms)

    def set_timer(self, now_ms: int) -> None:
        """Set the next election to a random silence from now on; a shorter one if the link to the master is broken."""
        timing = self._timing
        if self._is_link_broken:
            silence_ms = self._random.between(timing.broken_link_ms, 2 * timing.broken_link_ms)
        else:
            silence_ms = self._random.between(timing.election_min_ms, timing.election_max_ms)
        self.at_ms = now_ms + max(silence_ms, silence_ms * self.patience_ms // timing.election_min_ms)

    def heard(self, now_ms: int) -> None:
        """Note an Append of a master."""
        self.heard_ms = now_ms
        self._is_link_broken = False
        self.set_timer(now_ms)

    def link_broke(self, turns: int, now_ms: int) -> None:
        """Note that the link to the last heard master broke. ``turns`` voters become candidates before this one."""
        if self._timing.broken_link_ms >= self._timing.election_min_ms:
            return  # the normal silence is not longer
        self._is_link_broken = True
        since_ms = now_ms if self.heard_ms is None else self.heard_ms
        # Half a turn later, because the master's last frame may have reached the other voters some ms later than this
        # one.
        early_ms = since_ms + self._timing.broken_link_ms + TURN_MS * turns + TURN_MS // 2
        self.at_ms = min(self.at_ms, max(early_ms, now_ms + TURN_MS * turns))

    def heard_lately(self, now_ms: int) -> bool:
        """Return whether a master was heard so recently that this member votes for no other one (stickiness).

        That master may still have its lease.
        """
        timing = self._timing
        silence_ms = timing.broken_link_ms if self._is_link_broken else timing.election_min_ms
        return self.heard_ms is not None and now_ms - self.heard_ms < silence_ms

    # --- the candidate --------------------------------------------------------

    def end(self) -> None:
        """End the candidacy of this member, and forget its votes and refusals."""
        self._pre_votes = set()
        self.votes = {}
        self.refused_by = None

    def ask_pre_votes(self) -> None:
        """Ask the other voters whether they would vote for this member in the next term."""
        state = self._state
        self.votes = {}
        self._pre_votes = {state.member_id}
        self._campaign_term = state.term + 1
        for other in state.others:
            state.send(
                PreVote(
                    cluster=state.cluster,
                    group=0,
                    sender=state.member_id,
                    to=other,
                    term=self._campaign_term,
                    last_index=state.log.last_index,
                    last_term=state.log.last_term,
                ),
                rests_on_records=False,
            )

    def take_pre_vote(self, message: PreVoteReply) -> bool:
        """Count an answer to a pre-vote. Return whether a quorum would vote for this member now."""
        if message.asked_term != self._campaign_term:
            return False
        if not message.granted:
            self.refused_by = message.sender
            return False
        if not self._pre_votes or self._campaign_term != self._state.term + 1:
            return False
        if message.sender in self._state.others:
            self._pre_votes.add(message.sender)
        return len(self._pre_votes) >= self._state.quorum

    def ask_votes(self, now_ms: int, own_vote_token: int, *, transfer: bool) -> None:
        """Ask for votes in the current term. The own vote counts once ``own_vote_token`` is synced."""
        state = self._state
        self._pre_votes = set()
        self.votes = {state.member_id: state.clock(now_ms)}
        self._own_vote_token = own_vote_token
        self.set_timer(now_ms)
        for other in state.others:
            state.send(
                RequestVote(
                    cluster=state.cluster,
                    group=0,
                    sender=state.member_id,
                    to=other,
                    term=state.term,
                    last_index=state.log.last_index,
                    last_term=state.log.last_term,
                    transfer=transfer,
                ),
                rests_on_records=True,
            )

    def take_vote(self, message: VoteReply) -> bool:
        """Note a vote. Return whether it counts for the candidacy in the current term."""
        state = self._state
        is_mine = message.granted and message.term == state.term and not self._pre_votes
        if not is_mine or message.sender not in state.others:
            return False
        # A voter that does not send the term of its link counts as linked to the master of term 1.
        self.votes[message.sender] = (message.linked_term or int(message.linked), message.time_ms)
        return True

    def is_won(self, synced_token: int) -> bool:
        return len(self.votes) >= self._state.quorum and synced_token >= self._own_vote_token

    # --- the voter ------------------------------------------------------------

    def is_up_to_date(self, last_term: int, last_index: int) -> bool:
        """Return whether a log with this end is at least as new as this member's log.

        So a winner has every committed entry.
        """
        log = self._state.log
        return (last_term, last_index) >= (log.last_term, log.last_index)

    def answer_pre_vote(self, message: PreVote, *, granted: bool) -> None:
        state = self._state
        state.send(
            PreVoteReply(
                cluster=state.cluster,
                group=0,
                sender=state.member_id,
                to=message.sender,
                term=state.term,
                asked_term=message.term,
                granted=granted,
            ),
            rests_on_records=True,
        )

    def answer_vote(self, message: RequestVote, now_ms: int, *, granted: bool) -> None:
        state = self._state
        linked_term, time_ms = state.clock(now_ms)
        state.send(
            VoteReply(
                cluster=state.cluster,
                group=0,
                sender=state.member_id,
                to=message.sender,
                term=state.term,
                granted=granted,
                linked=linked_term > 0,
                time_ms=time_ms,
                linked_term=linked_term,
            ),
            rests_on_records=True,
        )
