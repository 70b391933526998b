"""Calls of a process's clients that another member executes. This module passes them on, and retries if necessary.

It holds what a follower (forwarder.py) and a proxy (proxy.py) have in common. They differ in how they find the master,
and in what they do without one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from elasticq.engine.actions.leases import is_leased
from elasticq.engine.actions.send import check_size
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import InternalFailure, InvalidParameterValue, RequestTooLarge, ServiceUnavailable, SqsError
from elasticq.model.limits import FRAME_BYTES_MAX, Limits
from elasticq.model.results import ReceiveMessageResult
from elasticq.node.clock import ClusterClock, earlier
from elasticq.node.effects import Effects
from elasticq.node.forwarding import (
    ANSWER_TAG,
    Answer,
    AnyForwardingMessage,
    ContentRefused,
    Forward,
    GiveBack,
    Header,
    NotMaster,
    Withdraw,
    call_of,
    check_sender,
    decode,
    encode,
    fits,
    forward_of,
    outcome_of,
)
from elasticq.node.outputs import Frame, HeldCall, Ticket
from elasticq.node.reply import Reply
from elasticq.node.safe_execution import SafeExecutor
from elasticq.node.waits.pending_calls import FAREWELL_MS, PendingCalls, Remote, Sent
from elasticq.node.waits.waiting_calls import WaitingCalls, is_read, may_wait
from elasticq.replication.messages import FrameError

UNKNOWN: Final = "The master did not answer; the outcome is unknown, a retry is safe."
MASTERS_LOST_MAX: Final = 1
MOVED_AT_ONCE: Final = 100
"""The number of calls that one turn passes on or executes after a change of the master, so that other calls can run."""
DEADLINE_MARGIN_MS: Final = 500
"""How much earlier than its client's deadline a call must be executed.

