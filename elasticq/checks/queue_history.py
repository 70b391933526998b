"""An index of a history for the rules: messages, their deliveries, and the operations on them.

A message is what was sent. All sends with one deduplication id are one message. Its lives are its places, each a queue
and a MessageId. A dead letter keeps its id in another queue, and a move task gives a message a new id.
"""

import math
from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct, field

from elasticq.checks.history import (
    Advance,
    ChangePriority,
    ChangeVisibility,
    CreateQueue,
    Delete,
    Event,
    HandedOut,
    LeaseChange,
    Receive,
    Send,
    SentMessage,
    StartMove,
)


class LeaseHistory(Struct):
    receives: list[Receive] = field(default_factory=list)
    changes: list[LeaseChange] = field(default_factory=list)

    @property
    def began_us(self) -> int:
        return min(receive.invoke_us for receive in self.receives)

    def deadline_us(self, by_us: int) -> int:
        """Return the earliest moment at which its messages may be visible again, by the events until ``by_us``.

        Any of its receives may have opened the lease. A renewal never shortens the deadline, because all requests for
        one lease ask for the same time. A release of the lease may have its effect even without an ok answer.
        """
        until_us = min(receive.invoke_us + receive.visibility_ms * 1_000 for receive in self.receives)
        for change in self.changes:
            if change.action == "renew" and change.outcome == "ok" and change.invoke_us <= by_us:
                until_us = max(until_us, change.invoke_us + change.visibility_ms * 1_000)
        backs = [change.invoke_us for change in self.changes if change.action == "give_back"]
        return min([until_us, *(back_us for back_us in backs if back_us <= by_us)])

    def told_until(self, receive: Receive) -> set[str]:
        """Return the MessageIds in the answers to the receives of the lease up to ``receive``, by receive number."""
        number = call_of(receive)
        return {message.message_id for each in self.receives if call_of(each) <= number for message in each.messages}


def call_of(receive: Receive) -> int:
    """Return the number of a receive in its lease."""
    return int(receive.attempt_id.rpartition("/")[2])


DEDUPLICATION_US = 300_000_000  # a deduplication id is valid for 5 minutes
ROUNDING_US = 1_000  # the server counts whole ms, so a timeout counts from the start of its ms


class Jump(Struct, frozen=True):
    """A time ``at_us`` at which the server may have put its clock forward, to at most ``ahead_ms`` ahead of true time.

    It does so when all its members restarted, because they then have only their wall clocks.
    """

    at_us: int
    ahead_ms: int


class Finding(Struct, frozen=True):
    """A broken rule: its name, the evidence, and the time at which it shows."""

    name: str
    evidence: str
    at_us: int


class Delivery(Struct, frozen=True):
    """A message in the answer of the receive ``taken_by``."""

    taken_by: Receive
    message: HandedOut

    @property
    def completed_us(self) -> int:
        complete_us = self.taken_by.complete_us
        assert complete_us is not None, "a receive with messages has completed"
        return complete_us

    def __str__(self) -> str:
        receive = self.taken_by
        return (
            f"{receive.client} [{receive.invoke_us}..{receive.complete_us} us, visibility {receive.visibility_ms} ms] "
            f"got {self.message.message_id}"
        )


class Message(Struct):
    """All sends of one message, and all its deliveries."""

    queue: str
    sends: list[tuple[Send, SentMessage]] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def invoked_us(self) -> int:
        return min(send.invoke_us for send, _ in self.sends)

    @property
    def answered_ids(self) -> dict[str, None]:
        return dict.fromkeys(each for _, sent in self.sends for each in sent.message_ids)

    @property
    def answered_numbers(self) -> dict[str, None]:
        return dict.fromkeys(each for _, sent in self.sends for each in sent.sequence_numbers)

    @property
    def ids(self) -> dict[str, None]:
        """Return every MessageId that the message was seen with."""
        return self.answered_ids | dict.fromkeys(delivery.message.message_id for delivery in self.deliveries)

    @property
    def lives(self) -> dict[tuple[str, str], list[Delivery]]:
        """Return the deliveries of the message by (queue, MessageId)."""
        found: defaultdict[tuple[str, str], list[Delivery]] = defaultdict(list)
        for delivery in self.deliveries:
            found[delivery.taken_by.queue, delivery.message.message_id].append(delivery)
        return found

    def __str__(self) -> str:
        send, message = self.sends[0]
        return f"send {send.guid} of {send.client}: {message.body[:60]!r}"


