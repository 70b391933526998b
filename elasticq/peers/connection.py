"""A TCP connection between two processes of a cluster: handshake, frames in both directions, and bounds.

    opened ── handshake ──> established ── (held while a rival is probed) ──> closed
       └──────────── any error, timeout, end of stream ────────────────────────┘

The frames of one turn of the event loop are sent with one write. The connection knows no members. Its owner decides
which connections may stay, and gives each a session.
"""

import asyncio
import socket
from typing import Protocol, cast

from elasticq.peers.errors import (
    NO_ANSWER,
    HandshakeError,
    PeerError,
    SelfMet,
    SlowReader,
    Unanswered,
    UnexpectedKind,
)
from elasticq.peers.frames import LINK_KINDS, REFUSED, TRANSFER_KINDS, FrameReader, FrameWriter, MacSeal
from elasticq.peers.handshake import Handshake
from elasticq.peers.messages import STRANGER, Hello, Purpose, Refused, decode, encode

HANDSHAKE_S = 3.0
LINGER_S = 1.0  # how long a closed connection may take to send its last frames


class Session(Protocol):
    """The receiver of an established connection's frames."""

    def take(self, kind: int, body: bytes) -> None:
        """Handle one frame. A PeerError raised here closes the connection and is logged in one line."""

    def ended(self) -> None:
        """Handle the end of the connection. Called once."""


class Owner(Protocol):
    """The decisions about connections. All methods are called in the event loop's thread."""

    def handshake(self, connection: "Connection") -> Handshake:
        """Return a handshake for a new connection, with a new nonce."""

    def may_prove(self, connection: "Connection", theirs: Hello) -> bool:
        """Return whether a dialler may send its proof. If not (a link exists already), the connection closes."""

    def established(self, connection: "Connection", theirs: Hello) -> None:
        """Handle the end of a successful handshake.

        Set the connection's ``session``, or close the connection. To decide later, first stop reading with ``hold``.
        """

    def refused(self, connection: "Connection", refused: Refused) -> None:
        """Handle a refusal by the other side, which then closes.

        A refusal before ``established`` is unauthenticated: anybody can send it.
        """

    def fault(self, connection: "Connection", error: PeerError) -> None:
        """Handle an error that is about to close the connection."""

    def closed(self, connection: "Connection") -> None:
        """Handle the end of the connection. Called once, after the session's ``ended``."""


