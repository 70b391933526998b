"""The messages of a master to its followers: entries within a window, heartbeats, the commit index, snapshot offers."""

from elasticq.replication.lease import LeaderLease
from elasticq.replication.messages import Append, Offer
from elasticq.replication.progress import Progress
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import Entry
from elasticq.replication.tracker import ProgressTracker

APPEND_ENTRIES_MAX = 512
APPEND_BYTES_MAX = 4 * 1_048_576


class Appender:
    """The sender of Appends and Offers to the followers of ``tracker``. All times are ms of the boot clock."""

    def __init__(self, state: RaftState, tracker: ProgressTracker, lease: LeaderLease, heartbeat_ms: int) -> None:
        self._state = state
        self._tracker = tracker
        self._followers = state.followers
        self._lease = lease
        self._heartbeat_ms = heartbeat_ms
        self.heartbeat_at_ms = 0  # when the next round is due

    def broadcast(self, now_ms: int) -> None:
        """Send a heartbeat round to every follower, even to one that lacks no entries."""
        self.heartbeat_at_ms = now_ms + self._heartbeat_ms
        if not self._followers:
            return
        self._lease.new_round(now_ms)
        for other in self._followers:
            self.send_append(other, now_ms, force=True)

    def replicate(self, now_ms: int) -> None:
        """Send new entries to all followers whose logs are known to match."""
        for other, progress in self._followers.items():
            if not progress.probing:
                self.send_append(other, now_ms, force=False)

    def push_commit(self, now_ms: int) -> None:
        """Send the commit index to all followers that did not get it with an entry."""
        state = self._state
        for other, progress in self._followers.items():
            if progress.told_index < state.commit_index and not progress.probing:
                prev_index = progress.next_index - 1
                prev_term = state.log.term_at(prev_index)
                if prev_term is not None:
                    self._send_entries(other, prev_index, prev_term, [], now_ms, is_news=True)

    def send_append(self, other: str, now_ms: int, *, force: bool) -> None:
        """Send the entries that ``other`` lacks, within its window. With ``force`` send an Append even without
        entries."""
        log, progress = self._state.log, self._followers[other]
        if progress.next_index <= log.base_index:
            self._offer(other, progress)
            self._send_heartbeat(other, now_ms)
            return
        window = progress.match_index + self._tracker.in_flight_entries_max
        entries: list[Entry] = []
        if progress.next_index <= min(log.last_index, window):
            count = 1 if progress.probing else APPEND_ENTRIES_MAX
            entries = log.slice(progress.next_index, count, APPEND_BYTES_MAX)
        elif not force:
            return
        prev_index = progress.next_index - 1
        prev_term = log.term_at(prev_index)
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
        state = self._state
        _, time_ms = state.clock(now_ms)
        self._followers[other].told_index = state.commit_index
        state.send(
            Append(
                cluster=state.cluster,
                group=0,
                sender=state.member_id,
                to=other,
                term=state.term,
                prev_index=prev_index,
                prev_term=prev_term,
                commit_index=state.commit_index,
                round=self._lease.round,
                time_ms=time_ms,
                entries=entries,
                is_news=is_news,
            ),
            rests_on_records=False,
        )

    def _send_heartbeat(self, other: str, now_ms: int) -> None:
        """Send an empty Append to a member whose log ends before this one begins. All logs agree on index 0."""
        self._send_entries(other, 0, 0, [], now_ms)

    def _offer(self, other: str, progress: Progress) -> None:
        """Offer a snapshot at this log's base.

        Keep the log above the offered index, so that the member can continue there.
        """
        state = self._state
        # entries after an earlier offer may be gone
        progress.offered_index = max(progress.offered_index, state.log.base_index)
        state.send(
            Offer(
                cluster=state.cluster,
                group=0,
                sender=state.member_id,
                to=other,
                term=state.term,
                index=progress.offered_index,
            ),
            rests_on_records=False,
        )
