"""The acceptor of one port: it bounds the port's connections, including those in a TLS handshake.

asyncio's servers accept every waiting connection, and report a connection only after its TLS handshake. A burst of
connections, or of silent handshakes, could then use all file descriptors of the process, including those that the
message log needs. The acceptor instead closes each connection beyond the bound at once.
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
ACCEPTED_A_TURN: Final = 64  # connections accepted in one turn of the event loop, before other work gets its turn
PAUSE_S: Final = 0.2  # pause in accepting after the system had no file or memory for a connection
QUIET_S: Final = 60.0  # least time between two warnings

_log = getLogger("elasticq.net")


class Acceptor:
    """An acceptor on non-blocking listening sockets. Before ``start``, clients wait in the sockets' backlog.

    count: returns how many connections that ``factory`` made are open. connections_max: the bound of these
    connections and the TLS handshakes together. At the bound, a new connection replaces one that is still in its
    handshake. If there is no such connection, the acceptor closes the new one.
    """

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
        self._handshakes: dict[asyncio.Task[None], str] = {}  # with the client's address, the oldest first
        self._quiet_until_s = 0.0
        self._is_closed = False

    def start(self) -> None:
        for listener in self._listeners:
            self._loop.add_reader(listener, self._accept, listener)

    def renew(self, tls: ssl.SSLContext | None) -> None:
        """Use another TLS context for new connections."""
        self._tls = tls

    def close(self) -> None:
        """Stop accepting, and end the handshakes that are in progress."""
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
        """Stop accepting for PAUSE_S after an error. Otherwise the event loop would only repeat the failing call."""
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE_S, self._go_on, listener)
        self._complain("connections_not_accepted %s: %s", error)

    def _go_on(self, listener: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listener, self._accept, listener)

    def _complain(self, text: str, reason: object) -> None:
        """Log a warning unless one was logged within QUIET_S."""
        if self._loop.time() >= self._quiet_until_s:
            self._quiet_until_s = self._loop.time() + QUIET_S
            _log.warning(text, self._name, reason)

    def _take(self, accepted: socket.socket, address: str) -> None:
        """Start the handshake of an accepted connection. At the bound, close an older handshake first, or this one."""
        is_full = self._count() + len(self._handshakes) >= self._connections_max
        if is_full or len(self._handshakes) >= HANDSHAKES_MAX:
            if not self._handshakes or self._tls is None:
                accepted.close()
                self._complain(
                    "connections_closed_at_once %s: at most %s connections may be open", self._connections_max
                )
                return
            slow = choose_victim(self._handshakes)
            del self._handshakes[slow]
            slow.cancel()
        accepted.setblocking(False)
        handshake = self._loop.create_task(self._open(accepted))
        self._handshakes[handshake] = address
        handshake.add_done_callback(self._opened)

    async def _open(self, accepted: socket.socket) -> None:
        """Pass a connection to its protocol after the TLS handshake. Do not log failed handshakes: there are many."""
        timeout_s = None if self._tls is None else self._handshake_s
        try:
            await self._loop.connect_accepted_socket(
                self._factory, accepted, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except OSError:  # SSL errors and timeouts are OSErrors, too
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    def _opened(self, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.pop(handshake, None)
        if not handshake.cancelled() and (error := handshake.exception()) is not None:
            self._complain("connection_not_opened %s: %r", error)


async def listeners_of(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return non-blocking listening sockets, one for each address of ``host``, all at the same port.

    host: empty for all addresses of this machine. port: 0 for a free port. Raise OSError if one cannot listen.
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