class Connection(asyncio.Protocol):
    """One TCP connection.

    place: the address of the other side, for logs. theirs: its hello, None until it is proven.
    sent_s, heard_s: loop time of the last sent and of the last received bytes.
    outcome: True once the connection is established, False if it closes before.
    """

    def __init__(
        self,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
        send_buffer_bytes: int,
        *,
        is_dialler: bool,
        purpose: Purpose = "link",
        place: str = "",
    ) -> None:
        self._owner = owner
        self._loop = loop
        self._send_buffer_bytes = send_buffer_bytes
        self._transport: asyncio.Transport | None = None
        self._handshake: Handshake | None = None
        self._reader = FrameReader()
        self._pieces: list[bytes] = []
        self._unsent_bytes = 0
        self._is_gone = False
        self._is_held = False
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._timer: asyncio.TimerHandle | None = None
        self.writer = FrameWriter()
        self.is_dialler = is_dialler
        self.purpose: Purpose = purpose
        self.place = place
        self.theirs: Hello | None = None
        self.session: Session | None = None
        self.is_established = False
        self.is_closed = False
        self.failure: PeerError | None = None
        self.outcome: asyncio.Future[bool] = loop.create_future()
        self.sent_s = self.heard_s = loop.time()
        self.bytes_sent = 0
        self.bytes_received = 0

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from it
        bare = transport.get_extra_info("socket")
        if bare is not None:
            bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.place:
            self.place = str((transport.get_extra_info("peername") or ("unknown",))[0])
        self._timer = self._loop.call_later(HANDSHAKE_S, self._handshake_timed_out)
        self._handshake = self._owner.handshake(self)
        for kind, body in self._handshake.start():
            self.send(kind, body)

    def data_received(self, data: bytes) -> None:
        if self.is_closed:
            return
        self.heard_s = self._loop.time()
        self.bytes_received += len(data)
        self._reader.feed(data)
        self._read()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        self._mark_closed()
        if self._timer is not None:
            self._timer.cancel()
        self._can_write.set()
        if self.session is not None:
            self.session.ended()
        self._owner.closed(self)

    # Called by the owner and the session.

    @property
    def local_host(self) -> str:
        """Return the address of this machine at which the connection ends, empty if unknown."""
        return self._host("sockname")

    @property
    def remote_host(self) -> str:
        """Return the address of the other side's machine, empty if unknown."""
        return self._host("peername")

    def _host(self, name: str) -> str:
        found = self._transport.get_extra_info(name) if self._transport else None
        return str(found[0]) if found else ""

    def send(self, kind: int, body: bytes) -> None:
        """Send a frame, in one write with all others of this turn of the loop. Drop it if the connection is closed."""
        if self.is_closed:
            return
        pieces = self._pieces
        if not pieces:
            self._loop.call_soon(self._flush)
        self.writer.add(pieces, kind, body)
        self._unsent_bytes += len(body)
        if self._unsent_bytes > self._send_buffer_bytes:
            self._overflow()

    def send_sealed(self, pieces: list[bytes]) -> None:
        """Send frames that the caller made with ``writer``. No other frame may be sent between making and sending."""
        if not self.is_closed:
            if not self._pieces:
                self._loop.call_soon(self._flush)
            self._pieces += pieces

    async def drained(self) -> None:
        """Wait until the transport's write buffer is low again, or the connection is closed."""
        await self._can_write.wait()

    def refuse(self, code: str, reason: str) -> None:
        """Send the other side a REFUSED frame with the reason, and close."""
        self.send(REFUSED, encode(Refused(code, reason)))
        self.close()

    def hold(self) -> None:
        """Stop reading frames until ``resume``."""
        self._is_held = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._is_held and not self.is_closed and self._transport is not None:
            self._is_held = False
            self._transport.resume_reading()
            self._loop.call_soon(self._read)

    def close(self) -> None:
        """Send the waiting frames, then close."""
        if self.is_closed:
            return
        self._flush()
        self._mark_closed()
        if self._transport is not None:
            self._transport.close()
            self._abort_after(LINGER_S)

    def abort(self) -> None:
        """Close at once."""
        if not self.is_closed:
            self._mark_closed()
            if self._transport is not None:
                self._transport.abort()
                self._abort_after(LINGER_S)

    def fail(self, error: PeerError) -> None:
        """Close because of an error. The owner logs it in one line.

        After a HandshakeError, also send the reason to the other side, so its operator can see it there.
        """
        if self.is_closed:
            return
        self.failure = error
        self._owner.fault(self, error)
        if isinstance(error, HandshakeError) and not isinstance(error, SelfMet):
            self.refuse(STRANGER, f"{error.reason}: {error}")
        else:
            self.abort()

    # Private.

    def _abort_after(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._give_up)

    def _give_up(self) -> None:
        """Abort a connection that has not closed in time.

        Either the other side reads no bytes, or the loop did not report the end. uvloop does not report it if the
        dial was cancelled.
        """
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    def _mark_closed(self) -> None:
        self.is_closed = True
        self._pieces = []
        if not self.outcome.done():
            self.outcome.set_result(False)

    def _flush(self) -> None:
        if self.is_closed or not self._pieces or self._transport is None:
            return
        data = b"".join(self._pieces)  # one buffer: joining small pieces costs less than a vectored write
        self._pieces = []
        self._unsent_bytes = 0
        self.bytes_sent += len(data)
        self.sent_s = self._loop.time()
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > self._send_buffer_bytes:
            self._overflow()

    def _overflow(self) -> None:
        self.fail(SlowReader(f"it has not read more than {self._send_buffer_bytes} bytes that were sent to it"))

    def _read(self) -> None:
        reader = self._reader
        try:
            while not (self.is_closed or self._is_held):
                frame = reader.next_frame()
                if frame is None:
                    return
                if self.session is not None:
                    self.session.take(*frame)
                else:
                    self._take(*frame)
        except PeerError as error:
            self.fail(error)

    def _take(self, kind: int, body: bytes) -> None:
        """Handle a frame that arrives before there is a session. Raise PeerError to close the connection."""
        assert self._handshake is not None
        if kind == REFUSED:
            self._owner.refused(self, decode(body, Refused))
            self.close()
            return
        if self.is_established:
            raise UnexpectedKind(f"a frame of kind {kind} arrived before the link was accepted")
        answers = self._handshake.step(kind, body)
        theirs = self._handshake.theirs
        assert theirs is not None
        if self._handshake.is_proven:
            self.theirs = theirs
        if not self.is_dialler:
            self.purpose = theirs.purpose
        if self.is_dialler and self._handshake.is_proven and not self._owner.may_prove(self, theirs):
            self.close()
            return
        for answer in answers:
            self.send(*answer)
        if self._handshake.is_proven:
            self._establish(theirs)

    def _establish(self, theirs: Hello) -> None:
        assert self._handshake is not None
        if self._timer is not None:
            self._timer.cancel()
        if self._handshake.keys is not None:
            sending, receiving = self._handshake.keys
            self.writer.seal = MacSeal(sending)
            self._reader.seal = MacSeal(receiving)
        self._reader.allow(LINK_KINDS if self.purpose == "link" else TRANSFER_KINDS)
        self.is_established = True
        self._owner.established(self, theirs)
        if not self.outcome.done():
            self.outcome.set_result(not self.is_closed)

    def _handshake_timed_out(self) -> None:
        if not self.is_established:
            self.failure = Unanswered(f"{NO_ANSWER} within {HANDSHAKE_S:g} s")
            self.abort()
