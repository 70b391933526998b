"""The base of simulated clients: one operation at a time, retried like an SDK does, with its event in the history.

If an attempt is refused, answered with 503 or unanswered for too long, the client repeats it at the next member or
proxy under the same invocation id. It stops when the operation's patience ends; then the outcome is unknown.
Some operations have no invocation id, like those of clients without an SDK. They get only one attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from elasticq.checks.history import Event, LeaseChange, Receive, Send
from elasticq.model.commands import Call, Command
from elasticq.model.errors import LeaseExpired, ReceiptHandleIsInvalid, ServiceUnavailable, SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import Result, SendMessageBatchResult, SendMessageResult
from elasticq.node.outputs import Ticket
from elasticq.sim.cluster import Cluster
from elasticq.sim.queues import ENDPOINT
from elasticq.sim.workload import Workload

HANDLE_REFUSED = "handle_refused"
TIMEOUT_US = 3_000_000
PATIENCE_US = 15_000_000
BACKOFF_US = (20_000, 200_000)
FOLLOW_SHARE = 0.6  # share of attempts that go to the process chosen before; the others go to a random one
BREAK_SHARE = 0.04  # share of attempts that lose their connection at once, and are repeated at the same process
BREAK_US = (500, 30_000)

Done = Callable[[Result | None], None]


class Running(Struct):
    """The current operation of a client.

    is_uncertain: an earlier attempt may have had its effect. attempted_us: the time of the latest attempt.
    """

    command: Command
    event: Event | None
    done: Done
    invocation: bytes
    timeout_us: int
    give_up_us: int
    attempt: int = 0
    attempted_us: int = 0
    target: int = -1
    is_uncertain: bool = False


class Client(ABC):
    """A client that makes the attempts of its current operation. Subclasses choose the operations.

    timeout_us: the timeout of an attempt. patience_us: the time after which no further attempt is made.
    """

    timeout_us = TIMEOUT_US
    patience_us = PATIENCE_US

    def __init__(self, cluster: Cluster, workload: Workload, name: str) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.trace = cluster.trace
        self.workload = workload
        self.name = name
        self.random = self.scheduler.random(name)
        self.guess = self.random.randrange(len(cluster.processes))
        self.number = 0
        self.running: Running | None = None
        self.sent: dict[int, Send] = {}
        self.lost_reply_share = cluster.scenario.lost_reply_share

    @abstractmethod
    def start(self) -> None:
        """Start to make calls."""

    def begin(self, command: Command, event: Event | None, done: Done, wait_us: int = 0) -> None:
        """Start an operation, and add its event to the history. No other operation may be running.

        done: called with the result, or with None if there is none. wait_us: how long the call may wait at the server.
        """
        assert self.running is None
        self.number += 1
        invocation = self.random.randbytes(16)
        if event is not None:
            event.guid = invocation.hex()
            self.workload.history.append(event)
            if isinstance(event, Send):
                self.sent[self.number] = event
        now_us = self.scheduler.now_us
        timeout_us = self.timeout_us
        if event is not None and self._is_nameless(event):
            invocation, timeout_us = b"", self.patience_us
        give_up_us = now_us + wait_us + self.patience_us
        self.running = Running(command, event, done, invocation, timeout_us + wait_us, give_up_us)
        self._attempt(self.number)

    def _is_nameless(self, event: Event) -> bool:
        """Return, by chance, whether the operation gets no invocation id. Operations of leases always have one."""
        share = self.cluster.scenario.nameless_share
        is_leased = isinstance(event, LeaseChange) or (isinstance(event, Receive) and bool(event.lease))
        return share > 0 and not is_leased and self.random.random() < share

    def _attempt(self, number: int) -> None:
        running = self.running
        if running is None or number != self.number:
            return
        running.attempt += 1
        running.attempted_us = self.scheduler.now_us
        if self.random.random() > FOLLOW_SHARE:
            self.guess = self.random.randrange(len(self.cluster.processes))
        running.target = self.guess
        ticket = (self.name, number, running.attempt, running.invocation)
        call = Call(running.command, "sim", DEFAULT_ACCOUNT, ENDPOINT, running.invocation)
        self._request(ticket, call)
        self.scheduler.schedule(running.timeout_us, lambda: self._timed_out(ticket))
        if self.random.random() < BREAK_SHARE:
            self.scheduler.schedule(self.random.randint(*BREAK_US), lambda: self._broken(ticket))

    def _request(self, ticket: Ticket, call: Call) -> None:
        """Send an attempt to the chosen process."""
        self.scheduler.after_latency(self.cluster.processes[self.guess].request, self, ticket, call)

    def _current(self, ticket: Ticket) -> Running | None:
        running = self.running
        if running is None or ticket != (self.name, self.number, running.attempt, running.invocation):
            return None
        return running

    def _timed_out(self, ticket: Ticket) -> None:
        running = self._current(ticket)
        if running is not None:
            self.scheduler.after_latency(self.cluster.processes[running.target].disconnect, ticket)
            self._try_again(running)

    def _broken(self, ticket: Ticket) -> None:
        """Handle a broken connection. The member lives, and may get the retry before it notices the break."""
        running = self._current(ticket)
        if running is None:
            return
        self.scheduler.after_latency(self.cluster.processes[running.target].disconnect, ticket)
        running.is_uncertain = True
        running.attempt += 1
        if not running.invocation:
            self._finish(running, None)
            return
        number = self.number
        self.scheduler.schedule(self.random.randint(0, BREAK_US[1]), lambda: self._attempt(number))

    def refused(self, ticket: Ticket) -> None:
        """Handle a refused or reset connection: try another process."""
        running = self._current(ticket)
        if running is not None:
            self._try_again(running)

    def answered(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        running = self._current(ticket)
        if not isinstance(outcome, SqsError):
            self._note_ids(ticket, outcome)
        if running is None:
            return
        if self.lost_reply_share and self.random.random() < self.lost_reply_share:
            self._try_again(
                running
            )  # the connection broke before the client read the reply; the member does not notice
        elif isinstance(outcome, ServiceUnavailable):
            self._try_again(running)
        elif isinstance(outcome, SqsError):
            if isinstance(outcome, ReceiptHandleIsInvalid):
                self.trace.found(
                    HANDLE_REFUSED, f"{self.name} at {self.cluster.processes[running.target].name}: {outcome}"
                )
            if isinstance(outcome, LeaseExpired) and isinstance(running.event, (Receive, LeaseChange)):
                running.event.is_expired = True
            self._finish(running, None, is_refusal=True)
        else:
            self._finish(running, outcome)

    def _try_again(self, running: Running) -> None:
        """Repeat the operation at the next process after a pause. A client does not know who the master is."""
        running.is_uncertain = True
        running.attempt += 1  # so later answers to the last attempt are ignored
        self.guess = (self.guess + 1) % len(self.cluster.processes)
        if self.scheduler.now_us >= running.give_up_us or not running.invocation:
            self._finish(running, None)
            return
        number = self.number
        self.scheduler.schedule(self.random.randint(*BACKOFF_US), lambda: self._attempt(number))

    def _note_ids(self, ticket: Ticket, result: Result) -> None:
        """Record the ids in an answer, also in a late one. Two ids for one message are a finding."""
        assert isinstance(ticket, tuple)
        event = self.sent.get(ticket[1])
        if event is None:
            return
        if isinstance(result, SendMessageResult):
            found = [(0, result.message_id, result.sequence_number)]
        else:
            assert isinstance(result, SendMessageBatchResult)
            found = [(entry.position, entry.message_id, entry.sequence_number) for entry in result.successful]
        for position, message_id, number in found:
            sent = event.messages[position]
            if message_id not in sent.message_ids:
                sent.message_ids.append(message_id)
            if number is not None and number not in sent.sequence_numbers:
                sent.sequence_numbers.append(number)

    def _finish(self, running: Running, result: Result | None, *, is_refusal: bool = False) -> None:
        self.running = None
        event = running.event
        if event is not None:
            if result is not None or is_refusal:
                event.complete_us = self.scheduler.now_us
            if isinstance(event, Receive) and result is not None:
                event.attempted_us = running.attempted_us
            is_void = is_refusal and not running.is_uncertain
            event.outcome = "ok" if result is not None else "fail" if is_void else "unknown"
            self.trace.note("done", self.name, event.outcome)
            self.workload.finished(event)
        running.done(result)


class Periodic(Client):
    """A client that acts again and again until the drain. pause_us: the bounds of the random pauses between."""

    pause_us: ClassVar[tuple[int, int]]

    def start(self) -> None:
        self.scheduler.schedule(self.random.randint(*self.pause_us), self._turn)

    def _turn(self) -> None:
        if not self.workload.is_draining:
            self.act()

    @abstractmethod
    def act(self) -> None:
        """Make calls, and call ``start`` when they have ended."""
