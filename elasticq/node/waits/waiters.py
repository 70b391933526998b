"""Long polls: receives that wait at the master until a message is there or their time is up."""

from collections.abc import Set
from heapq import heappop, heappush
from typing import Final

from elasticq.engine.actions.leases import is_leased
from elasticq.engine.state import Queue
from elasticq.engine.stored.consumer_group_rows import WHOLE
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.node.outputs import Ticket


class Waiter:
    """One waiting receive; ``ticket`` is its client's newest attempt, ``is_over`` once answered or cancelled.

    partition: the one that it waits for; WHOLE: for any message of its queue.
    """

    __slots__ = ("call", "deadline_ms", "is_over", "number", "partition", "queue_id", "ticket")

    def __init__(
        self, number: int, call: Call, queue_id: int, partition: int, deadline_ms: int, ticket: Ticket
    ) -> None:
        self.number = number
        self.call = call
        self.queue_id = queue_id
        self.partition = partition
        self.deadline_ms = deadline_ms
        self.ticket = ticket
        self.is_over = False

    @property
    def has_fence(self) -> bool:
        command = self.call.command
        return isinstance(command, ReceiveMessage) and command.elasticq_group is not None

    @property
    def is_leased(self) -> bool:
        """Whether it waits for a partition under a lease."""
        return self.partition != WHOLE and is_leased(self.call)

    @property
    def attempt_id(self) -> str | None:
        command = self.call.command
        return command.receive_request_attempt_id if isinstance(command, ReceiveMessage) else None


_NONE: Final[frozenset[int]] = frozenset()
_NOBODY: Final[dict[int, dict[int, Waiter]]] = {}


