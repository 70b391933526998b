"""Waiting heartbeats of consumers of consumer groups.

Each waits at the master until the assignment of its consumer changes.
"""

from heapq import heappop, heappush

from elasticq.model.commands import Call
from elasticq.node.outputs import Ticket


class WaitingHeartbeat:
    """One waiting heartbeat.

    consumer: the number of its consumer.
    hold_ms: how long the consumer may act after this heartbeat renewed its session. The session may have become longer
        since then.
    """

    __slots__ = ("call", "consumer", "deadline_ms", "hold_ms", "ticket")

    def __init__(self, consumer: int, call: Call, ticket: Ticket, deadline_ms: int, hold_ms: int) -> None:
        self.consumer = consumer
        self.call = call
        self.ticket = ticket
        self.deadline_ms = deadline_ms
        self.hold_ms = hold_ms


class Heartbeats:
    """The waiting heartbeats, at most one for each consumer. Deadlines are in ms of the boot clock."""

    def __init__(self) -> None:
        self._by_consumer: dict[int, WaitingHeartbeat] = {}
        self._by_ticket: dict[Ticket, WaitingHeartbeat] = {}
        self._deadlines: list[tuple[int, int, WaitingHeartbeat]] = []
        self._number = 0
        self.count = 0

    def add(self, heartbeat: WaitingHeartbeat) -> None:
        """Let a heartbeat wait. The caller has removed any older one of the same consumer."""
        assert heartbeat.consumer not in self._by_consumer, "the older one was taken"
        self._number += 1
        self._by_consumer[heartbeat.consumer] = heartbeat
        self._by_ticket[heartbeat.ticket] = heartbeat
        heappush(self._deadlines, (heartbeat.deadline_ms, self._number, heartbeat))
        self.count += 1

    def take(self, consumer: int) -> WaitingHeartbeat | None:
        """Remove and return the heartbeat of a consumer; None if none waits."""
        heartbeat = self._by_consumer.get(consumer)
        if heartbeat is not None:
            self._remove(heartbeat)
        return heartbeat

    def take_with(self, ticket: Ticket) -> WaitingHeartbeat | None:
        """Remove and return the heartbeat with this ticket; None if it does not wait."""
        heartbeat = self._by_ticket.get(ticket)
        if heartbeat is not None:
            self._remove(heartbeat)
        return heartbeat

    def take_expired(self, now_ms: int) -> WaitingHeartbeat | None:
        """Remove and return one heartbeat whose deadline has passed; None if there is none."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        heartbeat = heappop(self._deadlines)[2]
        self._remove(heartbeat)
        return heartbeat

    def take_all(self) -> list[WaitingHeartbeat]:
        """Remove and return all heartbeats, the oldest first."""
        found = list(self._by_consumer.values())
        for heartbeat in found:
            self._remove(heartbeat)
        self._deadlines.clear()
        return found

    def tickets(self) -> list[Ticket]:
        return list(self._by_ticket)

    def next_deadline_ms(self) -> int | None:
        while self._deadlines and not self._waits(self._deadlines[0][2]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _waits(self, heartbeat: WaitingHeartbeat) -> bool:
        return self._by_consumer.get(heartbeat.consumer) is heartbeat

    def _remove(self, heartbeat: WaitingHeartbeat) -> None:
        del self._by_consumer[heartbeat.consumer]
        del self._by_ticket[heartbeat.ticket]
        self.count -= 1
        if len(self._deadlines) > 64 and len(self._deadlines) > 2 * self.count:
            self._deadlines = sorted(item for item in self._deadlines if self._waits(item[2]))
