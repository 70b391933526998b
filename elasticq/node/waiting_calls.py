"""Calls that wait for a master: nothing was done for them yet, here or elsewhere."""

from collections import deque
from typing import Final

from elasticq.model.commands import Call
from elasticq.node.outputs import Ticket

WAITING_CALLS_MAX: Final = 10_000


class WaitingCalls:
    """First come, first served. A call waits for ``wait_ms`` at most; all times are boot-clock ms."""

    __slots__ = ("_wait_ms", "_waiting")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._waiting: deque[tuple[int, Call, Ticket]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def hold(self, call: Call, ticket: Ticket, now_ms: int) -> bool:
        """Let the call wait; False if too many wait already."""
        if len(self._waiting) >= WAITING_CALLS_MAX:
            return False
        self._waiting.append((now_ms + self._wait_ms, call, ticket))
        return True

    def take_all(self) -> list[tuple[Call, Ticket]]:
        """Remove and return all calls that wait."""
        taken = [(call, ticket) for _, call, ticket in self._waiting]
        self._waiting.clear()
        return taken

    def pop_expired(self, now_ms: int) -> tuple[Call, Ticket] | None:
        """Remove and return the call that waited longest if its time is up; None if it is not."""
        if not self._waiting or self._waiting[0][0] > now_ms:
            return None
        _, call, ticket = self._waiting.popleft()
        return call, ticket

    def cancel(self, ticket: Ticket) -> None:
        """Remove the call of a client that left; an unknown ticket changes nothing."""
        if self._waiting:
            self._waiting = deque(item for item in self._waiting if item[2] != ticket)

    def next_deadline_ms(self) -> int | None:
        """The time at which the first wait ends; None if no call waits."""
        return self._waiting[0][0] if self._waiting else None
