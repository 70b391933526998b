"""The answers of one turn of the loop: all ready sockets are read before any answer is written.

A write wakes the client on another core, which takes a sixth of the cost of a
send. A write with several answers, or several writes at once, wake it only once.
So connections with answers are collected here, and one callback at the end of
the turn lets each connection write its answers. Any other action on a connection
(close, FIN, abort, a request for aiohttp) flushes it first.
"""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

CONNECTIONS_MAX: Final = 64
"""When this many connections have answers, all are written at once, so that the first does not wait too long."""
ANSWER_BYTES_MAX: Final = 16_384
"""A connection with more bytes of answers writes them at once, so that large answers are not kept twice."""


class Sender(Protocol):
    """A connection, as the outbox uses it.

    out: the bytes to write at the end of the turn.
    """

    out: bytes

    def flush(self) -> None:
        """Write ``out``, unless it is empty because it was written already."""


class Outbox:
    """The connections of one port that have answers to write."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Sender] = []

    def say(self, sender: Sender, answer: bytes) -> None:
        """Let ``sender`` write ``answer`` at the end of this turn of the loop, after its earlier answers.

        It writes at once if too many bytes or too many connections wait.
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
        """Let all connections write their answers."""
        waiting, self._waiting = self._waiting, []
        for sender in waiting:
            sender.flush()