The margin covers the differences between the members' estimates of cluster time.
"""


class Keeper(ABC):
    """The part of a member or proxy that passes calls on to the master.

    ``incarnation`` must be new for each object, because the numbers of calls start again.
    """

    def __init__(
        self,
        member_id: str,
        limits: Limits,
        clock: ClusterClock,
        effects: Effects,
        safe_executor: SafeExecutor,
        waiting_calls: WaitingCalls,
        incarnation: str,
    ) -> None:
        self._member_id = member_id
        self._limits = limits
        self._clock = clock
        self._effects = effects
        self._safe_executor = safe_executor
        self._waiting_calls = waiting_calls
        self._pending_calls = PendingCalls(incarnation)
        self._go_on_at_ms: int | None = None  # when the next turn goes on with waiting calls

    # --- what members and proxies implement differently --------------------------------

    @abstractmethod
    def cluster(self) -> str:
        """Return the id of the cluster whose members take calls. Frames of other clusters are ignored."""

    @abstractmethod
    def term(self) -> int:
        """Return the newest term that is known here."""

    @abstractmethod
    def _route(self) -> tuple[str, bool] | None:
        """Return the member to which calls go now; None without one.

        The result is (member id, whether that member only relays calls to the master).
        """

    @abstractmethod
    def may_make_guids(self) -> bool:
        """Return whether this process may make invocation ids for calls that have none.

        It may not while the history of invocation ids is too full, because the rest is for the ids of clients.
        """

    @abstractmethod
    def unready_reason(self) -> str:
        """Return why no call can be passed on."""

    @abstractmethod
    def _submit(self, held: HeldCall, now_ms: int) -> None:
        """Pass the call on, let it wait, or refuse it."""

    @abstractmethod
    def go_on_with_waiting_calls(self, now_ms: int) -> None:
        """Pass on or execute MOVED_AT_ONCE of the calls that wait for a master, if that is possible now."""

    @abstractmethod
    def _give_up(self, held: HeldCall, now_ms: int) -> None:
        """Answer a call that has waited for a master as long as it may."""

    @abstractmethod
    def read(self, forwarded: AnyForwardingMessage, now_ms: int) -> None:
        """Handle a message of another member.

        Raise FrameError if the message is refused, and ContentRefused if only its content is.
        """

    @abstractmethod
    def content_refused(self, header: Header, reason: str) -> None:
        """Answer, or end, the call of a message whose content cannot be read."""

    @abstractmethod
    def _retry_elsewhere(self, sent: Sent, now_ms: int) -> None:
        """Pass on again a call that the other member did not execute, because it is not the master."""

    def take(self, frame: bytes, link: str, now_ms: int) -> None:
        """Handle a frame that arrived over the link to the member ``link`` (empty if unknown).

        Raise FrameError if the frame is refused. Raise ContentRefused, after handling it, if only its content is
        refused.
        """
        try:
            forwarded = decode(frame)
            check_sender(forwarded.sender, link)
            self.read(forwarded, now_ms)
        except ContentRefused as error:
            check_sender(error.header.sender, link)
            self.content_refused(error.header, str(error))
            raise

    # --- calls of this process's clients --------------------------------------------

    @property
    def held_calls(self) -> int:
        """Return how many calls wait here for a master."""
        return len(self._waiting_calls)

    def passed_on(self, number: int) -> Ticket | None:
        """Return the ticket of the unanswered call that was passed on under this number, None if there is none."""
        sent = self._pending_calls.sent.get(number)
        return None if sent is None else sent.held.ticket

    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Pass on a call that came now, let it wait, or refuse it. This is for a process that does not execute
        calls."""
        self._submit(self._waiting_calls.from_now(call, ticket, now_ms), now_ms)

    def _with_guid(self, held: HeldCall) -> Call:
        """Return the call, with a new invocation id if it changes something and its client gave no id.

        The id makes it safe to pass the call on twice. A call without a deadline gets no id: members recognise copies
        only while their history holds the id.
        """
        call = held.call
        is_nameless = not call.invocation and not held.is_uncertain and not is_read(call)
        is_bounded = self._waiting_calls.hold_ms > 0 and self._clock.is_linked
        if not (is_nameless and is_bounded and type(held.ticket) is not Remote and self.may_make_guids()):
            return call
        return replace(call, invocation=self._pending_calls.new_guid())

    def _hold(self, held: HeldCall, now_ms: int) -> None:
        """Let a call wait for a master until its time is over. Refuse it if too many calls wait."""
        # The member that passed on a call has limited the number of its waiting calls.
        if not self._waiting_calls.hold(held, now_ms, is_bounded=type(held.ticket) is not Remote):
            self._refuse(held)

    def _forward(self, held: HeldCall, to: str, now_ms: int, *, is_relayed: bool = False) -> None:
        held.call = self._with_guid(held)
        wait_ms = self._waiting_calls.left_ms(held, now_ms)
        number = self._pending_calls.send(held, to, now_ms, self.term(), wait_ms)
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
        """Return the cluster's real time in ms after which the call must have no effect; 0 for no bound.

        The time is an estimate of this process.
        """
        if isinstance(held.ticket, Remote):
            return held.call.deadline_ms
        if not self._waiting_calls.hold_ms or not self._clock.is_linked:
            return 0
        return self._clock.reading(max(now_ms, held.until_ms - DEADLINE_MARGIN_MS))[1]

    def _frame_of(self, call: Call, to: str, number: int, deadline_ms: int, *, is_relayed: bool) -> Frame:
        """Return the frame that passes ``call`` on. Raise the SqsError for the client if it cannot be passed on."""
        cluster, sender, incarnation = self.cluster(), self._member_id, self._pending_calls.incarnation
        try:
            forward = forward_of(
                call, cluster, sender, to, incarnation, number, is_relayed=is_relayed, deadline_ms=deadline_ms
            )
            frame = Frame(to, encode(forward), 0)
        except Exception as cause:
            self._safe_executor.failed(type(call.command).__name__, cause)
        else:
            if len(frame.data) > FRAME_BYTES_MAX:
                check_size(call.command, self._limits)
                raise RequestTooLarge(f"The request is too long for other members: {len(frame.data)} bytes.")
            _check(frame)
            return frame
        raise InternalFailure

    def _refuse(self, held: HeldCall) -> None:
        reason = UNKNOWN if held.is_uncertain else self.unready_reason()
        self._effects.replies.append(Reply(held.ticket, ServiceUnavailable(reason), 0))

    def cancelled(self, ticket: Ticket) -> None:
        """Withdraw the call of a client that disconnected, here or at the member that has the call."""
        found = self._pending_calls.cancelled(ticket)
        if found is not None:
            number, to = found
            self._write(self._message(Withdraw, to, number=number))
        else:
            self._waiting_calls.cancel(ticket)

    def end_waits(self) -> None:
        """End the waits of receives for messages.

        The master answers the receives that were passed on. Receives that wait here for a master get an empty answer.
        """
        for number, sent in self._pending_calls.sent.items():
            if type(sent.held.ticket) is not Remote:
                self._end_wait(number, sent)
        for held in self._waiting_calls.take(_may_be_empty):
            self._effects.replies.append(Reply(held.ticket, ReceiveMessageResult(), 0))

    def _end_wait(self, number: int, sent: Sent) -> None:
        """Ask the other member, only once, to end the wait of a receive or heartbeat and to answer it now."""
        if may_wait(sent.held.call) and not sent.is_ending:
            sent.is_ending = True
            self._write(self._message(Withdraw, sent.to, number=number, wants_answer=True))

    def undelivered(self, result: ReceiveMessageResult) -> None:
        """Return the messages of the master's answer, which could not be written to its client, to the master."""
        route = self._route()
        if route is not None:
            self._return_messages_to(route[0], result)

    def _return_messages_to(self, to: str, result: ReceiveMessageResult) -> None:
        self._write(self._message(GiveBack, to, number=self._pending_calls.next_number(), result=result))

    def _abandon_former_masters(self, is_former: Callable[[str], bool], now_ms: int) -> None:
        """Handle the calls at former masters, for which ``is_former`` is true.

        Pass on again at once the calls that may be passed on twice. For the others wait up to FAREWELL_MS: a former
        master reports which calls it did not execute. One that is paused or cut off cannot report.
        """
        moved = self._pending_calls.lost_with(is_former, lambda sent: self._waiting_calls.may_go_on(sent.held, now_ms))
        self._pending_calls.hasten(is_former, now_ms + FAREWELL_MS)
        self._retry_unanswered(moved, now_ms)

    def _taken_some(self, now_ms: int) -> list[HeldCall]:
        """Remove and return up to MOVED_AT_ONCE waiting calls. ``tick`` continues with the others."""
        some = self._waiting_calls.take_some(MOVED_AT_ONCE)
        self._go_on_at_ms = now_ms + 1 if self._waiting_calls else None
        return some

    def _retry_unanswered(self, given_up: list[Sent], now_ms: int) -> None:
        """Pass unanswered calls on again if they have an invocation id or only read, until their time is over.

        Answer the others. A call may have crashed its master, so it goes to one other master, and not to a third.
        """
        for number, sent in enumerate(given_up):
            held = sent.held
            held.masters_lost += not may_wait(held.call)
            if held.masters_lost <= MASTERS_LOST_MAX and self._waiting_calls.may_go_on(held, now_ms):
                if number < MOVED_AT_ONCE:
                    self._submit(held, now_ms)
                else:
                    self._hold(held, now_ms)
                    self._go_on_at_ms = now_ms + 1
            else:
                self._effects.replies.append(Reply(held.ticket, ServiceUnavailable(UNKNOWN), 0))

    @property
    def wake_at_ms(self) -> int | None:
        wake_ms = earlier(self._waiting_calls.next_deadline_ms(), self._pending_calls.expires_at_ms)
        return earlier(wake_ms, self._go_on_at_ms)

    def tick(self, now_ms: int) -> None:
        """End the waits whose time is over: for a master, and for an answer of the master."""
        for _ in range(MOVED_AT_ONCE):
            expired = self._waiting_calls.pop_expired(now_ms)
            if expired is None:
                break
            self._give_up(expired, now_ms)
        self._retry_unanswered(self._pending_calls.expired(now_ms), now_ms)
        if self._go_on_at_ms is not None and now_ms >= self._go_on_at_ms:
            self._go_on_at_ms = None
            self.go_on_with_waiting_calls(now_ms)

    # --- answers ----------------------------------------------------------------------

    def _message(self, kind: type, to: str, **fields: object) -> AnyForwardingMessage:
        head = {"cluster": self.cluster(), "sender": self._member_id, "to": to}
        forwarded: AnyForwardingMessage = kind(**{**head, "incarnation": self._pending_calls.incarnation, **fields})
        return forwarded

    def _write(self, forwarded: AnyForwardingMessage) -> None:
        self._effects.frames.append(Frame(forwarded.to, encode(forwarded), 0))

    def _on_answer(self, forwarded: Answer) -> None:
        outcome = outcome_of(forwarded)
        if forwarded.incarnation != self._pending_calls.incarnation:
            # An earlier node of this process passed the call on, and may have answered its client before a snapshot
            # replaced that node. A late duplicate of the answer must not take the messages from the client. They stay
            # in flight until their visibility timeout ends.
            return
        waiting = self._pending_calls.sent.get(forwarded.number)
        if waiting is not None and not (forwarded.sender == waiting.to and fits(outcome, waiting.held.call.command)):
            raise FrameError(f"{forwarded.kind} of {forwarded.sender} does not answer what was asked of {waiting.to}")
        if not self._pending_calls.was_used(forwarded.number):
            # This number would count as answered, and the call that gets it later would never be answered.
            raise FrameError(f"{forwarded.kind} of {forwarded.sender} answers what was not asked yet")
        if not self._pending_calls.is_first(forwarded.number):
            return
        sent = self._pending_calls.arrived(forwarded.number)
        if sent is None:
            if isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                self._return_messages_to(forwarded.sender, outcome)
        else:
            self._effects.replies.append(Reply(sent.held.ticket, outcome, 0))

    def _answer_refused(self, header: Header, reason: str) -> None:
        """End the call whose answer cannot be read. It had its effect, but this process does not know the result."""
        if header.tag != ANSWER_TAG or header.incarnation != self._pending_calls.incarnation:
            return
        sent = self._pending_calls.sent.get(header.number)
        if sent is not None and sent.to == header.sender and self._pending_calls.is_first(header.number):
            self._pending_calls.arrived(header.number)
            error = ServiceUnavailable(f"The answer of the master cannot be read here: {reason}")
            self._effects.replies.append(Reply(sent.held.ticket, error, 0))

    def _on_not_master(self, forwarded: NotMaster, now_ms: int) -> None:
        """Pass on to the next master a call that the sender did not execute, or let it wait for a master."""
        if forwarded.incarnation != self._pending_calls.incarnation:
            return
        waiting = self._pending_calls.sent.get(forwarded.number)
        if waiting is not None and forwarded.sender != waiting.to:
            raise FrameError(f"NotMaster of {forwarded.sender} about a call that went to {waiting.to}")
        sent = self._pending_calls.arrived(forwarded.number)
        if sent is None:
            return
        sent.held.is_uncertain = sent.was_uncertain
        self._retry_elsewhere(sent, now_ms)


def _check(frame: Frame) -> None:
    """Decode the frame of a call as its receiver will. Raise the SqsError for the client if that fails."""
    try:
        forward = decode(frame.data)
        assert isinstance(forward, Forward), "a call is passed on by a Forward"
        call_of(forward)
    except ContentRefused as error:
        raise refused_call(str(error)) from None


def refused_call(reason: str) -> SqsError:
    """Return the error of a call that a member cannot take from another one. It had no effect."""
    return InvalidParameterValue(f"A value of the request is out of its bounds: {reason}")


def _may_be_empty(held: HeldCall) -> bool:
    """Return whether a held call may get an empty answer.

    It must be a receive of this process's own client without an effect so far. Under a lease an empty answer would be a
    promise, so it may not.
    """
    is_receive = type(held.call.command) is ReceiveMessage and not is_leased(held.call)
    return is_receive and not held.is_uncertain and type(held.ticket) is not Remote
