"""Simulated producers and consumers: real commands, retried like an SDK does, everything written into a history.

A client has one operation under way. An attempt that is refused, answered 503
or unanswered for too long is made again at the next member under the same
invocation id, until the operation's patience ends; then its outcome is unknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from elasticq.checks.history import ChangeVisibility, Delete, Event, HandedOut, Receive, Send, SentMessage
from elasticq.model.commands import (
    Call,
    ChangeMessageVisibility,
    Command,
    CreateQueue,
    DeleteMessage,
    ReceiveMessage,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchEntry,
)
from elasticq.model.errors import ReceiptHandleIsInvalid, ServiceUnavailable, SqsError
from elasticq.model.names import DEFAULT_ACCOUNT, queue_url
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageBatchResult, SendMessageResult
from elasticq.node.effects import Ticket

if TYPE_CHECKING:
    from elasticq.sim.world import World

HANDLE_REFUSED = "handle_refused"
ENDPOINT = "http://sim:9324"
QUEUES = ("orders", "invoices")
PRODUCERS, CONSUMERS = 4, 3
TIMEOUT_US = 3_000_000
PATIENCE_US = 15_000_000
BACKOFF_US = (20_000, 200_000)
FOLLOW_SHARE = 0.6  # of attempts go to the member that answered last; the others to any
BREAK_SHARE = 0.04  # of attempts lose their connection at once and are made again at the same member
BREAK_US = (500, 30_000)
THINK_US = (200_000, 2_000_000)
QUEUE_VISIBILITY_S = 4
DRAIN_QUIET_US, DRAIN_PATIENCE_US = 2_500_000, 25_000_000

Done = Callable[[Result | None], None]


class Running(Struct):
    """The operation under way; ``is_uncertain``: an earlier attempt may have had its effect."""

    command: Command
    event: Event | None
    done: Done
    invocation: bytes
    timeout_us: int
    give_up_us: int
    attempt: int = 0
    target: int = -1
    is_uncertain: bool = False


class Client(ABC):
    """Makes attempts for the operation under way; subclasses say what to do next."""

    def __init__(self, world: World, load: Load, name: str) -> None:
        self.world = world
        self.load = load
        self.name = name
        self.random = world.random(name)
        self.guess = self.random.randrange(len(world.members))
        self.number = 0
        self.running: Running | None = None
        self.sent: dict[int, Send] = {}

    @abstractmethod
    def start(self) -> None:
        """Begin to work."""

    def begin(self, command: Command, event: Event | None, done: Done, wait_us: int = 0) -> None:
        assert self.running is None
        self.number += 1
        invocation = self.random.randbytes(16)
        if event is not None:
            event.guid = invocation.hex()
            self.load.history.append(event)
            if isinstance(event, Send):
                self.sent[self.number] = event
        now_us = self.world.now_us
        self.running = Running(command, event, done, invocation, TIMEOUT_US + wait_us, now_us + wait_us + PATIENCE_US)
        self._attempt(self.number)

    def _attempt(self, number: int) -> None:
        running = self.running
        if running is None or number != self.number:
            return
        running.attempt += 1
        if self.random.random() > FOLLOW_SHARE:
            self.guess = self.random.randrange(len(self.world.members))
        running.target = self.guess
        ticket = (self.name, number, running.attempt)
        call = Call(running.command, "sim", DEFAULT_ACCOUNT, ENDPOINT, running.invocation)
        member = self.world.members[running.target]
        self.world.after_latency(member.request, self, ticket, call)
        self.world.schedule(running.timeout_us, lambda: self._timed_out(ticket))
        if self.random.random() < BREAK_SHARE:
            self.world.schedule(self.random.randint(*BREAK_US), lambda: self._broken(ticket))

    def _current(self, ticket: Ticket) -> Running | None:
        running = self.running
        return running if running is not None and ticket == (self.name, self.number, running.attempt) else None

    def _timed_out(self, ticket: Ticket) -> None:
        running = self._current(ticket)
        if running is not None:
            self.world.after_latency(self.world.members[running.target].disconnect, ticket)
            self._try_again(running)

    def _broken(self, ticket: Ticket) -> None:
        """The connection broke under the attempt: the member is well and may see the retry before the end."""
        running = self._current(ticket)
        if running is None:
            return
        self.world.after_latency(self.world.members[running.target].disconnect, ticket)
        running.is_uncertain = True
        running.attempt += 1
        number = self.number
        self.world.schedule(self.random.randint(0, BREAK_US[1]), lambda: self._attempt(number))

    def refused(self, ticket: Ticket) -> None:
        """The connection was refused or reset."""
        running = self._current(ticket)
        if running is not None:
            self._try_again(running)

    def answered(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        running = self._current(ticket)
        if not isinstance(outcome, SqsError):
            self._note_ids(ticket, outcome)
        if running is None:
            return
        if isinstance(outcome, ServiceUnavailable):
            self._try_again(running)
        elif isinstance(outcome, SqsError):
            if isinstance(outcome, ReceiptHandleIsInvalid):
                self.world.found(HANDLE_REFUSED, f"{self.name} at {self.world.members[running.target].name}: {outcome}")
            self._finish(running, None, is_refusal=True)
        else:
            self._finish(running, outcome)

    def _try_again(self, running: Running) -> None:
        """Elsewhere, after a while: nobody says who the master is."""
        running.is_uncertain = True
        running.attempt += 1  # whatever still comes for the last attempt is too late
        self.guess = (self.guess + 1) % len(self.world.members)
        if self.world.now_us >= running.give_up_us:
            self._finish(running, None)
            return
        number = self.number
        self.world.schedule(self.random.randint(*BACKOFF_US), lambda: self._attempt(number))

    def _note_ids(self, ticket: Ticket, result: Result) -> None:
        """Also from answers that came too late: two ids for one message are a finding."""
        assert isinstance(ticket, tuple)
        event = self.sent.get(ticket[1])
        if event is None:
            return
        if isinstance(result, SendMessageResult):
            found = [(0, result.message_id)]
        else:
            assert isinstance(result, SendMessageBatchResult)
            found = [(entry.position, entry.message_id) for entry in result.successful]
        for position, message_id in found:
            ids = event.messages[position].message_ids
            if message_id not in ids:
                ids.append(message_id)

    def _finish(self, running: Running, result: Result | None, *, is_refusal: bool = False) -> None:
        self.running = None
        event = running.event
        if event is not None:
            if result is not None or is_refusal:
                event.complete_us = self.world.now_us
            is_void = is_refusal and not running.is_uncertain
            event.outcome = "ok" if result is not None else "fail" if is_void else "unknown"
            self.world.trace("done", self.name, event.outcome)
            self.load.finished(event)
        running.done(result)


class Founder(Client):
    """Creates the queues, then lets the others begin."""

    def start(self) -> None:
        self._create(0)

    def _create(self, position: int) -> None:
        if position == len(QUEUES):
            self.load.begin()
            return
        command = CreateQueue(queue_name=QUEUES[position], attributes={"VisibilityTimeout": str(QUEUE_VISIBILITY_S)})
        self.begin(command, None, lambda result: self._create(position + (result is not None)))


class Producer(Client):
    """Sends messages one by one and in batches, some with a delay."""

    def start(self) -> None:
        self.world.schedule(self.random.randint(*THINK_US), self._send)

    def _send(self) -> None:
        if self.load.is_draining:
            return
        queue = self.random.choice(QUEUES)
        url = queue_url(ENDPOINT, DEFAULT_ACCOUNT, queue)
        count = self.random.randint(2, 4) if self.random.random() < 0.2 else 1
        stem = f"{self.name}-{self.number + 1}"
        bodies = [f"{stem}-{position}" + "." * self.random.randrange(200) for position in range(count)]
        event = Send(
            client=self.name,
            queue=queue,
            invoke_us=self.world.now_us,
            messages=[SentMessage(body) for body in bodies],
        )
        self.begin(self._command(url, bodies), event, lambda result: self.start())

    def _command(self, url: str, bodies: list[str]) -> Command:
        delay_s = self.random.randint(1, 4) if self.random.random() < 0.15 else None
        if len(bodies) == 1:
            return SendMessage(queue_url=url, message_body=bodies[0], delay_seconds=delay_s)
        entries = [
            SendMessageBatchEntry(id=str(position), message_body=body, delay_seconds=delay_s)
            for position, body in enumerate(bodies)
        ]
        return SendMessageBatch(queue_url=url, entries=entries)


class Consumer(Client):
    """Receives, then deletes, prolongs, gives back or forgets; in the drain it deletes everything."""

    def start(self) -> None:
        self.follow_ups: list[Callable[[], None]] = []
        self._next()

    def _next(self) -> None:
        if self.follow_ups:
            self.follow_ups.pop(0)()
        elif self.load.is_draining:
            self.world.schedule(20_000, self._receive)
        else:
            self.world.schedule(self.random.randint(*THINK_US), self._receive)

    def _receive(self) -> None:
        draining = self.load.is_draining
        queue = self.random.choice(QUEUES)
        wait_s = self.random.choice((0, 1, 2)) if draining else self.random.choice((0, 0, 1, 5))
        visibility_s = self.random.randint(1, 6) if self.random.random() < 0.3 else None
        command = ReceiveMessage(
            queue_url=queue_url(ENDPOINT, DEFAULT_ACCOUNT, queue),
            max_number_of_messages=self.random.choice((1, 3, 10)) if not draining else 10,
            visibility_timeout=visibility_s,
            wait_time_seconds=wait_s,
        )
        event = Receive(
            client=self.name,
            queue=queue,
            invoke_us=self.world.now_us,
            visibility_ms=1_000 * (QUEUE_VISIBILITY_S if visibility_s is None else visibility_s),
        )
        self.begin(command, event, lambda result: self._received(event, result), wait_us=wait_s * 1_000_000)

    def _received(self, event: Receive, result: Result | None) -> None:
        if isinstance(result, ReceiveMessageResult):
            for message in result.messages:
                event.messages.append(HandedOut(message.message_id, message.receipt_handle, message.body))
                self._plan(event.queue, event.messages[-1])
            if result.messages:
                self.load.last_message_us = self.world.now_us
        self._next()

    def _plan(self, queue: str, message: HandedOut) -> None:
        choice = 0.0 if self.load.is_draining else self.random.random()
        if choice < 0.8:
            self.follow_ups.append(lambda: self._delete(queue, message))
        elif choice < 0.9:
            self.follow_ups.append(lambda: self._change(queue, message, self.random.choice((0, 2, 5))))
        elif choice < 0.95:
            self.follow_ups.append(lambda: self._change_then_delete(queue, message))

    def _change_then_delete(self, queue: str, message: HandedOut) -> None:
        self.follow_ups.append(lambda: self._delete(queue, message))
        self._change(queue, message, 5)

    def _delete(self, queue: str, message: HandedOut) -> None:
        url = queue_url(ENDPOINT, DEFAULT_ACCOUNT, queue)
        event = Delete(
            client=self.name,
            queue=queue,
            invoke_us=self.world.now_us,
            message_id=message.message_id,
            receipt_handle=message.receipt_handle,
        )
        self.load.deleting(message.body)
        command = DeleteMessage(queue_url=url, receipt_handle=message.receipt_handle)
        self.begin(command, event, lambda result: self._next())

    def _change(self, queue: str, message: HandedOut, visibility_s: int) -> None:
        url = queue_url(ENDPOINT, DEFAULT_ACCOUNT, queue)
        event = ChangeVisibility(
            client=self.name,
            queue=queue,
            invoke_us=self.world.now_us,
            message_id=message.message_id,
            receipt_handle=message.receipt_handle,
            visibility_ms=visibility_s * 1_000,
        )
        command = ChangeMessageVisibility(
            queue_url=url, receipt_handle=message.receipt_handle, visibility_timeout=visibility_s
        )
        self.begin(command, event, lambda result: self._next())


class Load:
    """All clients of a run, their history, and whether it is drained."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.history: list[Event] = []
        self.is_draining = False
        self.has_begun = False
        self.drain_us = 0
        self.last_message_us = 0
        self.first_write_after_heal_us: int | None = None
        self.outstanding: set[str] = set()
        self.maybe_deleted: set[str] = set()
        self.producers = [Producer(world, self, f"producer{number}") for number in range(PRODUCERS)]
        self.consumers = [Consumer(world, self, f"consumer{number}") for number in range(CONSUMERS)]
        self.founder = Founder(world, self, "founder")

    def start(self) -> None:
        self.founder.start()

    def begin(self) -> None:
        self.has_begun = True
        for client in (*self.producers, *self.consumers):
            client.start()

    def drain(self) -> None:
        """Nothing is sent from now on; everything is taken and deleted."""
        self.is_draining = True
        self.drain_us = self.last_message_us = self.world.now_us

    def deleting(self, body: str) -> None:
        self.maybe_deleted.add(body)
        self.outstanding.discard(body)

    def finished(self, event: Event) -> None:
        if event.outcome != "ok":
            return
        if isinstance(event, Send):
            self.outstanding.update({message.body for message in event.messages} - self.maybe_deleted)
        is_write = not isinstance(event, Receive)
        if is_write and self.world.is_healed and self.first_write_after_heal_us is None:
            self.first_write_after_heal_us = self.world.now_us

    @property
    def is_drained(self) -> bool:
        """Everything acknowledged was deleted, or nothing has come for so long that it never will."""
        if not self.is_draining:
            return False
        quiet_us = self.world.now_us - self.last_message_us
        has_running_send = any(producer.running is not None for producer in self.producers)
        if quiet_us > DRAIN_PATIENCE_US:
            return True
        return quiet_us > DRAIN_QUIET_US and not self.outstanding and not has_running_send
