"""Passes on the calls of a member that does not serve, and takes the calls that other members pass on.

A call goes to the master of which this member knows and to which it has a
link; where it hears none, to a member that may hear one and passes it on.
Without either it waits for a master, for ``hold_ms``; a read waits a moment only
and is then answered from committed state, marked stale. A call that was passed on
to a member that died, or is master no more, is passed on again to the next one
under the same GUID, so that it has one effect. Its deadline goes with it, so that
what its client was told to try again has no effect later.
"""

from typing import Final

from msgspec.structs import replace

from elasticq.engine.actions.send import check_size
from elasticq.engine.context import ExecutionContext
from elasticq.engine.execute import execute
from elasticq.engine.invocations import KEY_BYTES
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.state import State
from elasticq.model.commands import Call
from elasticq.model.errors import InternalFailure, RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.limits import FRAME_BYTES_MAX, INVOCATION_DETAILS_BYTES_MAX, INVOCATIONS_MAX
from elasticq.model.results import ReceiveMessageResult, Result, StaleResult
from elasticq.node.clock import ClusterClock
from elasticq.node.effects import Effects
from elasticq.node.executor import Executor
from elasticq.node.forwarding import (
    Answer,
    AnyForwardingMessage,
    Forward,
    GiveBack,
    NotMaster,
    Withdraw,
    answer_of,
    call_of,
    encode,
    fits,
    forward_of,
    outcome_of,
)
from elasticq.node.judging import Judge
from elasticq.node.leadership import TAKING_OVER, Leadership
from elasticq.node.members import Members, name_of
from elasticq.node.outputs import Frame, HeldCall, Reply, Ticket
from elasticq.node.pending_calls import FAREWELL_MS, PendingCalls, Remote, Sent
from elasticq.node.settings import NodeSettings
from elasticq.node.waiting_calls import READS, WaitingCalls
from elasticq.replication.messages import FrameError
from elasticq.replication.replica import MASTER, Replica

UNKNOWN: Final = "The master did not answer; the outcome is unknown, a retry is safe."
DEADLINE_MARGIN_MS: Final = 500
"""How much sooner than its client is answered a call must be executed: members' estimates of cluster time differ."""
GUIDS_MAX: Final = INVOCATIONS_MAX // 2  # with so many in the history members make no GUIDs for their clients' calls
GUID_DETAILS_BYTES_MAX: Final = INVOCATION_DETAILS_BYTES_MAX // 2


