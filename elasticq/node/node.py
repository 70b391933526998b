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

from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from elasticq.engine import mutations as m
from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.actions.leases import is_leased
from elasticq.engine.actions.receive import returned, wait_s
from elasticq.engine.apply import apply
from elasticq.engine.execute import execute, look_last
from elasticq.engine.move_tasks import Mover
from elasticq.engine.ordering.standard import ContentsMissing
from elasticq.engine.state import State
from elasticq.engine.sweep import Sweeper, reclaim
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import WAITERS_MAX
from elasticq.model.names import queue_path
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult
from elasticq.node import forwarding
from elasticq.node.clock import ClusterClock
from elasticq.node.courier import Remote
from elasticq.node.digests import Digests
from elasticq.node.effects import Effects, Fetch, Reply, Ticket, Wanted
from elasticq.node.forwarding import UnknownKind
from elasticq.node.journal import Journal
from elasticq.node.judging import Decision, Judge
from elasticq.node.leadership import Leadership
from elasticq.node.members import Members
from elasticq.node.orders import Order, OrderDone, OrderRefused, TransferMastership, VerifyRows
from elasticq.node.outlet import Outlet
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
from elasticq.replication.records import Base, Durable, Entry, Vote
from elasticq.replication.replica import MASTER, Observer, Replica, Timing

