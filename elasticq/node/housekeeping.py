"""Background work in bounded steps.

A master replaces voters, serves receives whose messages became visible, and removes what has expired. It rebalances
consumer groups, and continues move tasks, long publishes and comparisons of rows. Each member keeps its log short and
releases the memory of purged messages.
"""

from typing import Final

from elasticq.engine.consumer_groups import sweep as group_sweep
from elasticq.engine.sweep import Sweeper, reclaim
from elasticq.engine.topics import deliveries
from elasticq.model.topic_results import PublishCounts
from elasticq.node.comparison import Comparison
from elasticq.node.executor import Executor
from elasticq.node.journal import Journal
from elasticq.node.parts import Parts

SWEEP_MS: Final = 1_000
SWEEP_AGAIN_MS: Final = 10  # the shorter pause after a step that did not finish
MOVE_RETRY_MS: Final = 10
DELIVERY_MS: Final = 10  # pause between two steps that store the copies of a large publish
RELEASE_MS: Final = 1  # pause between two bursts of sends that backpressure held back
MATCH_MS: Final = 1  # pause between two slices of the matching of a publish with filter policies
LOG_KEPT_ENTRIES: Final = 4_096
ALONE_LOG_KEPT_BYTES: Final = 1_048_576


class Housekeeping:
    """The background work of one member. Its entries are made like those of calls. All times are ms of the boot
    clock."""

    def __init__(self, parts: Parts, journal: Journal, executor: Executor, comparison: Comparison) -> None:
        self._state = parts.state
        self._replica = parts.replica
        self._voter_changes = parts.voter_changes
        self._safe_executor = parts.safe_executor
        self._journal = journal
        self._executor = executor
        self._content_cache = parts.content_cache
        self._backpressure = parts.backpressure
        self._mover = parts.mover
        self._comparison = comparison
        self._log_kept_bytes = parts.settings.log_kept_bytes
        self._sweeper = Sweeper(journal.context.tally)
        self._sweep_at_ms = 0
        self._move_at_ms = 0
        self._deliver_at_ms = 0
        self._reclaim_at_ms = 0
        self._groups_at_ms = 0
        self._match_at_ms = 0
        self._release_at_ms = 0
        self._dirty_seen = 0
        self._advances_seen = 0
        self.is_sweep_behind = False  # the last step found more to remove than one step may remove
        self.delivered: dict[tuple[str, str], PublishCounts] = {}  # (owner, name) of the topic -> counts

    def work(self, now_ms: int) -> None:
        """Do the steps that are due. Call this only while this member may write."""
        voters = self._voter_changes.next_change()
        if voters is not None:
            self._journal.propose_voters(voters, now_ms)
        self._executor.serve_due(now_ms)
        if self._executor.content_waits.has_ready and now_ms >= self._executor.resume_at_ms:
            self._executor.serve_fetched(now_ms)
        if self._executor.matchings and now_ms >= self._match_at_ms:
            self._match(now_ms)
        if self._backpressure.may_release and now_ms >= self._release_at_ms:
            self._release_at_ms = now_ms + RELEASE_MS
            self._executor.release_senders(now_ms)
        self._sweep(now_ms)
        if self._state.moving:
            self._move(now_ms)
        if deliveries.has_work(self._state):
            self._deliver(now_ms)
        if self._state.groups:
            self._rebalance_groups(now_ms)
        self._comparison.work(now_ms)

    def _match(self, now_ms: int) -> None:
        """Do one slice of matching for a waiting publish. Execute the publish when its matching is complete."""
        self._match_at_ms = now_ms + MATCH_MS
        due = self._executor.matchings.go_on()
        if due is not None:
            call, ticket, self._journal.context.matching = due
            self._executor.admit(call, ticket, now_ms)
            self._journal.context.matching = None

    def _sweep(self, now_ms: int) -> None:
        self._note_advances()
        if now_ms < self._sweep_at_ms:
            return
        mutations, is_more_waiting = self._sweeper.step(self._state, self._journal.stamp_command(now_ms))
        self.is_sweep_behind = is_more_waiting
        is_more_waiting |= reclaim(self._state, self._replica.commit_index)
        self._sweep_at_ms = now_ms + (SWEEP_AGAIN_MS if is_more_waiting else SWEEP_MS)
        self._executor.change(self._safe_executor.own(mutations), now_ms)

    def _move(self, now_ms: int) -> None:
        """Do the next step of the move tasks once the previous step is committed, so that moves never run far ahead."""
        self._note_advances()
        if now_ms < self._move_at_ms:
            return
        self._move_at_ms = now_ms + MOVE_RETRY_MS
        if self._backpressure.is_watching or self._replica.commit_index < self._replica.log.last_index:
            return
        step = self._mover.step(self._state, self._journal.stamp_command(now_ms), self._journal.context.term)
        self._move_at_ms = now_ms + step.wait_ms
        for queue_id, sequences in step.missing:
            self._content_cache.want(queue_id, sequences)
        self._executor.change(self._safe_executor.own(step.mutations), now_ms)

    def _deliver(self, now_ms: int) -> None:
        """Do the next step of deliveries once the previous step is committed."""
        if now_ms < self._deliver_at_ms:
            return
        self._deliver_at_ms = now_ms + DELIVERY_MS
        if self._backpressure.is_watching or self._replica.commit_index < self._replica.log.last_index:
            return
        self._journal.stamp_command(now_ms)
        step = deliveries.step(self._state, self._journal.context)
        if step.topic is not None:
            self.delivered.setdefault(step.topic, PublishCounts()).add(step.counts)
        if not step.is_more:
            self._deliver_at_ms = now_ms + SWEEP_MS
        self._executor.change(self._safe_executor.own(step.mutations), now_ms)

    def _rebalance_groups(self, now_ms: int) -> None:
        """Do the next step for consumer groups. It ends sessions on time, to the millisecond."""
        self._note_advances()
        if now_ms < self._groups_at_ms and not self._are_groups_urgent():
            return
        time_ms = self._journal.stamp_command(now_ms)
        step = group_sweep.step(self._state, time_ms)
        wait_ms = SWEEP_MS if step.next_ms is None else min(max(step.next_ms - time_ms, SWEEP_AGAIN_MS), SWEEP_MS)
        self._groups_at_ms = now_ms + wait_ms
        self._executor.change(self._safe_executor.own(step.mutations), now_ms)
        self._dirty_seen = len(self._state.groups.dirty)

    def _are_groups_urgent(self) -> bool:
        """Return whether more groups need a rebalance than after the last step."""
        return len(self._state.groups.dirty) > self._dirty_seen

    def _note_advances(self) -> None:
        """Make all work due at once if an entry advanced cluster time."""
        if self._advances_seen != self._journal.advances:
            self._advances_seen = self._journal.advances
            self._sweep_at_ms = self._move_at_ms = self._deliver_at_ms = self._groups_at_ms = 0

    def next_at_ms(self) -> int:
        """Return the time on the boot clock at which work is due next, if there is any."""
        self._note_advances()
        at_ms = self._sweep_at_ms
        if self._state.moving and self._move_at_ms < at_ms:
            at_ms = self._move_at_ms
        if self._state.publishes and self._deliver_at_ms < at_ms:
            at_ms = self._deliver_at_ms
        if self._state.groups:
            at_ms = 0 if self._are_groups_urgent() else min(at_ms, self._groups_at_ms)
        if self._executor.matchings:
            at_ms = min(at_ms, self._match_at_ms)
        if self._executor.content_waits.has_ready:
            at_ms = min(at_ms, self._executor.resume_at_ms)
        if self._backpressure.held and self._backpressure.may_release:
            at_ms = min(at_ms, self._release_at_ms)
        if self._comparison.number:
            at_ms = min(at_ms, self._comparison.at_ms)
        return at_ms

    def has_work(self) -> bool:
        """Return whether the state holds anything that may expire or move, or any other background work."""
        state = self._state
        has_rows = bool(state.queues or state.deleted_queues or state.sent_ids.count or state.trash)
        is_busy = deliveries.has_work(state) or bool(state.groups) or bool(self._executor.matchings)
        return has_rows or state.invocations.count > 1 or is_busy or bool(self._comparison.number)

    def give_back(self, now_ms: int) -> None:
        """Release a part of the memory of purged messages, if it is due.

        Call it on members that are not serving. A master's sweep releases this memory there.
        """
        if self._state.trash and now_ms >= self._reclaim_at_ms:
            is_more_waiting = reclaim(self._state, self._replica.commit_index)
            self._reclaim_at_ms = now_ms + (SWEEP_AGAIN_MS if is_more_waiting else SWEEP_MS)

    def give_back_at_ms(self) -> int | None:
        """Return when ``give_back`` next releases memory; None if no purged messages are left in memory."""
        return self._reclaim_at_ms if self._state.trash else None

    def compact(self) -> None:
        """Forget old log entries of a memory-only member.

        Its state has their effects, so only other members may need them.
        """
        log = self._replica.log
        kept_bytes = self._log_kept_bytes if self._replica.has_company else ALONE_LOG_KEPT_BYTES
        if len(log) > LOG_KEPT_ENTRIES or log.size_bytes > kept_bytes:
            self._replica.compact(log.last_index, self._log_kept_bytes)
