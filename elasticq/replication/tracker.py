"""A master's knowledge of all its followers and learners, and the results of it.

A majority of the voters decides what is committed and whether this member may stay master. Learners get the log and do
not count.
"""

from elasticq.replication.progress import Progress
from elasticq.replication.raft_state import RaftState

IN_FLIGHT_ENTRIES_MAX = 4_096  # sent to one follower and not acknowledged
LEARNER_SILENT_MS = 10_000  # a learner that is silent for longer is forgotten; it asks again when it is back
PINNED_FACTOR = 16  # how many times the usual bytes of log are kept for members that fetch a snapshot


class ProgressTracker:
    """The followers and learners of ``state``, and the counts over them."""

    def __init__(self, state: RaftState) -> None:
        self._state = state
        self._followers = state.followers
        self.in_flight_entries_max = IN_FLIGHT_ENTRIES_MAX

    # --- followers and learners -------------------------------------------------

    def begin(self, now_ms: int) -> None:
        """Begin a mastership. The progress of the other voters is unknown, and they count as heard now."""
        self._followers.clear()
        for other in self._state.others:
            self.add(other, now_ms)

    def end(self) -> None:
        self._followers.clear()

    def add(self, other: str, now_ms: int) -> None:
        self._followers[other] = Progress(self._state.log.last_index + 1, heard_ms=now_ms)

    def forget(self, other: str) -> None:
        del self._followers[other]

    def follow_voters(self, voters_before: tuple[str, ...], now_ms: int) -> None:
        """Update the followers after a change of the voters. ``voters_before`` are the old ones, without this
        member."""
        voters = self._state.others
        for other in voters:
            if other not in self._followers:
                self.add(other, now_ms)
        for other, progress in self._followers.items():
            progress.is_leaving = other in voters_before and other not in voters

    @property
    def learners(self) -> tuple[str, ...]:
        """Return the members that get the log from this master and do not count."""
        return tuple(each for each in self._followers if each not in self._state.others)

    def drop_silent(self, now_ms: int) -> list[str]:
        """Return the silent learners, which the caller forgets. Keep no more log for the snapshot of a silent
        member."""
        silent = []
        for other, progress in self._followers.items():
            if now_ms - progress.heard_ms > LEARNER_SILENT_MS:
                progress.offered_index = 0
                if other not in self._state.others:
                    silent.append(other)
        return silent

    def told_to_leave(self) -> list[str]:
        """Return the former voters that have the entry by which they ceased to be voters."""
        index = self._state.membership.index
        followers = self._followers.items()
        return [other for other, progress in followers if progress.is_leaving and progress.match_index >= index]

    # --- majorities of the voters -------------------------------------------------------

    def majority_index(self) -> int:
        """Return the newest index that is durable at a majority of the voters. The master's own disk is one vote."""
        state = self._state
        others = state.others
        if not others:
            return state.durability.durable_index
        matches = [self._followers[other].match_index for other in others]
        if state.membership.is_voter:
            matches.append(state.durability.durable_index)
        matches.sort(reverse=True)
        return matches[state.quorum - 1]

    def majority_round(self) -> int:
        """Return the newest heartbeat round that a quorum answered, this member included; 0 if no answer is needed."""
        state = self._state
        rounds = sorted((self._followers[other].round for other in state.others), reverse=True)
        needed = state.quorum - state.membership.is_voter
        return rounds[needed - 1] if 0 < needed <= len(rounds) else 0

    def majority_heard_since(self, since_ms: int) -> bool:
        state = self._state
        heard = sum(self._followers[other].heard_ms >= since_ms for other in state.others) + state.membership.is_voter
        return heard >= state.quorum

    def durable_on(self, others: int) -> int:
        """Return the newest index that is durable at this master and at ``others`` other voters."""
        durable_index = self._state.durability.durable_index
        matches = sorted((self._followers[other].match_index for other in self._state.others), reverse=True)
        return min(durable_index, matches[others - 1]) if 0 < others <= len(matches) else durable_index

    # --- target of a hand-over ------------------------------------------------------

    def transfer_target(self) -> str:
        """Return the other voter that is fittest to be master now; empty without any."""
        return max(self._state.others, key=self._fitness, default="")

    def _fitness(self, other: str) -> tuple[int, int]:
        """Return the rank of a voter: how much of the log it has, and then how recently it was heard."""
        progress = self._followers[other]
        return progress.match_index, progress.heard_ms

    # --- compaction -------------------------------------------------------------------

    def compaction_floor(self, index: int, kept_bytes: int) -> int:
        """Return the index, at most ``index``, up to which the log may be forgotten.

        The log is kept for a follower that is not far behind, and for a member that fetches a snapshot. For a voter
        that is down only ``kept_bytes`` are kept.
        """
        log, floor = self._state.log, index
        if kept_bytes and log.size_bytes > kept_bytes * PINNED_FACTOR:
            return floor
        for progress in self._followers.values():
            if progress.offered_index:
                floor = min(floor, progress.offered_index)
            elif progress.match_index + self.in_flight_entries_max >= log.last_index:
                floor = min(floor, progress.match_index)
        return floor
