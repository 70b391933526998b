"""One member of a cluster, whole and pure: commands, frames and time in, effects out.

A master executes a command on its state at once (apply at append, so that the
next receive cannot take the same message) and lets the answer out only when
the log index that it rests on is committed: the reply rule. Commands that come
while the last entry is being synced share the next one: group commit. A
follower applies what is committed. A master that loses its term takes back,
newest first, what was not.

Judging a command (its handler, the encoding of what it decided, its own part of
the open entry) may fail: that is an answer to its caller, and nothing was
changed (judging.py). What follows an append, and what others committed, may
not: an exception there is a broken invariant, and ends the member.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from elasticq.engine import mutations as m
from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.actions.leases import is_leased
from elasticq.engine.actions.receive import returned, wait_s
from elasticq.engine.apply import Undo, apply, apply_all, roll_back
from elasticq.engine.digest import delivery_digest
from elasticq.engine.execute import execute, look_last
from elasticq.engine.move_tasks import Mover
from elasticq.engine.ordering.standard import ContentsMissing
from elasticq.engine.state import State
from elasticq.engine.sweep import Sweeper, reclaim
from elasticq.engine.turn import Turn
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import ENTRY_BYTES_MAX, WAITERS_MAX
from elasticq.model.names import queue_path
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult
from elasticq.node import forwarding
from elasticq.node.clock import ClusterClock
from elasticq.node.courier import Remote
from elasticq.node.effects import Committed, Effects, Fetch, Frame, Reply, Ticket, Wanted
from elasticq.node.forwarding import UnknownKind
from elasticq.node.judging import Decision, Judge
from elasticq.node.members import Members, founding, read_payload
from elasticq.node.orders import Order, OrderDone, OrderRefused, TransferMastership, VerifyRows
from elasticq.node.peer import Peer
from elasticq.node.post import Post
from elasticq.node.replies import Replies
from elasticq.node.residency import Residency
from elasticq.node.senders import Senders
from elasticq.node.settings import LeaseStatus, NodeSettings, NodeStatus
from elasticq.node.waiters import Waiter, Waiters
from elasticq.replication import messages
from elasticq.replication.judge import judge
from elasticq.replication.lottery import Lottery
from elasticq.replication.messages import FrameError
from elasticq.replication.records import Base, Durable, Entry, Vote, Voter
from elasticq.replication.replica import MASTER, Observer, Replica, Timing

SWEEP_MS = 1_000
MOVE_RETRY_MS = 10
BURIALS_MAX = 10  # commands that one receive may spend on dead letters, up to 1,000 of them each
HAND_OVER_MS = 1_000
GRACE_BEFORE_MS = 1_400  # a follower's link may have been silent this long before it was noticed
GRACE_AFTER_MS = 2_000
GRACE_SPAN_MAX_MS = 10_000
LOG_KEPT_ENTRIES = 4_096
ALONE_LOG_KEPT_BYTES = 1_048_576
ATTEMPTS_MAX = 10_000
DIGESTS_MAX = 16
DAMAGED = "damaged"
UNREADABLE = "Messages of this queue cannot be read from the disk any more, and are lost; a retry passes over them."

# After these a waiting receive of their queue may find something, or learn that the queue is gone.
_LETTER = bytes((forwarding.FRAME_KIND,))
_WAKING = (m.MessageStored, m.VisibilityChanged, m.ReceiveReturned, m.QueueDeleted, m.QueueAttributesSet)
_FREEING = (m.MessagesRemoved, m.RangeRemoved)  # in a FIFO queue: the next of their group may be free


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
        self.state.names.order()
        self.clock = ClusterClock()
        self.clock.ahead_ms = self.state.ahead_ms
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
        self._turn = Turn(0, 0, settings.region, settings.sixty_second_rules, settings.template, settings.limits)
        self._judge = Judge(self.effects.failures)
        self._waiters = Waiters()
        self._attempts: dict[bytes, int] = {}  # answers that are out, of receives that were answered more than once
        self._sweeper = Sweeper()
        self._sweep_at_ms = 0
        self._mover = Mover()
        self._move_at_ms = 0
        self.members = Members(settings, self.replica, self.lottery)
        self.members.founded()
        if self.state.cluster_id:
            self.replica.cluster = self.state.cluster_id
        self._replies = Replies(self.replica, self.effects.replies, settings.mode, settings.all_timeout_ms)
        self._post = Post(
            settings,
            self.replica,
            self.members,
            self.effects,
            lambda: self.state,
            self._judge,
            self.lottery.token(b"courier %d" % durable.applied_index, 8).hex(),  # the entropy may be an older node's
            run=self._admit,
            withdraw=self._withdraw,
            give_back=self._give_back,
        )
        if not self.replica.cluster:
            self.replica.cluster = self.state.cluster_id  # of the rows, where the log does not begin at 1
        self._was_voter = self.replica.membership.is_voter
        self._master_seen: str | None = None
        self._hands_over_until_ms = 0
        self._heir = ""
        self._read: dict[int, tuple[bytes, list[m.Mutation]]] = {}  # entries of the log that are not applied yet
        self._undo_from = 0  # entries from here on can be taken back
        self.discarded = 0
        self._digests: dict[int, str] = {}
        self._open_is_early = False
        self._gathers = False  # calls that came together make one entry
        self._open: list[m.Mutation] = []
        self._open_payloads: list[bytes] = []  # the same, encoded: one for each command
        self._open_bytes = 0
        self._open_undo: Undo = []
        self._undo: deque[tuple[int, Undo]] = deque()
        self._uncommitted: deque[Committed] = deque()
        self._residency = Residency(self.state, self.effects.fetches, settings.memory_bytes)
        self._parked: dict[int, list[tuple[Call, Ticket]]] = {}  # by queue: they need contents that are on disk
        memory_bytes_max = settings.memory_bytes_max if settings.volatile else 0
        self._senders = Senders(self.state, self._residency, self.effects.replies, memory_bytes_max)

    # --- inputs -------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Begin to live. A cluster of one is master when this returns if its storage is volatile."""
        self.clock.start(now_ms, wall_ms)
        self.replica.start(now_ms)
        self._leave(now_ms)

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute; the answer comes out as a Reply, now or after a later input."""
        if not self.serving:
            self._post.submit(call, ticket, now_ms)
            if self._post.has_lobby:
                self._leave(now_ms)
            return
        if self._hands_over_until_ms:
            self._post.hold(call, ticket, now_ms)
            return
        if self._senders.is_watching and self._senders.hold(call, ticket):
            return
        self._run(call, ticket, now_ms)
        if self._waiters.count or not (self._commits_alone or self._is_only_joining()):
            self._leave(now_ms)
        else:
            self.effects.wake_at_ms = self._chores_at_ms()  # nothing else can be due

    @property
    def is_handing_over(self) -> bool:
        """The mastership is being given away; calls are held meanwhile."""
        return bool(self._hands_over_until_ms)

    def _is_only_joining(self) -> bool:
        """A cluster of one whose last entry is being synced: what came joined the open entry, and waits."""
        replica = self.replica
        return (
            bool(self._open)
            and not replica.has_company
            and replica.durable_index < replica.log.last_index
            and not replica.outbox.records
        )

    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """The client of a waiting receive left; harmless for any other ticket."""
        self._withdraw(ticket)
        self._post.cancelled(ticket)
        self._leave(now_ms)

    def _withdraw(self, ticket: Ticket) -> None:
        self._waiters.cancel(ticket)
        for calls in self._parked.values():
            calls[:] = [(call, other) for call, other in calls if other != ticket]

    def undelivered(self, result: Result, now_ms: int) -> None:
        """The answer of a receive could not be written: its messages become visible again."""
        if isinstance(result, ReceiveMessageResult) and result.messages and not result.leased:
            if self.serving:
                self._give_back(result, now_ms)
            else:
                self._post.undelivered(result)
        self._leave(now_ms)

    def _give_back(self, result: ReceiveMessageResult, now_ms: int) -> None:
        """When the last answer to a call came back: attempts arrive in any order, and any may have been read."""
        answers = self._attempts.pop(result.invocation, 1 if result.attempt == 0 else 0) - 1
        if answers > 0:
            self._attempts[result.invocation] = answers
        elif answers == 0:
            time_ms = self._open_time(now_ms)  # its GUID is forgotten, too
            self._change(self._judge.own(returned(self.state, result, time_ms)), now_ms)

    def receive(self, frame: bytes, now_ms: int, link: str = "") -> None:
        """A frame of another member. Raises FrameError for one that is refused, and changes nothing then.

        ``link``: the member that proved itself at the other end, if that is known; it speaks for nobody else.
        """
        self._take_frame(frame, now_ms, link)
        self._leave(now_ms)

    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        """Frames that came together, with their links, share what follows, and the entry that their calls make.

        What of them was refused, with its link; the rest of that link is not looked at, as it is about to be cut.
        """
        refused: dict[str, FrameError] = {}
        unknown: list[tuple[str, FrameError]] = []
        self._gathers = True
        for link, frame in frames:
            if link in refused:
                continue
            try:
                self._take_frame(frame, now_ms, link)
            except UnknownKind as error:
                unknown.append((link, error))
            except FrameError as error:
                refused[link] = error
        self._gathers = False
        self._leave(now_ms)
        return [*refused.items(), *unknown]

    def _take_frame(self, frame: bytes, now_ms: int, link: str) -> None:
        if frame[:1] == _LETTER:
            letter = forwarding.decode(frame)
            _check_sender(letter.sender, link)
            self._post.read(letter, now_ms, serving=self.serving)
            return
        message = messages.decode(frame)
        _check_sender(message.sender, link)
        if message.to == self.settings.member_id and self._is_ours(message):
            judge(message, self.replica)
            if isinstance(message, messages.Append):
                self._read_entries(message)
            self.replica.receive(message, now_ms)
            if type(message) is messages.Found:
                self.members.founded()

    def _read_entries(self, message: messages.Append) -> None:
        """What the log is about to get is read now: an entry that cannot be applied must not get there."""
        log = self.replica.log
        if message.term < self.replica.term or message.prev_index < log.base_index:
            return
        if log.term_at(message.prev_index) == message.prev_term:
            fresh = [entry for entry in message.entries if log.term_at(entry.index) != entry.term]
            self._read |= {entry.index: (entry.payload, read_payload(entry)) for entry in fresh}

    def _is_ours(self, message: messages.AnyMessage) -> bool:
        """Of this cluster, or the founding of one that this member may be part of."""
        if type(message) is messages.Found:
            return self.members.accepts(message)
        cluster = self.replica.cluster
        if message.cluster and cluster:
            return message.cluster == cluster
        return bool(cluster) or self.replica.membership.is_voter

    def met(self, peer: Peer, now_ms: int) -> None:
        """Another member said what it is, for the first time or anew."""
        known = self.members.peers.get(peer.id)
        if known is not None and known.boot != peer.boot:
            self._forget_waiting(peer.id)
            self._post.master_changed(now_ms, serving=self.serving)
        self.members.met(peer, now_ms)
        self._leave(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """The link to another member broke: its waiting receives go."""
        self.members.lost(member_id, now_ms)
        self._forget_waiting(member_id)
        self._post.master_changed(now_ms, serving=self.serving)
        self._leave(now_ms)

    def _forget_waiting(self, sender: str) -> None:
        for waiter in self._waiters.all():
            ticket = waiter.ticket
            if type(ticket) is Remote and ticket.sender == sender:
                self._waiters.cancel(ticket)

    def introduce(self) -> Peer:
        """What this member says of itself."""
        return self.members.introduce()

    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        """What the operator wants; the reply's outcome is an OrderDone or an OrderRefused."""
        if isinstance(order, VerifyRows):
            self._verify(ticket, now_ms)
        elif isinstance(order, TransferMastership):
            self._transfer(order.member, ticket, now_ms)
        elif self.serving and self.replica.commit_index + 1 < self._undo_from:
            self.members.answered.append((ticket, OrderRefused("not yet: try again")))
        else:
            voters = self.members.order(order, ticket)
            if voters is not None:
                self._propose_voters(voters, now_ms)
        self._leave(now_ms)

    def _transfer(self, name: str, ticket: Ticket, now_ms: int) -> None:
        to = self.members.other_voter(name) if name else ""
        if (name and not to) or not self.hand_over(now_ms, to):
            reason = f"{name or 'anybody else'} is no other voter, or this member is not the master"
            self.members.answered.append((ticket, OrderRefused(reason)))
        else:
            self.members.answered.append((ticket, OrderDone("the mastership is being handed over")))

    def _verify(self, ticket: Ticket, now_ms: int) -> None:
        """An entry without a mutation asks each member for the digest of its rows at this place of the log."""
        if not self.serving:
            self.members.answered.append((ticket, OrderRefused("this member is not the master: ask the master")))
            return
        self._open_time(now_ms)
        if self._open:
            self._close_entry(now_ms)
        self.members.promise(ticket, f"digest at {self.replica.log.last_index + 1}")
        self._close_entry(now_ms)
        self.members.keep_promises()  # alone in memory it is committed by now
        self._note_digest(self.applied_index, self._turn.now_ms)

    def _note_digest(self, index: int, time_ms: int) -> None:
        """``time_ms``: of the entry, the same for all members."""
        self._digests[index] = delivery_digest(self.state, time_ms).hex() if self.replica.is_whole else DAMAGED
        while len(self._digests) > DIGESTS_MAX:
            del self._digests[next(iter(self._digests))]

    def _propose_voters(self, voters: tuple[Voter, ...], now_ms: int) -> None:
        """The change is an entry of its own kind: it takes what is open with it."""
        self._open_time(now_ms)
        self._close_entry(now_ms, voters)

    def synced(self, token: int, now_ms: int) -> None:
        """All records handed out up to ``token`` are durable."""
        self.replica.synced(token, now_ms)
        self._leave(now_ms)

    def stored(self, index: int, now_ms: int) -> None:
        """The rows on disk hold everything up to ``index``: its contents may leave memory, its entries the log."""
        assert self.stored_index <= index <= self.replica.commit_index, "rows hold committed entries only"
        self.stored_index = index
        self._residency.stored(index)
        if self.replica.is_whole:  # else the log goes on from whichever snapshot comes
            self.replica.compact(index, self.settings.log_kept_bytes)
            self.effects.log_floor = self.replica.log.base_index
        self._let_senders_go(now_ms)
        self._leave(now_ms)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored], now_ms: int) -> None:
        """The answer to a fetch: at least the first of the asked messages that still exist."""
        if not self.replica.is_whole:
            return  # it may lack any of them
        self._residency.fetched(fetch, contents)
        if self.serving:
            for call, ticket in self._parked.pop(fetch.queue_id, ()):
                self._run(call, ticket, now_ms)
            self._serve_waiters(fetch.queue_id, now_ms)
        self._residency.trim()
        self._leave(now_ms)

    def damaged(self, queue_id: int, sequences: list[int], now_ms: int) -> bool:
        """The contents of these messages cannot be read from the disk any more; none: nobody knows of which.

        Others have them, or, alone, they are lost and go in an entry like any that is deleted. False: nobody else has
        them, and only new rows of what is left help; until a node over these comes, this one serves nobody.
        """
        if self.replica.others or not sequences:
            self.replica.lost_rows(now_ms)
        elif self.serving:
            self._open_time(now_ms)
            removed: list[m.Mutation] = [m.MessagesRemoved(queue_id, part) for part in m.chunks(sequences)]
            self._change(self._judge.own(removed), now_ms)
            for _, ticket in self._parked.pop(queue_id, ()):
                self._answer(ticket, ServiceUnavailable(UNREADABLE), now_ms)
        self._leave(now_ms)
        return bool(self.replica.others or sequences)

    def set_full(self, reason: str | None, now_ms: int) -> None:
        """The disk is full: sends are refused with ``reason`` until it is None again."""
        if reason is not None and self._senders.full_reason is None:
            self.hand_over(now_ms)  # another one may have space
        self._senders.full_reason = reason
        self._let_senders_go(now_ms)
        self._leave(now_ms)

    def tick(self, now_ms: int) -> None:
        """Time passed: elections, heartbeats, ends of waits, deadlines of messages, background work."""
        self.replica.tick(now_ms)
        self._post.tick(now_ms, self.clock.time_ms(now_ms), self._stale_ms(now_ms))
        if self._is_volatile:
            self._compact()
        if self.serving:
            self.clock.keep(now_ms)
            self._end_waits(now_ms)
            if not self._hands_over_until_ms:  # else the heir's log would not be the newest when it stands
                self._work(now_ms)
        self._leave(now_ms)

    def _work(self, now_ms: int) -> None:
        """What makes entries although nobody asks."""
        voters = self.members.next_change()
        if voters is not None:
            self._propose_voters(voters, now_ms)
        self._serve_due(now_ms)
        self._sweep(now_ms)
        if self.state.moving:
            self._move(now_ms)

    def close_waiters(self, now_ms: int) -> None:
        """Graceful stop: all long polls are answered, empty."""
        for waiter in self._waiters.all():
            self._give_up_waiting(waiter, now_ms)
        self._leave(now_ms)

    def fsync_measured(self, slow_ms: int) -> None:
        """How long the disk's slow syncs take: elections wait for them."""
        self.replica.fsync_ms = slow_ms

    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Give the mastership to ``to``, or to who has the newest log; True if there is anybody.

        Until that member has everything, and the mastership, calls are held; after ``HAND_OVER_MS`` it was in vain.
        """
        if not self.serving or not self.replica.others:
            return False
        self._heir, self._hands_over_until_ms = to, now_ms + HAND_OVER_MS
        self._leave(now_ms)
        return True

    def _hand_over_if_due(self, now_ms: int) -> None:
        if now_ms >= self._hands_over_until_ms:
            self._hands_over_until_ms = 0
        elif not self._open and self.replica.commit_index == self.replica.log.last_index:
            heir = self._heir or self.replica.heir()
            if self.replica.hand_over(now_ms, heir):
                self._heir = heir  # the same until it is over: two that stand at once split the votes
            self._hand_out(now_ms)

    def committed_state(self) -> tuple[State, Base]:
        """For a snapshot in a process of its own that is a copy of this one: what is not committed is taken back."""
        replica = self.replica
        roll_back(self._open_undo)
        while self._undo:
            roll_back(self._undo.pop()[1])
        index = replica.commit_index
        return self.state, replica.log.base_at(index, replica.membership.committed_voters)

    @property
    def vote(self) -> Vote:
        """Its term, and whom it voted for in it."""
        return Vote(self.replica.term, self.replica.voted_for)

    def retire(self, now_ms: int) -> None:
        """A node over a snapshot takes this one's place: whoever waits here is answered.

        Its log goes with it: of what is not known to be committed nobody can tell any more whether it is.
        """
        log, first = self.replica.log, self.replica.commit_index + 1
        self.dropped([log.entry(index) for index in range(first, log.last_index + 1)])
        self._post.retire()
        self._post.mail_answers(now_ms, serving=False)

    # --- commands -------------------------------------------------------------------

    def _admit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call that another member passed on, or that has waited, or let it wait like any other."""
        if self._hands_over_until_ms:
            self._post.hold(call, ticket, now_ms)
        elif not (self._senders.is_watching and self._senders.hold(call, ticket)):
            self._run(call, ticket, now_ms)

    def _run(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self._open_time(now_ms)
        no_queue: QueueDoesNotExist | None = None
        try:
            decision = self._judge.decide(execute, self.state, call, self._turn)
            if type(decision.result) is ReceiveMessageResult:  # a send does not pay for what follows
                if decision.mutations and _found_nothing(decision.result):
                    decision = self._look_again(call, decision, now_ms)
                if _found_nothing(decision.result) and is_leased(call):
                    if not decision.mutations and self._wait(call, ticket, now_ms):
                        return
                    decision = self._look_last(call, decision, now_ms)
            result, mutations = decision.result, decision.mutations
            if mutations:
                if self._attempts:
                    self._attempts.pop(call.invocation, None)
                self._change(decision, now_ms, call, ticket)
                if not self._is_volatile and type(result) is ReceiveMessageResult:
                    self._took(mutations[0])
                return
        except SqsError as error:
            if type(error) is not QueueDoesNotExist or self._turn.template is None:
                self._answer(ticket, error.without_frames(), now_ms)
                return
            no_queue = error.without_frames()  # one of them is this frame
        except ContentsMissing as missing:
            self._park(call, ticket, missing.sequences)
            return
        if no_queue is not None:  # here, as errors of what follows would carry this one along
            self._run_with_queue(call, ticket, no_queue, now_ms)
            return
        if type(result) is ReceiveMessageResult and not result.leased:
            if result.messages:
                self._count_attempt(result)
            elif self._wait(call, ticket, now_ms):
                return
        if _is_standard_send(result) and not self._replies.is_early:  # a retry: mode all waits for all again
            self._replies.answer_send(ticket, result, self._head_index(), now_ms)
            return
        self._answer(ticket, result, now_ms)

    def _run_with_queue(self, call: Call, ticket: Ticket, error: SqsError, now_ms: int) -> None:
        """The queue of the call is made first, from the template, if it is one that its first use makes."""
        try:
            decision = self._judge.decide(at_first_use, self.state, call, self._turn)
            self._change(decision, now_ms, call)
        except SqsError as why:
            self._answer(ticket, why.without_frames(), now_ms)
            return
        if decision.mutations:
            self._run(call, ticket, now_ms)
        else:
            self._answer(ticket, error, now_ms)

    def _look_again(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """A receive found nothing but dead letters: they go, and it looks behind them.

        Where there are too many of them it ends empty, with the last of them still to go. Raises SqsError,
        ContentsMissing; those that went have gone then.
        """
        for _ in range(BURIALS_MAX):
            self._change(decision, now_ms, call)
            self._open_time(now_ms)
            decision = self._judge.decide(execute, self.state, call, self._turn)
            if not decision.mutations or not _found_nothing(decision.result):
                break
        return decision

    def _look_last(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """A leased receive found nothing but ``decision`` and waits no longer: what it is told holds for ever."""
        self._change(decision, now_ms, call)
        self._open_time(now_ms)
        return self._judge.decide(look_last, self.state, call, self._turn)

    def _park(self, call: Call, ticket: Ticket, sequences: list[int]) -> None:
        """Executed again when the contents are here; a receive waits like a long poll."""
        assert isinstance(call.command, (ReceiveMessage, Peek))
        queue_id = self._queue_of(call, call.command)
        self._parked.setdefault(queue_id, []).append((call, ticket))
        self._residency.want(queue_id, sequences)

    def _took(self, mutation: m.Mutation) -> None:
        if not isinstance(mutation, m.MessagesReceived):
            return  # dead letters only
        self._residency.taken(self.state.queues[mutation.queue_id], mutation.sequences[-1])

    def _let_senders_go(self, now_ms: int) -> None:
        senders = self._senders
        senders.look()
        while (sender := senders.next()) is not None:
            call, ticket = sender
            if not self.serving:
                self._post.submit(call, ticket, now_ms)
            elif not senders.hold(call, ticket):
                self._run(call, ticket, now_ms)

    def _count_attempt(self, result: ReceiveMessageResult) -> None:
        """A receive answered again: its messages go back only if all of its answers do."""
        attempts = self._attempts
        result.attempt = attempts.pop(result.invocation, 1)
        attempts[result.invocation] = result.attempt + 1
        if len(attempts) > ATTEMPTS_MAX:
            del attempts[next(iter(attempts))]

    def _open_time(self, now_ms: int) -> int:
        """Each command sees the time at which it came: an entry may be open for as long as the disk syncs the last.

        A visibility timeout that began when the entry was opened would end before its consumer's time is up.
        """
        turn = self._turn
        time_ms = self._stamp(now_ms)
        if time_ms > turn.now_ms:
            turn.now_ms = time_ms
        return turn.now_ms

    def _stamp(self, now_ms: int) -> int:
        """Entries carry cluster time, never a wall clock."""
        return self.clock.time_ms(now_ms)

    def _change(self, decision: Decision, now_ms: int, call: Call | None = None, ticket: Ticket | None = None) -> None:
        """Apply what was decided, put it into the open entry, and answer a ticket by the reply rule.

        Raises SqsError where ``call``'s part of the entry cannot be applied: then it is as if it had not come.
        """
        mutations, result = decision.mutations, decision.result
        if not mutations:
            return
        self._apply(decision, now_ms, call)
        is_send = ticket is not None and _is_standard_send(result)
        if is_send and self._replies.is_early:
            self._open_is_early = True
        self._close_entry_if_free(now_ms)
        if ticket is not None:
            if is_send and not self._commits_alone:
                self._replies.answer_send(ticket, result, self._head_index(), now_ms)
            else:
                self._answer(ticket, result, now_ms)
        if self._waiters.count:
            self._wake(mutations, now_ms)

    def _is_fifo(self, queue_id: int) -> bool:
        queue = self.state.queues.get(queue_id)
        return queue is not None and queue.is_fifo

    def _wake(self, mutations: list[m.Mutation], now_ms: int, *, besides: int = 0) -> None:
        """Whoever waits for what these bring; ``besides``: a queue whose waiters are being served."""
        for mutation in mutations:
            if isinstance(mutation, _WAKING) or (isinstance(mutation, _FREEING) and self._is_fifo(mutation.queue_id)):
                queue_id = mutation.queue_id
                if queue_id != besides and self._waiters.is_awaited(queue_id):
                    self._serve_waiters(queue_id, now_ms)

    def _apply(self, decision: Decision, now_ms: int, call: Call | None) -> None:
        """Into the state and the open entry, wholly or not at all. Raises SqsError for a ``call``."""
        mutations, payload = decision.mutations, decision.payload
        if self._open and self._open_bytes + len(payload) > ENTRY_BYTES_MAX:
            self._close_entry(now_ms)
        self.state.index = self.replica.log.last_index + 1
        undo: Undo = []
        if call is None:
            apply_all(self.state, mutations, undo)
        else:
            self._judge.apply(self.state, call, mutations, undo)
        if self.replica.has_company:  # a cluster of one never loses its term
            self._open_undo += undo
        self._senders.contents_came()
        self._open += mutations
        self._open_payloads.append(payload)
        self._open_bytes += len(payload)

    def _close_entry_if_free(self, now_ms: int) -> None:
        """Group commit: while a sync, or in memory a round, is under way the open entry grows, up to its bound."""
        replica = self.replica
        if self._gathers and self._open_bytes < self.settings.batch_bytes_max:
            return
        known_index = replica.commit_index if self._is_volatile else replica.durable_index
        if known_index >= replica.log.last_index or self._open_bytes >= self.settings.batch_bytes_max:
            self._close_entry(now_ms)

    def _close_entry(self, now_ms: int, voters: tuple[Voter, ...] | None = None) -> None:
        self._propose_open(now_ms, voters)
        if not self._commits_alone:
            self._hand_out(now_ms)

    def _propose_open(self, now_ms: int, voters: tuple[Voter, ...] | None = None) -> None:
        mutations, is_early, undo = self._open, self._open_is_early, self._open_undo
        payload = m.join(self._open_payloads)
        self._open, self._open_payloads, self._open_bytes, self._open_is_early = [], [], 0, False
        time_ms = self._turn.now_ms
        # What the replica tells while it proposes finds the books in order.
        self.applied_index = index = self.replica.log.last_index + 1
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, self.replica.term, time_ms, mutations, voters))
        if undo:
            self._undo.append((index, undo))
            self._open_undo = []
        self.replica.propose(payload, time_ms, now_ms, voters=voters, is_early=is_early)
        if self.clock.ahead_ms != self.state.ahead_ms:
            self._clock_advanced()

    def _clock_advanced(self) -> None:
        """An entry moved cluster time: background work looks again at once, and waits that became due with ``tick``."""
        by_ms, self.clock.ahead_ms = self.state.ahead_ms - self.clock.ahead_ms, self.state.ahead_ms
        self._mover.advanced(self.state, by_ms, self._turn.now_ms + by_ms)
        self._sweep_at_ms = self._move_at_ms = 0

    # --- replies ------------------------------------------------------------------

    def _head_index(self) -> int:
        """The newest index that a computation made now rests on."""
        last = self.replica.log.last_index
        return last + 1 if self._open else last

    def _answer(self, ticket: Ticket | None, outcome: Result | SqsError, now_ms: int) -> None:
        replica = self.replica
        if self._commits_alone:  # everything is committed, and nobody else can be master
            self.effects.replies.append(Reply(ticket, outcome, replica.commit_index))
            return
        self._replies.answer(ticket, outcome, self._head_index(), now_ms)

    # --- long polls ----------------------------------------------------------------

    def _wait(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Register an empty receive that may wait; False for a short poll."""
        command = call.command
        assert isinstance(command, ReceiveMessage)
        if call.invocation and self.state.invocations.get(call.invocation, self._turn.now_ms):
            return False  # an answer again, whose queue may be gone
        seconds = wait_s(self.state, call, command)
        if seconds <= 0:
            return False
        if is_leased(call):
            call = replace(call, invocation=b"")  # all who ask get the same answer, so that nobody takes a place
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

    def _queue_of(self, call: Call, command: ReceiveMessage | Peek) -> int:
        account, name = queue_path(command.queue_url or "", call.account)
        return self.state.queue(account, name).id

    def _serve_waiters(self, queue_id: int, now_ms: int) -> None:
        """Hand out to those who wait, in their order, as long as there is something."""
        while (waiter := self._waiters.first(queue_id)) is not None:
            self._open_time(now_ms)
            try:
                decision = self._judge.decide(execute, self.state, waiter.call, self._turn)
                if decision.mutations and _found_nothing(decision.result):
                    decision = self._look_again(waiter.call, decision, now_ms)
                    if waiter.is_over:  # served by what its dead letters woke
                        continue
                if decision.mutations and _found_nothing(decision.result) and is_leased(waiter.call):
                    decision = self._look_last(waiter.call, decision, now_ms)
                    if waiter.is_over:
                        continue
                result, mutations = decision.result, decision.mutations
                if not mutations and _is_plain(result):
                    break
                if mutations:
                    self._apply(decision, now_ms, waiter.call)
            except SqsError as error:
                self._answer_waiter(waiter, error.without_frames(), now_ms)
                continue
            except ContentsMissing as missing:
                self._residency.want(queue_id, missing.sequences)
                break
            self._waiters.remove(waiter)
            if mutations:
                self._close_entry_if_free(now_ms)
            self._answer(waiter.ticket, result, now_ms)
            if mutations and not self._is_volatile:
                self._took(mutations[0])
            self._wake(mutations, now_ms, besides=queue_id)
            if not _is_plain(result):
                self._serve_twins(waiter, now_ms)
        queue = self.state.queues.get(queue_id)
        if queue is not None:
            self._waiters.expect(queue_id, queue.order.next_due_ms())

    def _serve_twins(self, served: Waiter, now_ms: int) -> None:
        """Whoever waits under the same id of a lease gets the same answer."""
        for waiter in self._waiters.twins(served):
            self._give_up_waiting(waiter, now_ms)

    def _give_up_waiting(self, waiter: Waiter, now_ms: int) -> None:
        """It is answered now: empty, or of a lease what it is told for ever."""
        call, ticket = waiter.call, waiter.ticket
        if not is_leased(call):
            self._answer_waiter(waiter, ReceiveMessageResult(), now_ms)
            return
        self._waiters.remove(waiter)
        if self._hands_over_until_ms:  # an entry now would make the heir's log old
            self._post.hold(call, ticket, now_ms)
            return
        try:
            decision = self._judge.decide(look_last, self.state, call, self._turn)
            if decision.mutations:
                self._change(decision, now_ms, call, ticket)
            else:
                self._answer(ticket, decision.result, now_ms)
        except SqsError as error:
            self._answer(ticket, error.without_frames(), now_ms)
        except ContentsMissing as missing:
            self._park(call, ticket, missing.sequences)

    def _answer_waiter(self, waiter: Waiter, outcome: Result | SqsError, now_ms: int) -> None:
        self._waiters.remove(waiter)
        self._answer(waiter.ticket, outcome, now_ms)

    def _end_waits(self, now_ms: int) -> None:
        while (waiter := self._waiters.pop_expired(now_ms)) is not None:
            self._give_up_waiting(waiter, now_ms)

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
        self._change(self._judge.own(mutations), now_ms)

    def _move(self, now_ms: int) -> None:
        """The next step of the move tasks; the one before it is committed, so that they never run far ahead."""
        if now_ms < self._move_at_ms:
            return
        self._move_at_ms = now_ms + MOVE_RETRY_MS
        if self._senders.is_watching or self.replica.commit_index < self.replica.log.last_index:
            return
        step = self._mover.step(self.state, self._open_time(now_ms), self._turn.term)
        self._move_at_ms = now_ms + step.wait_ms
        for queue_id, sequences in step.missing:
            self._residency.want(queue_id, sequences)
        self._change(self._judge.own(step.mutations), now_ms)

    def _chores_at_ms(self) -> int:
        """When background work is due again."""
        if self.state.moving and self._move_at_ms < self._sweep_at_ms:
            return self._move_at_ms
        return self._sweep_at_ms

    def _has_chores(self) -> bool:
        state = self.state
        return bool(state.queues or state.doomed or state.sent_ids.count) or state.invocations.count > 1

    def _compact(self) -> None:
        """Memory keeps everything, so entries are only for others."""
        log = self.replica.log
        kept_bytes = self.settings.log_kept_bytes if self.replica.has_company else ALONE_LOG_KEPT_BYTES
        if len(log) > LOG_KEPT_ENTRIES or log.size_bytes > kept_bytes:
            self.replica.compact(log.last_index, self.settings.log_kept_bytes)

    # --- what the replica tells (Observer) ----------------------------------------------

    def became_master(self, now_ms: int) -> None:
        """Take over: state to the log's end, fix the clock, say so in the log; serve when that is committed."""
        assert self.applied_index == self.replica.commit_index, "a follower applies what is committed"
        replica = self.replica
        self._commits_alone = replica.commits_alone  # those who heard it are forgotten with a term
        for index in range(self.applied_index + 1, replica.log.last_index + 1):
            self._apply_entry(index, keep_undo=replica.has_company)
        self._read.clear()
        self.clock.ahead_ms = self.state.ahead_ms
        contact_ms = self.clock.contact_ms
        self.clock.win(replica.term, replica.votes.values(), replica.log.last_time_ms, now_ms)
        turn = self._turn
        turn.term = replica.term
        turn.now_ms = max(self._stamp(now_ms), replica.log.last_time_ms)
        first: list[m.Mutation] = []
        if not self.state.cluster_id:
            first.append(founding(self.lottery))
        grace_from_ms, grace_until_ms = self._grace(contact_ms, turn.now_ms)
        takeover = m.TookOver(replica.term, self.settings.member_id, grace_from_ms, grace_until_ms)
        self._apply(self._judge.own([*first, takeover]), now_ms, None)
        self.takeover_index = replica.log.last_index + 1
        self._propose_open(now_ms)  # records leave when the replica's caller is done
        if self._commits_alone:
            self.commit_moved(now_ms)

    def _grace(self, contact_ms: int | None, time_ms: int) -> tuple[int, int]:
        """From when to when consumers may have been unable to extend a visibility timeout."""
        known_ms = None if contact_ms is None else contact_ms + self.clock.ahead_ms
        last_ms = known_ms if known_ms is not None else self.replica.log.last_time_ms
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
        self._open, self._open_payloads, self._open_bytes = [], [], 0
        while self._undo:
            roll_back(self._undo.pop()[1])
        self.clock.ahead_ms = self.state.ahead_ms
        self.applied_index = self.replica.commit_index
        self._uncommitted.clear()
        self._open_is_early = False
        for index in [each for each in self._digests if each > self.applied_index]:
            del self._digests[index]
        self._hands_over_until_ms = 0
        lost = ServiceUnavailable("The mastership was lost; the outcome is unknown, a retry is safe.")
        waiting, self._waiters = self._waiters.all(), Waiters()
        for ticket in self._replies.give_up():
            self.effects.replies.append(Reply(ticket, lost, 0))
        idle = [*self._senders.give_up(), *(parked for calls in self._parked.values() for parked in calls)]
        self._parked.clear()
        idle += [(waiter.call, waiter.ticket) for waiter in waiting]
        for call, ticket in idle:  # nothing was done for them
            if isinstance(ticket, Remote):
                self._post.submit(call, ticket, now_ms)
            else:
                self._post.hold(call, ticket, now_ms)
        self.members.lost_mastership()

    def members_changed(self, now_ms: int) -> None:
        replica = self.replica
        if self._commits_alone != replica.commits_alone:
            self._commits_alone = replica.commits_alone
        if replica.has_company and not self._undo_from:
            self._undo_from = replica.log.last_index + 1 + bool(self._open)
        if not replica.has_company:
            self._undo_from = 0
        if replica.membership.is_voter:
            self._was_voter, self.members.was_removed = True, False

    def dropped(self, entries: list[Entry]) -> None:
        """What was acknowledged before it was committed and is not in the newer master's log."""
        early = [entry for entry in entries if entry.is_early]
        self.discarded += len(early)
        self.effects.discarded += early

    def fell_behind(self, source: str, index: int) -> None:
        self.effects.wanted = Wanted(source, index)

    def caught_up(self) -> None:
        self.effects.wanted = None

    def commit_moved(self, now_ms: int) -> None:
        replica = self.replica
        if replica.role == MASTER:
            while self._undo and self._undo[0][0] <= replica.commit_index:
                self._undo.popleft()
            if not self.serving:
                self._serve_if_committed()
            self.members.keep_promises()
        else:
            for index in range(self.applied_index + 1, replica.commit_index + 1):
                self._apply_entry(index, keep_undo=False)
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0].index <= replica.commit_index:
            committed = uncommitted.popleft()
            self._residency.pin(committed)
            self.effects.committed.append(committed)
        self._senders.contents_pinned()
        if self.state.cluster_id:
            replica.cluster = self.state.cluster_id
        membership = replica.membership
        if self._was_voter and not membership.is_voter and membership.index <= replica.commit_index:
            self.members.was_removed = True

    def linked(self, time_ms: int, now_ms: int) -> None:
        self.clock.link(self.replica.term, time_ms, now_ms)

    def _apply_entry(self, index: int, *, keep_undo: bool) -> None:
        assert index == self.applied_index + 1
        undo: Undo | None = [] if keep_undo else None
        entry = self.replica.log.entry(index)
        payload, mutations = self._read.pop(index, (b"", []))
        if payload is not entry.payload:  # it stood in the log at the start, or was taken for another one
            mutations = m.decode(entry.payload)
        self.state.index = index
        if not self._is_volatile:
            self._uncommitted.append(Committed(index, entry.term, entry.time_ms, mutations, entry.voters))
        for mutation in mutations:
            apply(self.state, mutation, undo)
        if undo:
            self._undo.append((index, undo))
        self.applied_index = index
        self.clock.ahead_ms = self.state.ahead_ms
        if not mutations and entry.voters is None:
            self._note_digest(index, entry.time_ms)

    # --- effects ----------------------------------------------------------------------

    def _leave(self, now_ms: int) -> None:
        """Everything that is due after an input."""
        self._hand_out(now_ms)
        if self._open:
            self._close_entry_if_free(now_ms)
        if self.replica.followers:
            self.replica.settle(now_ms)
            self._hand_out(now_ms)
        if self.replica.master != self._master_seen or self._post.has_lobby or self.members.answered:
            self._leave_company(now_ms)
        if self._replies:
            self._replies.release(now_ms)
        if self._hands_over_until_ms:
            self._hand_over_if_due(now_ms)
        if self._has_mail:
            self._post.mail_answers(now_ms, serving=self.serving)
        self.effects.wake_at_ms = self._wake_at(now_ms)

    @property
    def _has_mail(self) -> bool:
        return bool(self.effects.replies) and bool(self.members.peers)  # also when the last link is gone

    def _leave_company(self, now_ms: int) -> None:
        """What only a member among others has to look after."""
        master = self.replica.master
        may_serve = self.serving and not self._hands_over_until_ms
        if master != self._master_seen:
            self._master_seen = master
            self._post.master_changed(now_ms, serving=may_serve)
        elif self._post.has_lobby:
            self._post.open_lobby(now_ms, serving=may_serve)
        answered = self.members.answered
        for ticket, outcome in answered:
            self.effects.replies.append(Reply(ticket, outcome, 0))
        answered.clear()

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
        if replica.has_company or replica.role != MASTER:
            wake_ms = replica.wake_at_ms
        lobby_ms = self._post.wake_at_ms
        if lobby_ms is not None and (wake_ms is None or lobby_ms < wake_ms):
            wake_ms = lobby_ms
        if not self.serving:
            return wake_ms
        is_leaving = bool(self._hands_over_until_ms)
        due_ms = self._waiters.next_due_ms() if self._waiters.count and not is_leaving else None
        for candidate_ms in (
            self._waiters.next_deadline_ms() if self._waiters.count else None,
            None if due_ms is None else self.clock.boot_ms(due_ms),
            self._chores_at_ms() if self._has_chores() and not is_leaving else None,
            self._replies.wake_at_ms,
            self._hands_over_until_ms or None,
        ):
            if candidate_ms is not None and (wake_ms is None or candidate_ms < wake_ms):
                wake_ms = candidate_ms
        return wake_ms

    # --- status -------------------------------------------------------------------------

    def _stale_ms(self, now_ms: int) -> int:
        heard_ms = self.replica.heard_ms
        return 0 if self.serving or heard_ms is None else now_ms - heard_ms

    def status(self, now_ms: int) -> NodeStatus:
        replica = self.replica
        trouble = self.members.waiting_for()
        is_following = replica.role != MASTER and replica.master is not None and replica.wanted is None
        is_following &= replica.is_whole
        is_ready = not trouble and (self.serving or is_following)
        return NodeStatus(
            member_id=self.settings.member_id,
            role=replica.role,
            master=replica.master,
            term=replica.term,
            commit_index=replica.commit_index,
            applied_index=self.applied_index,
            last_index=replica.log.last_index,
            ready=is_ready,
            reason="" if is_ready else self._unready_reason(),
            time_ms=self.clock.time_ms(now_ms),
            voters=replica.voters,
            match={other: progress.match_index for other, progress in replica.followers.items()},
            queues=len(self.state.queues),
            waiters=self._waiters.count,
            contents_bytes=self.state.contents_bytes,
            cluster_id=replica.cluster,
            members=self.members.statuses(),
            stale_ms=self._stale_ms(now_ms),
            discarded=self.discarded,
            digests=dict(self._digests),
            leases=len(self.state.leases),
        )

    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """As this member knows them: up to ``limit``, the living ones and then those that ended last."""
        state, time_ms = self.state, self.clock.time_ms(now_ms)
        found = []
        for key, lease in islice(state.leases.newest(), limit):
            queue_id, name, batch, partition = key
            queue = state.queues.get(queue_id) or state.doomed.get(queue_id)
            is_told = bool(lease.ended_ms) or lease.lives(state.grace, time_ms)
            found.append(
                LeaseStatus(
                    account=queue.account if queue is not None else "",
                    queue=queue.name if queue is not None else "",
                    name=name,
                    batch=batch,
                    partition=partition,
                    messages=lease.messages,
                    opened_ms=lease.opened_ms,
                    deadline_ms=state.grace.until_ms(lease.deadline_ms),
                    state=lease.state if is_told else m.LEASE_EXPIRED,
                    ended_ms=lease.ended_ms,
                )
            )
        return found

    def _unready_reason(self) -> str:
        if not self.replica.is_whole:
            return "its rows on the disk are damaged: they are being replaced"
        return "catching up: a snapshot is being taken" if self.replica.wanted else self._post.unready_reason()


def _check_sender(sender: str, link: str) -> None:
    if link and sender != link:
        raise FrameError("it was sent in the name of another member than the one at the end of its link")


def _found_nothing(result: Result | SqsError) -> bool:
    """A receive that may wait."""
    return type(result) is ReceiveMessageResult and not result.messages and not result.leased


def _is_plain(result: Result | SqsError) -> bool:
    """Not of a lease, whose answers may need no mutation."""
    return type(result) is ReceiveMessageResult and not result.leased


def _is_standard_send(result: Result | SqsError) -> bool:
    """A send that stored something in a standard queue: acknowledgement modes are for these only."""
    if type(result) is SendMessageResult:
        return result.sequence_number is None
    if type(result) is not SendMessageBatchResult or not result.successful:
        return False
    return result.successful[0].sequence_number is None