class Waiters:
    """The receives that wait, first come, first served for each queue. Deadlines are boot-clock ms, dues cluster ms.

    ``_by_queue``: by partition, WHOLE among them, and there by number. ``_leased``: how many wait for a partition under
    a lease.
    """

    __slots__ = (
        "_by_invocation",
        "_by_queue",
        "_by_ticket",
        "_deadlines",
        "_due_at",
        "_dues",
        "_leased",
        "_number",
        "count",
    )

    def __init__(self) -> None:
        self._by_queue: dict[int, dict[int, dict[int, Waiter]]] = {}
        self._by_ticket: dict[Ticket, Waiter] = {}
        self._by_invocation: dict[bytes, Waiter] = {}
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._dues: list[tuple[int, int]] = []
        self._due_at: dict[int, int] = {}
        self._number = 0
        self._leased = 0
        self.count = 0

    def add(self, call: Call, ticket: Ticket, queue_id: int, deadline_ms: int, partition: int | None = None) -> None:
        """Let the receive wait; partition: the one of whose messages alone it wants some."""
        self._number += 1
        place = WHOLE if partition is None else partition
        waiter = Waiter(self._number, call, queue_id, place, deadline_ms, ticket)
        self._by_queue.setdefault(queue_id, {}).setdefault(place, {})[waiter.number] = waiter
        self._by_ticket[ticket] = waiter
        if call.invocation:
            self._by_invocation[call.invocation] = waiter
        self._leased += waiter.is_leased
        heappush(self._deadlines, (deadline_ms, waiter.number, waiter))
        self.count += 1

    def take_over(self, call: Call, ticket: Ticket) -> Ticket | None:
        """Let a retry take the place of its call, if that waits; returns the displaced ticket, None if none waits.

        Only one attempt owns the wait: were both answered, the attempt that nobody reads any more would be
        given back, and the messages be visible while the retry holds them.
        """
        waiter = self._by_invocation.get(call.invocation) if call.invocation else None
        if waiter is None:
            return None
        displaced = waiter.ticket
        del self._by_ticket[displaced]
        waiter.ticket = ticket
        self._by_ticket[ticket] = waiter
        return displaced

    def first(self, queue_id: int, partition: int = WHOLE) -> Waiter | None:
        """The receive that has waited longest there; those that wait for a partition do not wait for the WHOLE."""
        waiting = self._by_queue.get(queue_id, _NOBODY).get(partition)
        return next(iter(waiting.values())) if waiting else None

    def next(self, queue_id: int, in_vain: frozenset[int], queue: Queue | None, time_ms: int) -> Waiter | None:
        """The receive that has waited longest, of those that may find something by cluster time ``time_ms``.

        One that waits for a partition is left alone until that partition is open: a message for another one does not
        wake it. Under a lease it may find what stands behind the lease's own messages, which opens nothing.
        in_vain: where another has found nothing. queue: None if it is deleted, which all are to learn.
        """
        first = None if WHOLE in in_vain else self.first(queue_id)
        awaited: Set[int] = self._by_queue.get(queue_id, _NOBODY).keys()
        if not awaited or (len(awaited) == 1 and WHOLE in awaited):
            return first
        if queue is not None:
            leased = {each for each in awaited if self._begins_leased(queue_id, each)} if self._leased else _NONE
            awaited = (awaited & queue.order.open_partitions(time_ms)) | leased
        for partition in awaited - in_vain:
            waiter = self.first(queue_id, partition)
            if waiter is not None and (first is None or waiter.number < first.number):
                first = waiter
        return first

    def _begins_leased(self, queue_id: int, partition: int) -> bool:
        waiter = self.first(queue_id, partition)
        return waiter is not None and waiter.is_leased

    def of(self, ticket: Ticket) -> Waiter | None:
        """The receive with this ticket; None if it does not wait."""
        return self._by_ticket.get(ticket)

    def cancel(self, ticket: Ticket) -> None:
        """Remove the receive of a client that left; an unknown ticket changes nothing."""
        waiter = self._by_ticket.get(ticket)
        if waiter is not None:
            self.remove(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Remove a receive that is over: it was answered, or its client left."""
        waiter.is_over = True
        del self._by_ticket[waiter.ticket]
        places = self._by_queue[waiter.queue_id]
        waiting = places[waiter.partition]
        del waiting[waiter.number]
        if not waiting:
            del places[waiter.partition]
            if not places:
                del self._by_queue[waiter.queue_id]
        if waiter.call.invocation:
            del self._by_invocation[waiter.call.invocation]
        self._leased -= waiter.is_leased
        self.count -= 1
        if len(self._deadlines) > 64 and len(self._deadlines) > 2 * self.count:
            self._deadlines = sorted(item for item in self._deadlines if not item[2].is_over)

    def counts(self) -> dict[int, int]:
        """How many receives wait at each queue or for a partition of it, by its id; only queues at which some wait."""
        return {queue_id: sum(map(len, places.values())) for queue_id, places in self._by_queue.items()}

    def all(self) -> list[Waiter]:
        return [waiter for queue_id in self._by_queue for waiter in self._of(queue_id)]

    def _of(self, queue_id: int) -> list[Waiter]:
        """The receives that wait for the queue, for all of it or a partition."""
        return [waiter for waiting in self._by_queue.get(queue_id, _NOBODY).values() for waiter in waiting.values()]

    def twins(self, waiter: Waiter) -> list[Waiter]:
        """The other receives that wait for the same queue under the same ReceiveRequestAttemptId."""
        attempt_id = waiter.attempt_id
        waiting = self._of(waiter.queue_id)
        return [other for other in waiting if other is not waiter and other.attempt_id == attempt_id]

    def fenced(self, queue_id: int) -> list[Waiter]:
        """The receives of consumers of groups that wait for the queue."""
        return [each for each in self._of(queue_id) if each.has_fence]

    def is_awaited(self, queue_id: int) -> bool:
        return queue_id in self._by_queue

    # --- time ---------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        while self._deadlines and self._deadlines[0][2].is_over:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def pop_expired(self, now_ms: int) -> Waiter | None:
        """A waiter whose time is up, removed from the deadlines only; None if there is none."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        return heappop(self._deadlines)[2]

    def take_all(self) -> list[Waiter]:
        """Remove and return all of them."""
        found = self.all()
        for waiter in found:
            self.remove(waiter)
        self._deadlines.clear()
        self._dues.clear()
        self._due_at.clear()
        return found

    def expect(self, queue_id: int, due_ms: int | None) -> None:
        """A message of an awaited queue may become available at cluster time ``due_ms``."""
        if due_ms is None or queue_id not in self._by_queue:
            return
        known_ms = self._due_at.get(queue_id)
        if known_ms is None or due_ms < known_ms:
            self._due_at[queue_id] = due_ms
            heappush(self._dues, (due_ms, queue_id))

    def next_due_ms(self) -> int | None:
        while self._dues and self._due_at.get(self._dues[0][1]) != self._dues[0][0]:
            heappop(self._dues)
        return self._dues[0][0] if self._dues else None

    def pop_due(self, time_ms: int) -> int | None:
        """Remove and return a queue of which a message is due by cluster time ``time_ms``; None if there is none."""
        due_ms = self.next_due_ms()
        if due_ms is None or due_ms > time_ms:
            return None
        queue_id = heappop(self._dues)[1]
        del self._due_at[queue_id]
        return queue_id
