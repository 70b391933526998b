"""Collects the answers of one turn of the loop, so that all sockets that are ready are read before any is written to.

A write wakes the client on another core, which is a sixth of what a send
costs; one that carries several answers, or follows other writes at once, wakes
it once. A connection with answers is entered here, and one callback at the end
of the turn has each connection write what it has. Whatever else is done to a
connection (close, FIN, abort, a request for aiohttp) flushes it first.
"""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

CONNECTIONS_MAX: Final = 64
"""So many connections wait for the end of the turn; then all are written to, so that the first does not wait long."""
ANSWER_BYTES_MAX: Final = 16_384
"""A connection whose answers are longer together is written to at once, so that nothing large is kept twice."""


class Sender(Protocol):
    """What the outbox wants of a connection."""

    def flush(self) -> None:
        """Write what there is to write; nothing, if it has been written meanwhile."""


class Outbox:
    """The connections of one port that have something to write."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Sender] = []

    def add(self, sender: Sender) -> None:
        """Have ``sender`` flushed at the end of this turn of the loop, or at once where too many wait already."""
        waiting = self._waiting
        waiting.append(sender)
        if len(waiting) == 1:
            self._loop.call_soon(self.flush)
        elif len(waiting) >= CONNECTIONS_MAX:
            self.flush()

    def flush(self) -> None:
        """Have all connections write."""
        waiting, self._waiting = self._waiting, []
        for sender in waiting:
            sender.flush()
