"""The calls that a member passes on while it does not execute calls, and the calls that other members pass on to it.

A call goes to the master, if this member knows the master and has a link to it. If it hears no master, the call goes to
a member that may hear one and relays it.

Without either, the call waits for a master for ``hold_ms``. A read waits only for ``read_wait_ms``. Then this member
answers it from committed state, marked as stale.

If the member that has a call dies or loses the mastership, the call goes to the next master with the same invocation
id, so it has one effect. The call carries its deadline. So it has no late effect after its client was answered that it
may retry.
"""

from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.execute import execute
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.stored.invocations import KEY_BYTES
from elasticq.model.commands import Call
from elasticq.model.errors import InternalFailure, ServiceUnavailable, SqsError
from elasticq.model.limits import FRAME_BYTES_MAX, INVOCATION_DETAILS_BYTES_MAX, INVOCATIONS_MAX
from elasticq.model.results import ReceiveMessageResult, Result, StaleResult
from elasticq.node.call_holder import UNKNOWN, Keeper, refused_call
from elasticq.node.executor import Executor
from elasticq.node.forwarding import (
    FORWARD_TAG,
    Answer,
    AnyForwardingMessage,
    Forward,
    GiveBack,
    Header,
    NotMaster,
    Withdraw,
    answer_of,
    call_of,
    encode,
)
from elasticq.node.leadership import TAKING_OVER, Leadership
from elasticq.node.membership.members import name_of
from elasticq.node.outputs import Frame, HeldCall
from elasticq.node.parts import Parts
from elasticq.node.reply import Reply
from elasticq.node.waits.pending_calls import Remote, Sent
from elasticq.node.waits.waiting_calls import is_read
from elasticq.replication.messages import FrameError
from elasticq.replication.replica import MASTER

# with so many in the history, members make no invocation ids for their clients' calls
GUIDS_MAX: Final = INVOCATIONS_MAX // 2
GUID_DETAILS_BYTES_MAX: Final = INVOCATION_DETAILS_BYTES_MAX // 2


