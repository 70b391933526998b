"""The base of simulated members and proxies: clocks, pauses, the tickets of clients, and due ticks."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from elasticq.model.commands import Call
from elasticq.model.errors import SqsError
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node.driven import Driven
from elasticq.node.membership.peer import Peer
from elasticq.node.orders import OrderDone, OrderOutcome, OrderRefused
from elasticq.node.outputs import Ticket
from elasticq.node.reply import Reply
from elasticq.sim.network import Network
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import Trace

TRUE_EPOCH_MS = 1_700_000_000_000  # true wall time at the start of a run
BACKLOG_MAX = 100_000
TICK_US = 1_000  # the least time between two ticks if a node always wants the next one at once
NODE_FAILED = "node_failed"

Core = TypeVar("Core", bound=Driven)


class EndlessCall(BaseException):
    """A call of a node that does not end. It is not an Exception, so no handler of commands catches it."""


class Caller(Protocol):
    """A client that has sent a request to a process."""

    def refused(self, ticket: Ticket) -> None:
        """Handle a refused or reset connection."""

    def answered(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        """Handle the reply."""


class OrderGiver(Protocol):
    """The sender of an operator's order, such as adding a voter, to a member."""

    def refused(self, ticket: Ticket) -> None:
        """Handle the end of the member's process before it answered the order."""

    def ordered(self, ticket: Ticket, outcome: OrderOutcome) -> None:
        """Handle the member's answer to the order: OrderDone or OrderRefused."""


class Process(ABC, Generic[Core]):
    """A simulated process.

    node: None while the process is down. id: its member id. process: how often it was started.
    life: a number that changes whenever a node starts or ends. Actions that were scheduled in another life are dropped.
    backlog: the calls of the node that wait while the process is paused.
    """

    def __init__(self, scheduler: Scheduler, trace: Trace, network: Network, name: str) -> None:
        self.scheduler = scheduler
        self.trace = trace
        self.network = network
        self.name = name
        self.id = ""
        self.clock_random = scheduler.random(f"clock {name}")
        self.boot_offset_us = self.clock_random.randrange(10**6, 10**12)
        self.wall_skew_ms = 0
        self.life = 0
        self.process = 0
        self.node: Core | None = None
        self.is_paused = False
        self.backlog: list[Callable[[Core], None]] = []
        self.tickets: dict[Ticket, Caller | OrderGiver] = {}
        self.wake_us: int | None = None
        self.ticked_us = -1

    @property
    def core(self) -> Core:
        """Return the node. The process must be running."""
        assert self.node is not None
        return self.node

    @property
    def boot_ms(self) -> int:
        return (self.scheduler.now_us + self.boot_offset_us) // 1_000

    @property
    def wall_ms(self) -> int:
        return TRUE_EPOCH_MS + self.scheduler.now_us // 1_000 + self.wall_skew_ms

    # --- life -----------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Start the process, unless it runs."""

    @abstractmethod
    def _fail(self) -> None:
        """End the process after its node failed."""

    def pause(self) -> None:
        if self.node is not None:
            self.trace.note("pause", self.name, self.life)
            self.is_paused = True

    def resume(self) -> None:
        if not self.is_paused:
            return
        self.trace.note("resume", self.name, self.life)
        self.is_paused = False
        self.network.mended()
        backlog, self.backlog = self.backlog, []
        for action in backlog:
            self.call(action)

    def _refuse_all(self) -> None:
        """Reset the connections of all clients after the process has ended."""
        self.is_paused = False
        self.backlog.clear()
        tickets, self.tickets = self.tickets, {}
        for ticket, client in tickets.items():
            self.scheduler.after_latency(client.refused, ticket)

    # --- inputs -----------------------------------------------------------------

    def call(self, action: Callable[[Core], None]) -> None:
        """Call the node once and carry out its effects. If the process is paused, do so when it resumes."""
        node = self.node
        if node is None:
            return
        if self.is_paused:
            assert len(self.backlog) < BACKLOG_MAX
            self.backlog.append(action)
            return
        try:
            action(node)
        except (Exception, EndlessCall) as failure:
            self._failed(failure)
            return
        if node.effects.failures:  # no command of these clients may fail inside the node
            self._failed(node.effects.failures[0].cause)
        elif self.node is node:
            self._drain(node)

    def _failed(self, failure: BaseException) -> None:
        """Record a finding, which stops the run, after an exception in the node. A real process would stop, too."""
        where = "".join(traceback.format_exception(failure)[-3:])
        self.trace.found(NODE_FAILED, f"{self.name}: {where}")
        self._fail()

    @abstractmethod
    def receive(self, sender: str, data: bytes) -> None:
        """Pass a frame of another process to the node."""

    def introduce(self) -> Peer:
        return self.core.introduce()

    def request(self, client: Caller, ticket: Ticket, call: Call) -> None:
        """Submit a client's attempt. A process that is down refuses the connection."""
        if self.node is None:
            self.scheduler.after_latency(client.refused, ticket)
            return
        self.tickets[ticket] = client
        self.call(lambda node: node.submit(call, ticket, self.boot_ms))

    def disconnect(self, ticket: Ticket) -> None:
        """End an attempt whose client gave up and closed the connection."""
        if self.tickets.pop(ticket, None) is not None:
            self.call(lambda node: node.cancel(ticket, self.boot_ms))

    # --- effects ----------------------------------------------------------------

    @abstractmethod
    def _drain(self, node: Core) -> None:
        """Carry out the effects of the node."""

    @abstractmethod
    def _report_reply(self, reply: Reply, outcome: Result | SqsError) -> None:
        """Report a reply to the checks of the run."""

    def _release_all(self, replies: list[Reply]) -> None:
        """Send the node's replies, and empty the list."""
        released = replies.copy()
        replies.clear()
        for reply in released:
            self._release(reply)

    def _release(self, reply: Reply) -> None:
        asker = self.tickets.pop(reply.ticket, None)
        if isinstance(reply.outcome, (OrderDone, OrderRefused)):
            if asker is not None:
                self.scheduler.after_latency(asker.ordered, reply.ticket, reply.outcome)  # type: ignore[union-attr]
            return
        self._report_reply(reply, reply.outcome)
        if asker is not None:
            self.scheduler.after_latency(asker.answered, reply.ticket, reply.outcome)  # type: ignore[union-attr]
        elif isinstance(reply.outcome, ReceiveMessageResult) and reply.outcome.messages:
            result = reply.outcome
            self.scheduler.schedule(0, lambda: self.call(lambda node: node.undelivered(result, self.boot_ms)))

    def _arm(self, wake_at_ms: int | None) -> None:
        """Schedule a tick of the node at ``wake_at_ms``. If an earlier one is scheduled, that one calls this again."""
        if wake_at_ms is None:
            return
        now_us = self.scheduler.now_us
        earliest_us = now_us + TICK_US if self.ticked_us == now_us else now_us
        due_us = max(wake_at_ms * 1_000 - self.boot_offset_us, earliest_us)
        if self.wake_us is not None and self.wake_us <= due_us:
            return
        self.wake_us = due_us
        life = self.life
        self.scheduler.schedule(due_us - now_us, lambda: self._wake(due_us, life))

    def _wake(self, due_us: int, life: int) -> None:
        node = self.node
        if node is None or self.life != life or self.wake_us != due_us:
            return
        self.wake_us = None
        wake_at_ms = node.effects.wake_at_ms
        if wake_at_ms is not None and wake_at_ms > self.boot_ms:
            self._arm(wake_at_ms)
            return
        self.ticked_us = self.scheduler.now_us
        self.call(lambda node: node.tick(self.boot_ms))