SWEEP_MS = 1_000
MOVE_RETRY_MS = 10
BURIALS_MAX = 10  # commands that one receive may spend on dead letters, up to 1,000 of them each
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
        self.stored_index = durable.applied_index
        self._is_volatile = settings.volatile
        self._judge = Judge(self.effects.failures)
        self._waiters = Waiters()
        self._attempts: dict[bytes, int] = {}  # answers that are out, of receives that were answered more than once
        self._sweeper = Sweeper()
        self._sweep_at_ms = 0
        self._mover = Mover()
        self._move_at_ms = 0
        self._advances_seen = 0
        self._digests = Digests(self.state, self.replica)
        self._outlet = Outlet(self.replica, self.effects, is_volatile=settings.volatile)
        self._residency = Residency(self.state, self.effects.fetches, settings.memory_bytes)
        self.journal = Journal(
            settings,
            self.state,
            self.replica,
            self.clock,
            self.effects,
            self._outlet,
            self._judge,
            self._residency,
            self._digests,
            self._mover,
            durable.applied_index,
        )
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
        self._master_seen: str | None = None
        self.leadership = Leadership(
            self.state, self.replica, self.clock, self.lottery, self._judge, self.journal, self._outlet
        )
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
        if not self.leadership.serving:
            self._post.submit(call, ticket, now_ms)
            if self._post.has_lobby:
                self._leave(now_ms)
            return
        if self.leadership.hands_over_until_ms:
            self._post.hold(call, ticket, now_ms)
            return
        if self._senders.is_watching and self._senders.hold(call, ticket):
            return
        self._run(call, ticket, now_ms)
        if self._waiters.count or not (self.replica.commits_alone or self.journal.is_only_joining()):
            self._leave(now_ms)
        else:
            self.effects.wake_at_ms = self._chores_at_ms()  # nothing else can be due

    @property
    def applied_index(self) -> int:
        """The newest log entry that is applied."""
        return self.journal.applied_index

    @property
    def serving(self) -> bool:
        """This member is master, and executes calls."""
        return self.leadership.serving

    @property
    def is_handing_over(self) -> bool:
        """The mastership is being given away; calls are held meanwhile."""
        return bool(self.leadership.hands_over_until_ms)

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
            if self.leadership.serving:
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
            time_ms = self.journal.stamp_command(now_ms)  # its GUID is forgotten, too
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
        self.journal.gathers = True
        for link, frame in frames:
            if link in refused:
                continue
            try:
                self._take_frame(frame, now_ms, link)
            except UnknownKind as error:
                unknown.append((link, error))
            except FrameError as error:
                refused[link] = error
        self.journal.gathers = False
        self._leave(now_ms)
        return [*refused.items(), *unknown]

    def _take_frame(self, frame: bytes, now_ms: int, link: str) -> None:
        if frame[:1] == _LETTER:
            letter = forwarding.decode(frame)
            _check_sender(letter.sender, link)
            self._post.read(letter, now_ms, serving=self.leadership.serving)
            return
        message = messages.decode(frame)
        _check_sender(message.sender, link)
        if message.to == self.settings.member_id and self._is_ours(message):
            judge(message, self.replica)
            if isinstance(message, messages.Append):
                self.journal.read_ahead(message)
            self.replica.receive(message, now_ms)
            if type(message) is messages.Found:
                self.members.founded()

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
            self._post.master_changed(now_ms, serving=self.leadership.serving)
        self.members.met(peer, now_ms)
        self._leave(now_ms)

    def lost(self, member_id: str, now_ms: int) -> None:
        """The link to another member broke: its waiting receives go."""
        self.members.lost(member_id, now_ms)
        self._forget_waiting(member_id)
        self._post.master_changed(now_ms, serving=self.leadership.serving)
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
        elif self.leadership.serving and not self.journal.may_be_taken_back:
            self.members.answered.append((ticket, OrderRefused("not yet: try again")))
        else:
            voters = self.members.order(order, ticket)
            if voters is not None:
                self.journal.propose_voters(voters, now_ms)
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
        if not self.leadership.serving:
            self.members.answered.append((ticket, OrderRefused("this member is not the master: ask the master")))
            return
        self.journal.stamp_command(now_ms)
        if self.journal.is_open:
            self.journal.close(now_ms)
        self.members.promise(ticket, f"digest at {self.replica.log.last_index + 1}")
        self.journal.close(now_ms)
        self.members.keep_promises()  # alone in memory it is committed by now
        self._digests.note(self.journal.applied_index, self.journal.turn.now_ms)

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
        if self.leadership.serving:
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
        elif self.leadership.serving:
            self.journal.stamp_command(now_ms)
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
        self._post.tick(now_ms, self.clock.time_ms(now_ms), self.leadership.stale_ms(now_ms))
        if self._is_volatile:
            self._compact()
        if self.leadership.serving:
            self.clock.keep(now_ms)
            self._end_waits(now_ms)
            if self.leadership.may_write:  # else the heir's log would not be the newest when it stands
                self._work(now_ms)
        self._leave(now_ms)

    def _work(self, now_ms: int) -> None:
        """What makes entries although nobody asks."""
        voters = self.members.next_change()
        if voters is not None:
            self.journal.propose_voters(voters, now_ms)
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
        """Give the mastership to ``to``, or to who has the newest log; False if there is nobody. Calls wait meanwhile."""
        is_due = self.leadership.hand_over(now_ms, to)
        if is_due:
            self._leave(now_ms)
        return is_due

    def committed_state(self) -> tuple[State, Base]:
        """For a snapshot in a process of its own that is a copy of this one: what is not committed is taken back."""
        return self.journal.committed_state()

    @property
    def vote(self) -> Vote:
        """Its term, and whom it voted for in it."""
        return Vote(self.replica.term, self.replica.voted_for)

    def retire(self, now_ms: int) -> None:
        """A node over a snapshot takes this one's place: whoever waits here is answered.

        Its log goes with it: of what is not known to be committed nobody can tell any more whether it is.
        """
        self.journal.retire()
        self._post.retire()
        self._post.mail_answers(now_ms, serving=False)

    # --- commands -------------------------------------------------------------------

    def _admit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Execute a call that another member passed on, or that has waited, or let it wait like any other."""
        if self.leadership.hands_over_until_ms:
            self._post.hold(call, ticket, now_ms)
        elif not (self._senders.is_watching and self._senders.hold(call, ticket)):
            self._run(call, ticket, now_ms)

    def _run(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        self.journal.stamp_command(now_ms)
        no_queue: QueueDoesNotExist | None = None
        try:
            decision = self._judge.decide(execute, self.state, call, self.journal.turn)
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
            if type(error) is not QueueDoesNotExist or self.journal.turn.template is None:
                self._answer(ticket, error.without_frames(), now_ms)
                return
            no_queue = error
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
            self._replies.answer_send(ticket, result, self.journal.head_index(), now_ms)
            return
        self._answer(ticket, result, now_ms)

    def _run_with_queue(self, call: Call, ticket: Ticket, error: SqsError, now_ms: int) -> None:
        """The queue of the call is made first, from the template, if it is one that its first use makes."""
        try:
            decision = self._judge.decide(at_first_use, self.state, call, self.journal.turn)
            self._change(decision, now_ms, call)
        except SqsError as why:
            self._answer(ticket, why.without_frames(), now_ms)
            return
        if decision.mutations:
            self._run(call, ticket, now_ms)
        else:
            self._answer(ticket, error.without_frames(), now_ms)

    def _look_again(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """A receive found nothing but dead letters: they go, and it looks behind them.

        Where there are too many of them it ends empty, with the last of them still to go. Raises SqsError,
        ContentsMissing; those that went have gone then.
        """
        for _ in range(BURIALS_MAX):
            self._change(decision, now_ms, call)
            self.journal.stamp_command(now_ms)
            decision = self._judge.decide(execute, self.state, call, self.journal.turn)
            if not decision.mutations or not _found_nothing(decision.result):
                break
        return decision

    def _look_last(self, call: Call, decision: Decision, now_ms: int) -> Decision:
        """A leased receive found nothing but ``decision`` and waits no longer: what it is told holds for ever."""
        self._change(decision, now_ms, call)
        self.journal.stamp_command(now_ms)
        return self._judge.decide(look_last, self.state, call, self.journal.turn)

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
            if not self.leadership.serving:
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

    def _change(self, decision: Decision, now_ms: int, call: Call | None = None, ticket: Ticket | None = None) -> None:
        """Apply what was decided, put it into the open entry, and answer a ticket by the reply rule.

        Raises SqsError where ``call``'s part of the entry cannot be applied: then it is as if it had not come.
        """
        mutations, result = decision.mutations, decision.result
        if not mutations:
            return
        self.journal.append(decision, now_ms, call)
        self._senders.contents_came()
        is_send = ticket is not None and _is_standard_send(result)
        if is_send and self._replies.is_early:
            self.journal.open_is_early = True
        self.journal.close_if_free(now_ms)
        if ticket is not None:
            if is_send and not self.replica.commits_alone:
                self._replies.answer_send(ticket, result, self.journal.head_index(), now_ms)
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

    # --- replies ------------------------------------------------------------------

    def _answer(self, ticket: Ticket | None, outcome: Result | SqsError, now_ms: int) -> None:
        replica = self.replica
        if self.replica.commits_alone:  # everything is committed, and nobody else can be master
            self.effects.replies.append(Reply(ticket, outcome, replica.commit_index))
            return
        self._replies.answer(ticket, outcome, self.journal.head_index(), now_ms)

    # --- long polls ----------------------------------------------------------------

    def _wait(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Register an empty receive that may wait; False for a short poll."""
        command = call.command
        assert isinstance(command, ReceiveMessage)
        if call.invocation and self.state.invocations.get(call.invocation, self.journal.turn.now_ms):
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
            self.journal.stamp_command(now_ms)
            try:
                decision = self._judge.decide(execute, self.state, waiter.call, self.journal.turn)
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
                    self.journal.append(decision, now_ms, waiter.call)
                    self._senders.contents_came()
            except SqsError as error:
                self._answer_waiter(waiter, error.without_frames(), now_ms)
                continue
            except ContentsMissing as missing:
                self._residency.want(queue_id, missing.sequences)
                break
            self._waiters.remove(waiter)
            if mutations:
                self.journal.close_if_free(now_ms)
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
        if self.leadership.hands_over_until_ms:  # an entry now would make the heir's log old
            self._post.hold(call, ticket, now_ms)
            return
        try:
            decision = self._judge.decide(look_last, self.state, call, self.journal.turn)
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
        time_ms = self.journal.stamp_command(now_ms)
        while (queue_id := self._waiters.pop_due(time_ms)) is not None:
            self._serve_waiters(queue_id, now_ms)

    # --- background ------------------------------------------------------------------

    def _note_advances(self) -> None:
        """An entry moved cluster time: background work looks again at once."""
        if self._advances_seen != self.journal.advances:
            self._advances_seen = self.journal.advances
            self._sweep_at_ms = self._move_at_ms = 0

    def _sweep(self, now_ms: int) -> None:
        self._note_advances()
        if now_ms < self._sweep_at_ms:
            return
        mutations, is_more_waiting = self._sweeper.step(self.state, self.journal.stamp_command(now_ms))
        is_more_waiting |= reclaim(self.state, self.replica.commit_index)
        self._sweep_at_ms = now_ms + (10 if is_more_waiting else SWEEP_MS)
        self._change(self._judge.own(mutations), now_ms)

    def _move(self, now_ms: int) -> None:
        """The next step of the move tasks; the one before it is committed, so that they never run far ahead."""
        self._note_advances()
        if now_ms < self._move_at_ms:
            return
        self._move_at_ms = now_ms + MOVE_RETRY_MS
        if self._senders.is_watching or self.replica.commit_index < self.replica.log.last_index:
            return
        step = self._mover.step(self.state, self.journal.stamp_command(now_ms), self.journal.turn.term)
        self._move_at_ms = now_ms + step.wait_ms
        for queue_id, sequences in step.missing:
            self._residency.want(queue_id, sequences)
        self._change(self._judge.own(step.mutations), now_ms)

    def _chores_at_ms(self) -> int:
        """When background work is due again."""
        self._note_advances()
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
        self.leadership.take_over(now_ms)
        if self.replica.commits_alone:
            self.commit_moved(now_ms)

    def lost_mastership(self, now_ms: int) -> None:
        """Take back what is not committed, newest first; what was promised to nobody is answered as unknown."""
        self.leadership.lost_mastership()
        self.journal.lost_mastership()
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
        self.journal.members_changed()
        self.members.voters_changed()

    def dropped(self, entries: list[Entry]) -> None:
        """What was acknowledged before it was committed and is not in the newer master's log."""
        self.journal.dropped(entries)

    def fell_behind(self, source: str, index: int) -> None:
        self.effects.wanted = Wanted(source, index)

    def caught_up(self) -> None:
        self.effects.wanted = None

    def commit_moved(self, now_ms: int) -> None:
        self.journal.commit_moved()
        if self.replica.role == MASTER:
            self.leadership.commit_moved()
            self.members.keep_promises()
        self._senders.contents_pinned()
        if self.state.cluster_id:
            self.replica.cluster = self.state.cluster_id
        self.members.commit_moved()

    def linked(self, time_ms: int, now_ms: int) -> None:
        self.clock.link(self.replica.term, time_ms, now_ms)

    # --- effects ----------------------------------------------------------------------

    def _leave(self, now_ms: int) -> None:
        """Everything that is due after an input."""
        self._outlet.drain(now_ms)
        if self.journal.is_open:
            self.journal.close_if_free(now_ms)
        if self.replica.followers:
            self.replica.settle(now_ms)
            self._outlet.drain(now_ms)
        if self.replica.master != self._master_seen or self._post.has_lobby or self.members.answered:
            self._leave_company(now_ms)
        if self._replies:
            self._replies.release(now_ms)
        if self.leadership.hands_over_until_ms:
            self.leadership.go_on_handing_over(now_ms)
        if self._has_mail:
            self._post.mail_answers(now_ms, serving=self.leadership.serving)
        self.effects.wake_at_ms = self._wake_at(now_ms)

    @property
    def _has_mail(self) -> bool:
        return bool(self.effects.replies) and bool(self.members.peers)  # also when the last link is gone

    def _leave_company(self, now_ms: int) -> None:
        """What only a member among others has to look after."""
        master = self.replica.master
        may_serve = self.leadership.may_write
        if master != self._master_seen:
            self._master_seen = master
            self._post.master_changed(now_ms, serving=may_serve)
        elif self._post.has_lobby:
            self._post.open_lobby(now_ms, serving=may_serve)
        answered = self.members.answered
        for ticket, outcome in answered:
            self.effects.replies.append(Reply(ticket, outcome, 0))
        answered.clear()

    def _wake_at(self, now_ms: int) -> int | None:
        replica = self.replica
        wake_ms: int | None = None
        if replica.has_company or replica.role != MASTER:
            wake_ms = replica.wake_at_ms
        lobby_ms = self._post.wake_at_ms
        if lobby_ms is not None and (wake_ms is None or lobby_ms < wake_ms):
            wake_ms = lobby_ms
        if not self.leadership.serving:
            return wake_ms
        is_leaving = not self.leadership.may_write
        due_ms = self._waiters.next_due_ms() if self._waiters.count and not is_leaving else None
        for candidate_ms in (
            self._waiters.next_deadline_ms() if self._waiters.count else None,
            None if due_ms is None else self.clock.boot_ms(due_ms),
            self._chores_at_ms() if self._has_chores() and not is_leaving else None,
            self._replies.wake_at_ms,
            self.leadership.hands_over_until_ms or None,
        ):
            if candidate_ms is not None and (wake_ms is None or candidate_ms < wake_ms):
                wake_ms = candidate_ms
        return wake_ms

    # --- status -------------------------------------------------------------------------

    def status(self, now_ms: int) -> NodeStatus:
        replica = self.replica
        trouble = self.members.waiting_for()
        is_following = replica.role != MASTER and replica.master is not None and replica.wanted is None
        is_following &= replica.is_whole
        is_ready = not trouble and (self.leadership.serving or is_following)
        return NodeStatus(
            member_id=self.settings.member_id,
            role=replica.role,
            master=replica.master,
            term=replica.term,
            commit_index=replica.commit_index,
            applied_index=self.journal.applied_index,
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
            stale_ms=self.leadership.stale_ms(now_ms),
            discarded=self.journal.discarded,
            digests=dict(self._digests.by_index),
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