class QueueHistory:
    """The indexed events of one history.

    drift: the share of true time by which the server's clock may run too fast (0.001: 1 ms a second).
    """

    def __init__(self, events: Iterable[Event], jumps: Iterable[Jump] = (), drift: float = 0.0) -> None:
        self.jumps = list(jumps)
        self.drift = drift
        self.queues: dict[str, CreateQueue] = {}
        self.messages: dict[tuple[str, ...], Message] = {}
        self.by_body: dict[str, Message] = {}
        self.receives: list[Receive] = []
        # deliveries of bodies that no client sent, by body
        self.unknown: defaultdict[str, list[Delivery]] = defaultdict(list)
        self.deletes: defaultdict[str, list[Delete]] = defaultdict(list)  # by message id
        self.changes: defaultdict[str, list[ChangeVisibility]] = defaultdict(list)  # by handle
        self.changes_of: defaultdict[str, list[ChangeVisibility]] = defaultdict(list)  # by message id
        self.priorities: defaultdict[str, list[ChangePriority]] = defaultdict(list)  # by message id
        self.attempts: defaultdict[tuple[str, str], list[Receive]] = defaultdict(list)
        self.leases: defaultdict[tuple[str, str], LeaseHistory] = defaultdict(LeaseHistory)
        self.lease_changes: list[LeaseChange] = []
        self.moves: list[StartMove] = []
        self.advances: list[Advance] = []
        self.end_us = 0
        self._places: dict[str, frozenset[str]] = {}
        for event in events:
            self._add(event)
        for receive in self.receives:
            self._take(receive)
        for repeats in self.attempts.values():
            self._prolong(repeats)
        for change in self.lease_changes:
            for (queue, lease), lease_history in self.leases.items():
                is_meant = lease.startswith(change.lease) if change.lease.endswith("/") else lease == change.lease
                if queue == change.queue and is_meant:
                    lease_history.changes.append(change)

    def _add(self, event: Event) -> None:
        self.end_us = max(self.end_us, event.invoke_us, event.complete_us or 0)
        if isinstance(event, LeaseChange):
            self._add_lease_change(event)
            return
        if isinstance(event, Receive) and event.lease:
            self.leases[event.queue, event.lease].receives.append(event)
        if event.outcome == "fail" and not isinstance(event, Send):
            return
        match event:
            case CreateQueue():
                self.queues[event.queue] = event
            case Send():
                for sent in event.messages:
                    self._add_sent(event, sent)
            case Receive():
                self.receives.append(event)
                if event.attempt_id and not event.lease:
                    self.attempts[event.queue, event.attempt_id].append(event)
            case Delete():
                self.deletes[event.message_id].append(event)
            case ChangeVisibility():
                self.changes[event.receipt_handle].append(event)
                self.changes_of[event.message_id].append(event)
            case ChangePriority():
                for message_id in event.message_ids:
                    self.priorities[message_id].append(event)
            case StartMove():
                self.moves.append(event)
            case Advance():
                self.advances.append(event)

    def _add_lease_change(self, change: LeaseChange) -> None:
        """Record a change of leases. Record a commit also as deletes of its messages.

        Even a refused commit may have committed some of the leases.
        """
        self.lease_changes.append(change)
        for message in change.messages if change.action == "commit" else ():
            delete = Delete(
                client=change.client,
                queue=change.queue,
                invoke_us=change.invoke_us,
                complete_us=change.complete_us,
                outcome="ok" if change.outcome == "ok" else "unknown",
                message_id=message.message_id,
                receipt_handle=message.receipt_handle,
            )
            self.deletes[message.message_id].append(delete)

    def _add_sent(self, send: Send, sent: SentMessage) -> None:
        key: tuple[str, ...] = (send.queue, sent.body)
        if sent.deduplication_id:
            queue = self.queues.get(send.queue)
            scope = sent.group if queue is not None and queue.is_deduplicated_by_group else ""
            key = send.queue, scope, sent.deduplication_id
        message = self.messages.setdefault(key, Message(send.queue))
        message.sends.append((send, sent))
        self.by_body[sent.body] = message

    def _take(self, receive: Receive) -> None:
        for handed_out in receive.messages:
            delivery, message = Delivery(receive, handed_out), self.by_body.get(handed_out.body)
            if message is None:
                self.unknown[handed_out.body].append(delivery)
            else:
                message.deliveries.append(delivery)

    def _prolong(self, repeats: list[Receive]) -> None:
        """Record a repeat of a receive (same ReceiveRequestAttemptId) as a new visibility timeout of each message."""
        for receive in repeats:
            for message in receive.messages:
                for other in repeats:
                    has_it = any(each.receipt_handle == message.receipt_handle for each in other.messages)
                    is_later = other is not receive and other.invoke_us >= (receive.complete_us or 0)
                    if other.outcome == "unknown" or (is_later and has_it):
                        self.changes[message.receipt_handle].append(_as_change(other, message))

    # --- queries of the rules -------------------------------------------------------

    def places(self, queue: str) -> frozenset[str]:
        """Return all queues in which a message sent to ``queue`` may be."""
        known = self._places.get(queue)
        if known is None:
            found, new = {queue}, [queue]
            while new:
                nexts = self._next_places(new.pop()) - found
                found |= nexts
                new += sorted(nexts)
            known = self._places[queue] = frozenset(found)
        return known

    def _next_places(self, queue: str) -> set[str]:
        made = self.queues.get(queue)
        found = {made.dead_letter_queue} if made is not None and made.dead_letter_queue else set()
        for move in self.moves:
            if move.queue == queue:
                sources = {each.queue for each in self.queues.values() if each.dead_letter_queue == queue}
                found |= {move.destination} if move.destination else sources
        return found

    def moves_of(self, message: Message) -> int:
        """Return how many move tasks may have moved the message."""
        places = self.places(message.queue)
        return sum(move.queue in places for move in self.moves)

    def is_left(self, queue: str) -> bool:
        """Return whether messages may leave the queue by other means than a delete."""
        made = self.queues.get(queue)
        return bool(made is not None and made.dead_letter_queue) or any(move.queue == queue for move in self.moves)

    def is_one(self, message: Message) -> bool:
        """Return whether all sends of ``message`` were certainly within one deduplication window."""
        ends = [send.complete_us if send.outcome != "unknown" else None for send, _ in message.sends]
        last_us = max(self.end_us if end_us is None else end_us for end_us in ends)
        return len(ends) == 1 or last_us - message.invoked_us < DEDUPLICATION_US - self.early_us(
            message.invoked_us, last_us
        )

    def early_us(self, from_us: int, by_us: int) -> int:
        """Return how many us of true time too early a timeout may end, if it began at ``from_us`` or later.

        It is the sum of rounding, the clock's gain from ``from_us`` to ``by_us``, its jump between them, and all
        AdvanceClock calls that may have taken effect between them.
        """
        advances = [each for each in self.advances if each.invoke_us <= by_us]
        late = [each for each in advances if each.outcome != "ok" or (each.complete_us or from_us) >= from_us]
        jumped_ms = max((jump.ahead_ms for jump in self.jumps if from_us <= jump.at_us <= by_us), default=0)
        gained_us = math.ceil(self.drift * max(0, by_us - from_us))
        return ROUNDING_US + gained_us + 1_000 * (jumped_ms + sum(each.advance_ms for each in late))

    def hidden_until_us(self, delivery: Delivery, by_us: int) -> int:
        """Return the earliest moment at which the message may be visible again, by the events until ``by_us``.

        A change of the visibility timeout sets a new deadline if it completed while the message was certainly in
        flight. Other changes count only if they make the deadline earlier, because they may have had no effect. Their
        outcome is unknown, or they may have come after the deadline. A change after the deadline succeeds and does
        nothing.

        A change of unknown outcome may take effect after a later change. So if there is one, the earliest deadline of
        all changes counts. A change with another receive's handle also acts on the message of a standard queue. It,
        too, counts only if it makes the deadline earlier.
        """
        taken_by = delivery.taken_by
        if taken_by.lease:
            lease_history = self.leases[taken_by.queue, taken_by.lease]
            return lease_history.deadline_us(by_us) - self.early_us(lease_history.began_us, by_us)
        from_us = max(taken_by.invoke_us, taken_by.attempted_us)  # a retried receive restarts the timeout
        bound_us = self.early_us(from_us, by_us)
        until_us = from_us + taken_by.visibility_ms * 1_000 - bound_us
        handle = delivery.message.receipt_handle
        changes = [change for change in self.changes.get(handle, ()) if change.invoke_us <= by_us]
        changes.sort(key=lambda change: change.invoke_us)
        certain = all(change.outcome == "ok" for change in changes)
        for change in changes:
            changed_us = change.invoke_us + change.visibility_ms * 1_000 - bound_us
            took_effect = certain and change.complete_us is not None and change.complete_us < min(by_us, until_us)
            until_us = changed_us if took_effect else min(until_us, changed_us)
        return min([until_us, *self._foreign_ends_us(delivery, by_us)])

    def _foreign_ends_us(self, delivery: Delivery, by_us: int) -> list[int]:
        """Return the deadlines that changes with other receipt handles of the message may have set."""
        message, invoke_us = delivery.message, delivery.taken_by.invoke_us
        return [
            change.invoke_us + change.visibility_ms * 1_000 - self.early_us(change.invoke_us, by_us)
            for change in self.changes_of.get(message.message_id, ())
            if change.receipt_handle != message.receipt_handle and change.invoke_us <= by_us
            if change.outcome != "ok" or change.complete_us is None or change.complete_us >= invoke_us
        ]

    def overlap(self, one: Delivery, other: Delivery) -> bool:
        """Return whether both receives certainly held the message at the same time."""
        one_us, other_us = one.completed_us, other.completed_us
        return other_us < self.hidden_until_us(one, other_us) and one_us < self.hidden_until_us(other, one_us)


def _as_change(receive: Receive, message: HandedOut) -> ChangeVisibility:
    return ChangeVisibility(
        client=receive.client,
        queue=receive.queue,
        invoke_us=receive.invoke_us,
        complete_us=receive.complete_us,
        outcome=receive.outcome,
        message_id=message.message_id,
        receipt_handle=message.receipt_handle,
        visibility_ms=receive.visibility_ms,
    )
