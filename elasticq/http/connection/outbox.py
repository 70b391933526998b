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
    """What the outbox wants of a connection.

    out: what is to be written at the end of the turn.
    """

    out: bytes

    def flush(self) -> None:
        """Write what there is to write; nothing, if it has been written meanwhile."""


class Outbox:
    """The answers of one port that are to be written."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Sender] = []

    def say(self, sender: Sender, answer: bytes) -> None:
        """Have ``sender`` write ``answer`` at the end of this turn of the loop, behind what else it has to say.

        It is written at once where too much would wait.
        """
        if sender.out:
            sender.out += answer
        else:
            sender.out = answer
            waiting = self._waiting
            if not waiting:
                self._loop.call_soon(self.flush)
            waiting.append(sender)
            if len(waiting) >= CONNECTIONS_MAX:
                self.flush()
                return
        if len(sender.out) > ANSWER_BYTES_MAX:
            sender.flush()

    def flush(self) -> None:
        """Have all connections write."""
        waiting, self._waiting = self._waiting, []
        for sender in waiting:
            sender.flush()
