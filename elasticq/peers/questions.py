"""The questions that members ask each other for operators, over the link between them.

So one operators' port can show the state of another member without a connection to that member's operators' port.

    asker                                     the member at the other end
    ASK(number, kind, body)  ──────────────>
                             <──────────────  REPLY(number, status, body)

The server defines kinds and bodies. The status is an HTTP status.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from elasticq.peers.errors import UnexpectedKind
from elasticq.peers.frames import ASK, CONTROL_BYTES_MAX, REPLY
from elasticq.peers.link import Link
from elasticq.peers.messages import Ask, Reply, decode, encode

ASKED_MAX: Final = 32  # questions of others that this process answers at the same time
ASKING_MAX: Final = 64  # questions of this process that wait for an answer
BODY_BYTES_MAX: Final = CONTROL_BYTES_MAX - 1_024
BUSY: Final = 503
FAILED: Final = 500

Answer = tuple[int, bytes]
"""HTTP status and body."""


class NotAnswered(Exception):
    """A question without an answer; the text is the reason."""


class Questions:
    """All questions of one process: those that it asks, and those that it answers.

    answer: called with (kind, body), returns this process's answer to a question of another member.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, answer: Callable[[str, bytes], Coroutine[None, None, Answer]]
    ) -> None:
        self._loop = loop
        self._answer = answer
        self._number = 0
        self._asked: dict[int, tuple[Link, asyncio.Future[Answer]]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def ask(self, link: Link | None, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return the answer of the member at the other end of ``link``. Raise NotAnswered if there is none in time."""
        if link is None:
            raise NotAnswered("there is no link to it")
        if len(self._asked) >= ASKING_MAX:
            raise NotAnswered(f"{ASKING_MAX} questions wait for an answer already")
        self._number += 1
        number = self._number
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._asked[number] = link, answer
        link.connection.send(ASK, encode(Ask(number, kind, body)))
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise NotAnswered(f"it did not answer within {timeout_s:g} s") from None
        finally:
            del self._asked[number]

    def take(self, link: Link, kind: int, body: bytes) -> None:
        """Handle a received ASK or REPLY frame. Raise PeerError if it is malformed."""
        if kind == ASK:
            self._take_question(link, decode(body, Ask))
        elif kind == REPLY:
            reply = decode(body, Reply)
            asked, answer = self._asked.get(reply.number, (None, None))
            if asked is link and answer is not None and not answer.done():  # otherwise the reply is too late
                answer.set_result((reply.status, reply.body))
        else:
            raise UnexpectedKind(f"a frame of kind {kind} is neither a question nor a reply")

    def _take_question(self, link: Link, asked: Ask) -> None:
        if len(self._answering) >= ASKED_MAX:
            link.connection.send(
                REPLY, encode(Reply(asked.number, BUSY, b'{"error":"too many questions at one time"}'))
            )
            return
        task = self._loop.create_task(self._reply(link, asked))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _reply(self, link: Link, asked: Ask) -> None:
        status, body = await self._answer(asked.kind, asked.body)
        if len(body) > BODY_BYTES_MAX:
            status, body = FAILED, b'{"error":"the answer is too long for a link"}'
        link.connection.send(REPLY, encode(Reply(asked.number, status, body)))

    def link_ended(self, link: Link) -> None:
        """Fail the questions that were asked over this link."""
        for asked, answer in list(self._asked.values()):
            if asked is link and not answer.done():
                answer.set_exception(NotAnswered("the link to it broke"))

    async def stop(self) -> None:
        tasks = list(self._answering)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
