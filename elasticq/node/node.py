"""One member of a cluster, whole and pure: commands, frames and time in, effects out.

A master executes a command on its state at once (apply at append, so that the
next receive cannot take the same message) and lets the answer out only when
the log index that it rests on is committed: the reply rule. Commands that come
while the last entry is being synced share the next one: group commit. A
follower applies what is committed. A master that loses its term takes back,
newest first, what was not.
"""

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from elasticq.engine import mutations as m
from elasticq.engine.actions.receive import returned, wait_s
from elasticq.engine.apply import Undo, apply, roll_back
from elasticq.engine.execute import execute
from elasticq.engine.ordering.standard import ContentsMissing
from elasticq.engine.state import State
from elasticq.engine.sweep import Sweeper, reclaim
from elasticq.engine.turn import Turn
from elasticq.model.commands import Call, ReceiveMessage, SendMessage, SendMessageBatch
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.limits import WAITERS_MAX
from elasticq.model.names import queue_path
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.clock import ClusterClock
from elasticq.node.effects import Committed, Effects, Fetch, Frame, Reply, Ticket
from elasticq.node.residency import Residency
from elasticq.node.settings import NodeSettings, NodeStatus
from elasticq.node.waiters import Waiter, Waiters
from elasticq.replication import messages
from elasticq.replication.lottery import Lottery
from elasticq.replication.records import Durable
from elasticq.replication.replica import MASTER, Observer, Replica, Timing

FEATURE_LEVEL = 1
SWEEP_MS = 1_000
GRACE_BEFORE_MS = 1_400  # a follower's link may have been silent this long before it was noticed
GRACE_AFTER_MS = 2_000
GRACE_SPAN_MAX_MS = 10_000
LOG_KEPT_ENTRIES = 4_096
ATTEMPTS_MAX = 10_000
MUTATION_BYTES_MIN = 64  # what a mutation counts at least towards a batch's bound

# After these a waiting receive of their queue may find something, or learn that the queue is gone.
_WAKING = (m.MessageStored, m.VisibilityChanged, m.ReceiveReturned, m.QueueDeleted)


class _Pending(Struct, gc=False):
    """A reply held by the reply rule; ``by_lease``: it rests on nothing uncommitted, but mastership must be proved."""

    ticket: Ticket
    outcome: Result | SqsError
    index: int
    by_lease: bool


