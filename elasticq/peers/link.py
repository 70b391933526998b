"""The link between this member and another one: greetings, frames of the nodes, probes and keep-alives."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from elasticq.node.membership.peer import Peer
from elasticq.peers.admission import claim_of
from elasticq.peers.connection import Connection
from elasticq.peers.errors import BadMessage, PeerError, UnexpectedKind
from elasticq.peers.frames import ASK, DATA, FRAME_BYTES_MAX, GREETING, IDLE, PING, PONG, REFUSED, REPLY
from elasticq.peers.messages import Greeting, Hello, Known, Refused, decode, encode

IDLE_S = 0.5  # if no frame was sent for this long, the link sends an empty one
SILENT_S = 3.0  # if no byte was received for this long, the link is closed
PROBE_S = 0.5  # the timeout of a probe
PROBES_MAX = 8


class Silent(PeerError):
    """A link over which nothing was received for SILENT_S."""

    reason = "silent"


class LinkOwner(Protocol):
    def greeted(self, link: "Link", known: tuple[Known, ...]) -> None:
        """Handle a greeting, which may have changed ``link.peer``. Raise PeerError to end the link."""

    def refused(self, connection: Connection, refused: Refused) -> None: ...

    def talked(self, link: "Link", kind: int, body: bytes) -> None:
        """Handle a question for this member or an answer to one of its questions. Raise PeerError to end the link."""

    def link_ended(self, link: "Link") -> None: ...


class Link:
    """The session of a connection with the purpose ``link``.

    claim: the other process's claim to its name. dialler_id: the member id of the side that dialled.
    """

    def __init__(
        self,
        owner: LinkOwner,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        theirs: Hello,
        own_id: str,
        receive: Callable[[str, bytes], None],
    ) -> None:
        self._owner = owner
        self._loop = loop
        self._receive = receive
        self._probes: dict[bytes, asyncio.Future[bool]] = {}
        self._probes_sent = 0
        self.connection = connection
        self.peer = theirs.peer
        self.claim = claim_of(theirs, loop.time())
        self.dialler_id = own_id if connection.is_dialler else theirs.peer.id
        self.is_greeted = False
        self.frames_received = 0
        self.frames_sent = 0

    def greet(self, peer: Peer, known: tuple[Known, ...]) -> None:
        self.connection.send(GREETING, encode(Greeting(peer, known)))

    def send(self, frame: bytes) -> None:
        assert len(frame) <= FRAME_BYTES_MAX, "a frame longer than FRAME_BYTES_MAX"
        self.frames_sent += 1
        self.connection.send(DATA, frame)

    def take(self, kind: int, body: bytes) -> None:
        if kind == DATA and self.is_greeted:
            self.frames_received += 1
            self._receive(self.peer.id, body)
        elif kind in (ASK, REPLY) and self.is_greeted:
            self._owner.talked(self, kind, body)
        elif kind == GREETING:
            self._take_greeting(decode(body, Greeting))
        elif kind == PING:
            self.connection.send(PONG, body)
        elif kind == PONG:
            self._settle(body, answered=True)
        elif kind == REFUSED:
            self._owner.refused(self.connection, decode(body, Refused))
            self.connection.close()
        elif kind != IDLE:
            raise UnexpectedKind(f"a frame of kind {kind} arrived before a greeting")

    def ended(self) -> None:
        for probe in list(self._probes):
            self._settle(probe, answered=False)
        self._owner.link_ended(self)

    async def answers(self) -> bool:
        """Return whether the other process answers a probe within PROBE_S.

        Return True without a probe if PROBES_MAX probes wait for an answer.
        """
        if self.connection.is_closed or len(self._probes) >= PROBES_MAX:
            return not self.connection.is_closed
        self._probes_sent += 1
        probe = self._probes_sent.to_bytes(8, "big")
        answer: asyncio.Future[bool] = self._loop.create_future()
        self._probes[probe] = answer
        self.connection.send(PING, probe)
        timer = self._loop.call_later(PROBE_S, self._settle, probe, False)
        try:
            return await answer
        finally:
            timer.cancel()
            self._probes.pop(probe, None)

    def tick(self, now_s: float) -> None:
        """Send an empty frame if none was sent for IDLE_S. Raise Silent if nothing was received for SILENT_S."""
        if now_s - self.connection.heard_s > SILENT_S:
            raise Silent(f"nothing was received for {SILENT_S:g} s")
        if now_s - self.connection.sent_s > IDLE_S:
            self.connection.send(IDLE, b"")

    def _take_greeting(self, greeting: Greeting) -> None:
        if (greeting.peer.id, greeting.peer.incarnation) != (self.peer.id, self.peer.incarnation):
            raise BadMessage("a greeting arrived with the name of another process")
        self.peer = greeting.peer
        self._owner.greeted(self, greeting.known)
        self.is_greeted = True

    def _settle(self, probe: bytes, answered: bool) -> None:
        answer = self._probes.get(probe)
        if answer is not None and not answer.done():
            answer.set_result(answered)
