"""The log entries of one member between decision and commit: the open entry, the undo log, the commit queue.

    decided -> open entry -> proposed -> committed -> handed to the rows on disk
       |___________________________|
         already applied; rolled back, newest first, if the mastership is lost

A master applies a command's mutations when it appends them to the open entry. Commands that come while the last entry
is being synced share the open one (group commit). A follower applies an entry when it is committed.
"""

from collections import deque

from elasticq.engine.apply import apply, apply_all
from elasticq.engine.context import ExecutionContext
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model.commands import Call
from elasticq.model.limits import ENTRY_BYTES_MAX
from elasticq.node.decision import Decision
from elasticq.node.membership.members import read_payload
from elasticq.node.outputs import Committed
from elasticq.node.parts import Parts
from elasticq.replication.messages import Append
from elasticq.replication.records import Base, Entry, Voter


class Journal:
    """The open entry, and the entries that are not committed yet.

    applied_index: the newest proposed entry whose mutations are in ``state``, which also has those of the open entry.
    context: the time and the term of the command that is being executed.
    open_is_acked: a send of the open entry is answered before it is committed (modes async and one).
    gathers: True while calls that came together are executed; they share one entry.
    advances: how many entries of this member advanced the cluster's clock (AdvanceClock).
    discarded: how many entries were acknowledged before they were committed, and then dropped.
    """

    def __init__(self, parts: Parts, applied_index: int) -> None:
        settings = parts.settings
        self.applied_index = applied_index
        self.context = ExecutionContext(
            0,
            0,
            settings.region,
            settings.sixty_second_rules,
            settings.template,
            settings.limits,
            settings.single_region,
            settings.sign,
        )
        self.open_is_acked = False
        self.gathers = False
        self.advances = 0
        self.discarded = 0
        self._state = parts.state
        self._replica = parts.replica
        self._clock = parts.clock
        self._effects = parts.effects
        self._outlet = parts.outlet
        self._safe_executor = parts.safe_executor
        self._content_cache = parts.content_cache
        self._digests = parts.digests
        self._mover = parts.mover
        self._is_volatile = settings.volatile
        self._batch_bytes_max = settings.batch_bytes_max
        self._open: list[m.Mutation] = []
        self._open_payloads: list[bytes] = []  # the mutations of ``_open``, encoded: one item for each command
        self._open_bytes = 0
        self._open_undo: Undo = []
        self._undo: deque[tuple[int, Undo]] = deque()  # (index, undo) of entries that are proposed and not committed
        self._undo_from = 0  # entries from here on keep their undo; 0: this member is alone and keeps none
        self._uncommitted: deque[Committed] = deque()
        # entries that the log is about to get, by index, with their decoded mutations
        self._decoded: dict[int, tuple[bytes, list[m.Mutation]]] = {}

    # --- time ---------------------------------------------------------------------

    def stamp_command(self, now_ms: int) -> int:
        """Set and return the time of the current command: cluster time, never below that of an earlier command.

        An entry may be open for as long as the disk syncs the previous one. If its commands had the time of its
        opening, visibility timeouts would end too early.
        """
        context = self.context
        time_ms = self._stamp(now_ms)
        if time_ms > context.now_ms:
            context.now_ms = time_ms
        return context.now_ms

    def _stamp(self, now_ms: int) -> int:
        """Return the time for commands and entries: cluster time, never a wall clock."""
        return self._clock.time_ms(now_ms)

    def begin_term(self, now_ms: int) -> None:
        """Begin the term of this new master. Its commands have no time before that of the log's last entry."""
        context = self.context
        context.term = self._replica.term
        context.now_ms = max(self._stamp(now_ms), self._replica.log.last_time_ms)

    # --- the open entry -----------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Return whether the state holds mutations that are in no proposed entry yet."""
        return bool(self._open)

    def head_index(self) -> int:
        """Return the newest index that a result computed now depends on, which includes the open entry."""
        last = self._replica.log.last_index
        return last + 1 if self._open else last

    def append(self, decision: Decision, now_ms: int, call: Call | None) -> None:
        """Apply a decision and add it to the open entry, completely or not at all.

        Raise SqsError if the mutations of a ``call`` cannot be applied. Then the call has no effect.
        """
        mutations, payload = decision.mutations, decision.payload
        if self._open and self._open_bytes + len(payload) > ENTRY_BYTES_MAX:
            self.close(now_ms)
        state = self._state
        state.index = self._replica.log.last_index + 1
        undo: Undo = []
        if call is None:
            apply_all(state, mutations, undo)
        else:
            self._safe_executor.apply(state, call, mutations, undo)
        if self._replica.has_company:  # a cluster of one never loses its term
            self._open_undo += undo
        self._open += mutations
        self._open_payloads.append(payload)
        self._open_bytes += len(payload)

    def close_if_free(self, now_ms: int) -> None:
        """Close the open entry unless a sync is in progress, or in memory a round of Appends.

        While one is, the entry grows up to its bound.
        """
        replica = self._replica
        if self.gathers and self._open_bytes < self._batch_bytes_max:
            return
        known_index = replica.commit_index if self._is_volatile else replica.durability.durable_index
        if known_index >= replica.log.last_index or self._open_bytes >= self._batch_bytes_max:
            self.close(now_ms)

    def close(self, now_ms: int, voters: tuple[Voter, ...] | None = None) -> None:
        """Propose the open entry, and release its records and frames."""
        self.propose(now_ms, voters)
        if not self._replica.commits_alone:
            self._outlet.drain(now_ms)

    def propose(self, now_ms: int, voters: tuple[Voter, ...] | None = None) -> None:
        """Append the open entry, even an empty one, to the log.

        ``voters`` are the voters from it on; None changes none.
        """
        mutations, acked_before_commit, undo = self._open, self.open_is_acked, self._open_undo
        payloads = self._open_payloads
        payload = payloads[0] if len(payloads) == 1 else m.join(payloads)
        self._open, self._open_payloads, self._open_bytes, self.open_is_acked = [], [], 0, False
        time_ms = self.context.now_ms
        self.applied_index = index = self._replica.log.last_index + 1
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, self._replica.term, time_ms, mutations, voters))
        if undo:
            self._undo.append((index, undo))
            self._open_undo = []
        self._replica.propose(payload, time_ms, now_ms, voters=voters, acked_before_commit=acked_before_commit)
        if voters is not None:
            self.members_changed(index)  # at once, because the next entries may have to be rolled back
        if self._clock.ahead_ms != self._state.ahead_ms:
            self._advance_clock()

    def _advance_clock(self) -> None:
        """Update the clock and the move tasks after an entry that advanced cluster time."""
        by_ms, self._clock.ahead_ms = self._state.ahead_ms - self._clock.ahead_ms, self._state.ahead_ms
        self._mover.advanced(self._state, by_ms, self.context.now_ms + by_ms)
        self.advances += 1

    def propose_voters(self, voters: tuple[Voter, ...], now_ms: int) -> None:
        """Propose a change of the voters. The mutations of the open entry become part of the same log entry."""
        self.stamp_command(now_ms)
        self.close(now_ms, voters)

    def is_only_joining(self) -> bool:
        """Return whether a command waits in the open entry while a cluster of one syncs its last entry."""
        replica = self._replica
        return (
            bool(self._open)
            and not replica.has_company
            and replica.durability.durable_index < replica.log.last_index
            and not replica.ready.records
        )

    # --- entries of others, and of earlier terms -----------------------------------

    def read_ahead(self, message: Append) -> None:
        """Decode the entries that the log is about to get.

        Raise FrameError for an entry that cannot be applied, because it must not get into the log.
        """
        log = self._replica.log
        if message.term < self._replica.term or message.prev_index < log.base_index:
            return
        if log.term_at(message.prev_index) == message.prev_term:
            fresh = [entry for entry in message.entries if log.term_at(entry.index) != entry.term]
            self._decoded |= {entry.index: (entry.payload, read_payload(entry)) for entry in fresh}

    def apply_to_end(self) -> None:
        """Apply the log up to its end, as a new master must. Uncommitted entries can be rolled back."""
        replica = self._replica
        assert self.applied_index == replica.commit_index, "a follower applies what is committed"
        for index in range(self.applied_index + 1, replica.log.last_index + 1):
            self._apply_entry(index, keep_undo=replica.has_company)
        self._decoded.clear()
        self._clock.ahead_ms = self._state.ahead_ms

    def _apply_entry(self, index: int, *, keep_undo: bool) -> None:
        assert index == self.applied_index + 1
        undo: Undo | None = [] if keep_undo else None
        entry = self._replica.log.entry(index)
        payload, mutations = self._decoded.pop(index, (b"", []))
        if payload is not entry.payload:  # the entry was in the log at the start, or another one was decoded
            mutations = m.decode(entry.payload)
        self._state.index = index
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, entry.term, entry.time_ms, mutations, entry.voters))
        for mutation in mutations:
            apply(self._state, mutation, undo)
        if undo:
            self._undo.append((index, undo))
        self.applied_index = index
        self._clock.ahead_ms = self._state.ahead_ms
        for mutation in mutations:
            if type(mutation) is RowsCompared:
                self._digests.note(mutation, index, entry.time_ms)

    # --- commit and roll-back ------------------------------------------------------

    def commit_moved(self, commit_index: int, *, is_master: bool) -> None:
        """Note that entries up to ``commit_index`` are never rolled back. A follower applies them. The rows get
        them."""
        if is_master:
            while self._undo and self._undo[0][0] <= commit_index:
                self._undo.popleft()
        else:
            for index in range(self.applied_index + 1, commit_index + 1):
                self._apply_entry(index, keep_undo=False)
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0].index <= commit_index:
            committed = uncommitted.popleft()
            self._content_cache.pin(committed)
            self._effects.committed.append(committed)

    def lost_mastership(self, commit_index: int) -> None:
        """Roll back the open entry and all entries above ``commit_index``."""
        self._roll_back()
        self._open, self._open_payloads, self._open_bytes, self.open_is_acked = [], [], 0, False
        self._clock.ahead_ms = self._state.ahead_ms
        self.applied_index = commit_index
        self._uncommitted.clear()
        self._digests.forget_above(self.applied_index)

    def _roll_back(self) -> None:
        """Restore the state at the commit index.

        Undo the newest entry first, because each undo needs the state after its entry.
        """
        roll_back(self._open_undo)
        while self._undo:
            roll_back(self._undo.pop()[1])

    def committed_state(self) -> tuple[State, Base]:
        """Return the state and the base at the commit index, for a snapshot.

        This rolls back uncommitted entries. While there are any, call it only in a forked copy of the process.
        """
        self._roll_back()
        replica = self._replica
        return self._state, replica.log.base_at(replica.commit_index, replica.membership.committed_voters)

    def members_changed(self, last_index: int) -> None:
        """Set the entry from which undo is kept.

        A member with other members can lose its term, and a lone member cannot.
        """
        if not self._replica.has_company:
            self._undo_from = 0
        elif not self._undo_from:
            self._undo_from = last_index + 1 + bool(self._open)

    @property
    def may_be_taken_back(self) -> bool:
        """Return whether everything uncommitted could be rolled back if the mastership were lost."""
        return self._replica.commit_index + 1 >= self._undo_from

    def dropped(self, entries: list[Entry]) -> None:
        """Count the acknowledged entries among those cut off the log, and give them to the shell for a file."""
        early = [entry for entry in entries if entry.acked_before_commit]
        self.discarded += len(early)
        self._effects.discarded += early

    def retire(self) -> None:
        """Treat uncommitted entries as dropped, because another node takes over and cannot know their outcome."""
        log, first = self._replica.log, self._replica.commit_index + 1
        self.dropped([log.entry(index) for index in range(first, log.last_index + 1)])