class Forwarder(Keeper):
    """A call holder that passes calls to ``executor`` while this member executes calls."""

    def __init__(self, parts: Parts, leadership: Leadership, executor: Executor, incarnation: str) -> None:
        settings = parts.settings
        super().__init__(
            settings.member_id,
            settings.limits,
            parts.clock,
            parts.effects,
            parts.safe_executor,
            parts.waiting_calls,
            incarnation,
        )
        self._settings = parts.settings
        self._state = parts.state
        self._replica = parts.replica
        self._members = parts.members
        self._leadership = leadership
        self._executor = executor
        # (member, term): the member has reported that it is not the master any more
        self._denied: tuple[str, int] | None = None

    # --- calls of this member's clients -------------------------------------------

    def cluster(self) -> str:
        return self._replica.cluster

    def term(self) -> int:
        return self._replica.term

    def may_make_guids(self) -> bool:
        history = self._state.invocations
        return history.count < GUIDS_MAX and history.details_bytes < GUID_DETAILS_BYTES_MAX

    def _submit(self, held: HeldCall, now_ms: int) -> None:
        ticket = held.ticket
        if isinstance(ticket, Remote) and self._replica.role == MASTER:
            # this member is taking over; if it returned the call, the sender would send it again at once
            self._hold(held, now_ms)
        elif isinstance(ticket, Remote):
            self._write(self._message(NotMaster, ticket.sender, incarnation=ticket.incarnation, number=ticket.number))
        elif self._members.was_removed:
            self._refuse(held)
        elif (route := self._route()) is not None:
            to, is_relayed = route
            self._forward(held, to, now_ms, is_relayed=is_relayed)
        elif is_read(held.call) or (self._waiting_calls.hold_ms and not self._members.waiting_for()):
            self._hold(held, now_ms)
        else:
            self._refuse(held)

    def go_on_with(self, calls: list[HeldCall], now_ms: int) -> None:
        """Go on with calls that waited here when the mastership was lost.

        Calls of other members go back to them. Calls of this member's clients wait for a master.
        """
        for held in calls:
            if isinstance(held.ticket, Remote):
                self._submit(held, now_ms)
            else:
                self._hold(held, now_ms)

    @property
    def _master(self) -> str | None:
        """Return the id of another member that is the known master and is linked; None without one."""
        master = self._replica.master
        if master == self._settings.member_id or master not in self._members.linked:
            return None
        return None if (master, self._replica.term) == self._denied else master

    def _route(self) -> tuple[str, bool] | None:
        master = self._master
        if master is not None:
            return master, False
        relay = self._relay
        return None if relay is None else (relay, True)

    @property
    def _relay(self) -> str | None:
        """Return the id of a linked member that may hear a master while this one hears none; None without one."""
        refused_by = self._replica.election.refused_by
        return refused_by if self._replica.master is None and refused_by in self._members.linked else None

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

    def master_changed(self, now_ms: int) -> None:
        """Go on with waiting calls after a change of the master or of the links.

        A member without a link sends no more answers, so its calls are retried or answered.
        """
        master, linked = self._replica.master, self._members.linked
        self._retry_unanswered(self._pending_calls.lost_with(lambda to: to not in linked), now_ms)
        self._abandon_former_masters(lambda to: master not in (None, to), now_ms)
        self.go_on_with_waiting_calls(now_ms)

    def go_on_with_waiting_calls(self, now_ms: int) -> None:
        may_write = self._leadership.may_write
        if self._waiting_calls and (may_write or self._route() is not None):
            for held in self._taken_some(now_ms):
                if may_write:
                    self._executor.admit(self._waiting_calls.call_now(held, now_ms), held.ticket, now_ms)
                else:
                    self._submit(held, now_ms)

    def _give_up(self, held: HeldCall, now_ms: int) -> None:
        if is_read(held.call) and type(held.ticket) is not Remote:
            self._effects.replies.append(Reply(held.ticket, self._stale_answer(held.call, now_ms), 0))
        else:
            self._refuse(held)

    def _retry_elsewhere(self, sent: Sent, now_ms: int) -> None:
        election = self._replica.election
        if sent.to == election.refused_by:
            election.refused_by = None  # that member hears no master either
            self._submit(sent.held, now_ms)
            return
        self._denied = (sent.to, sent.term)
        if self._master is None:
            self._hold(sent.held, now_ms)
        else:
            self._submit(sent.held, now_ms)

    def _stale_answer(self, call: Call, now_ms: int) -> Result | SqsError:
        """Return the answer to a read from committed state.

        That state is at least as old as the last contact with a master.
        """
        # A member that is the master cannot answer from committed state: its rows may contain uncommitted changes.
        if self._members.waiting_for() or self._replica.role == MASTER:
            return ServiceUnavailable(self.unready_reason())
        context = ExecutionContext(
            self._clock.time_ms(now_ms),
            0,
            self._settings.region,
            self._settings.sixty_second_rules,
            has_one_region=self._settings.single_region,
        )
        try:
            result = self._safe_executor.decide(execute, self._state, call, context).result
        except SqsError as error:
            return error.without_frames()
        except ContentsMissing:
            return ServiceUnavailable(f"The messages are on disk. {self.unready_reason()}")
        return StaleResult(result, self._leadership.stale_ms(now_ms)) if isinstance(result, Result) else result

    # --- forwarded messages --------------------------------------------------------------------

    def read(self, forwarded: AnyForwardingMessage, now_ms: int) -> None:
        """Handle a message. Raise FrameError if it is refused, and ContentRefused if its call or answer is."""
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
                self._on_withdraw(forwarded, now_ms)
            case GiveBack():
                self._on_give_back(forwarded, now_ms)

    def content_refused(self, header: Header, reason: str) -> None:
        """Answer a call whose content cannot be read, or end the call whose answer cannot be read."""
        if header.to != self._settings.member_id or header.cluster != self._replica.cluster:
            return
        if header.tag == FORWARD_TAG:
            remote = Remote(header.sender, header.incarnation, header.number)
            if self._pending_calls.take(remote):
                self._send_answer(remote, refused_call(reason))
        else:
            self._answer_refused(header, reason)

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

    def _on_withdraw(self, forwarded: Withdraw, now_ms: int) -> None:
        remote = Remote(forwarded.sender, forwarded.incarnation, forwarded.number)
        if not forwarded.wants_answer:
            self._executor.cancel(remote)
            self.cancelled(remote)
            return
        self._executor.end_wait_of(remote, now_ms)
        asked = self._pending_calls.asked_of(remote)
        if asked is not None:
            self._end_wait(*asked)

    def _on_give_back(self, forwarded: GiveBack, now_ms: int) -> None:
        result = forwarded.result
        attempt = result.request_attempt
        if len(result.invocation) not in (0, KEY_BYTES) or (attempt is not None and len(attempt[0]) != KEY_BYTES):
            raise FrameError("GiveBack: the invocation key of a call has the wrong length")
        # Only a master that executes calls is sure to have the key of the receipt handles.
        messages = result.messages if self._leadership.serving else []
        try:
            for message in messages:
                self._state.identity.read_handle(message.receipt_handle)
        except SqsError as error:
            raise FrameError(f"GiveBack: {error.code}") from error
        if self._pending_calls.take(Remote(forwarded.sender, forwarded.incarnation, forwarded.number)):
            self._return_messages(result, now_ms)

    def _return_messages(self, result: ReceiveMessageResult, now_ms: int) -> None:
        """Return the messages of an answer that did not reach the client of another member."""
        if self._leadership.serving:
            self._executor.give_back(result, now_ms)
        elif self._master is not None:
            self._return_messages_to(self._master, result)

    def retire(self, now_ms: int) -> list[HeldCall]:
        """Return the calls that the next Node of this process continues with. Answer all other calls that wait here."""
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
        """Send the answers that may leave to the members that passed their calls on.

        Messages for a member that has disconnected are returned to their queue.
        """
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
            is_mailed = not self._has_left(ticket.sender) and self._send_answer(ticket, outcome)
            if not is_mailed and isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                unsent.append(outcome)
        replies[:] = kept
        for result in unsent:
            self._return_messages(result, now_ms)
        if unsent:
            self.mail_answers(now_ms)

    def _send_answer(self, ticket: Remote, outcome: Result | SqsError) -> bool:
        """Send an answer to the member that passed its call on.

        If the answer cannot be sent, send InternalFailure instead and return False.
        """
        cluster, own_id = self._replica.cluster, self._settings.member_id
        forward = (ticket.sender, ticket.incarnation, ticket.number)
        try:
            data = encode(answer_of(outcome, forward, cluster, own_id))
            if len(data) > FRAME_BYTES_MAX:
                raise ValueError(f"an answer of {len(data)} bytes")
        except Exception as cause:
            self._safe_executor.failed(type(outcome).__name__, cause)
        else:
            self._effects.frames.append(Frame(ticket.sender, data, 0))
            return True
        self._write(answer_of(InternalFailure(), forward, cluster, own_id))
        return False

    def _has_left(self, member_id: str) -> bool:
        return member_id not in self._members.linked and member_id in self._members.peers
