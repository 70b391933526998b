"""Accepts the connections of one port, as many as it may have, and counts those in their TLS handshake too.

asyncio's servers accept whatever waits, before anything can be counted, and know nothing of a connection until its
TLS handshake is over: a burst, or silence in handshakes, then takes all files of the process, and the log finds none.
Here a connection is accepted only where there is room for it; beyond that it is closed at once.
"""

import asyncio
import socket
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Callable
from logging import getLogger
from typing import Final

from elasticq.net.connection_limits import choose_victim

HANDSHAKE_S: Final = 10.0
HANDSHAKES_MAX: Final = 256
ACCEPTED_A_TURN: Final = 64  # then others of the loop come first
PAUSE_S: Final = 0.2  # where the system has no file or memory for a connection
QUIET_S: Final = 60.0

_log = getLogger("elasticq.net")


class Acceptor:
    """Accepts on listening sockets that do not block, from ``start`` on; earlier clients wait in their backlog.

    count: returns how many connections of ``factory`` are open; connections_max: of them and of handshakes together.
    Where that is reached, a connection in its handshake is closed for a new one; if there is none, the new one is.
    """

    __slots__ = (
        "_connections_max",
        "_count",
        "_factory",
        "_handshake_s",
        "_handshakes",
        "_is_closed",
        "_listeners",
        "_loop",
        "_name",
        "_quiet_until_s",
        "_tls",
    )

    def __init__(
        self,
        name: str,
        loop: AbstractEventLoop,
        listeners: list[socket.socket],
        factory: Callable[[], asyncio.BaseProtocol],
        *,
        count: Callable[[], int],
        connections_max: int,
        tls: ssl.SSLContext | None = None,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        self._name = name
        self._loop = loop
        self._listeners = listeners
        self._factory = factory
        self._count = count
        self._connections_max = connections_max
        self._tls = tls
        self._handshake_s = handshake_s
        self._handshakes: dict[asyncio.Task[None], str] = {}  # where each is from, the oldest first
        self._quiet_until_s = 0.0
        self._is_closed = False

    def start(self) -> None:
        for listener in self._listeners:
            self._loop.add_reader(listener, self._accept, listener)

    def renew(self, tls: ssl.SSLContext | None) -> None:
        """Show another certificate to those who connect from now on."""
        self._tls = tls

    def close(self) -> None:
        """Accept no more, and end the handshakes under way."""
        self._is_closed = True
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()
        for handshake in list(self._handshakes):
            handshake.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_A_TURN):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(listener, error)
                return
            self._take(accepted, address[0] if isinstance(address, tuple) else "")

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        """Accept nothing for a moment after an error, or the loop would do nothing but try again."""
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE_S, self._go_on, listener)
        self._complain("connections_not_accepted %s: %s", error)

    def _go_on(self, listener: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listener, self._accept, listener)

    def _complain(self, text: str, reason: object) -> None:
        if self._loop.time() >= self._quiet_until_s:
            self._quiet_until_s = self._loop.time() + QUIET_S
            _log.warning(text, self._name, reason)

    def _take(self, accepted: socket.socket, address: str) -> None:
        is_full = self._count() + len(self._handshakes) >= self._connections_max
        if is_full or len(self._handshakes) >= HANDSHAKES_MAX:
            if not self._handshakes or self._tls is None:
                accepted.close()
                self._complain("connections_closed_at_once %s: there are %s already", self._connections_max)
                return
            slow = choose_victim(self._handshakes)
            del self._handshakes[slow]
            slow.cancel()
        accepted.setblocking(False)
        handshake = self._loop.create_task(self._open(accepted))
        self._handshakes[handshake] = address
        handshake.add_done_callback(self._opened)

    async def _open(self, accepted: socket.socket) -> None:
        """Hand a connection to its protocol after its TLS handshake. Failed ones are not logged: there are many."""
        timeout_s = None if self._tls is None else self._handshake_s
        try:
            await self._loop.connect_accepted_socket(
                self._factory, accepted, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except OSError:  # also ssl's errors and a timeout
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    def _opened(self, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.pop(handshake, None)
        if not handshake.cancelled() and (error := handshake.exception()) is not None:
            self._complain("connection_not_opened %s: %r", error)


async def listeners_of(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return non-blocking sockets, one for each address of ``host`` (empty: all of this machine), all at one port.

    Raises OSError.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listeners: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            port = listener.getsockname()[1]
            listener.listen(backlog)
            listener.setblocking(False)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners
