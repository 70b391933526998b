"""What a master knows of its followers and learners, and what follows from all of that together.

A majority of the voters decides what is committed and whether this member may stay master.
Learners get the log and count for nothing.
"""

from msgspec import Struct

from elasticq.replication.raft_state import RaftState

IN_FLIGHT_ENTRIES_MAX = 4_096  # sent to one follower and not acknowledged
LEARNER_SILENT_MS = 10_000  # a learner not heard for so long is forgotten; it asks again when it is back
PINNED_FACTOR = 16  # times the bytes that are kept anyway: so much log waits for one who takes a snapshot


class Progress(Struct):
    """What a master knows of one follower or learner.

    probing: one Append at a time until the logs are known to match; offered_index: not 0 while it
    takes a snapshot at that index or above, so that the log above stays; heard_ms: when it last answered;
    told_index: the commit index that was sent to it last;
    is_leaving: it was a voter and hears the log until it knows that it is none.
    """

    next_index: int
    match_index: int = 0
    heard_ms: int = 0
    round: int = 0
    probing: bool = True
    offered_index: int = 0
    is_leaving: bool = False
    told_index: int = 0

    def take_hint(self, index: int) -> bool:
        """It refused an Append and may match at ``index``; False for a late answer, which changes nothing."""
        if index < self.match_index:
            return False
        self.next_index = max(self.match_index, min(index, self.next_index - 1)) + 1
        self.probing = True
        return True


class ProgressTracker:
    """``followers``: the other voters and the learners while this member is master, nobody at any other time."""

    def __init__(self, state: RaftState) -> None:
        self._state = state
        self.followers: dict[str, Progress] = {}
        self.in_flight_entries_max = IN_FLIGHT_ENTRIES_MAX

    # --- who they are -----------------------------------------------------------

    def begin(self, now_ms: int) -> None:
        """A mastership begins: nothing is known of any voter but that it was heard."""
        self.followers.clear()
        for other in self._state.others:
            self.add(other, now_ms)

    def end(self) -> None:
        self.followers.clear()

    def add(self, other: str, now_ms: int) -> None:
        self.followers[other] = Progress(self._state.log.last_index + 1, heard_ms=now_ms)

    def forget(self, other: str) -> None:
        del self.followers[other]

    def follow_voters(self, voters_before: tuple[str, ...], now_ms: int) -> None:
        """The log names other voters than ``voters_before`` (both without this member)."""
        voters = self._state.membership.others
        for other in voters:
            if other not in self.followers:
                self.add(other, now_ms)
        for other, progress in self.followers.items():
            progress.is_leaving = other in voters_before and other not in voters

    @property
    def learners(self) -> tuple[str, ...]:
        """Members that this master sends the log to without counting them."""
        return tuple(each for each in self.followers if each not in self._state.others)

    def drop_silent(self, now_ms: int) -> list[str]:
        """The learners that are silent for long, to be forgotten; for a silent voter's snapshot no log is kept."""
        silent = []
        for other, progress in self.followers.items():
            if now_ms - progress.heard_ms > LEARNER_SILENT_MS:
                progress.offered_index = 0
                if other not in self._state.others:
                    silent.append(other)
        return silent

    def told_to_leave(self) -> list[str]:
        """Those who are voters no more and have the entry that says so."""
        index = self._state.membership.index
        return [
            other for other, progress in self.followers.items() if progress.is_leaving and progress.match_index >= index
        ]

    # --- what a majority of the voters has --------------------------------------------

    def majority_index(self, durable_index: int) -> int:
        """The newest index that a majority of voters has durable; the master's own ``durable_index`` is one vote."""
        state = self._state
        others = state.others
        if not others:
            return durable_index
        matches = [self.followers[other].match_index for other in others]
        if state.membership.is_voter:
            matches.append(durable_index)
        matches.sort(reverse=True)
        return matches[state.quorum - 1]

    def majority_round(self) -> int:
        """The newest heartbeat round that a quorum answered, this member counted in; 0 where nobody need answer."""
        state = self._state
        rounds = sorted((self.followers[other].round for other in state.others), reverse=True)
        needed = state.quorum - state.membership.is_voter
        return rounds[needed - 1] if 0 < needed <= len(rounds) else 0

    def majority_heard_since(self, since_ms: int) -> bool:
        state = self._state
        heard = sum(self.followers[other].heard_ms >= since_ms for other in state.others) + state.membership.is_voter
        return heard >= state.quorum

    def durable_on(self, others: int, durable_index: int) -> int:
        """The newest index that this master, up to ``durable_index``, and so many other voters have durable."""
        matches = sorted((self.followers[other].match_index for other in self._state.others), reverse=True)
        return min(durable_index, matches[others - 1]) if 0 < others <= len(matches) else durable_index

    # --- who has the most ---------------------------------------------------------

    def heir(self) -> str:
        """The other voter that is the fittest to be master now; empty without any."""
        return max(self._state.others, key=self._fitness, default="")

    def _fitness(self, other: str) -> tuple[int, int]:
        """Of an heir: that it has everything, and that it was heard lately."""
        progress = self.followers[other]
        return progress.match_index, progress.heard_ms

    # --- who needs the log ----------------------------------------------------------

    def compaction_floor(self, index: int, kept_bytes: int) -> int:
        """Up to where the log may be forgotten, at most ``index``, so that those who are not far behind still get it.

        A voter that is down is waited for within ``kept_bytes`` only; whoever takes a snapshot is, until it has it.
        """
        log, floor = self._state.log, index
        if kept_bytes and log.size_bytes > kept_bytes * PINNED_FACTOR:
            return floor
        for progress in self.followers.values():
            if progress.offered_index:
                floor = min(floor, progress.offered_index)
            elif progress.match_index + self.in_flight_entries_max >= log.last_index:
                floor = min(floor, progress.match_index)
        return floor
