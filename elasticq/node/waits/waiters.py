"""Long polls: receives that wait at the master until a message is available or their time is up."""

from collections.abc import Set
from heapq import heappop, heappush
from typing import Final

from elasticq.engine.actions.leases import is_leased
from elasticq.engine.state import Queue
from elasticq.engine.stored.consumer_group_rows import WHOLE
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.node.outputs import Ticket


class Waiter:
    """One waiting receive.

    ticket: the ticket of the client's newest attempt.
    is_over: the receive was answered or cancelled.
    partition: the partition that it receives from; WHOLE means any message of its queue.
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
        """Return whether it waits for a partition under a lease."""
        return self.partition != WHOLE and is_leased(self.call)

    @property
    def attempt_id(self) -> str | None:
        command = self.call.command
        return command.receive_request_attempt_id if isinstance(command, ReceiveMessage) else None


_NONE: Final[frozenset[int]] = frozenset()
_NO_WAITERS: Final[dict[int, dict[int, Waiter]]] = {}


class Waiters:
    """The waiting receives. Each queue serves them in the order in which they came.

    Deadlines are in ms of the boot clock, and due times in ms of cluster time.

    _by_queue: queue id -> partition or WHOLE -> number of the receive -> receive.
    _leased: how many receives wait for a partition under a lease.
    """

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
        """Let a receive wait. With ``partition`` it waits for messages of that partition only."""
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
        """Let a retry replace the waiting attempt of the same call.

        Return the replaced ticket; None if no attempt waits.

        Only one attempt may own the wait. If both were answered, the unread answer would make its messages visible
        again while the retry holds them.
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
        """Return the oldest receive that waits for ``partition``; None without one. WHOLE does not include
        partitions."""
        waiting = self._by_queue.get(queue_id, _NO_WAITERS).get(partition)
        return next(iter(waiting.values())) if waiting else None

    def next(self, queue_id: int, in_vain: frozenset[int], queue: Queue | None, time_ms: int) -> Waiter | None:
        """Return the oldest receive that may find a message by cluster time ``time_ms``; None without one.

        A receive for one partition is skipped until that partition has a deliverable message. One under a lease is
        never skipped: the messages of its own lease keep the partition blocked, but it may receive those after them.

        in_vain: the partitions for which another receive has just found nothing.
        queue: None if the queue was deleted; then no receive is skipped, because each must get that error.
        """
        first = None if WHOLE in in_vain else self.first(queue_id)
        awaited: Set[int] = self._by_queue.get(queue_id, _NO_WAITERS).keys()
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
        """Return the receive with this ticket; None if it does not wait."""
        return self._by_ticket.get(ticket)

    def cancel(self, ticket: Ticket) -> None:
        """Remove the receive of a client that disconnected. An unknown ticket changes nothing."""
        waiter = self._by_ticket.get(ticket)
        if waiter is not None:
            self.remove(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Remove a receive that was answered or whose client disconnected."""
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
        """Return how many receives wait at each queue, partitions included, by queue id.

        Queues without waiters are left out.
        """
        return {queue_id: sum(map(len, places.values())) for queue_id, places in self._by_queue.items()}

    def all(self) -> list[Waiter]:
        return [waiter for queue_id in self._by_queue for waiter in self._of(queue_id)]

    def _of(self, queue_id: int) -> list[Waiter]:
        """Return all receives that wait for the queue or for one of its partitions."""
        return [waiter for waiting in self._by_queue.get(queue_id, _NO_WAITERS).values() for waiter in waiting.values()]

    def twins(self, waiter: Waiter) -> list[Waiter]:
        """Return the other receives that wait for the same queue with the same ReceiveRequestAttemptId."""
        attempt_id = waiter.attempt_id
        waiting = self._of(waiter.queue_id)
        return [other for other in waiting if other is not waiter and other.attempt_id == attempt_id]

    def fenced(self, queue_id: int) -> list[Waiter]:
        """Return the receives of consumer group members that wait for the queue."""
        return [each for each in self._of(queue_id) if each.has_fence]

    def is_awaited(self, queue_id: int) -> bool:
        return queue_id in self._by_queue

    # --- time ---------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        while self._deadlines and self._deadlines[0][2].is_over:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def pop_expired(self, now_ms: int) -> Waiter | None:
        """Remove one receive whose deadline has passed from the deadlines only, and return it; None if there is
        none."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        return heappop(self._deadlines)[2]

    def take_all(self) -> list[Waiter]:
        """Remove and return all receives."""
        found = self.all()
        for waiter in found:
            self.remove(waiter)
        self._deadlines.clear()
        self._dues.clear()
        self._due_at.clear()
        return found

    def expect(self, queue_id: int, due_ms: int | None) -> None:
        """Note that a message of an awaited queue may become available at cluster time ``due_ms``."""
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
        """Remove and return one queue with a message due by cluster time ``time_ms``; None if there is none."""
        due_ms = self.next_due_ms()
        if due_ms is None or due_ms > time_ms:
            return None
        queue_id = heappop(self._dues)[1]
        del self._due_at[queue_id]
        return queue_id
