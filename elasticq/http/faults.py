"""Faults that tests order at the SQS port: calls and deliveries are lost, doubled, late, out of order, or refused.

A connection passes its calls to ``ServerContext.submit``. That is the runtime's
own function while no fault is in force, and ``Faults.submit`` otherwise. So a
server without faults pays nothing. A client of AWS may see each of these faults:

    drop_request   the connection breaks before the call is executed
    drop_response  the call is executed, and the connection breaks before the answer
    drop           a receive's answer is empty; its messages come again after their visibility timeout
    duplicate      a receive's messages come again with the next receive, even if they were deleted;
                   any other call is executed twice
    delay          the call is executed after ``delay_ms``
    reorder        a receive gets the messages after those that it would have got; these come later
    throttle, error500, error503   the call is refused and not executed

FIFO queues neither double nor reorder, so ``duplicate`` and ``reorder`` affect standard queues only.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Annotated, Final, Literal, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from elasticq.model.commands import Call, QueueName, ReceiveMessage
from elasticq.model.errors import InternalFailure, RequestThrottled, ServiceUnavailable, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import LONG_RANGE, MEMBERS
from elasticq.model.names import account_of, queue_path
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from elasticq.runtime.runtime import Runtime, RuntimeStopped

FAULTS_MAX: Final = 100
COPIES_MAX: Final = 1_000  # messages that wait for their second delivery, per fault
DELAY_MS_MAX: Final = 60_000
OF_RECEIVES: Final = ("drop", "reorder")
OF_STANDARD_QUEUES: Final = ("duplicate", "reorder")
_TEXT: Final = "A test ordered this fault."

Kind = Literal[
    "drop_request", "drop_response", "drop", "duplicate", "delay", "reorder", "throttle", "error500", "error503"
]


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """A test's order for one fault.

    action: the SQS action that is affected, ``*`` for all.
    queue, account: the name of the queue and the caller's account; empty for any.
    probability: of affecting a matching call. times: how often the fault may occur, None for no bound.
    seed: of the random choice, so that a test can repeat it.
    """

    kind: Kind
    action: Annotated[str, MEMBERS["Actions.item"]] = "*"
    queue: QueueName = ""
    account: Annotated[str, MEMBERS["QueueOwnerAWSAccountId"]] = ""
    probability: Annotated[float, Meta(gt=0, le=1)] = 1.0
    times: Annotated[int, Meta(ge=1, le=LONG_RANGE[1])] | None = None
    delay_ms: Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)] = 0
    seed: Annotated[int, Meta(ge=LONG_RANGE[0], le=LONG_RANGE[1])] = 0


class Asker(Protocol):
    """The ticket of a call. It can also break the connection that the call came from."""

    def __hash__(self) -> int: ...

    def release(self, outcome: Result | SqsError) -> None: ...

    def abort(self) -> None: ...


Submit = Callable[[Call, Asker], None]


class Fault:
    """One order in force. ``struck``: how often it affected a call."""

    __slots__ = ("_random", "copies", "id", "order", "struck")

    def __init__(self, number: int, order: Order) -> None:
        self.id = number
        self.order = order
        self.struck = 0
        self.copies: dict[tuple[str, str], deque[ReceivedMessage]] = {}
        self._random = Random(order.seed)

    @property
    def is_spent(self) -> bool:
        return self.order.times is not None and self.struck >= self.order.times

    @property
    def is_active(self) -> bool:
        """Return whether the fault may occur again, or has copies that are still to be delivered."""
        return not self.is_spent or bool(self.copies)

    def is_about(self, call: Call) -> bool:
        order, command = self.order, call.command
        if self.is_spent or isinstance(command, Peek) or order.action not in ("*", type(command).__name__):
            return False
        if order.kind in OF_RECEIVES and not isinstance(command, ReceiveMessage):
            return False
        name = _queue(call)[1]
        if order.kind in OF_STANDARD_QUEUES and name.endswith(".fifo"):
            return False
        return order.queue in ("", name) and order.account in ("", account_of(call.account))

    def strikes(self) -> bool:
        return self.order.probability >= 1 or self._random.random() < self.order.probability


class Faults:
    """The faults in force. They call ``choose`` with the function that executes calls: ``submit`` or the runtime's."""

    def __init__(self, runtime: Runtime, loop: AbstractEventLoop, choose: Callable[[Submit], None]) -> None:
        self._runtime = runtime
        self._loop = loop
        self._choose = choose
        self._number = 0
        self._timers: set[TimerHandle] = set()
        self.faults: dict[int, Fault] = {}

    # --- orders -----------------------------------------------------------------------

    def add(self, order: Order) -> Fault:
        """Put a fault in force. Raise ValueError for a contradictory order, and at FAULTS_MAX faults."""
        if order.kind in OF_RECEIVES and order.action not in ("*", "ReceiveMessage"):
            raise ValueError(f"{order.kind} is possible for ReceiveMessage only, not for {order.action}")
        if order.kind == "delay" and not order.delay_ms:
            raise ValueError("delay needs delay_ms")
        if len(self.faults) >= FAULTS_MAX:
            raise ValueError(f"there are already {FAULTS_MAX} faults: remove some")
        self._number += 1
        fault = self.faults[self._number] = Fault(self._number, order)
        self._choose_submit()
        return fault

    def remove(self, number: int | None = None) -> list[Fault]:
        """End the fault with this number, or all faults, and return the ended ones.

        The copies that a fault keeps for a second delivery are dropped.
        """
        gone = [fault for fault in self.faults.values() if number in (None, fault.id)]
        for fault in gone:
            del self.faults[fault.id]
        self._choose_submit()
        return gone

    def stop(self) -> None:
        self.remove()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _choose_submit(self) -> None:
        is_needed = any(fault.is_active for fault in self.faults.values())
        self._choose(self.submit if is_needed else self._runtime.submit)

    # --- calls ------------------------------------------------------------------------

    def submit(self, call: Call, ticket: Asker) -> None:
        """Submit a call to the runtime. At most one matching fault affects it."""
        if isinstance(call.command, ReceiveMessage) and self._deliver_again(call, call.command, ticket):
            return
        for fault in self.faults.values():
            if fault.is_about(call) and fault.strikes():
                fault.struck += 1
                self._strike(fault, call, ticket)
                if fault.is_spent:
                    self._choose_submit()
                return
        self._runtime.submit(call, ticket)

    def _strike(self, fault: Fault, call: Call, ticket: Asker) -> None:
        match fault.order.kind:
            case "drop_request":
                ticket.abort()
            case "drop_response":
                self._runtime.submit(call, _Relay(lambda outcome: ticket.abort()))
            case "drop":
                self._runtime.submit(call, _Relay(lambda outcome: ticket.release(_emptied(outcome))))
            case "duplicate":
                self._duplicate(fault, call, ticket)
            case "delay":
                self._later(fault.order.delay_ms, call, ticket)
            case "reorder":
                self._reorder(call, ticket)
            case "throttle":
                ticket.release(RequestThrottled(_TEXT))
            case "error500":
                ticket.release(InternalFailure(_TEXT))
            case "error503":
                ticket.release(ServiceUnavailable(_TEXT))

    # --- kinds ------------------------------------------------------------------------

    def _duplicate(self, fault: Fault, call: Call, ticket: Asker) -> None:
        if not isinstance(call.command, ReceiveMessage):
            self._runtime.submit(call, ticket)
            self._runtime.submit(replace(call, invocation=b""), _Discard())
            return

        def copy(outcome: Result | SqsError) -> None:
            if isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                kept = fault.copies.setdefault(_queue(call), deque(maxlen=COPIES_MAX))
                kept.extend(outcome.messages)
                self._choose_submit()
            else:
                fault.struck -= 1  # there was nothing to double
            ticket.release(outcome)

        self._runtime.submit(call, _Relay(copy))

    def _deliver_again(self, call: Call, command: ReceiveMessage, ticket: Asker) -> bool:
        queue = _queue(call)
        for fault in self.faults.values():
            copies = fault.copies.get(queue)
            if copies:
                limit = min(max(command.max_number_of_messages or 1, 1), len(copies))
                messages = [copies.popleft() for _ in range(limit)]
                if not copies:
                    del fault.copies[queue]
                    self._choose_submit()
                ticket.release(ReceiveMessageResult(messages))
                return True
        return False

    def _later(self, delay_ms: int, call: Call, ticket: Asker) -> None:
        def go() -> None:
            self._timers.discard(timer)
            try:
                self._runtime.submit(call, ticket)
            except RuntimeStopped:
                ticket.abort()

        timer = self._loop.call_later(delay_ms / 1_000, go)
        self._timers.add(timer)

    def _reorder(self, call: Call, ticket: Asker) -> None:
        command = call.command
        assert isinstance(command, ReceiveMessage)

        def overtake(first: Result | SqsError) -> None:
            if not isinstance(first, ReceiveMessageResult) or not first.messages:
                ticket.release(first)
                return
            behind = replace(call, command=replace(command, wait_time_seconds=0))
            self._loop.call_soon(self._overtake, behind, first, ticket)

        self._runtime.submit(replace(call, invocation=b""), _Relay(overtake))

    def _overtake(self, call: Call, first: ReceiveMessageResult, ticket: Asker) -> None:
        """Receive once more and answer with that. Runs in a later callback: a release must not call the runtime."""

        def decide(outcome: Result | SqsError) -> None:
            if isinstance(outcome, ReceiveMessageResult) and outcome.messages:
                outcome.messages.reverse()
                self._loop.call_soon(self._runtime.undelivered, first)
                ticket.release(outcome)
            else:
                first.messages.reverse()
                ticket.release(first)

        try:
            self._runtime.submit(call, _Relay(decide))
        except RuntimeStopped:
            ticket.abort()


class _Relay:
    """A ticket that passes its outcome to ``then``."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[Result | SqsError], None]) -> None:
        self._then = then

    def release(self, outcome: Result | SqsError) -> None:
        self._then(outcome)


class _Discard:
    """The ticket of the second execution of a doubled call. It drops the outcome."""

    __slots__ = ()

    def release(self, outcome: Result | SqsError) -> None:
        """Drop the outcome."""


def _queue(call: Call) -> tuple[str, str]:
    """Return owner and name of the queue that a call names. The name is empty if the call names none."""
    url: str | None = getattr(call.command, "queue_url", None)
    if url:
        return queue_path(url, call.account)
    return call.account, getattr(call.command, "queue_name", None) or ""


def _emptied(outcome: Result | SqsError) -> Result | SqsError:
    return ReceiveMessageResult() if isinstance(outcome, ReceiveMessageResult) else outcome