class Forwarder:
    """Hands calls to ``executor`` where this member serves. ``incarnation`` is new for each node, as numbers are."""

    def __init__(
        self,
        settings: NodeSettings,
        state: State,
        replica: Replica,
        members: Members,
        clock: ClusterClock,
        effects: Effects,
        judge: Judge,
        leadership: Leadership,
        executor: Executor,
        waiting_calls: WaitingCalls,
        incarnation: str,
    ) -> None:
        self._settings = settings
        self._state = state
        self._replica = replica
        self._members = members
        self._clock = clock
        self._effects = effects
        self._judge = judge
        self._leadership = leadership
        self._executor = executor
        self._waiting_calls = waiting_calls
        self._pending_calls = PendingCalls(incarnation)
        self._denied: tuple[str, int] | None = None  # (member, term): it said that it is not the master any more

    @property
    def held_calls(self) -> int:
        """How many calls wait here for a master."""
        return len(self._waiting_calls)

    # --- calls of this member's clients -------------------------------------------

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Pass on a call that came now, let it wait, or refuse it; for a member that does not serve."""
        self._submit(self._waiting_calls.from_now(self._with_guid(call), ticket, now_ms), now_ms)

    def _with_guid(self, call: Call) -> Call:
        """Give a call that changes something a GUID where its client gave none, so that it can be passed on twice."""
        is_nameless = not call.invocation and self._waiting_calls.hold_ms > 0 and not isinstance(call.command, READS)
        history = self._state.invocations
        if not is_nameless or history.count >= GUIDS_MAX or history.details_bytes >= GUID_DETAILS_BYTES_MAX:
            return call
        return replace(call, invocation=self._pending_calls.new_guid())

    def _submit(self, held: HeldCall, now_ms: int) -> None:
        ticket = held.ticket
        if isinstance(ticket, Remote) and self._replica.role == MASTER:
            self._hold(held, now_ms)  # taking over: its sender would only come back at once
        elif isinstance(ticket, Remote):
            self._write(self._forwarded(NotMaster, ticket.sender, incarnation=ticket.incarnation, number=ticket.number))
        elif self._members.was_removed:
            self._refuse(held)
        elif self._master is not None:
            self._forward(held, self._master, now_ms)
        elif self._relay is not None:
            self._forward(held, self._relay, now_ms, is_relayed=True)
        elif isinstance(held.call.command, READS) or (self._waiting_calls.hold_ms and not self._members.waiting_for()):
            self._hold(held, now_ms)
        else:
            self._refuse(held)

    def _hold(self, held: HeldCall, now_ms: int) -> None:
        """Let a call wait for a master until its time is up; refuse it if too many wait."""
        # Who passed a call on has bounded how many wait.
        if not self._waiting_calls.hold(held, now_ms, is_bounded=type(held.ticket) is not Remote):
            self._refuse(held)

    def go_on_with(self, calls: list[HeldCall], now_ms: int) -> None:
        """Take the calls that waited when the mastership was lost: those of other members go back, own ones wait."""
        for held in calls:
            if not held.is_uncertain:
                held.call = self._with_guid(held.call)
            if isinstance(held.ticket, Remote):
                self._submit(held, now_ms)
            else:
                self._hold(held, now_ms)

    @property
    def _master(self) -> str | None:
        """The id of another member that is master as far as is known, and is linked; None without one."""
        master = self._replica.master
        if master == self._settings.member_id or master not in self._members.linked:
            return None
        return None if (master, self._replica.term) == self._denied else master

    @property
    def _relay(self) -> str | None:
        """The id of a linked member that may hear a master while this one hears none; None without one."""
        refused_by = self._replica.election.refused_by
        return refused_by if self._replica.master is None and refused_by in self._members.linked else None

    def _forward(self, held: HeldCall, to: str, now_ms: int, *, is_relayed: bool = False) -> None:
        number = self._pending_calls.send(held, to, now_ms, self._replica.term)
        call = self._waiting_calls.call_now(held, now_ms)
        try:
            frame = self._frame_of(call, to, number, self._deadline_ms(held, now_ms), is_relayed=is_relayed)
        except SqsError as error:
            self._pending_calls.arrived(number)
            self._effects.replies.append(Reply(held.ticket, error, 0))
        else:
            held.is_uncertain = True
            self._effects.frames.append(frame)

    def _deadline_ms(self, held: HeldCall, now_ms: int) -> int:
        """The cluster's real time, as known here, after which the call must have no effect; 0 without a bound."""
        if isinstance(held.ticket, Remote):
            return held.call.deadline_ms
        if not self._waiting_calls.hold_ms or not self._clock.is_linked:
            return 0
        return self._clock.reading(max(now_ms, held.until_ms - DEADLINE_MARGIN_MS))[1]

    def _frame_of(self, call: Call, to: str, number: int, deadline_ms: int, *, is_relayed: bool) -> Frame:
        """The frame that passes ``call`` on. Raises the SqsError that its client gets where it cannot be passed on."""
        cluster, sender, incarnation = self._replica.cluster, self._settings.member_id, self._pending_calls.incarnation
        try:
            forward = forward_of(
                call, cluster, sender, to, incarnation, number, is_relayed=is_relayed, deadline_ms=deadline_ms
            )
            frame = Frame(to, encode(forward), 0)
        except Exception as cause:
            self._judge.failed(type(call.command).__name__, cause)
        else:
            if len(frame.data) > FRAME_BYTES_MAX:
                check_size(call.command, self._settings.limits)
                raise RequestTooLarge(f"The request is too long for other members: {len(frame.data)} bytes.")
            return frame
        raise InternalFailure

    def _refuse(self, held: HeldCall) -> None:
        reason = UNKNOWN if held.is_uncertain else self.unready_reason()
        self._effects.replies.append(Reply(held.ticket, ServiceUnavailable(reason), 0))

    def unready_reason(self) -> str:
        replica, members = self._replica, self._members
        if replica.role == MASTER:
            return TAKING_OVER
        trouble = members.waiting_for()
        if trouble:
            return trouble
        if replica.master is not None:
            how = "" if self._master else " and has no link to it"
            return f"This member is not the master{how}; the master is {name_of(replica.master)}."
        reached, voters = members.reached_voters, len(replica.voters)
        if reached >= replica.quorum:
            return f"no master yet: {reached} of {voters} members are electing one; try again"
        return f"read-only: {reached} of {voters} members, {replica.quorum} needed"

    def cancelled(self, ticket: Ticket) -> None:
        """Withdraw the call of a client that left, here or at the member that it was passed on to."""
        found = self._pending_calls.cancelled(ticket)
        if found is not None:
            number, to = found
            self._write(self._forwarded(Withdraw, to, number=number))
        else:
            self._waiting_calls.cancel(ticket)

    def undelivered(self, result: ReceiveMessageResult) -> None:
        """Give back the messages of the master's answer that could not be written to its client."""
        to = self._master or self._relay
        if to is not None:
            self._give_to(to, result)

    def _give_to(self, to: str, result: ReceiveMessageResult) -> None:
        self._write(self._forwarded(GiveBack, to, number=self._pending_calls.next_number(), result=result))

    def _go_on_without_answer(self, given_up: list[Sent], now_ms: int) -> None:
        """Pass unanswered calls on again that have a GUID or only read, until their time is up; answer the others."""
        for sent in given_up:
            held = sent.held
            if self._waiting_calls.may_go_on(held, now_ms):
                self._submit(held, now_ms)
            else:
                self._effects.replies.append(Reply(held.ticket, ServiceUnavailable(UNKNOWN), 0))

    def master_changed(self, now_ms: int) -> None:
        """Go on with calls that wait, after a change of the master or of the links.

        No answer comes from a member without a link any more. A former master that is linked has ``FAREWELL_MS`` to
        say which calls it only held.
        """
        master, linked = self._replica.master, self._members.linked
        self._go_on_without_answer(self._pending_calls.lost_with(lambda to: to not in linked), now_ms)
        self._pending_calls.hasten(lambda to: master not in (None, to), now_ms + FAREWELL_MS)
        self.go_on_with_waiting_calls(now_ms)

    def go_on_with_waiting_calls(self, now_ms: int) -> None:
        """Execute or pass on the calls that waited for a master, if there is one now."""
        may_write = self._leadership.may_write
        if self._waiting_calls and (may_write or self._master is not None or self._relay is not None):
            for held in self._waiting_calls.take_all():
                if may_write:
                    self._executor.admit(self._waiting_calls.call_now(held, now_ms), held.ticket, now_ms)
                else:
                    self._submit(held, now_ms)

    @property
    def wake_at_ms(self) -> int | None:
        waiting_ms, expires_at_ms = self._waiting_calls.next_deadline_ms(), self._pending_calls.expires_at_ms
        if waiting_ms is None or expires_at_ms is None:
            return expires_at_ms if waiting_ms is None else waiting_ms
        return min(waiting_ms, expires_at_ms)

    def tick(self, now_ms: int) -> None:
        """End the waits whose time is up: those for a master, and those for an answer of it."""
        while (expired := self._waiting_calls.pop_expired(now_ms)) is not None:
            if isinstance(expired.call.command, READS) and type(expired.ticket) is not Remote:
                self._effects.replies.append(Reply(expired.ticket, self._stale_answer(expired.call, now_ms), 0))
            else:
                self._refuse(expired)
        self._go_on_without_answer(self._pending_calls.expired(now_ms), now_ms)

    def _stale_answer(self, call: Call, now_ms: int) -> Result | SqsError:
        """The answer to a read from committed state, which is behind by the time since a master was heard, or more."""
        if self._members.waiting_for() or self._replica.role == MASTER:  # its rows run ahead of what is committed
            return ServiceUnavailable(self.unready_reason())
        context = ExecutionContext(
            self._clock.time_ms(now_ms),
            0,
            self._settings.region,
            self._settings.sixty_second_rules,
            has_one_region=self._settings.single_region,
        )
        try:
            result = self._judge.decide(execute, self._state, call, context).result
        except SqsError as error:
            return error.without_frames()
        except ContentsMissing:
            return ServiceUnavailable(f"The messages are on disk. {self.unready_reason()}")
        return StaleResult(result, self._leadership.stale_ms(now_ms)) if isinstance(result, Result) else result

    # --- forwarded messages --------------------------------------------------------------------

    def _forwarded(self, kind: type, to: str, **fields: object) -> AnyForwardingMessage:
        head = {"cluster": self._replica.cluster, "sender": self._settings.member_id, "to": to}
        forwarded: AnyForwardingMessage = kind(**{**head, "incarnation": self._pending_calls.incarnation, **fields})
        return forwarded

    def _write(self, forwarded: AnyForwardingMessage) -> None:
        self._effects.frames.append(Frame(forwarded.to, encode(forwarded), 0))

    def read(self, forwarded: AnyForwardingMessage, now_ms: int) -> None:
        """Raises FrameError for a message that is refused, UnknownKind for a command or result of another version."""
        if forwarded.to != self._settings.member_id or forwarded.cluster != self._replica.cluster:
            return
        match forwarded:
            case Forward():
                self._on_forward(forwarded, now_ms)
            case Answer():
                self._on_answer(forwarded)
            case NotMaster():
                self._on_not_master(forwarded, now_ms)
            case Withdraw():
                remote = Remote(forwarded.sender, forwarded.incarnation, forwarded.number)
                self._executor.cancel(remote)
                self.cancelled(remote)
            case GiveBack():
                self._on_give_back(forwarded, now_ms)

    def _on_forward(self, forwarded: Forward, now_ms: int) -> None:
        call = call_of(forwarded)
        remote = Remote(forwarded.sender, forwarded.incarnation, forwarded.number)
        if not self._pending_calls.take(remote):
            return
        if self._leadership.serving:
            self._executor.admit(call, remote, now_ms)
        else:
            held = self._waiting_calls.from_now(call, remote, now_ms)
            if forwarded.is_relayed and self._master is not None:
                self._forward(held, self._master, now_ms)
            else:
                self._submit(held, now_ms)

    def _on_give_back(self, forwarded: GiveBack, now_ms: int) -> None:
        result = forwarded.result
        attempt = result.request_attempt
        if len(result.invocation) not in (0, KEY_BYTES) or (attempt is not None and len(attempt[0]) != KEY_BYTES):
            raise FrameError("GiveBack: the invocation key of a call has another length")
        # Only who serves is sure to have the key of the handles.
        messages = result.messages if self._leadership.serving else []
        try:
            for message in messages:
                self._state.identity.read_handle(message.receipt_handle)
        except SqsError as error:
            raise FrameError(f"GiveBack: {error.code}") from error
        if self._pending_calls.take(Remote(forwarded.sender, forwarded.incarnation, forwarded.number)):
            self._take_back(result, now_ms)

    def _take_back(self, result: ReceiveMessageResult, now_ms: int) -> None:
        """Give back the messages of an answer that did not reach its client by way of another member."""
        if self._leadership.serving:
            self._executor.give_back(result, now_ms)
        elif self._master is not None:
            self._give_to(self._master, result)

    def _on_answer(self, forwarded: Answer) -> None:
        outcome = outcome_of(forwarded)
        if forwarded.incarnation != self._pending_calls.incarnation:
            # An earlier node of this process asked, and may have told its client before a snapshot took its place: a
            # late copy of the answer must not take the messages from that client. They stay hidden for their timeout.
            return
        waiting = self._pending_calls.sent.get(forwarded.number)
        if waiting is not None and not (forwarded.sender == waiting.to and fits(outcome, waiting.held.call.command)):
            raise FrameError(f"{forwarded.kind} of {forwarded.sender} does not answer what was asked of {waiting.to}")
        if not self._pending_calls.is_first(forwarded.number):
            return
        sent = self._pending_calls.arrived(forwarded.number)
        if sent is None:
            if isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                self._give_to(forwarded.sender, outcome)
        else:
            self._effects.replies.append(Reply(sent.held.ticket, outcome, 0))

    def _on_not_master(self, forwarded: NotMaster, now_ms: int) -> None:
        """The sender did nothing for a call: pass it on to the next master, or let it wait for one."""
        if forwarded.incarnation != self._pending_calls.incarnation:
            return
        sent = self._pending_calls.arrived(forwarded.number)
        if sent is None:
            return
        sent.held.is_uncertain = sent.was_uncertain
        if forwarded.sender == self._replica.election.refused_by:
            self._replica.election.refused_by = None  # it hears no master either
            self._submit(sent.held, now_ms)
            return
        self._denied = (forwarded.sender, sent.term)
        if self._master is None:
            self._hold(sent.held, now_ms)
        else:
            self._submit(sent.held, now_ms)

    def retire(self, now_ms: int) -> list[HeldCall]:
        """Return the calls with which the Node that takes over shall go on, and answer all others that wait here."""
        kept = []
        for sent in self._pending_calls.lost_with(lambda to: True):
            if self._waiting_calls.may_go_on(sent.held, now_ms) and type(sent.held.ticket) is not Remote:
                kept.append(sent.held)
            else:
                self._effects.replies.append(Reply(sent.held.ticket, ServiceUnavailable(UNKNOWN), 0))
        for held in self._waiting_calls.take_all():
            if self._waiting_calls.hold_ms and type(held.ticket) is not Remote:
                kept.append(held)
            else:
                self._refuse(held)
        return kept

    def mail_answers(self, now_ms: int) -> None:
        """Send the answers to calls of other members that may leave; messages for a member that left are given back."""
        replies = self._effects.replies
        if not any(type(reply.ticket) is Remote for reply in replies):
            return
        kept, unsent = [], []
        for reply in replies:
            ticket, outcome = reply.ticket, reply.outcome
            if type(ticket) is not Remote:
                kept.append(reply)
                continue
            assert isinstance(outcome, (Result, SqsError)), "orders are not passed on"
            is_mailed = not self._has_left(ticket.sender) and self._mail(ticket, outcome)
            if not is_mailed and isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                unsent.append(outcome)
        replies[:] = kept
        for result in unsent:
            self._take_back(result, now_ms)
        if unsent:
            self.mail_answers(now_ms)

    def _mail(self, ticket: Remote, outcome: Result | SqsError) -> bool:
        """Send an answer to the member that passed its call on; if it cannot, send InternalFailure and return False."""
        cluster, own_id = self._replica.cluster, self._settings.member_id
        forward = (ticket.sender, ticket.incarnation, ticket.number)
        try:
            data = encode(answer_of(outcome, forward, cluster, own_id))
            if len(data) > FRAME_BYTES_MAX:
                raise ValueError(f"an answer of {len(data)} bytes")
        except Exception as cause:
            self._judge.failed(type(outcome).__name__, cause)
        else:
            self._effects.frames.append(Frame(ticket.sender, data, 0))
            return True
        self._write(answer_of(InternalFailure(), forward, cluster, own_id))
        return False

    def _has_left(self, member_id: str) -> bool:
        return member_id not in self._members.linked and member_id in self._members.peers
