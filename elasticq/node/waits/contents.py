"""Calls that wait at the master for message contents that are on disk."""

from typing import Final

from elasticq.model.commands import Call
from elasticq.node.outputs import Ticket

WAITING_MAX: Final = 10_000  # as many as a member may have connections


class ContentWaits:
    """The waiting calls by queue id, and the ready calls, whose contents came.

    ``count`` is the number of both together.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, dict[Ticket, Call]] = {}
        self._ready: dict[Ticket, Call] = {}
        self._queues: dict[Ticket, int] = {}
        self.count = 0

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    def add(self, queue_id: int, call: Call, ticket: Ticket) -> bool:
        """Let a call wait for contents of this queue. Return False if too many calls wait."""
        if self.count >= WAITING_MAX:
            return False
        self._waiting.setdefault(queue_id, {})[ticket] = call
        self._queues[ticket] = queue_id
        self.count += 1
        return True

    def fetched(self, queue_id: int) -> None:
        """Make the calls of this queue ready, behind those that are."""
        self._ready.update(self._waiting.pop(queue_id, {}))

    def take_ready(self, limit: int) -> list[tuple[Call, Ticket]]:
        """Remove and return up to ``limit`` ready calls, those first that became ready first."""
        found: list[tuple[Call, Ticket]] = []
        while self._ready and len(found) < limit:
            ticket = next(iter(self._ready))
            found.append((self._ready.pop(ticket), ticket))
            del self._queues[ticket]
        self.count -= len(found)
        return found

    def take_of(self, queue_id: int) -> list[tuple[Call, Ticket]]:
        """Remove and return the calls that wait for contents of this queue."""
        found = [(call, ticket) for ticket, call in self._waiting.pop(queue_id, {}).items()]
        for _, ticket in found:
            del self._queues[ticket]
        self.count -= len(found)
        return found

    def take_all(self) -> list[tuple[Call, Ticket]]:
        """Remove and return all calls, the ready ones first."""
        found = self.take_ready(self.count)
        for queue_id in list(self._waiting):
            found += self.take_of(queue_id)
        return found

    def cancel(self, ticket: Ticket) -> None:
        """Remove the call of a client that disconnected. An unknown ticket changes nothing."""
        queue_id = self._queues.pop(ticket, None)
        if queue_id is None:
            return
        self.count -= 1
        if self._ready.pop(ticket, None) is None:
            waiting = self._waiting[queue_id]
            del waiting[ticket]
            if not waiting:
                del self._waiting[queue_id]