class Node(Observer):
    """One member. All times are ms; ``now_ms`` is the boot-time clock. Effects are drained after each call."""

    def __init__(
        self, settings: NodeSettings, durable: Durable, entropy: bytes, rows: Iterable[m.Mutation] = ()
    ) -> None:
        """``rows``: what the rows on disk hold, up to ``durable.applied_index``."""
        self.settings = settings
        self.effects = Effects()
        self.state = State()
        for mutation in rows:
            apply(self.state, mutation)
        self.clock = ClusterClock()
        self.lottery = Lottery(entropy)
        timing = Timing(settings.heartbeat_ms, settings.election_min_ms, settings.election_max_ms)
        self.replica = Replica(
            settings.member_id,
            settings.voters,
            durable,
            timing,
            self.lottery,
            self,
            self.clock.reading,
            is_volatile=settings.volatile,
        )
        self.applied_index = durable.applied_index
        self.stored_index = durable.applied_index
        self.serving = False
        self.takeover_index = 0
        self._is_volatile = settings.volatile
        self._commits_alone = self.replica.commits_alone
        self._turn = Turn(0, 0, settings.region, settings.sixty_second_rules)
        self._waiters = Waiters()
        self._attempts: dict[bytes, int] = {}  # of receives that were answered more than once
        self._sweeper = Sweeper()
        self._sweep_at_ms = 0
        self._pending: deque[_Pending] = deque()
        self._open: list[m.Mutation] = []
        self._open_bytes = 0
        self._open_undo: Undo = []
        self._undo: deque[tuple[int, Undo]] = deque()
        self._uncommitted: deque[Committed] = deque()
        self._residency = Residency(self.state, self.effects.fetches, settings.memory_bytes)
        self._parked: dict[int, list[tuple[Call, Ticket]]] = {}  # by queue: they need contents that are on disk
        self._held: deque[tuple[Call, Ticket]] = deque()  # senders that wait for the rows on disk
        self._full_reason: str | None = None
        self._holds_sends = False

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Begin to live. A cluster of one is master when this returns if its storage is volatile."""
        self.clock.start(now_ms, wall_ms)
        self.replica.start(now_ms)
        self._leave(now_ms)

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute; the answer comes out as a Reply, now or after a later input."""
        if not self.serving:
            self._refuse(ticket)
            return
        if self._holds_sends and isinstance(call.command, (SendMessage, SendMessageBatch)):
            self._hold(call, ticket, now_ms)
            return
        self._run(call, ticket, now_ms)
        if self._waiters.count or not (self._commits_alone or self._is_only_joining()):
            self._leave(now_ms)
        else:
            self.effects.wake_at_ms = self._sweep_at_ms  # nothing else can be due

    def _is_only_joining(self) -> bool:
        """A cluster of one whose last entry is being synced: what came joined the open entry, and waits."""
        replica = self.replica
        return (
            bool(self._open)
            and not replica.others
            and replica.durable_index < replica.log.last_index
            and not replica.outbox.records
        )

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """The client of a waiting receive left; harmless for any other ticket."""
        self._waiters.cancel(ticket)
        for calls in self._parked.values():
            calls[:] = [(call, other) for call, other in calls if other != ticket]

    def undelivered(self, result: Result, now_ms: int) -> None:
        """The answer of a receive could not be written: its messages become visible again."""
        if not self.serving or not isinstance(result, ReceiveMessageResult) or not result.messages:
            return
        if result.attempt == self._attempts.get(result.invocation, 0):
            time_ms = self._open_time(now_ms)
            self._attempts.pop(result.invocation, None)  # its GUID is forgotten, too
            self._change(returned(self.state, result, time_ms), now_ms)
        self._leave(now_ms)

    def receive(self, frame: bytes, now_ms: int) -> None:
        """A frame of another member. Raises FrameError for bytes that are none."""
        message = messages.decode(frame)
        if message.cluster and self.replica.cluster and message.cluster != self.replica.cluster:
            return
        self.replica.receive(message, now_ms)
        self._leave(now_ms)

    def synced(self, token: int, now_ms: int) -> None:
        """All records handed out up to ``token`` are durable."""
        self.replica.synced(token, now_ms)
        self._leave(now_ms)

    def stored(self, index: int, now_ms: int) -> None:
        """The rows on disk hold everything up to ``index``: its contents may leave memory, its entries the log."""
        assert self.stored_index <= index <= self.replica.commit_index, "rows hold committed entries only"
        self.stored_index = index
        self._residency.stored(index)
        self.replica.compact(index)
        self.effects.log_floor = self.replica.log.base_index
        self._let_senders_go(now_ms)
        self._leave(now_ms)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """The answer to a fetch: at least the first of the asked messages that still exist."""
        self._residency.fetched(fetch, contents)
        if self.serving:
            for call, ticket in self._parked.pop(fetch.queue_id, ()):
                self._run(call, ticket, now_ms)
            self._serve_waiters(fetch.queue_id, now_ms)
        self._residency.trim()
        self._leave(now_ms)

    def set_full(self, reason: str | None, now_ms: int) -> None:
        """The disk is full: sends are refused with ``reason`` until it is None again."""
        self._full_reason = reason
        self._let_senders_go(now_ms)
        self._leave(now_ms)

    def tick(self, now_ms: int) -> None:
        """Time passed: elections, heartbeats, ends of waits, deadlines of messages, background work."""
        self.replica.tick(now_ms)
        if self.serving:
            self.clock.keep(now_ms)
            self._end_waits(now_ms)
            self._serve_due(now_ms)
            self._sweep(now_ms)
        self._leave(now_ms)

    def close_waiters(self, now_ms: int) -> None:
        """Graceful stop: all long polls are answered, empty."""
        for waiter in self._waiters.all():
            self._answer_waiter(waiter, ReceiveMessageResult(), now_ms)
        self._leave(now_ms)

    def hand_over(self, now_ms: int) -> bool:
        """Ask the best follower to take the mastership; True if there is one that has everything."""
        asked = self.replica.hand_over(now_ms)
        self._leave(now_ms)
        return asked

    # --- commands -------------------------------------------------------------------

    def _run(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._open_time(now_ms)
        try:
            result, mutations = execute(self.state, call, self._turn)
        except SqsError as error:
            self._answer(ticket, error, now_ms)
            return
        except ContentsMissing as missing:
            self._park(call, ticket, missing.sequences)
            return
        if mutations:
            if self._attempts:
                self._attempts.pop(call.invocation, None)
            self._change(mutations, now_ms, ticket, result)
            if not self._is_volatile and type(result) is ReceiveMessageResult:
                self._took(mutations[0])
            return
        if type(result) is ReceiveMessageResult:
            if result.messages:
                self._count_attempt(result)
            elif self._wait(call, ticket, now_ms):
                return
        self._answer(ticket, result, now_ms)

    def _park(self, call: Call, ticket: Ticket, sequences: list[int]) -> None:
        """Executed again when the contents are here; a receive waits like a long poll."""
        assert isinstance(call.command, ReceiveMessage)
        queue_id = self._queue_of(call, call.command)
        self._parked.setdefault(queue_id, []).append((call, ticket))
        self._residency.want(queue_id, sequences)

    def _took(self, mutation: m.Mutation) -> None:
        assert isinstance(mutation, m.MessagesReceived)
        self._residency.taken(self.state.queues[mutation.queue_id], mutation.sequences[-1])

    def _hold(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Senders are slowed down while memory holds too much that the rows on disk do not."""
        if self._full_reason is not None:
            self.effects.replies.append(Reply(ticket, ServiceUnavailable(self._full_reason), 0))
        else:
            self._held.append((call, ticket))

    def _let_senders_go(self, now_ms: int) -> None:
        self._holds_sends = self._full_reason is not None or self._residency.is_full
        while self._held and (self._full_reason is not None or not self._residency.is_full):
            call, ticket = self._held.popleft()
            if self._full_reason is not None or not self.serving:
                self._hold(call, ticket, now_ms) if self.serving else self._refuse(ticket)
            else:
                self._run(call, ticket, now_ms)

    def _count_attempt(self, result: ReceiveMessageResult) -> None:
        """A receive answered again: only the newest attempt may give its messages back."""
        attempts = self._attempts
        result.attempt = attempts.pop(result.invocation, 0) + 1
        attempts[result.invocation] = result.attempt
        if len(attempts) > ATTEMPTS_MAX:
            del attempts[next(iter(attempts))]

    def _open_time(self, now_ms: int) -> int:
        """An entry's time is fixed when its batch opens; all commands in it see that time."""
        turn = self._turn
        if not self._open:
            time_ms = self._stamp(now_ms)
            if time_ms > turn.now_ms:
                turn.now_ms = time_ms
        return turn.now_ms

    def _stamp(self, now_ms: int) -> int:
        """Entries carry cluster time, never a wall clock."""
        return self.clock.time_ms(now_ms)

    def _change(
        self, mutations: list[m.Mutation], now_ms: int, ticket: Ticket | None = None, result: Result | None = None
    ) -> None:
        """Apply what was decided, put it into the open entry, and answer by the reply rule."""
        if not mutations:
            return
        self._apply(mutations)
        self._close_entry_if_free(now_ms)
        if result is not None:
            self._answer(ticket, result, now_ms)
        if self._waiters.count:
            for mutation in mutations:
                if isinstance(mutation, _WAKING) and self._waiters.is_awaited(mutation.queue_id):
                    self._serve_waiters(mutation.queue_id, now_ms)

    def _apply(self, mutations: list[m.Mutation]) -> None:
        undo = self._open_undo if self.replica.others else None  # a cluster of one never loses its term
        self.state.index = self.replica.log.last_index + 1
        for mutation in mutations:
            apply(self.state, mutation, undo)
        self._open += mutations
        if not self._commits_alone:
            self._open_bytes += sum(map(_size_bytes, mutations))

    def _close_entry_if_free(self, now_ms: int) -> None:
        """Group commit: while a sync is under way the open entry grows, up to its bound."""
        replica = self.replica
        is_free = self._is_volatile or replica.durable_index >= replica.log.last_index
        if is_free or self._open_bytes >= self.settings.batch_bytes_max:
            self._close_entry(now_ms)

    def _close_entry(self, now_ms: int) -> None:
        mutations = self._open
        payload = m.encode(mutations)
        self._open = []
        self._open_bytes = 0
        time_ms = self._turn.now_ms
        index = self.replica.propose(payload, time_ms, now_ms)
        self.applied_index = index
        if self._commits_alone:
            return
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, self.replica.term, time_ms, mutations))
        if self._open_undo:
            self._undo.append((index, self._open_undo))
            self._open_undo = []
        self._hand_out(now_ms)

    # --- replies ------------------------------------------------------------------

    def _refuse(self, ticket: Ticket) -> None:
        self.effects.replies.append(Reply(ticket, ServiceUnavailable(self._unready_reason()), 0))

    def _unready_reason(self) -> str:
        replica = self.replica
        if replica.role == MASTER:
            return "The master is taking over; try again."
        if replica.master is not None:
            return f"This member is not the master; the master is {replica.master}."
        return f"read-only: no master; {replica.quorum} of {len(replica.voters)} members are needed."

    def _head_index(self) -> int:
        """The newest index that a computation made now rests on."""
        last = self.replica.log.last_index
        return last + 1 if self._open else last

    def _answer(self, ticket: Ticket | None, outcome: Result | SqsError, now_ms: int) -> None:
        replica = self.replica
        if self._commits_alone:  # everything is committed, and nobody else can be master
            self.effects.replies.append(Reply(ticket, outcome, replica.commit_index))
            return
        index = self._head_index()
        if index <= replica.commit_index and replica.lease_is_valid(now_ms):
            self.effects.replies.append(Reply(ticket, outcome, index))
            return
        by_lease = index <= replica.commit_index
        if by_lease and not any(pending.by_lease for pending in self._pending):
            replica.ask_round(now_ms)
        self._pending.append(_Pending(ticket, outcome, index, by_lease))

    def _may_release(self, pending: _Pending, now_ms: int) -> bool:
        """The reply rule: nothing leaves that rests on an uncommitted entry."""
        replica = self.replica
        return pending.index <= replica.commit_index and (not pending.by_lease or replica.lease_is_valid(now_ms))

    def _release(self, now_ms: int) -> None:
        pending = self._pending
        while pending and self._may_release(pending[0], now_ms):
            held = pending.popleft()
            self.effects.replies.append(Reply(held.ticket, held.outcome, held.index))

    # --- long polls ----------------------------------------------------------------

    def _wait(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Register an empty receive that may wait; False for a short poll."""
        command = call.command
        assert isinstance(command, ReceiveMessage)
        seconds = wait_s(self.state, call, command)
        if seconds <= 0 or (call.invocation and self.state.invocations.get(call.invocation, self._turn.now_ms)):
            return False
        displaced = self._waiters.take_over(call, ticket)
        if displaced is not None:
            self._answer(displaced, ReceiveMessageResult(), now_ms)
            return True
        if self._waiters.count >= WAITERS_MAX:
            self._answer(ticket, ServiceUnavailable("Too many receives are waiting."), now_ms)
            return True
        queue = self._queue_of(call, command)
        self._waiters.add(call, ticket, queue, now_ms + seconds * 1_000)
        self._waiters.expect(queue, self.state.queues[queue].order.next_due_ms())
        return True

    def _queue_of(self, call: Call, command: ReceiveMessage) -> int:
        account, name = queue_path(command.queue_url or "", call.account)
        return self.state.queue(account, name).id

    def _serve_waiters(self, queue_id: int, now_ms: int) -> None:
        """Hand out to those who wait, in their order, as long as there is something."""
        while (waiter := self._waiters.first(queue_id)) is not None:
            self._open_time(now_ms)
            try:
                result, mutations = execute(self.state, waiter.call, self._turn)
            except SqsError as error:
                self._answer_waiter(waiter, error, now_ms)
                continue
            except ContentsMissing as missing:
                self._residency.want(queue_id, missing.sequences)
                break
            if not mutations:
                break
            self._waiters.remove(waiter)
            self._apply(mutations)
            self._close_entry_if_free(now_ms)
            self._answer(waiter.ticket, result, now_ms)
            if not self._is_volatile:
                self._took(mutations[0])
        queue = self.state.queues.get(queue_id)
        if queue is not None:
            self._waiters.expect(queue_id, queue.order.next_due_ms())

    def _answer_waiter(self, waiter: Waiter, outcome: Result | SqsError, now_ms: int) -> None:
        self._waiters.remove(waiter)
        self._answer(waiter.ticket, outcome, now_ms)

    def _end_waits(self, now_ms: int) -> None:
        while (waiter := self._waiters.pop_expired(now_ms)) is not None:
            self._answer_waiter(waiter, ReceiveMessageResult(), now_ms)

    def _serve_due(self, now_ms: int) -> None:
        time_ms = self._open_time(now_ms)
        while (queue_id := self._waiters.pop_due(time_ms)) is not None:
            self._serve_waiters(queue_id, now_ms)

    # --- background ------------------------------------------------------------------

    def _sweep(self, now_ms: int) -> None:
        if now_ms < self._sweep_at_ms:
            return
        mutations, is_more_waiting = self._sweeper.step(self.state, self._open_time(now_ms))
        is_more_waiting |= reclaim(self.state, self.replica.commit_index)
        self._sweep_at_ms = now_ms + (10 if is_more_waiting else SWEEP_MS)
        self._change(mutations, now_ms)
        log = self.replica.log
        if self._is_volatile and len(log) > LOG_KEPT_ENTRIES:
            self.replica.compact(log.last_index)

    # --- what the replica tells (Observer) ----------------------------------------------

    def became_master(self, now_ms: int) -> None:
        """Take over: state to the log's end, fix the clock, say so in the log; serve when that is committed."""
        assert self.applied_index == self.replica.commit_index, "a follower applies what is committed"
        replica = self.replica
        for index in range(self.applied_index + 1, replica.log.last_index + 1):
            self._apply_entry(index, keep_undo=bool(replica.others))
        contact_ms = self.clock.contact_ms
        self.clock.win(replica.votes.values(), replica.log.last_time_ms, now_ms)
        turn = self._turn
        turn.term = replica.term
        turn.now_ms = max(self._stamp(now_ms), replica.log.last_time_ms)
        founding: list[m.Mutation] = []
        if not self.state.cluster_id:
            founding.append(self._founded())
        grace_from_ms, grace_until_ms = self._grace(contact_ms, turn.now_ms)
        takeover = m.TookOver(replica.term, self.settings.member_id, grace_from_ms, grace_until_ms)
        self._apply([*founding, takeover])
        self.takeover_index = replica.log.last_index + 1
        self._open_entry_into_log(now_ms)

    def _open_entry_into_log(self, now_ms: int) -> None:
        """The takeover entry; records leave when the replica's caller is done."""
        mutations = self._open
        payload = m.encode(mutations)
        self._open = []
        self._open_bytes = 0
        time_ms = self._turn.now_ms
        self.applied_index = self.replica.propose(payload, time_ms, now_ms)
        if not self._is_volatile:
            self._uncommitted.append(Committed(self.applied_index, self.replica.term, time_ms, mutations))
        self._undo.append((self.applied_index, self._open_undo))
        self._open_undo = []
        if self._commits_alone:
            self.commit_moved(now_ms)

    def _founded(self) -> m.ClusterFounded:
        cluster_id = self.lottery.token(b"cluster", 16).hex()
        return m.ClusterFounded(cluster_id, self.lottery.token(b"mac", 32), FEATURE_LEVEL)

    def _grace(self, contact_ms: int | None, time_ms: int) -> tuple[int, int]:
        """From when to when consumers may have been unable to extend a visibility timeout."""
        last_ms = contact_ms if contact_ms is not None else self.replica.log.last_time_ms
        if not last_ms:
            return 0, 0
        from_ms = last_ms - GRACE_BEFORE_MS
        return from_ms, min(time_ms + GRACE_AFTER_MS, from_ms + GRACE_SPAN_MAX_MS)

    def _serve_if_committed(self) -> None:
        """Serve only when the own Takeover is committed: then everything before it is, too."""
        if self.replica.role == MASTER and self.replica.commit_index >= self.takeover_index:
            self.serving = True

    def lost_mastership(self, now_ms: int) -> None:
        """Take back what is not committed, newest first; what was promised to nobody is answered as unknown."""
        self.serving = False
        roll_back(self._open_undo)
        self._open = []
        self._open_bytes = 0
        while self._undo:
            roll_back(self._undo.pop()[1])
        self.applied_index = self.replica.commit_index
        self._uncommitted.clear()
        lost = ServiceUnavailable("The mastership was lost; the outcome is unknown, a retry is safe.")
        for waiter in self._waiters.all():
            self.effects.replies.append(Reply(waiter.ticket, lost, 0))
        self._waiters = Waiters()
        for pending in self._pending:
            self.effects.replies.append(Reply(pending.ticket, lost, 0))
        self._pending.clear()
        for _, ticket in (*self._held, *(parked for calls in self._parked.values() for parked in calls)):
            self._refuse(ticket)  # nothing was done for them
        self._held.clear()
        self._parked.clear()

    def commit_moved(self, now_ms: int) -> None:
        replica = self.replica
        if replica.role == MASTER:
            while self._undo and self._undo[0][0] <= replica.commit_index:
                self._undo.popleft()
            if not self.serving:
                self._serve_if_committed()
        else:
            for index in range(self.applied_index + 1, replica.commit_index + 1):
                self._apply_entry(index, keep_undo=False)
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0].index <= replica.commit_index:
            committed = uncommitted.popleft()
            self._residency.pin(committed)
            self.effects.committed.append(committed)
        if self._residency.is_full:
            self._holds_sends = True
        if not replica.cluster:
            replica.cluster = self.state.cluster_id

    def linked(self, time_ms: int, now_ms: int) -> None:
        self.clock.link(time_ms, now_ms)

    def _apply_entry(self, index: int, *, keep_undo: bool) -> None:
        assert index == self.applied_index + 1
        undo: Undo | None = [] if keep_undo else None
        entry = self.replica.log.entry(index)
        mutations = m.decode(entry.payload)
        self.state.index = index
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, entry.term, entry.time_ms, mutations))
        for mutation in mutations:
            apply(self.state, mutation, undo)
        if undo:
            self._undo.append((index, undo))
        self.applied_index = index

    # --- effects ----------------------------------------------------------------------

    def _leave(self, now_ms: int) -> None:
        """Everything that is due after an input."""
        self._hand_out(now_ms)
        if self._open:
            self._close_entry_if_free(now_ms)
        if self._pending:
            self._release(now_ms)
        self.effects.wake_at_ms = self._wake_at(now_ms)

    def _hand_out(self, now_ms: int) -> None:
        """Move the replica's outbox into effects; with volatile storage its records are durable at once."""
        outbox = self.replica.outbox
        while outbox.records or outbox.messages:
            if outbox.records:
                self._hand_out_records()
            for message, rests_on_records in outbox.messages:
                token = self.effects.token if rests_on_records and not self._is_volatile else 0
                self.effects.frames.append(Frame(message.to, messages.encode(message), token))
            outbox.messages.clear()
            if self._is_volatile:
                self.replica.synced(self.effects.token, now_ms)

    def _hand_out_records(self) -> None:
        outbox, effects = self.replica.outbox, self.effects
        effects.token += 1
        effects.records += outbox.records
        outbox.records.clear()
        self.replica.handed_out(effects.token)

    def _wake_at(self, now_ms: int) -> int | None:
        replica = self.replica
        wake_ms: int | None = None
        if replica.others or replica.role != MASTER:
            wake_ms = replica.wake_at_ms
        if not self.serving:
            return wake_ms
        due_ms = self._waiters.next_due_ms() if self._waiters.count else None
        for candidate_ms in (
            self._waiters.next_deadline_ms() if self._waiters.count else None,
            None if due_ms is None else self.clock.boot_ms(due_ms),
            self._sweep_at_ms if self.state.queues or self.state.doomed else None,
        ):
            if candidate_ms is not None and (wake_ms is None or candidate_ms < wake_ms):
                wake_ms = candidate_ms
        return wake_ms

    # --- status -------------------------------------------------------------------------

    def status(self, now_ms: int) -> NodeStatus:
        replica = self.replica
        is_following = replica.role != MASTER and replica.master is not None
        return NodeStatus(
            member_id=self.settings.member_id,
            role=replica.role,
            master=replica.master,
            term=replica.term,
            commit_index=replica.commit_index,
            applied_index=self.applied_index,
            last_index=replica.log.last_index,
            ready=self.serving or is_following,
            reason="" if self.serving or is_following else self._unready_reason(),
            time_ms=self.clock.time_ms(now_ms),
            voters=replica.voters,
            match={other: progress.match_index for other, progress in replica.followers.items()},
            queues=len(self.state.queues),
            waiters=self._waiters.count,
            contents_bytes=self.state.contents_bytes,
        )


def _size_bytes(mutation: m.Mutation) -> int:
    """A cheap guess of what a mutation adds to its entry; exact bodies, the rest by its least."""
    return len(mutation.body) + MUTATION_BYTES_MIN if type(mutation) is m.MessageStored else MUTATION_BYTES_MIN
